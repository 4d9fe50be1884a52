// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(objectives_with_datasets_that_differ, UserError) {
  auto objectives = two_objectives();
  for (std::int64_t k : {0, 1}) {
    CompileOptions& options = objectives[static_cast<std::size_t>(k)].options;
    options.inputs = {};
    options.dataset = {{"x", {8 + k, 3}}, {"y", {8 + k, 2}}};
    options.batch = 4;
  }
  // error: dataset entry 'x': types differ: f32[8,3] in objective 'w', f32[9,3] in 'b'
  compiled(objectives);
}

}  // namespace tensorgrad::testing
