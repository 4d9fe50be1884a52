// SPDX-License-Identifier: MIT
#include "tensorgrad/distributed/communicator.h"

#include <algorithm>
#include <vector>

namespace tensorgrad::inline TENSORGRAD_ABI {

void Communicator::all_reduce_sum_into(std::span<const float> mine, std::span<float> sum) {
  if (mine.data() == sum.data()) return all_reduce_sum(sum);
  std::vector<float> values(mine.begin(), mine.end());
  all_reduce_sum(values);
  std::copy(values.begin(), values.end(), sum.begin());
}

void Communicator::barrier() {
  const std::byte mine{1};
  std::vector<std::byte> all(static_cast<std::size_t>(size()));
  all_gather({&mine, 1}, all);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
