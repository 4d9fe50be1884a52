// SPDX-License-Identifier: MIT
// Scatter launches:
//   out[p, v, q] = body(sum over i with index[p, i, q] == v of src[p, i, q]), in order of i
// Computes the index and the source first. Then each task accumulates its own part of the result: a
// range of p, of columns q, or of values v.
#include <algorithm>
#include <cstring>

#include "backend/cpu/block_size.h"
#include "backend/cpu/vector_program.h"

namespace tensorgrad::cpu {
namespace {

// A task has whole cache lines of columns.
constexpr std::int64_t kMinScatterColumns = 16;
constexpr std::int64_t kScatterTasks = 8;
constexpr std::int64_t kMaxScatterScans = 4;

class ScatterRunner final : public LaunchRunner {
 public:
  ScatterRunner(const Prepare& prepare, const ScatterLaunch& scatter)
      : l_(scatter),
        sources_(l_.pre * l_.count * l_.post),
        results_(l_.pre * l_.size * l_.post),
        index_(prepare, operand_spec(l_.index, sources_)),
        source_(prepare, operand_spec(l_.source, sources_)),
        epilogue_(prepare, epilogue_spec(prepare.launch, results_)),
        rows_alike_(index_repeats(l_)) {
    for (VectorProgram* vector_program : {&index_, &source_, &epilogue_}) {
      vector_program->lay_out(block_elements(vector_program->element_registers()), 0);
      worker_bytes = std::max(worker_bytes, vector_program->scratch_bytes());
    }
    const auto words = [](std::int64_t n) {
      return round_up(n, 16) * static_cast<std::int64_t>(sizeof(Word));
    };
    source_at_ = words(sources_);
    acc_at_ = 2 * words(sources_);
    const VectorStore* store = epilogue_.plain_store();
    if (store != nullptr && store->ring_word < 0 && store->walker->contiguous()) {
      direct_ = reinterpret_cast<Word*>(store->data) + store->walker->base();
    }
    shared_bytes = static_cast<std::size_t>(acc_at_ + (direct_ == nullptr ? words(results_) : 0));
    plan_tasks();
  }

  void run(const RunContext& context) override {
    for (VectorProgram* vector_program : {&index_, &source_, &epilogue_})
      vector_program->start(context.runtime_scalars);
    auto* index = reinterpret_cast<Word*>(context.shared);
    auto* source = reinterpret_cast<Word*>(context.shared + source_at_);
    auto* acc = direct_ != nullptr ? direct_ : reinterpret_cast<Word*>(context.shared + acc_at_);
    compute(context, index_, sources_, index);
    compute(context, source_, sources_, source);
    const bool real = l_.source.instrs.back().dtype == DType::kF32;
    context.pool.parallel_for(pre_tasks_ * post_tasks_ * value_tasks_, [&](std::int64_t t, int) {
      if (!real) return add_part(t, index, source, acc);
      add_part(t, index, reinterpret_cast<const float*>(source), reinterpret_cast<float*>(acc));
    });
    if (direct_ == nullptr) finish(context, acc);
  }

 private:
  struct Range {
    std::int64_t begin, end;
  };

  static Range part(std::int64_t n, std::int64_t parts, std::int64_t i) {
    const std::int64_t each = ceil_div(n, parts);
    return {std::min(n, i * each), std::min(n, (i + 1) * each)};
  }

  // Divides by p, then by columns or by values, so that each part of the result has one owner.
  void plan_tasks() {
    const double ns = static_cast<double>(sources_) * 1.0 + static_cast<double>(results_) * 0.1;
    const std::int64_t wanted = task_count(ns, kScatterTasks);
    pre_tasks_ = std::min(wanted, l_.pre);
    const std::int64_t each = ceil_div(wanted, pre_tasks_);
    // A task for a range of values reads all indices. This is cheap compared to many results.
    // Otherwise, accumulating a row must cost more than skipping it for another task, a branch that
    // is badly predicted.
    value_tasks_ = std::min(each, l_.size);
    if (4 * l_.count * value_tasks_ <= l_.size * l_.post) return;
    post_tasks_ = std::clamp(l_.post / kMinScatterColumns, std::int64_t{1}, each);
    const bool scan = l_.post >= kMinScatterColumns && pre_tasks_ * post_tasks_ == 1;
    value_tasks_ = scan ? std::min(value_tasks_, kMaxScatterScans) : 1;
  }

  // Calls run(frame) for each block of `elements`, in parallel.
  template <class Run>
  static void each_block(const RunContext& context, const VectorProgram& vector_program,
                         std::int64_t elements, const Run& run) {
    const std::int64_t block = vector_program.capacity(), blocks = ceil_div(elements, block);
    const std::int64_t tasks =
        task_count(static_cast<double>(elements) * vector_program.element_cost(), blocks);
    context.pool.parallel_for(tasks, [&](std::int64_t task, int worker) {
      const Range blocks_of = part(blocks, tasks, task);
      Frame frame = vector_program.frame(context.scratch(worker));
      for (std::int64_t b = blocks_of.begin; b < blocks_of.end; ++b) {
        frame.first = b * block;
        frame.count = std::min(block, elements - frame.first);
        run(frame);
      }
    });
  }

  void compute(const RunContext& context, const VectorProgram& vector_program,
               std::int64_t elements, Word* out) const {
    each_block(context, vector_program, elements, [&](Frame& frame) {
      vector_program.run(vector_program.ops, frame);
      std::memcpy(out + frame.first, vector_program.result(frame),
                  static_cast<std::size_t>(frame.count) * sizeof(Word));
    });
  }

  // Sums floats, or words modulo 2^32.
  template <class T>
  void add_part(std::int64_t task, const Word* index, const T* source, T* acc) const {
    const Range ps = part(l_.pre, pre_tasks_, task / (post_tasks_ * value_tasks_));
    const Range qs = part(l_.post, post_tasks_, task / value_tasks_ % post_tasks_);
    const Range vs = part(l_.size, value_tasks_, task % value_tasks_);
    for (std::int64_t p = ps.begin; p < ps.end; ++p) {
      T* out = acc + p * l_.size * l_.post;
      for (std::int64_t v = vs.begin; v < vs.end; ++v) {
        std::fill(out + v * l_.post + qs.begin, out + v * l_.post + qs.end, T{0});
      }
      for (std::int64_t i = 0; i < l_.count; ++i) {
        const std::int64_t at = (p * l_.count + i) * l_.post;
        if (rows_alike_) {
          // A negative i32 is a large u32, thus out of range.
          const auto v = static_cast<std::int64_t>(index[at]);
          if (v < vs.begin || v >= vs.end) continue;
          T* row = out + v * l_.post;
          for (std::int64_t q = qs.begin; q < qs.end; ++q) row[q] += source[at + q];
          continue;
        }
        for (std::int64_t q = qs.begin; q < qs.end; ++q) {
          const auto v = static_cast<std::int64_t>(index[at + q]);
          if (v >= vs.begin && v < vs.end) out[v * l_.post + q] += source[at + q];
        }
      }
    }
  }

  void finish(const RunContext& context, const Word* acc) const {
    each_block(context, epilogue_, results_, [&](Frame& frame) {
      frame.acc = acc + frame.first;
      epilogue_.run(epilogue_.ops, frame);
    });
  }

  const ScatterLaunch& l_;
  std::int64_t sources_, results_;
  VectorProgram index_, source_, epilogue_;
  bool rows_alike_;
  std::int64_t source_at_ = 0, acc_at_ = 0;
  Word* direct_ = nullptr;  // the destination of the sums if the epilogue only stores them
  std::int64_t pre_tasks_ = 1, post_tasks_ = 1, value_tasks_ = 1;
};

}  // namespace

std::unique_ptr<LaunchRunner> make_runner(const Prepare& prepare, const ScatterLaunch& scatter) {
  return std::make_unique<ScatterRunner>(prepare, scatter);
}

}  // namespace tensorgrad::cpu
