// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(dot_of_sizes_that_differ, ShapeError) {
  compiled([](const Net&, In) {
    // error: dot: sizes differ: a [3], b [2]
    return dot(zeros({3}), zeros({2}));
  });
}

}  // namespace tensorgrad::testing
