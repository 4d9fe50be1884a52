// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(open_size_of_zero, UserError) {
  const auto twice = [](const Net&, const Inputs& in) { return in["x"] * 2.0; };
  const FunctionOptions options{
      .inputs = {{"x", {kDynamic, 3}}}, .device = {.kind = "cpu"}, .dynamic_size = 0};
  // error: FunctionOptions: dynamic_size and max_cached_sizes must be at least 1, got 0 and 8
  compile_function(Net{}, twice, options);
}

}  // namespace tensorgrad::testing
