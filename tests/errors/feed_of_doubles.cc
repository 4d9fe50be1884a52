// SPDX-License-Identifier: MIT
// Inputs have no double type.
// error: expected float elements, got double
#include <vector>

#include <tensorgrad/tensorgrad.h>

const std::vector<double> x(3);
const tensorgrad::FeedView view = {{"x", x}};
