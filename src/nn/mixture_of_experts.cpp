// SPDX-License-Identifier: MIT
#include "tensorgrad/nn/mixture_of_experts.h"

#include <cmath>
#include <string>

#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::inline TENSORGRAD_ABI::nn {

MixtureOfExperts::MixtureOfExperts(std::int64_t d_model, const Options& given, Loc loc)
    : options(given),
      width(given.width > 0 ? given.width : (d_model * 8 / 3 + 7) / 8 * 8),
      router(d_model, given.experts, false, loc),
      fc1(d_model, 2 * given.experts * width, false, loc),
      fc2(given.experts * width, d_model, false, loc) {
  if (given.top_k < 1 || given.top_k > given.experts) {
    throw UserError("MixtureOfExperts: expected 1 <= top_k <= experts, got top_k = " +
                        std::to_string(given.top_k) +
                        " and experts = " + std::to_string(given.experts),
                    loc);
  }
  // The fan-in is that of one expert.
  const double bound = 1 / std::sqrt(static_cast<double>(width * given.residuals));
  fc2.weight = Parameter({d_model, given.experts * width}, init::uniform(-bound, bound), loc);
}

Tensor MixtureOfExperts::routing(Tensor x, Loc loc) const {
  const Tensor p = softmax(router(x, loc), -1, loc);
  Shape pairs = p.shape(loc);
  pairs.push_back(options.experts);
  const Tensor own = unsqueeze(p, -1, loc), other = unsqueeze(p, -2, loc);
  const int axis = static_cast<int>(pairs.size()) - 1;
  const Tensor earlier = iota(pairs, axis, f32, loc) < iota(pairs, axis - 1, f32, loc);
  const Tensor above = other > own || (other == own && earlier);
  const Tensor rank = sum(cast(above, f32), -1, false, loc);
  return where(rank < static_cast<double>(options.top_k), p, 0.0);
}

Tensor MixtureOfExperts::operator()(Tensor x, Loc loc) const {
  const std::int64_t inner = options.experts * width;
  const Tensor both = fc1(x, loc);
  const Tensor h = silu(narrow(both, -1, 0, inner, loc), loc) * narrow(both, -1, inner, inner, loc);
  Shape apart = h.shape(loc);
  apart.back() = options.experts;
  apart.push_back(width);
  const Tensor weighed = reshape(h, apart, loc) * unsqueeze(routing(x, loc), -1, loc);
  return fc2(reshape(weighed, h.shape(loc), loc), loc);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::nn
