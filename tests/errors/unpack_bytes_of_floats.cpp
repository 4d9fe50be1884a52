// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(unpack_bytes_of_floats, DtypeError) {
  compiled([](const Net&, In in) {
    return sum(unpack_bytes(in["x"]));  // error: unpack_bytes: expected u32, got f32
  });
}

}  // namespace tensorgrad::testing
