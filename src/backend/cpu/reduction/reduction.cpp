// SPDX-License-Identifier: MIT
// Row launches:
//   out[r, c] = body(r, c, reductions over c)
// Rows that fit into a cache are processed in blocks of whole rows, and every value is computed
// once. Other rows are streamed (reduction_streaming.cpp). The choice depends only on the launch.
#include <algorithm>
#include <numeric>

#include "backend/cpu/block_size.h"
#include "backend/cpu/reduction/reduction.h"

namespace tensorgrad::cpu {
namespace {

// Whole rows are kept if their registers fit into half of the L2 cache.
constexpr std::int64_t kResidentWords = 64 * 1024;
bool jumps(const Walker& walker) {
  return walker.inner_stride() != 0 && walker.inner_stride() != 1;
}

// True if walking along rows has more strided loads and stores than walking along columns.
bool better_swapped(const Launch& launch, const RowLaunch& row) {
  int score = 0;
  const auto vote = [&](const IndexMap& map) {
    score += jumps(Walker(map)) ? 1 : 0;
    score -= jumps(Walker::swapped(map, row.rows, row.cols)) ? 1 : 0;
  };
  for (const Access& access : launch.body.accesses) {
    if (access.level == Level::kElement) vote(access.map);
  }
  for (const Store& store : launch.stores) {
    if (store.level == Level::kElement) vote(store.map);
  }
  return score > 0;
}

// Processes blocks of whole rows.
class WholeRowRunner final : public LaunchRunner {
 public:
  WholeRowRunner(const RowLaunch& row, std::unique_ptr<VectorProgram> vector_program)
      : rows_(row.rows), cols_(row.cols), vector_program_(std::move(vector_program)) {
    const std::int64_t block = block_elements(vector_program_->element_registers());
    group_ = std::clamp(block / cols_, std::int64_t{1}, rows_);
    // Groups that start at a multiple of 16 elements can be read in place.
    const std::int64_t even = 16 / std::gcd(cols_, std::int64_t{16});
    if (group_ > even) group_ -= group_ % even;
    vector_program_->lay_out(group_ * cols_, group_);
    worker_bytes = vector_program_->scratch_bytes();
    const std::int64_t groups = ceil_div(rows_, group_);
    tasks_ = share(static_cast<double>(rows_ * cols_) * vector_program_->element_cost(), groups);
    groups_per_task_ = ceil_div(groups, tasks_);
    tasks_ = ceil_div(groups, groups_per_task_);
  }

  void run(const RunContext& context) override {
    vector_program_->start(context.runtime_scalars);
    context.pool.parallel_for(tasks_, [&](std::int64_t task, int worker) {
      Frame frame = vector_program_->frame(context.scratch(worker));
      const std::int64_t begin = task * groups_per_task_ * group_;
      const std::int64_t end = std::min(rows_, begin + groups_per_task_ * group_);
      for (frame.row = begin; frame.row < end; frame.row += group_) {
        frame.rows = std::min(group_, end - frame.row);
        frame.first = frame.row * cols_;
        frame.count = frame.rows * cols_;
        vector_program_->run(vector_program_->ops, frame);
      }
    });
  }

 private:
  std::int64_t rows_, cols_, group_ = 1, tasks_ = 1, groups_per_task_ = 1;
  std::unique_ptr<VectorProgram> vector_program_;
};

}  // namespace

VectorProgramSpec row_spec(const Launch& launch, const RowLaunch& row) {
  VectorProgramSpec spec;
  spec.program = &launch.body;
  spec.stores = &launch.stores;
  spec.rows = row.rows;
  spec.cols = row.cols;
  spec.leveled = true;
  return spec;
}

std::unique_ptr<LaunchRunner> make_runner(const Prepare& prepare, const RowLaunch& row) {
  if (better_swapped(prepare.launch, row)) return make_row_stream(prepare, row, true);
  if (row.cols > kResidentWords) return make_row_stream(prepare, row, false);
  auto vector_program = std::make_unique<VectorProgram>(prepare, row_spec(prepare.launch, row));
  if (row.cols * vector_program->element_registers() > kResidentWords) {
    return make_row_stream(prepare, row, false);
  }
  return std::make_unique<WholeRowRunner>(row, std::move(vector_program));
}

}  // namespace tensorgrad::cpu
