// SPDX-License-Identifier: MIT
// Must not compile: inputs cannot be f64.
// error: expected float elements, got double
#include <vector>

#include <tensorgrad/tensorgrad.h>

const std::vector<double> x(3);
const tensorgrad::FeedView view = {{"x", x}};
