// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(flatten_backwards, ShapeError) {
  compiled([](const Net&, In in) {
    return sum(flatten(in["x"], 1, 0));  // error: flatten: the first axis is after the last
  });
}

}  // namespace tensorgrad::testing
