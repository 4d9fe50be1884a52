// SPDX-License-Identifier: MIT
// Custom launches. Computes the inputs that are not contiguous in memory, then calls the user's
// function for parts of the result.
#include "kernel/user_kernel.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <mutex>
#include <tuple>
#include <utility>

#include "backend/cpu/in_blocks.h"
#include "backend/cpu/opaque.h"

namespace tensorgrad::cpu {
namespace {

// Assumed cost, since that of the user's function is unknown.
constexpr double kElementNs = 10;

// Returns the address of a program's elements if they are contiguous in memory, otherwise null.
const Word* in_memory(const Prepare& prepare, const ScalarProgram& program) {
  const Instr& last = program.instrs.back();
  if (last.kind != InstrKind::kLoad) return nullptr;
  const Access& access = program.accesses[static_cast<std::size_t>(last.index)];
  if (access.map.views.size() != 1 || access.map.masked()) return nullptr;
  if (access.dtype == DType::kF16) return nullptr;
  const View flat = access.map.views[0].simplified();
  const bool dense = flat.shape.empty() || (flat.shape.size() == 1 && flat.strides[0] == 1);
  if (!dense) return nullptr;
  return prepare.data[static_cast<std::size_t>(access.binding)] + access.map.views[0].offset;
}

class CustomRunner final : public LaunchRunner {
 public:
  explicit CustomRunner(const Prepare& prepare) : op_(*kernel_of<UserKernel>(prepare.launch).op) {
    const Launch& launch = prepare.launch;
    const auto& opaque = launch.as<OpaqueLaunch>();
    if (!op_.cpu) {
      throw UserError("custom op '" + op_.name + "' has no CPU body",
                      launch.locations.empty() ? SourceLocation() : launch.locations.front());
    }
    rows_ = opaque.kernel->rows;
    for (std::size_t k = 0; k < opaque.inputs.size(); ++k) {
      data_.push_back(in_memory(prepare, opaque.inputs[k]));
      if (data_.back() != nullptr) continue;
      const std::int64_t count = numel(op_.inputs[k].shape);
      computed_.emplace_back(std::piecewise_construct, std::forward_as_tuple(k),
                             std::forward_as_tuple(prepare, opaque.inputs[k], count, *this));
    }
    const Store& store = launch.stores.at(0);
    result_ = prepare.data[static_cast<std::size_t>(store.binding)] + store.map.views[0].offset;
  }

  void run(const RunContext& context) override {
    std::vector<const void*> inputs(data_.begin(), data_.end());
    for (auto& [input, elements] : computed_) inputs[input] = elements.compute(context);
    const std::int64_t tasks =
        task_count(static_cast<double>(rows_) * kElementNs, std::min(rows_, kTasks));
    const std::int64_t each = ceil_div(rows_, tasks);
    std::exception_ptr thrown;
    std::mutex mutex;
    context.pool.parallel_for(tasks, [&](std::int64_t task, int) {
      const std::int64_t first = task * each, last = std::min(rows_, first + each);
      if (first >= last) return;
      try {
        op_.cpu(inputs, result_, first, last);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!thrown) thrown = std::current_exception();
      }
    });
    if (thrown) std::rethrow_exception(thrown);
  }

 private:
  const CustomKernel& op_;
  std::int64_t rows_ = 0;
  std::vector<const Word*> data_;  // inputs that are read in place; null: computed
  std::deque<std::pair<std::size_t, OperandElements>> computed_;  // the others, by number
  Word* result_ = nullptr;
};

}  // namespace

std::unique_ptr<LaunchRunner> make_custom(const Prepare& prepare) {
  return std::make_unique<CustomRunner>(prepare);
}

}  // namespace tensorgrad::cpu
