// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(input_of_another_dtype, DtypeError) {
  Example example;
  example.feed.insert_or_assign("i", example.y);
  example.trainer.step(example.feed);  // error: input 'i': expected i32, got f32
}

}  // namespace tensorgrad::testing
