// SPDX-License-Identifier: MIT
// Row launches with rows that are too long to keep in a cache, streamed pass by pass. If memory is
// contiguous along the axis of the rows (column sums of a matrix), blocks have many rows and few
// columns. If there are few rows, their columns are divided into chunks, based only on the shape,
// and the accumulators of the chunks are merged in order.
#include <algorithm>

#include "backend/cpu/block_size.h"
#include "backend/cpu/reduction/reducer.h"
#include "backend/cpu/reduction/reduction.h"
#include "kernel/row_plan.h"

namespace tensorgrad::cpu {
namespace {

// Rows of a block if the walk is along columns.
constexpr std::int64_t kWalkedRows = 256;

// Runs the passes over groups of rows: one row, or many if the walk is along columns.
class StreamRunner final : public LaunchRunner {
 public:
  StreamRunner(const Prepare& prepare, const RowLaunch& row, bool swapped)
      : rows_(row.rows), cols_(row.cols), swapped_(swapped) {
    const RowPlan plan = plan_rows(prepare.launch);
    VectorProgramSpec spec = row_spec(prepare.launch, row);
    spec.swapped = swapped;
    spec.plan = &plan;
    vector_program_ = std::make_unique<VectorProgram>(prepare, spec);
    const std::int64_t block = block_elements(vector_program_->element_registers());
    group_ = swapped ? std::min(rows_, kWalkedRows) : 1;
    // Neighboring columns are contiguous in the walk only if the group has all rows.
    const bool many = !swapped || group_ == rows_;
    columns_ = many ? std::clamp(block / group_, std::int64_t{1}, cols_) : 1;
    vector_program_->lay_out(group_ * columns_, group_);
    for (const VectorPass& pass : vector_program_->passes) {
      most_reduces_ = std::max(most_reduces_, static_cast<std::int64_t>(pass.reduces.size()));
    }
    plan_tasks();
  }

  void run(const RunContext& context) override {
    vector_program_->start(context.runtime_scalars);
    if (chunks_ > 1) {
      run_split(context);
      return;
    }
    context.pool.parallel_for(tasks_, [&](std::int64_t task, int worker) {
      std::byte* scratch = context.scratch(worker);
      Frame frame = vector_program_->frame(scratch);
      std::byte* totals = scratch + totals_offset_;
      const std::int64_t end = std::min(groups_, (task + 1) * groups_per_task_);
      for (std::int64_t g = task * groups_per_task_; g < end; ++g) {
        set_group(frame, g);
        for (const VectorPass& pass : vector_program_->passes) {
          vector_program_->run(pass.before, frame);
          run_chunk(pass, frame, 0, cols_, totals);
          finish(pass, frame, totals);
        }
        vector_program_->run(vector_program_->after, frame);
      }
    });
  }

 private:
  void plan_tasks() {
    groups_ = ceil_div(rows_, group_);
    totals_offset_ = round_up(static_cast<std::int64_t>(vector_program_->scratch_bytes()), 64);
    worker_bytes = static_cast<std::size_t>(totals_offset_ + totals_bytes());
    if (groups_ < kFewGroups && cols_ * group_ >= 2 * kChunkElements) {
      const std::int64_t wanted = std::min(kMaxChunks, cols_ * group_ / kChunkElements);
      chunk_ = round_up(ceil_div(cols_, wanted), columns_);
      chunks_ = ceil_div(cols_, chunk_);
    }
    if (chunks_ > 1) {
      shared_bytes = static_cast<std::size_t>(groups_ * (row_bytes() + chunks_ * totals_bytes()));
      return;
    }
    tasks_ = share(static_cast<double>(rows_ * cols_) * vector_program_->element_cost(), groups_);
    groups_per_task_ = ceil_div(groups_, tasks_);
    tasks_ = ceil_div(groups_, groups_per_task_);
  }

  [[nodiscard]] std::int64_t totals_bytes() const { return most_reduces_ * reducer_bytes(group_); }
  [[nodiscard]] std::int64_t row_bytes() const {
    return vector_program_->row_words() * static_cast<std::int64_t>(sizeof(Word));
  }

  void set_group(Frame& frame, std::int64_t group) const {
    frame.row = group * group_;
    frame.rows = std::min(group_, rows_ - frame.row);
    frame.count = columns_ * frame.rows;
  }

  // Runs one pass over columns [begin, end) of the frame's rows. Leaves its reductions in `totals`.
  void run_chunk(const VectorPass& pass, Frame& frame, std::int64_t begin, std::int64_t end,
                 std::byte* totals) const {
    if (pass.reduces.empty() && pass.loop.empty()) return;
    frame.count = columns_ * frame.rows;
    vector_program_->run(pass.spreads, frame);
    for (std::size_t i = 0; i < pass.reduces.size(); ++i) reducer(pass, i, frame, totals).clear();
    for (std::int64_t c = begin; c < end; c += columns_) {
      const std::int64_t columns = std::min(columns_, end - c);
      frame.first = swapped_ ? c * rows_ + frame.row : frame.row * cols_ + c;
      frame.count = columns * frame.rows;
      vector_program_->run(pass.loop, frame);
      for (std::size_t i = 0; i < pass.reduces.size(); ++i) {
        const Word* x = frame.regs[pass.reduces[i].src];
        Reducer total = reducer(pass, i, frame, totals);
        swapped_ ? total.take_columns(x, columns, c) : total.take_row(x, columns, c);
      }
    }
    for (std::size_t i = 0; i < pass.reduces.size(); ++i) reducer(pass, i, frame, totals).settle();
  }

  [[nodiscard]] Reducer reducer(const VectorPass& pass, std::size_t i, const Frame& frame,
                                std::byte* totals) const {
    return {pass.reduces[i], totals + static_cast<std::int64_t>(i) * reducer_bytes(group_),
            frame.rows};
  }

  void finish(const VectorPass& pass, const Frame& frame, std::byte* totals) const {
    for (std::size_t i = 0; i < pass.reduces.size(); ++i) {
      reducer(pass, i, frame, totals).finish(frame.regs[pass.reduces[i].dst]);
    }
  }

  void run_split(const RunContext& context) const {
    std::byte* totals = context.shared + groups_ * row_bytes();
    const auto totals_of = [&](std::int64_t group, std::int64_t chunk) {
      return totals + (group * chunks_ + chunk) * totals_bytes();
    };
    const auto group_frame = [&](std::int64_t group, int worker) {
      std::byte* values = context.shared + group * row_bytes();
      Frame frame =
          vector_program_->frame(context.scratch(worker), reinterpret_cast<Word*>(values));
      set_group(frame, group);
      return frame;
    };
    for (const VectorPass& pass : vector_program_->passes) {
      for (std::int64_t g = 0; g < groups_; ++g) {
        Frame frame = group_frame(g, 0);
        vector_program_->run(pass.before, frame);
      }
      context.pool.parallel_for(groups_ * chunks_, [&](std::int64_t task, int worker) {
        const std::int64_t group = task / chunks_, chunk = task % chunks_;
        Frame frame = group_frame(group, worker);
        run_chunk(pass, frame, chunk * chunk_, std::min(cols_, (chunk + 1) * chunk_),
                  totals_of(group, chunk));
      });
      for (std::int64_t g = 0; g < groups_; ++g) {
        const Frame frame = group_frame(g, 0);
        for (std::size_t i = 0; i < pass.reduces.size(); ++i) {
          Reducer total = reducer(pass, i, frame, totals_of(g, 0));
          for (std::int64_t c = 1; c < chunks_; ++c) {
            total.join(reducer(pass, i, frame, totals_of(g, c)));
          }
        }
        finish(pass, frame, totals_of(g, 0));
      }
    }
    for (std::int64_t g = 0; g < groups_; ++g) {
      Frame frame = group_frame(g, 0);
      vector_program_->run(vector_program_->after, frame);
    }
  }

  std::int64_t rows_, cols_, group_ = 1, columns_ = 1, groups_ = 1;
  bool swapped_;
  std::int64_t most_reduces_ = 0, totals_offset_ = 0;
  std::int64_t chunk_ = 0, chunks_ = 1;  // columns per chunk; chunks per group
  std::int64_t tasks_ = 1, groups_per_task_ = 1;
  std::unique_ptr<VectorProgram> vector_program_;
};

}  // namespace

std::unique_ptr<LaunchRunner> make_row_stream(const Prepare& prepare, const RowLaunch& row,
                                              bool swapped) {
  return std::make_unique<StreamRunner>(prepare, row, swapped);
}

}  // namespace tensorgrad::cpu
