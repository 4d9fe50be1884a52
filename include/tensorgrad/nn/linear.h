// SPDX-License-Identifier: MIT
// Linear layers and embeddings.
#pragma once

#include "tensorgrad/nn/module.h"
#include "tensorgrad/nn/quantized.h"
#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

/// Linear layer x W^T + b (torch.nn.Linear). The weight and the bias are initialized uniformly in
/// +-1/sqrt(in).
struct Linear {
  /// Creates the parameters.
  Linear(std::int64_t in, std::int64_t out, bool with_bias = true, Loc loc = Loc::current());

  Parameter weight;                          ///< [out, in].
  std::optional<Parameter> bias;             ///< [out]. Unset without a bias.
  std::optional<QuantizedWeight> quantized;  ///< Replaces `weight` if set.

  /// Visits `quantized`, or `weight` if it is not set, and `bias`.
  void visit_fields(ParameterVisitor& visitor) const;

  /// Replaces the weight by a QuantizedWeight, for models that are not trained. It is a buffer, not
  /// a parameter, and holds zeros until its values are loaded. Keeps the weight if `format` is
  /// WeightFormat::kF32 or can_quantize() is false.
  void quantize(WeightFormat format, Loc loc = Loc::current());

  /// Returns the output: [..., in] -> [..., out]. Throws ShapeError if the last axis has another
  /// size.
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

/// Embedding table (torch.nn.Embedding): returns rows of `weight` by index. The weight is
/// initialized from the standard normal distribution.
struct Embedding {
  /// Creates the table.
  Embedding(std::int64_t count, std::int64_t size, Loc loc = Loc::current());

  /// Options of the layer.
  struct Options {
    /// Index whose result is zeros, whatever its row contains. A lookup adds no gradient to this
    /// row.
    std::optional<std::int64_t> padding_idx = std::nullopt;
  };

  /// Creates the table with options. Throws UserError if `padding_idx` is not in [0, count).
  Embedding(std::int64_t count, std::int64_t size, const Options& options,
            Loc loc = Loc::current());

  Parameter weight;                          ///< [count, size].
  std::optional<std::int64_t> padding_idx;   ///< See Options::padding_idx.
  std::optional<QuantizedWeight> quantized;  ///< Replaces `weight` if set.

  /// Visits `quantized`, or `weight` if it is not set.
  void visit_fields(ParameterVisitor& visitor) const;

  /// Quantizes the table as Linear::quantize() does.
  void quantize(WeightFormat format, Loc loc = Loc::current());

  /// Returns x W^T: [..., size] -> [..., count]. Use it for an output layer that shares the weight
  /// of the table.
  [[nodiscard]] Tensor times(Tensor x, Loc loc = Loc::current()) const;

  /// Returns the rows of the indices: i32 [...] -> [..., size]. For indices out of range, see
  /// CompileOptions::check_indices.
  Tensor operator()(Tensor index, Loc loc = Loc::current()) const;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
