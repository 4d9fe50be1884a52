// SPDX-License-Identifier: MIT
// Random numbers and the ops built on them. Seed and step are leaves of the builder, so all
// backends draw the same numbers and differences can be taken.
#include "op_cases.h"

namespace tensorgrad::testing {
namespace {

using T = const std::vector<Tensor>&;

}  // namespace

std::vector<OpCase> random_cases() {
  const auto of_nothing = [](const std::string& name, const std::function<Tensor()>& make) {
    return OpCase{name, {}, [make](T) { return make(); }, false};
  };
  const Argument shares = {{2, 5}, 0.1, 4};
  return {
      of_nothing("random_bits", [] { return random_bits({3, 70}); }),
      of_nothing("rand", [] { return rand({3, 70}); }),
      of_nothing("randn", [] { return randn({3, 70}); }),
      of_nothing("uniform", [] { return uniform({3, 70}, -2, 5); }),
      of_nothing("normal", [] { return normal({3, 70}, 1, 2); }),
      of_nothing("exponential", [] { return exponential({3, 70}, 0.5); }),
      of_nothing("bernoulli", [] { return bernoulli({3, 70}, 0.3); }),
      of_nothing("randint", [] { return randint({3, 70}, -1000000, 2000000000); }),
      of_nothing("randperm", [] { return randperm(40); }),
      {"rand_like", {{{3, 7}}}, [](T t) { return rand_like(t[0]); }},
      {"randn_like", {{{3, 7}}}, [](T t) { return randn_like(t[0]); }},
      {"bernoulli_of_shares", {{{3, 7}, 0, 1}}, [](T t) { return bernoulli(t[0]); }},
      {"categorical", {{{20, 6}}}, [](T t) { return categorical(t[0]); }, false},
      {"categorical_0", {{{6, 20}}}, [](T t) { return categorical(t[0], 0); }, false},
      {"multinomial", {shares}, [](T t) { return multinomial(t[0], 3); }, false},
      {"multinomial_again", {shares}, [](T t) { return multinomial(t[0], 30, true); }, false},
      {"sample_tokens",
       {{{6, 50}, -4, 4},
        {{6}, 0, 1},
        {{6, 5}, 0, 1, f32, {1, 0, 1, 0, 0, 0,   0, 1, 0,    0,  0.5, 7,   0.9, 0, 0,
                             2, 9, 1, 0, 0, 1.5, 0, 1, 0.02, 40, 1,   1e6, 0.5, 0, 3}}},
       [](T t) { return sample_tokens(t[0], t[1], t[2]); },
       false},
      {"gumbel_softmax", {{{4, 5}}}, [](T t) { return gumbel_softmax(t[0], 0.7); }},
      {"dropout", {{{8, 9}}}, [](T t) { return dropout(t[0], 0.4); }},
      {"dropout_of_all", {{{8, 9}}}, [](T t) { return dropout(t[0], 1); }},
      {"dropout1d", {{{4, 6, 3}}}, [](T t) { return dropout1d(t[0], 0.4); }},
      {"dropout2d", {{{4, 6, 3, 2}}}, [](T t) { return dropout2d(t[0], 0.4); }},
      {"alpha_dropout", {{{8, 9}}}, [](T t) { return alpha_dropout(t[0], 0.4); }},
  };
}

}  // namespace tensorgrad::testing
