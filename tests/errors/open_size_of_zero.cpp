// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(open_size_of_zero, UserError) {
  const auto twice = [](const Net&, const Inputs& in) { return in["x"] * 2.0; };
  const ForwardOptions options{
      .inputs = {{"x", {kOpen, 3}}}, .device = {.kind = "cpu"}, .open_size = 0};
  // error: forward: open_size and kept_sizes must be at least 1, got 0 and 8
  compile_forward(Net{}, twice, options);
}

}  // namespace tensorgrad::testing
