// SPDX-License-Identifier: MIT
// This must not compile: a trainer of one loss has no objectives to choose from.
// error: no match for 'operator\[\]'
#include <tensorgrad/tensorgrad.h>

void step(tensorgrad::Trainer<tensorgrad::nn::Linear>& trainer) { trainer["loss"].step(); }
