// SPDX-License-Identifier: MIT
// Scaled dot-product attention, causal masks and rotary position embeddings.
#pragma once

#include <cstdint>
#include <optional>

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns a boolean mask [rows, columns] that is true if column <= row. In causal attention, row i
/// may attend to columns 0 to i.
Tensor causal_mask(std::int64_t rows, std::int64_t columns, Loc loc = Loc::current());

/// Pairs of elements that rope() rotates in a vector of size D.
enum class RopePairs {
  kHalves,      ///< i and i + D / 2, as in GPT-NeoX and Hugging Face's Llama.
  kInterleaved  ///< 2 i and 2 i + 1, as in the paper.
};

/// Options of rope().
struct RopeOptions {
  double base = 10000;                   ///< Base of the angles, above 0. See rope().
  RopePairs pairs = RopePairs::kHalves;  ///< Elements that are rotated together.
  double offset = 0;                     ///< Position of the first row of `x`.

  /// Positions to use instead of `offset`: f32 [T], one for each row, or f32 [], that of the first
  /// row.
  std::optional<Tensor> position = std::nullopt;
};

/// Returns `x` [..., T, D] with rotary position embeddings (Su et al. 2021). Pair i of the vector
/// at position t is rotated by the angle t * base^(-2 i / D). `x` is f32 or f16, and the result has
/// its dtype. Throws ShapeError if D is odd or `position` has another shape, and UserError if
/// `base` is not positive.
Tensor rope(Tensor x, const RopeOptions& options = {}, Loc loc = Loc::current());

/// Options of scaled_dot_product_attention().
struct AttentionOptions {
  /// A boolean mask, true if a query may attend to a key, or an f32 mask, which is added to the
  /// scores. It broadcasts to [..., T, S] and can be combined with `causal`.
  std::optional<Tensor> mask = std::nullopt;

  bool causal = false;                         ///< Query i attends to keys 0 to i only.
  std::optional<double> scale = std::nullopt;  ///< Factor of the scores; default: 1 / sqrt(D).
  double dropout = 0;       ///< Dropout of the weights during training, in [0, 1].
  bool enable_gqa = false;  ///< Grouped-query attention: `k` and `v` have fewer heads (axis -3).
};

/// Returns softmax(q k^T * scale) v (Vaswani et al. 2017). Shapes: q [..., T, D], k [..., S, D] and
/// v [..., S, E] -> [..., T, E]. Leading axes broadcast. The result is 0 for a query that may not
/// attend to any key.
///
/// With `enable_gqa`, query head h uses head h / (heads of q / heads of k) of `k` and `v`, rounded
/// down. `q`, `k` and `v` are f32 or f16. The result is f16 if all three are f16, or within
/// Autocast.
///
/// The T x S weights are not stored (Dao et al. 2022) if D and E are at most 128. A mask that is
/// computed from smaller tensors, such as causal_mask(), is not stored either. Throws ShapeError if
/// the shapes do not match or the heads of `q` are not a multiple of those of `k` and `v`. Throws
/// DtypeError if an operand or the mask has an unsupported dtype.
Tensor scaled_dot_product_attention(Tensor q, Tensor k, Tensor v,
                                    const AttentionOptions& options = {}, Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
