// SPDX-License-Identifier: MIT
// Ops of networks, written with other ops: activations, normalisation, dropout, attention. Names
// and numerics are those of torch.nn.functional. f32 -> f32, of x's shape unless said otherwise.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tensorgrad/tensor.h"

namespace tensorgrad {

// ---- activations -------------------------------------------------------------------------------

// exp(x) / sum(exp(x)) along an axis, stable; a row of -inf alone gives NaN, as in PyTorch.
Tensor softmax(Tensor x, int axis = -1, Loc loc = Loc::current());
// The same over the elements where `mask` (bool, broadcasts to x) holds, and 0 elsewhere; a row
// without any is 0.
Tensor masked_softmax(Tensor x, Tensor mask, int axis = -1, Loc loc = Loc::current());
// log(softmax(x)), stable; an element -inf gives -inf.
Tensor log_softmax(Tensor x, int axis = -1, Loc loc = Loc::current());
// softmax((x + Gumbel noise) / tau): a sample of softmax(x) that can be differentiated (Jang, Gu
// and Poole 2017). `hard`: one-hot, with the gradient of the soft one.
Tensor gumbel_softmax(Tensor x, double tau = 1, bool hard = false, int axis = -1,
                      Loc loc = Loc::current());
enum class Gelu { kExact, kTanh };
// x * Phi(x) (Hendrycks and Gimpel 2016), or its tanh approximation.
Tensor gelu(Tensor x, Gelu form = Gelu::kExact, Loc loc = Loc::current());
// x * sigmoid(x).
Tensor silu(Tensor x, Loc loc = Loc::current());
// x where x > 0, else slope * x; gradient `slope` at 0.
Tensor leaky_relu(Tensor x, double slope = 0.01, Loc loc = Loc::current());
// leaky_relu with a learned slope: weight [1], or [C] for the C channels of axis 1.
Tensor prelu(Tensor x, Tensor weight, Loc loc = Loc::current());
// x where x > 0, else alpha * (e^x - 1) (Clevert, Unterthiner and Hochreiter 2016).
Tensor elu(Tensor x, double alpha = 1, Loc loc = Loc::current());
// x where x > 0, else alpha * (e^(x / alpha) - 1).
Tensor celu(Tensor x, double alpha = 1, Loc loc = Loc::current());
// Scaled elu that keeps mean 0 and variance 1 (Klambauer et al. 2017).
Tensor selu(Tensor x, Loc loc = Loc::current());
// x limited to [lo, hi]; gradient 0 at the bounds (clamp's is 1 there).
Tensor hardtanh(Tensor x, double lo = -1, double hi = 1, Loc loc = Loc::current());
// hardtanh(x, 0, 6).
Tensor relu6(Tensor x, Loc loc = Loc::current());
// hardtanh(x, -3, 3) / 6 + 1 / 2.
Tensor hardsigmoid(Tensor x, Loc loc = Loc::current());
// x * hardsigmoid(x).
Tensor hardswish(Tensor x, Loc loc = Loc::current());
// x * tanh(softplus(x)).
Tensor mish(Tensor x, Loc loc = Loc::current());
// log(sigmoid(x)), stable.
Tensor logsigmoid(Tensor x, Loc loc = Loc::current());
// x / (1 + |x|).
Tensor softsign(Tensor x, Loc loc = Loc::current());
// x - tanh(x).
Tensor tanhshrink(Tensor x, Loc loc = Loc::current());
// x where x > bound, else value.
Tensor threshold(Tensor x, double bound, double value, Loc loc = Loc::current());
// The first half of an axis times the sigmoid of the second (Dauphin et al. 2017).
Tensor glu(Tensor x, int axis = -1, Loc loc = Loc::current());

// ---- normalisation -----------------------------------------------------------------------------

// (x - mean) / sqrt(var + eps) * weight + bias over the last axis (Ba, Kiros and Hinton 2016).
Tensor layer_norm(Tensor x, std::optional<Tensor> weight = std::nullopt,
                  std::optional<Tensor> bias = std::nullopt, double eps = 1e-5,
                  Loc loc = Loc::current());
// The same over all the last axes, of these sizes; weight and bias have this shape.
Tensor layer_norm(Tensor x, const Shape& normalized, std::optional<Tensor> weight = std::nullopt,
                  std::optional<Tensor> bias = std::nullopt, double eps = 1e-5,
                  Loc loc = Loc::current());
// x / sqrt(mean(x^2) + eps) * weight over the last axes, those of the weight: the last one if there
// is none (Zhang and Sennrich 2019).
Tensor rms_norm(Tensor x, std::optional<Tensor> weight = std::nullopt, double eps = 0x1p-23,
                Loc loc = Loc::current());
// x [N, C, ...], each group of C / groups channels normalised by itself; weight and bias [C] (Wu
// and He 2018).
Tensor group_norm(Tensor x, std::int64_t groups, std::optional<Tensor> weight = std::nullopt,
                  std::optional<Tensor> bias = std::nullopt, double eps = 1e-5,
                  Loc loc = Loc::current());
// group_norm with a group for each channel.
Tensor instance_norm(Tensor x, std::optional<Tensor> weight = std::nullopt,
                     std::optional<Tensor> bias = std::nullopt, double eps = 1e-5,
                     Loc loc = Loc::current());
// Mean and (biased) variance [C] of x [N, C, ...] over all other axes.
std::pair<Tensor, Tensor> batch_statistics(Tensor x, Loc loc = Loc::current());
// x [N, C, ...] by a mean and variance [C] for each channel: those of the batch (Ioffe and Szegedy
// 2015), or running ones. weight and bias [C]. nn::BatchNorm keeps running ones.
Tensor batch_norm(Tensor x, Tensor mean, Tensor var, std::optional<Tensor> weight = std::nullopt,
                  std::optional<Tensor> bias = std::nullopt, double eps = 1e-5,
                  Loc loc = Loc::current());
// x / max(|x|, eps) along an axis, |x| the Euclidean length.
Tensor normalize(Tensor x, int axis = 1, double eps = 1e-12, Loc loc = Loc::current());

// ---- what differs between training and use -----------------------------------------------------

// Whether the function that is traced is one to train: so in compile(), not in attach() and
// compile_forward() (but see ForwardOptions::training). Dropout and batch norm ask it.
bool is_training(Loc loc = Loc::current());
// Sets it for what is traced while it lives, as to keep a part of a model as in use:
// `const TrainingMode frozen(false);`.
class TrainingMode {
 public:
  explicit TrainingMode(bool training, Loc loc = Loc::current());
  TrainingMode(const TrainingMode&) = delete;
  TrainingMode& operator=(const TrainingMode&) = delete;
  ~TrainingMode();

 private:
  Trace* trace_;
  bool before_;
};

// In training: zero with probability p, else x / (1 - p), another pattern at each step; with p = 1
// all are zero, and so is the gradient. In use: x.
Tensor dropout(Tensor x, double p, Loc loc = Loc::current());
// dropout of whole channels: x [N, C, L], or [N, C, H, W].
Tensor dropout1d(Tensor x, double p, Loc loc = Loc::current());
Tensor dropout2d(Tensor x, double p, Loc loc = Loc::current());
// dropout that keeps mean 0 and variance 1 behind selu (Klambauer et al. 2017).
Tensor alpha_dropout(Tensor x, double p, Loc loc = Loc::current());

// ---- attention ---------------------------------------------------------------------------------

// bool [rows, columns], true where column <= row: who may attend to whom in a causal model.
Tensor causal_mask(std::int64_t rows, std::int64_t columns, Loc loc = Loc::current());

// Which elements of a vector are turned together: i and i + D / 2 (GPT-NeoX, Llama as published by
// Hugging Face), or 2 i and 2 i + 1 (the original).
enum class RopePairs { kHalves, kInterleaved };
struct RopeOptions {
  double base = 10000;
  RopePairs pairs = RopePairs::kHalves;
  double offset = 0;                              // position of the first of T
  std::optional<Tensor> position = std::nullopt;  // f32 [T] or []: positions, in place of `offset`
};
// Rotary positions (Su et al. 2021): x [..., T, D], D even; pair i of the vector at position t is
// turned by t * base^(-2 i / D).
Tensor rope(Tensor x, const RopeOptions& options = {}, Loc loc = Loc::current());

struct AttentionOptions {
  // bool [.., T, S], true where one may attend; or f32, added to the scores. It broadcasts.
  std::optional<Tensor> mask = std::nullopt;
  bool causal = false;                         // only to positions up to one's own
  std::optional<double> scale = std::nullopt;  // of the scores; 1 / sqrt(D) if not given
  double dropout = 0;                          // of the weights, in training
  bool enable_gqa = false;                     // fewer heads (axis -3) of k and v than of q
};
// softmax(q k^T * scale) v (Vaswani et al. 2017): q [.., T, D], k [.., S, D], v [.., S, E] give
// [.., T, E]; leading axes broadcast. A query that may attend to nothing gives 0. With enable_gqa
// query head h has the keys and values of head h / (heads of q / heads of k). The T x S weights are
// stored nowhere (Dao et al. 2022) as long as D and E are at most 128; a mask that is an expression
// of smaller tensors is not either.
Tensor scaled_dot_product_attention(Tensor q, Tensor k, Tensor v,
                                    const AttentionOptions& options = {}, Loc loc = Loc::current());

}  // namespace tensorgrad
