// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(fans_of_a_vector, ShapeError) {
  compiled([](const Net&, In) {
    // error: fans: expected a weight [out, in, ..] with at least two axes, got [3]
    return full({}, init::fans({3}).in);
  });
}

}  // namespace tensorgrad::testing
