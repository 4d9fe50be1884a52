// SPDX-License-Identifier: MIT
// Must not compile: a trainer with several losses is stepped through trainer["name"].
// error: has no member named 'step'
#include <tensorgrad/tensorgrad.h>

void step(tensorgrad::MultiTrainer<tensorgrad::nn::Linear>& trainer) { trainer.step(); }
