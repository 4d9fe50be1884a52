// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(concat_of_nothing, ShapeError) {
  compiled([](const Net&, In) {
    return sum(concat({}, 0));  // error: concat: expected at least one tensor
  });
}

}  // namespace tensorgrad::testing
