// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(buffer_of_f16, DtypeError) {
  const Buffer kept({3}, 0, f16);  // error: buffer: f32, i32, u32 or bool expected, got f16
}

}  // namespace tensorgrad::testing
