// SPDX-License-Identifier: MIT
// Must not compile: a copy would train the same parameters.
// error: use of deleted function
#include <tensorgrad/tensorgrad.h>

struct Net {
  tensorgrad::nn::Linear fc{3, 2};
  TG_MODULE(fc)
};
void copy(const tensorgrad::Trainer<Net>& trainer) { auto other = trainer; }
