// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(dtypes_that_differ, DtypeError) {
  compiled([](const Net&, In in) {
    return sum(in["x"] * reshape(in["i"], {4, 1}));  // error: mul: dtypes differ: a f32, b i32
  });
}

}  // namespace tensorgrad::testing
