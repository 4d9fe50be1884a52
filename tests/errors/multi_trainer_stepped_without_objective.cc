// SPDX-License-Identifier: MIT
// This must not compile: a trainer of several losses is stepped through trainer["name"].
// error: has no member named 'step'
#include <tensorgrad/tensorgrad.h>

void step(tensorgrad::MultiTrainer<tensorgrad::nn::Linear>& trainer) { trainer.step(); }
