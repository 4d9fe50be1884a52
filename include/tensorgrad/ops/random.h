// SPDX-License-Identifier: MIT
// Random numbers: Philox4x32-10, by (seed, op, step, element), the same words on every backend, and
// so the same uniform numbers, integers and choices between fixed shares; what is made of them by a
// logarithm or a cosine (normal, exponential, Gumbel) may differ in its last bits. No two ops and
// no two steps share a stream. They have no gradient.
#pragma once

#include "tensorgrad/tensor.h"

namespace tensorgrad {

// Uniform 32-bit words.
Tensor random_bits(const Shape& shape, Loc loc = Loc::current());
// Uniform in [0, 1), by 24 bits.
Tensor rand(const Shape& shape, Loc loc = Loc::current());
Tensor rand_like(Tensor x, Loc loc = Loc::current());
// Uniform in [lo, hi).
Tensor uniform(const Shape& shape, double lo, double hi, Loc loc = Loc::current());
// Normal, mean 0, standard deviation 1 (Box and Muller 1958).
Tensor randn(const Shape& shape, Loc loc = Loc::current());
Tensor randn_like(Tensor x, Loc loc = Loc::current());
// Normal.
Tensor normal(const Shape& shape, double mean, double stddev, Loc loc = Loc::current());
// Exponential with this rate: mean 1 / rate. More than 0, at most 16.7 / rate.
Tensor exponential(const Shape& shape, double rate = 1, Loc loc = Loc::current());
// 1 with probability p, else 0: f32.
Tensor bernoulli(const Shape& shape, double p, Loc loc = Loc::current());
Tensor bernoulli(Tensor p, Loc loc = Loc::current());
// Integers lo, lo + 1 .. hi - 1, i32; hi - lo is at most 2^31 - 1. What does not divide 2^32
// favours some by less than one in 2^32 / (hi - lo).
Tensor randint(const Shape& shape, std::int64_t lo, std::int64_t hi, Loc loc = Loc::current());
// 0 .. n-1 in a random order, i32: the order of random words.
Tensor randperm(std::int64_t n, Loc loc = Loc::current());
// An index along an axis, which is dropped, with probability softmax(logits): i32. One whose logit
// is -inf is never taken, unless all are (then 0 is). By the largest of logit + Gumbel noise.
Tensor categorical(Tensor logits, int axis = -1, Loc loc = Loc::current());
// n indices for each row of weights [..., C] (at least 0, they need not sum to 1): i32 [..., n].
// Without replacement n is at most C, and the first is drawn first; those of weight 0 come where no
// others are left.
Tensor multinomial(Tensor weights, std::int64_t n, bool replacement = false,
                   Loc loc = Loc::current());

}  // namespace tensorgrad
