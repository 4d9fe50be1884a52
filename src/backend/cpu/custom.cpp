// SPDX-License-Identifier: MIT
// Custom launches. Computes the inputs that are not contiguous in memory, then calls the user's
// function for parts of the result.
#include "kernel/user_kernel.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>

#include "backend/cpu/block_size.h"
#include "backend/cpu/opaque.h"
#include "backend/cpu/vector_program.h"

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
      const std::int64_t count = numel(op_.inputs[k].shape);
      data_.push_back(in_memory(prepare, opaque.inputs[k]));
      if (data_.back() != nullptr) continue;
      computed_.push_back(
          {k, count, shared_bytes, VectorProgram(prepare, operand_spec(opaque.inputs[k], count))});
      VectorProgram& vector_program = computed_.back().vector_program;
      vector_program.lay_out(block_elements(vector_program.element_registers()), 0);
      worker_bytes = std::max(worker_bytes, vector_program.scratch_bytes());
      shared_bytes += static_cast<std::size_t>(round_up(count, 16)) * sizeof(Word);
    }
    const Store& store = launch.stores.at(0);
    result_ = prepare.data[static_cast<std::size_t>(store.binding)] + store.map.views[0].offset;
  }

  void run(const RunContext& context) override {
    std::vector<const void*> inputs(data_.begin(), data_.end());
    for (Computed& each : computed_) {
      auto* to = reinterpret_cast<Word*>(context.shared + each.at);
      compute(each, context, to);
      inputs[each.input] = to;
    }
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
  struct Computed {
    std::size_t input;
    std::int64_t count;
    std::size_t at;  // offset in the launch's scratch memory
    VectorProgram vector_program;
  };

  static void compute(Computed& each, const RunContext& context, Word* to) {
    VectorProgram& vector_program = each.vector_program;
    vector_program.start(context.runtime_scalars);
    const std::int64_t block = vector_program.capacity(), blocks = ceil_div(each.count, block);
    context.pool.parallel_for(blocks, [&](std::int64_t b, int worker) {
      Frame frame = vector_program.frame(context.scratch(worker));
      frame.first = b * block;
      frame.count = std::min(block, each.count - frame.first);
      vector_program.run(vector_program.ops, frame);
      std::memcpy(to + frame.first, vector_program.result(frame),
                  static_cast<std::size_t>(frame.count) * sizeof(Word));
    });
  }

  const CustomKernel& op_;
  std::int64_t rows_ = 0;
  std::vector<const Word*> data_;  // inputs that are read in place; null: computed
  std::deque<Computed> computed_;
  Word* result_ = nullptr;
};

}  // namespace

std::unique_ptr<LaunchRunner> make_custom(const Prepare& prepare) {
  return std::make_unique<CustomRunner>(prepare);
}

}  // namespace tensorgrad::cpu
