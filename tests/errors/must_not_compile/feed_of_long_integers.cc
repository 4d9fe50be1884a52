// SPDX-License-Identifier: MIT
// Must not compile: inputs cannot be i64.
// error: expected std::int32_t or std::uint32_t elements
#include <cstdint>
#include <vector>

#include <tensorgrad/tensorgrad.h>

const std::vector<std::int64_t> x(3);
const tensorgrad::FeedView view = {{"x", x}};
