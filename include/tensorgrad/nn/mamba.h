// SPDX-License-Identifier: MIT
// Mamba (Gu and Dao 2023) and language models made of it, with the parameters, names and initial
// values of the mamba-ssm package, so that its weights can be loaded as they are. B batch, L steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensorgrad/nn/linear.h"
#include "tensorgrad/nn/normalization.h"
#include "tensorgrad/nn/conv.h"
#include "tensorgrad/optim/param_groups.h"

namespace tensorgrad::nn {

// A tensor that a layer keeps from call to call when it goes over a sequence in pieces; it begins
// as zeros.
struct StatePart {
  std::string name;
  Shape shape;
};
// What a layer gives for a piece, and its states behind it, in the order of its state_parts().
struct Carried {
  Tensor y;
  std::vector<Tensor> state;
};

struct MambaOptions {
  std::int64_t d_state = 16, d_conv = 4, expand = 2;  // d_conv: taps, at least 2
  std::int64_t dt_rank = 0;                           // 0: d_model / 16, rounded up
  bool bias = false;                                  // of in_proj and out_proj
  bool conv_bias = true;
  bool x_bias = false;  // of x_proj
  Discretization discretization = Discretization::kEuler;
  // softplus(dt_proj.bias) begins between these, the same number in each factor of e, but for none
  // below the floor.
  double dt_min = 1e-3, dt_max = 0.1, dt_floor = 1e-4;
  // Additions to the residual stream in the whole model: out_proj begins smaller by its root.
  std::int64_t residuals = 1;
};

// in_proj makes x and a gate z; a causal convolution of x and silu; x_proj and dt_proj make delta,
// B and C of it; y is the selective scan times silu(z); out_proj.
struct Mamba {
  explicit Mamba(std::int64_t d_model, const MambaOptions& options = {}, Loc loc = Loc::current());

  MambaOptions options;
  std::int64_t d_model, d_inner, dt_rank;
  Parameter A_log, D;  // [d_inner, d_state], ln(n + 1); [d_inner], 1
  Linear in_proj;
  Conv1d conv1d;
  Linear x_proj, dt_proj, out_proj;
  TG_MODULE(A_log, D, in_proj, conv1d, x_proj, dt_proj, out_proj)

  // x [B, L, d_model] -> the same
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return run(x, {}, loc).y; }
  // Goes on from `state` (empty: from the beginning).
  [[nodiscard]] Carried run(Tensor x, const std::vector<Tensor>& state,
                            Loc loc = Loc::current()) const;
  [[nodiscard]] std::vector<StatePart> state_parts(std::int64_t batch) const;
};

struct Mamba2Options {
  std::int64_t d_state = 128, d_conv = 4, expand = 2, head_dim = 64, groups = 1;  // as of Mamba
  std::int64_t chunk = 64;                                                        // of ssd()
  bool bias = false;  // of in_proj and out_proj
  bool conv_bias = true;
  double a_min = 1, a_max = 16;  // exp(A_log) begins uniform between these
  double dt_min = 1e-3, dt_max = 0.1, dt_floor = 1e-4;
  double dt_least = 0, dt_most = 0;  // no dt is less, and none more unless that is 0
  double norm_epsilon = 1e-5;
  std::int64_t residuals = 1;
};

// Mamba-2 (Dao and Gu 2024): in_proj makes a gate z, x, B, C and dt; a causal convolution of x, B
// and C and silu; ssd with a decay for each head; the norm of y silu(z), of each group's channels
// by themselves; out_proj. Throws ShapeError where head_dim does not divide expand * d_model, or
// groups the heads.
struct Mamba2 {
  explicit Mamba2(std::int64_t d_model, const Mamba2Options& options = {},
                  Loc loc = Loc::current());

  Mamba2Options options;
  std::int64_t d_model, d_inner, heads, d_conv;  // d_conv: channels of the convolution
  Linear in_proj;
  Conv1d conv1d;
  Parameter dt_bias, A_log, D;  // [heads]
  RMSNorm norm;
  Linear out_proj;
  TG_MODULE(in_proj, conv1d, dt_bias, A_log, D, norm, out_proj)

  // x [B, L, d_model] -> the same
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return run(x, {}, loc).y; }
  [[nodiscard]] Carried run(Tensor x, const std::vector<Tensor>& state,
                            Loc loc = Loc::current()) const;
  [[nodiscard]] std::vector<StatePart> state_parts(std::int64_t batch) const;
};

// The norm that Mamba-3 may have between its scan and out_proj. The paper's models of Mamba-3 alone
// have none; its hybrids have the first, for texts longer than those of training.
enum class OutNorm : std::uint8_t {
  kNone,
  kBeforeGate,  // norm(y) silu(z), of each head's channels by themselves, and of each rank's
  kBehindGate,  // norm(y silu(z)), of all channels, as in Mamba-2
};

struct Mamba3Options {
  std::int64_t d_state = 128, expand = 2, head_dim = 64;
  std::int64_t ranks = 1;   // inputs and outputs of a state in a step
  std::int64_t chunk = 64;  // of rotary_scan()
  OutNorm out_norm = OutNorm::kNone;
  double a_min = 1, a_max = 16;  // what decays begin around: log-uniform between these
  double dt_min = 1e-3, dt_max = 0.1, dt_floor = 1e-4;
  double norm_epsilon = 1e-5;
  std::int64_t residuals = 1;
};

// Mamba-3 (arXiv 2603.15569): in_proj makes a gate z, x, B and C of each rank, and of each step dt,
// A, lambda and theta; B and C are normalised, and each head adds biases to them, which begin as
// ones; rotary_scan; y silu(z), with a norm where there is one; out_proj. No convolution. With
// ranks, learned factors make x, z and what is added up to the result of each. Throws ShapeError
// where head_dim does not divide expand * d_model, or d_state is odd.
struct Mamba3 {
  explicit Mamba3(std::int64_t d_model, const Mamba3Options& options = {},
                  Loc loc = Loc::current());

  Mamba3Options options;
  std::int64_t d_model, d_inner, heads;
  Linear in_proj;
  RMSNorm b_norm, c_norm;        // over d_state
  Parameter b_bias, c_bias;      // [heads, ranks, d_state]
  Parameter dt_bias, A_bias, D;  // [heads]; softplus(A_bias) is what -A begins around
  std::optional<Parameter> mimo_x, mimo_z, mimo_out;  // [heads, ranks, head_dim]
  std::optional<RMSNorm> norm;                        // with a weight [d_inner]
  Linear out_proj;
  TG_MODULE(in_proj, b_norm, c_norm, b_bias, c_bias, dt_bias, A_bias, D, mimo_x, mimo_z, mimo_out,
            norm, out_proj)

  // x [B, L, d_model] -> the same
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return run(x, {}, loc).y; }
  [[nodiscard]] Carried run(Tensor x, const std::vector<Tensor>& state,
                            Loc loc = Loc::current()) const;
  [[nodiscard]] std::vector<StatePart> state_parts(std::int64_t batch) const;
};

// Attention of x with itself, each step with those up to it, with rotary positions and without
// biases.
struct CausalAttention {
  struct Options {
    std::int64_t kv_heads = 0;  // 0: as many as heads
    double rope_base = 10000;
    std::int64_t max_length = 2048;  // of a sequence that is gone over in pieces
    std::int64_t residuals = 1;
  };
  CausalAttention(std::int64_t d_model, std::int64_t heads, const Options& options,
                  Loc loc = Loc::current());

  Options options;
  std::int64_t d_model, heads, kv_heads;
  Linear in_proj, out_proj;  // q, k and v one behind the other
  TG_MODULE(in_proj, out_proj)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return run(x, {}, loc).y; }
  // States: keys and values [B, kv_heads, max_length, d_model / heads], and how many there are.
  // Steps beyond max_length see what is before it alone.
  [[nodiscard]] Carried run(Tensor x, const std::vector<Tensor>& state,
                            Loc loc = Loc::current()) const;
  [[nodiscard]] std::vector<StatePart> state_parts(std::int64_t batch) const;
};

// down(silu(gate(x)) * up(x)), without biases (Shazeer 2020); gate and up are one projection.
struct GatedMlp {
  GatedMlp(std::int64_t d_model, std::int64_t width, std::int64_t residuals = 1,
           Loc loc = Loc::current());

  std::int64_t width;
  Linear fc1, fc2;
  TG_MODULE(fc1, fc2)
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

enum class MixerKind : std::uint8_t { kMamba1, kMamba2, kMamba3, kAttention, kMlp };

struct MambaConfig {
  std::int64_t vocab_size = 0, d_model = 0, n_layer = 0;
  std::vector<MixerKind> layers = {};  // n_layer of them; empty: all kMamba1
  MambaOptions mamba = {};             // but for `residuals`
  Mamba2Options mamba2 = {};           // likewise
  Mamba3Options mamba3 = {};           // likewise
  std::int64_t heads = 4;              // of attention layers
  CausalAttention::Options attention = {};
  std::int64_t mlp_width = 0;  // 0: 8 / 3 of d_model, up to a multiple of 8
  double norm_epsilon = 1e-5;
  bool tie_embeddings = true;  // the head has the embedding's weight
  // How the embedding, the head and the projections are kept, where their rows can be; another than
  // kF32 is for models that are not trained. lm/quantize.h makes weights of it.
  WeightFormat weights = WeightFormat::kF32;
};
// n_layer mixers: "mamba1", "mamba2", "mamba3", "attention" or "mlp" all along; "jamba": attention
// in every fourth place, else mamba2; "zamba": attention in every sixth place, else mamba3. Throws
// UserError for another name.
std::vector<MixerKind> mixer_schedule(const std::string& name, std::int64_t n_layer,
                                      Loc loc = Loc::current());

// x + mixer(norm(x))
struct MambaBlock {
  MambaBlock(MixerKind kind, const MambaConfig& config, Loc loc = Loc::current());

  RMSNorm norm;
  std::optional<Mamba> mamba;
  std::optional<Mamba2> mamba2;
  std::optional<Mamba3> mamba3;
  std::optional<CausalAttention> attention;
  std::optional<GatedMlp> mlp;
  void visit_fields(ParameterVisitor& visitor) const;  // the one there is is called "mixer"

  Tensor operator()(Tensor x, Loc loc = Loc::current()) const { return run(x, {}, loc).y; }
  [[nodiscard]] Carried run(Tensor x, const std::vector<Tensor>& state,
                            Loc loc = Loc::current()) const;
  [[nodiscard]] std::vector<StatePart> state_parts(std::int64_t batch) const;
};

// Embedding, blocks, a last norm, and a head without bias.
struct MambaLM {
  struct Backbone {
    Embedding embedding;
    std::vector<MambaBlock> layers;
    RMSNorm norm_f;
    TG_MODULE(embedding, layers, norm_f)
  };
  // Throws UserError where sizes are missing, or not as many layers as n_layer are given.
  explicit MambaLM(const MambaConfig& config, Loc loc = Loc::current());

  MambaConfig config;
  Backbone backbone;
  std::optional<Linear> lm_head;
  TG_MODULE(backbone, lm_head)

  // tokens i32 [B, L] -> logits [B, L, vocab_size]
  Tensor operator()(Tensor tokens, Loc loc = Loc::current()) const;
  // The cross-entropy of these logits with the tokens that come next, i32 [B, L]; the logits of a
  // large vocabulary are made a piece at a time (linear_cross_entropy), but where the head is
  // packed. `options.bias` stays empty.
  [[nodiscard]] Tensor loss(Tensor tokens, Tensor next,
                            const LinearCrossEntropyOptions& options = {},
                            Loc loc = Loc::current()) const;
  // The same for the next L tokens of B sequences that are gone over in pieces of any length: by
  // the scans for many, in one step for one. What goes on from piece to piece is kept in states of
  // the function that is traced ("layers.0.ssm"). Where keep [B], 1 or 0, is 0 the sequence begins
  // anew.
  [[nodiscard]] Tensor resume(Tensor tokens, Tensor keep, Loc loc = Loc::current()) const;
  // The same, but the logits of the last of the L tokens alone, [B, vocab_size]: what is generated
  // from.
  [[nodiscard]] Tensor resume_last(Tensor tokens, Tensor keep, Loc loc = Loc::current()) const;

  // What the papers do not decay: biases (those of Mamba-3's B and C among them), weights of norms,
  // A_log, D and the factors of ranks.
  [[nodiscard]] static ParamGroup no_weight_decay();

 private:
  // The blocks with kept states; [B, L, d_model].
  [[nodiscard]] Tensor resumed(Tensor tokens, Tensor keep, Loc loc) const;
  // All but the last norm and the head.
  [[nodiscard]] Tensor hidden(Tensor tokens, Loc loc) const;
  // The last norm and the head.
  [[nodiscard]] Tensor logits(Tensor x, Loc loc) const;
};

}  // namespace tensorgrad::nn
