// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(selective_scan_of_too_few_documents, ShapeError) {
  compiled([](const Net&, In in) {
    const Tensor u = unsqueeze(in["x"], 0), gates = matmul(u, transpose(in["x"]));
    const Tensor documents = iota({1, 3}, 1);
    // error: selective_scan: expected documents [1,4], got [1,3]
    return sum(selective_scan(u, u, transpose(in["x"]), gates, gates, {.documents = documents}).y);
  });
}

}  // namespace tensorgrad::testing
