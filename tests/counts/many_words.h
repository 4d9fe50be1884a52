// SPDX-License-Identifier: MIT
// An embedding of 151,936 x 128 that AdamW trains with clipping.
#pragma once

#include <cstdint>
#include <memory>

#include "small_workloads.h"

namespace tensorgrad::testing {

inline constexpr std::int64_t kManyWords = 151'936, kWordWidth = 128;
inline constexpr std::int64_t kElements = kManyWords * kWordWidth;
inline constexpr double kEpsilon = 1e-4;  // of AdamW

struct ManyWords {
  nn::Embedding words{kManyWords, kWordWidth};
  TG_MODULE(words)
};
inline ManyWords many_words() {
  ManyWords net;
  net.words.weight = Parameter({kManyWords, kWordWidth}, init::constant(0.5));
  return net;
}

template <class Loss>
Trainer<ManyWords> trainer_of_many(const std::shared_ptr<Device>& device, const Loss& loss) {
  return compile(many_words(), loss,
                 {.inputs = {{"tokens", {2, 64}, i32}},
                  .optimizer = optim::AdamW{.lr = 0.1, .eps = kEpsilon},
                  .clip_grad_norm = 1.0,
                  .device = on(device)});
}

}  // namespace tensorgrad::testing
