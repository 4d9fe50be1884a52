// SPDX-License-Identifier: MIT
// This must not compile: half of a trainer would be assigned.
// error: is protected within this context
#include <tensorgrad/tensorgrad.h>

void assign(tensorgrad::TrainerBase& to, const tensorgrad::TrainerBase& from) { to = from; }
