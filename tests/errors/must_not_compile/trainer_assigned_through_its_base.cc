// SPDX-License-Identifier: MIT
// Must not compile: the assignment would slice the trainer.
// error: is protected within this context
#include <tensorgrad/tensorgrad.h>

void assign(tensorgrad::TrainerBase& to, const tensorgrad::TrainerBase& from) { to = from; }
