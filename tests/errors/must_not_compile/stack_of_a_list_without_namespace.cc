// SPDX-License-Identifier: MIT
// Must not compile: a list in braces has no type, so the compiler does not look for stack() in the
// namespace of its elements, as it does for relu(x).
// error: 'stack' was not declared in this scope.*tensorgrad::.*stack
#include <tensorgrad/tensorgrad.h>

tensorgrad::Tensor both(tensorgrad::Tensor x) { return stack({relu(x), x}); }
