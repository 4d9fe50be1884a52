// SPDX-License-Identifier: MIT
// Random tensors, made of words of Philox4x32-10. The words depend only on (seed, op, step,
// element) and are the same on every backend. Random ops have no gradient. Ops throw ShapeError if
// a size is less than 1.
#pragma once

#include "tensorgrad/tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Returns uniform 32-bit words, u32. No two random ops and no two steps share a stream of words.
/// Uniform numbers, integers, permutations and Bernoulli samples are the same on every backend,
/// too. Normal and exponential numbers and Gumbel noise take a logarithm or a cosine, and can
/// differ between backends in the last bits.
Tensor random_bits(const Shape& shape, Loc loc = Loc::current());

/// Returns uniform f32 numbers in [0, 1), which are multiples of 2^-24.
Tensor rand(const Shape& shape, Loc loc = Loc::current());

/// Like rand(), with the shape of `x`.
Tensor rand_like(Tensor x, Loc loc = Loc::current());

/// Returns uniform f32 numbers in [lo, hi). Throws UserError unless lo < hi as finite floats.
Tensor uniform(const Shape& shape, double lo, double hi, Loc loc = Loc::current());

/// Returns normal f32 numbers with mean 0 and standard deviation 1 (Box and Muller 1958).
Tensor randn(const Shape& shape, Loc loc = Loc::current());

/// Like randn(), with the shape of `x`.
Tensor randn_like(Tensor x, Loc loc = Loc::current());

/// Returns normal f32 numbers with the given mean and standard deviation. Throws UserError if the
/// standard deviation is negative.
Tensor normal(const Shape& shape, double mean, double stddev, Loc loc = Loc::current());

/// Returns exponential f32 numbers of the given rate, with mean 1 / rate. They are in
/// `(0, 16.7 / rate]`. Throws UserError if the rate is not positive.
Tensor exponential(const Shape& shape, double rate = 1, Loc loc = Loc::current());

/// Returns 1 with probability p, else 0, as f32. Throws UserError if p is not in [0, 1].
Tensor bernoulli(const Shape& shape, double p, Loc loc = Loc::current());

/// Returns 1 with the probability in `p`, else 0, for each element of `p`, as f32. Probabilities
/// are not checked.
Tensor bernoulli(Tensor p, Loc loc = Loc::current());

/// Returns uniform i32 integers in [lo, hi). If hi - lo does not divide 2^32, the distribution is
/// slightly biased: the relative error of a probability is less than `(hi - lo) / 2^32`. Throws
/// UserError if `lo >= hi`, if hi - lo is above 2^31 - 1, or if an integer does not fit i32.
Tensor randint(const Shape& shape, std::int64_t lo, std::int64_t hi, Loc loc = Loc::current());

/// Returns a random permutation of 0, 1, ..., n - 1, as i32: the order that sorts n random words.
Tensor randperm(std::int64_t n, Loc loc = Loc::current());

/// Samples an index along an axis with probability softmax(logits). Returns i32 without the axis.
/// An index whose logit is -inf is never sampled, unless all are -inf; then the result is 0. The
/// sample is the largest of logits plus Gumbel noise (Gumbel 1954; Maddison, Tarlow and Minka
/// 2014).
Tensor categorical(Tensor logits, int axis = -1, Loc loc = Loc::current());

/// Samples n indices for each row of nonnegative weights: [..., C] -> i32 [..., n]. Weights need
/// not sum to 1. Without replacement, n is at most C, and indices are in the order in which they
/// are drawn (Vieira 2014; Kool, van Hoof and Welling 2019). An index of weight 0 is never drawn:
/// if no positive weight is left, the result is -1. It is -1 for the whole row if one of its
/// weights is negative or NaN. Throws ShapeError if n is less than 1, or more than C without
/// replacement.
Tensor multinomial(Tensor weights, std::int64_t n, bool replacement = false,
                   Loc loc = Loc::current());

/// Samples a token of each row as language models do: f32 [..., V] -> i32 [...]. `uniform` [...]
/// has numbers in [0, 1). A row of `controls` [..., 5] has temperature, top_k, top_p and min_p as
/// in lm::SamplingOptions, and the number of tokens that can be sampled (0: all V). These are
/// tensors, so that a run can change them. The result is the first token whose cumulative
/// probability exceeds the uniform number. If the temperature is 0, returns the index of the first
/// largest logit. If it is negative, returns 0. V is at most 2^24.
///
/// If the logits are invalid, returns a negative code. Let i be the index of the first logit that
/// is NaN or +infinity. The code is -1 - 2i if this logit is NaN, and -2 - 2i if it is +infinity.
/// If all logits are -infinity, it is -2^31.
///
/// Throws ShapeError if the shapes do not match, and DtypeError if `uniform` or `controls` is not
/// f32.
Tensor sample_tokens(Tensor logits, Tensor uniform, Tensor controls, Loc loc = Loc::current());

}  // namespace tensorgrad::inline TENSORGRAD_ABI
