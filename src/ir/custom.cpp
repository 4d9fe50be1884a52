// SPDX-License-Identifier: MIT
#include "ir/custom.h"

#include <mutex>

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

struct Table {
  std::mutex mutex;
  std::vector<std::shared_ptr<const CustomKernel>> kernels;
};

Table& table() {
  static Table all;
  return all;
}

}  // namespace

std::int64_t add_custom(std::shared_ptr<const CustomKernel> kernel) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  all.kernels.push_back(std::move(kernel));
  return static_cast<std::int64_t>(all.kernels.size()) - 1;
}

std::shared_ptr<const CustomKernel> find_custom(std::int64_t number) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  if (number < 0 || number >= static_cast<std::int64_t>(all.kernels.size())) return nullptr;
  return all.kernels[static_cast<std::size_t>(number)];
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
