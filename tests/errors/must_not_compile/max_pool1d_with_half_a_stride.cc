// SPDX-License-Identifier: MIT
// Must not compile: a stride of 1.5 would be truncated to 1.
// error: could not convert
#include <tensorgrad/tensorgrad.h>

const tensorgrad::MaxPool1dOptions options = {.stride = 1.5};
