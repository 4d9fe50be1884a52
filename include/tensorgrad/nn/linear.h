// SPDX-License-Identifier: MIT
// Linear layers and tables.
#pragma once

#include "tensorgrad/nn/module.h"
#include "tensorgrad/nn/quantized.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::nn {

// y = x W^T + b. weight [out, in], bias [out], both uniform in +-1/sqrt(in).
struct Linear {
  Linear(std::int64_t in, std::int64_t out, bool with_bias = true, Loc loc = Loc::current());

  Parameter weight;
  std::optional<Parameter> bias;
  std::optional<PackedWeight> packed;  // in the place of `weight`
  void visit_fields(ParameterVisitor& visitor) const;

  // From now on the weight is kept in this format, and is no parameter. Not where its rows cannot
  // be: then it stays as it is.
  void pack(WeightFormat format, Loc loc = Loc::current());
  // x [..., in] -> [..., out]
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

// Rows of weight [count, size], normal with deviation 1, by index. Where an index is `padding_idx`
// the result is zeros, whatever that row holds, and it gets no gradient.
struct Embedding {
  Embedding(std::int64_t count, std::int64_t size, Loc loc = Loc::current());
  struct Options {
    std::optional<std::int64_t> padding_idx = std::nullopt;
  };
  // Throws UserError for a padding_idx that is no row.
  Embedding(std::int64_t count, std::int64_t size, const Options& options,
            Loc loc = Loc::current());

  Parameter weight;
  std::optional<std::int64_t> padding_idx;
  std::optional<PackedWeight> packed;  // in the place of `weight`
  void visit_fields(ParameterVisitor& visitor) const;

  void pack(WeightFormat format, Loc loc = Loc::current());  // as Linear's
  // x [..., size] -> x W^T [..., count]: a head with the table's weight.
  [[nodiscard]] Tensor times(Tensor x, Loc loc = Loc::current()) const;
  // index i32 [...] -> [..., size]
  Tensor operator()(Tensor index, Loc loc = Loc::current()) const;
};

}  // namespace tensorgrad::nn
