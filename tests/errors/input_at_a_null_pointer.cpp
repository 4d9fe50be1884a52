// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(input_at_a_null_pointer, UserError) {
  Example example;
  example.feed.at("x") = HostView(f32, nullptr, 12);
  example.trainer.step(example.feed);  // error: input 'x': null pointer given for 12 elements
}

}  // namespace tensorgrad::testing
