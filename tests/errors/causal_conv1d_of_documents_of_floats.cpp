// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(causal_conv1d_of_documents_of_floats, DtypeError) {
  compiled([](const Net&, In in) {
    const Tensor x = unsqueeze(in["x"], 0);
    const Tensor weight = transpose(in["x"]), documents = zeros({1, 4});
    // error: causal_conv1d: expected i32 documents, got f32
    return sum(causal_conv1d(x, weight, std::nullopt, std::nullopt, documents).y);
  });
}

}  // namespace tensorgrad::testing
