// SPDX-License-Identifier: MIT
// Must not compile: the view would dangle.
// error: use of deleted function
#include <tensorgrad/tensorgrad.h>

const auto view = tensorgrad::HostTensor{}.float_span();
