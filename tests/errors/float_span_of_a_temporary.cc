// SPDX-License-Identifier: MIT
// The view would outlive the elements.
// error: use of deleted function
#include <tensorgrad/tensorgrad.h>

const auto view = tensorgrad::HostTensor{}.float_span();
