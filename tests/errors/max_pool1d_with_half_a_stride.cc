// SPDX-License-Identifier: MIT
// This must not compile: a stride of 1.5 would be cut to 1.
// error: could not convert
#include <tensorgrad/tensorgrad.h>

const tensorgrad::MaxPool1dOptions options = {.stride = 1.5};
