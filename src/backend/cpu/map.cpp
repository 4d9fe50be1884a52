// SPDX-License-Identifier: MIT
// Map launches:
//   out[i] = body(i)
// Runs in blocks of about a thousand elements, which stay in the L1 cache.
#include <algorithm>

#include "backend/cpu/block_size.h"
#include "backend/cpu/vector_program.h"

namespace tensorgrad::cpu {
namespace {

class MapRunner final : public LaunchRunner {
 public:
  MapRunner(const Prepare& prepare, const MapLaunch& map)
      : elements_(map.rows), vector_program_(prepare, epilogue_spec(prepare.launch, elements_)) {
    block_ = std::min(block_elements(vector_program_.element_registers()), round_up(elements_, 16));
    vector_program_.lay_out(block_, 0);
    worker_bytes = vector_program_.scratch_bytes();
    const std::int64_t blocks = ceil_div(elements_, block_);
    tasks_ = share(static_cast<double>(elements_) * vector_program_.element_cost(), blocks);
    blocks_per_task_ = ceil_div(blocks, tasks_);
    tasks_ = ceil_div(blocks, blocks_per_task_);
  }

  void run(const RunContext& context) override {
    vector_program_.start(context.runtime_scalars);
    context.pool.parallel_for(tasks_, [&](std::int64_t task, int worker) {
      const std::int64_t begin = task * blocks_per_task_ * block_;
      const std::int64_t end = std::min(elements_, begin + blocks_per_task_ * block_);
      Frame frame = vector_program_.frame(context.scratch(worker));
      for (frame.first = begin; frame.first < end; frame.first += block_) {
        frame.count = std::min(block_, end - frame.first);
        vector_program_.run(vector_program_.ops, frame);
      }
    });
  }

 private:
  std::int64_t elements_, block_ = 0, tasks_ = 1, blocks_per_task_ = 1;
  VectorProgram vector_program_;
};

}  // namespace

std::unique_ptr<LaunchRunner> make_runner(const Prepare& prepare, const MapLaunch& map) {
  return std::make_unique<MapRunner>(prepare, map);
}

}  // namespace tensorgrad::cpu
