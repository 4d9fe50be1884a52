// SPDX-License-Identifier: MIT
// Causal self-attention with a key-value cache.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tensorgrad/nn/linear.h"
#include "tensorgrad/nn/recurrent_state.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

/// Causal self-attention. Each step attends to itself and to the steps before it. By default it has
/// rotary position embeddings and no biases.
struct CausalAttention {
  /// Options of the layer.
  struct Options {
    std::int64_t kv_heads = 0;       ///< Number of key-value heads; 0: `heads`.
    double rope_base = 10000;        ///< See RopeOptions::base.
    std::int64_t max_length = 2048;  ///< Size of the key-value cache, in steps.
    std::int64_t residuals = 1;      ///< See MambaOptions::residuals.
    bool rope = true;                ///< Encodes positions by rotary embeddings.
    bool bias = false;               ///< Adds biases to both projections.

    /// Number of components of each head that rotary embeddings rotate, the first ones. Even; 0:
    /// all.
    std::int64_t rope_dims = 0;
  };

  /// Creates the parameters. Throws ShapeError if `heads` does not divide `d_model`, `kv_heads`
  /// does not divide `heads`, or `rope_dims` is odd or above d_model / heads.
  CausalAttention(std::int64_t d_model, std::int64_t heads, const Options& options,
                  Loc loc = Loc::current());

  Options options;        ///< Options of the constructor.
  std::int64_t d_model;   ///< Size of the input and of the output.
  std::int64_t heads;     ///< Number of query heads.
  std::int64_t kv_heads;  ///< Number of key-value heads, not 0.

  /// Computes q, k and v, in this order: [d_model] -> [(heads + 2 kv_heads) d_model / heads].
  Linear in_proj;

  Linear out_proj;  ///< Projects the concatenated heads: [d_model] -> [d_model].

  /// Factor of the scores; unset: 1 / sqrt(d_model / heads).
  std::optional<double> scale = std::nullopt;
  TG_MODULE(in_proj, out_proj)

  /// Returns the output for whole sequences: [B, L, d_model] -> [B, L, d_model].
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const {
    return run(x, {}, std::nullopt, loc).y;
  }
  /// Returns the output for packed documents: [B, L, d_model] -> [B, L, d_model]. See run().
  Tensor operator()(Tensor x, Tensor documents, Loc loc = Loc::current()) const {
    return run(x, {}, documents, loc).y;
  }

  /// Processes the next chunk of each sequence and returns the output with the new states. The
  /// states are a cache of the keys and one of the values
  /// [B, kv_heads, max_length, d_model / heads], and the number of steps so far [B]. Steps beyond
  /// `max_length` attend only to the first `max_length` steps. The caches are updated in place
  /// (index_update()) and need not be cleared when a sequence begins. With a state, outputs that
  /// attend to a step whose value is infinite are NaN. If `state` is empty, processes whole
  /// sequences and returns no states.
  ///
  /// With `documents`, i32 [B, L], each row packs several documents, as in causal_conv1d(). A step
  /// attends only to steps of its document, and rotary positions start at 0 in each of them. Throws
  /// UserError if both `documents` and `state` are given.
  [[nodiscard]] RecurrentResult run(Tensor x, const std::vector<Tensor>& state,
                                    std::optional<Tensor> documents = std::nullopt,
                                    Loc loc = Loc::current()) const;

  /// Like run(), but takes the output of `in_proj`: [B, L, (heads + 2 kv_heads) d_model / heads].
  [[nodiscard]] RecurrentResult attend(Tensor qkv, const std::vector<Tensor>& state,
                                       std::optional<Tensor> documents = std::nullopt,
                                       Loc loc = Loc::current()) const;

  /// Returns the states of run() for a batch size: "k", "v" and "position".
  [[nodiscard]] std::vector<StateSpec> state_specs(std::int64_t batch) const;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
