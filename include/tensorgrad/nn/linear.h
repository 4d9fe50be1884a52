// SPDX-License-Identifier: MIT
// Linear layers and tables.
#pragma once

#include "tensorgrad/module.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::nn {

// y = x W^T + b. weight [out, in], bias [out], both uniform in +-1/sqrt(in).
struct Linear {
  Linear(std::int64_t in, std::int64_t out, bool with_bias = true, Loc loc = Loc::current());

  Parameter weight;
  std::optional<Parameter> bias;
  TG_MODULE(weight, bias)
  // x [..., in] -> [..., out]
  Tensor operator()(Tensor x, Loc loc = Loc::current()) const;
};

// Rows of weight [count, size], normal with deviation 1, by index.
struct Embedding {
  Embedding(std::int64_t count, std::int64_t size, Loc loc = Loc::current());

  Parameter weight;
  TG_MODULE(weight)
  // index i32 [...] -> [..., size]
  Tensor operator()(Tensor index, Loc loc = Loc::current()) const;
};

}  // namespace tensorgrad::nn
