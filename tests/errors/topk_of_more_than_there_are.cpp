// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(topk_of_more_than_there_are, ShapeError) {
  compiled([](const Net&, In in) {
    // error: topk: k must be in [1, 3] for axis -1 of [4,3], got 4
    return sum(topk(in["x"], 4).values);
  });
}

}  // namespace tensorgrad::testing
