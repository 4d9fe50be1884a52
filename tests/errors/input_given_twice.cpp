// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(input_given_twice, UserError) {
  Example example;
  example.trainer.step({{"x", example.x},
                        {"y", example.y},
                        {"x", example.x},  // error: input 'x' is given twice
                        {"i", example.i}});
}

}  // namespace tensorgrad::testing
