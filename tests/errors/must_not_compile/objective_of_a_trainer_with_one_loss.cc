// SPDX-License-Identifier: MIT
// Must not compile: a trainer with one loss has no objectives.
// error: no match for 'operator\[\]'
#include <tensorgrad/tensorgrad.h>

void step(tensorgrad::Trainer<tensorgrad::nn::Linear>& trainer) { trainer["loss"].step(); }
