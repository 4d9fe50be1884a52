// SPDX-License-Identifier: MIT
// Scan launches: out[p, t, q] = body(h of line (p, q) after its elements up to t). Blocks of
// elements are computed, scanned and finished while they are in cache. The carry of a line passes
// to its next block.
//
// If there are only a few long lines, they are cut into chunks, depending only on the shape. The
// first pass computes each chunk's own result. The carries of the chunks are then combined in
// order, and the second pass scans again (the two passes of Blelloch 1990).
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "backend/cpu/block_size.h"
#include "backend/cpu/scan/scan_kernels.h"
#include "backend/cpu/vector_program.h"
#include "base/check.h"

namespace tensorgrad::cpu {
namespace {

constexpr std::int64_t kAlign = 64;

// The carry of lines for one kind of scan: its initial value, and how a chunk updates it.
class Carry {
 public:
  Carry(ScanOp op, DType dtype) : op_(op), dtype_(dtype), kernel_(scan_kernel(op, dtype)) {}

  [[nodiscard]] ScanFn kernel() const { return kernel_; }

  void begin(std::byte* carry, std::int64_t width) const {
    std::fill_n(carry, carry_bytes(width), std::byte{0});
    const bool real = dtype_ == DType::kF32;
    if (op_ == ScanOp::kProduct && real) std::fill_n(doubles(carry), width, 1.0);
    if (op_ == ScanOp::kProduct && !real) std::fill_n(words(carry), width, Word{1});
    if (op_ == ScanOp::kArgMax || op_ == ScanOp::kArgMin) std::fill_n(words(carry), width, worst());
  }

  // Updates `carry` by a whole chunk, whose own result started from the initial value. `product` is
  // the product of the chunk's a (kLinear).
  void go_over(std::byte* carry, const std::byte* chunk, const std::byte* product,
               std::int64_t width) const {
    for (std::int64_t q = 0; q < width; ++q) {
      switch (op_) {
        case ScanOp::kSum:
          if (dtype_ == DType::kF32) {
            doubles(carry)[q] += doubles(chunk)[q];
          } else {
            words(carry)[q] += words(chunk)[q];
          }
          break;
        case ScanOp::kProduct:
          if (dtype_ == DType::kF32) {
            doubles(carry)[q] *= doubles(chunk)[q];
          } else {
            words(carry)[q] *= words(chunk)[q];
          }
          break;
        case ScanOp::kLinear: {
          const float h = std::bit_cast<float>(words(carry)[q]);
          // Zero stays zero even if the product has overflowed.
          const double moved = h == 0 ? 0 : doubles(product)[q] * static_cast<double>(h);
          const float own = std::bit_cast<float>(words(chunk)[q]);
          words(carry)[q] = std::bit_cast<Word>(static_cast<float>(moved) + own);
          break;
        }
        case ScanOp::kArgMax:
        case ScanOp::kArgMin:
          if (!reaches(words(chunk)[q], words(carry)[q])) break;
          words(carry)[q] = words(chunk)[q];
          carry_indices(carry, width)[q] = carry_indices(chunk, width)[q];
          break;
      }
    }
  }

 private:
  static double* doubles(std::byte* at) { return reinterpret_cast<double*>(at); }
  static const double* doubles(const std::byte* at) { return reinterpret_cast<const double*>(at); }
  static Word* words(std::byte* at) { return reinterpret_cast<Word*>(at); }
  static const Word* words(const std::byte* at) { return reinterpret_cast<const Word*>(at); }

  // Returns a value that every element replaces.
  [[nodiscard]] Word worst() const {
    const bool max = op_ == ScanOp::kArgMax;
    if (dtype_ == DType::kU32) return max ? 0 : ~Word{0};
    if (dtype_ == DType::kI32) return max ? Word{1} << 31 : ~(Word{1} << 31);
    const float inf = std::numeric_limits<float>::infinity();
    return std::bit_cast<Word>(max ? -inf : inf);
  }

  [[nodiscard]] bool reaches(Word later, Word best) const {
    const auto compare = [&](auto l, auto b) { return op_ == ScanOp::kArgMax ? l >= b : l <= b; };
    if (dtype_ == DType::kU32) return compare(later, best);
    if (dtype_ == DType::kI32) {
      return compare(std::bit_cast<std::int32_t>(later), std::bit_cast<std::int32_t>(best));
    }
    const auto value = std::bit_cast<float>(later);
    return std::isnan(value) || compare(value, std::bit_cast<float>(best));
  }

  ScanOp op_;
  DType dtype_;
  ScanFn kernel_;
};

class ScanRunner final : public LaunchRunner {
 public:
  ScanRunner(const Prepare& prepare, const ScanLaunch& scan)
      : l_(scan),
        carry_(l_.op, l_.line().instrs.back().dtype),
        product_(ScanOp::kProduct, DType::kF32),
        elements_(l_.pre * l_.count * l_.post),
        epilogue_(prepare, epilogue_spec(prepare.launch, elements_)) {
    if (!l_.a.instrs.empty()) a_.emplace(prepare, operand_spec(l_.a, elements_));
    if (!l_.b.instrs.empty()) b_.emplace(prepare, operand_spec(l_.b, elements_));
    lay_out();
    plan_tasks();
  }

  void run(const RunContext& context) override {
    for (VectorProgram* vector_program : vector_programs())
      vector_program->start(context.runtime_scalars);
    if (chunks_ > 1) {
      run_chunks(context);
      return;
    }
    context.pool.parallel_for(tasks_, [&](std::int64_t task, int worker) {
      Worker w = worker_at(context.scratch(worker));
      const std::int64_t each = ceil_div(groups_, tasks_);
      const std::int64_t end = std::min(groups_, (task + 1) * each);
      for (std::int64_t g = task * each; g < end; ++g) run_group(w, g);
    });
  }

 private:
  // Lines that are processed together: `width` neighbors (p, q) to (p, q + width - 1), or `lines`
  // whole contiguous lines from p on.
  struct Lines {
    std::int64_t p = 0, q = 0, width = 1, lines = 1;
  };
  struct Worker {
    Frame a, b, epilogue;
    Word* acc;
    std::byte *carry, *product;
  };

  std::vector<VectorProgram*> vector_programs() {
    std::vector<VectorProgram*> list{&epilogue_};
    if (a_) list.push_back(&*a_);
    if (b_) list.push_back(&*b_);
    return list;
  }

  void lay_out() {
    std::int64_t block = kMaxBlock;
    for (const VectorProgram* vector_program : vector_programs()) {
      block = std::min(block, block_elements(vector_program->element_registers()));
    }
    for (VectorProgram* vector_program : vector_programs()) vector_program->lay_out(block, 0);
    width_ = std::min(l_.post, block);
    steps_ = width_ < l_.post ? 1 : std::min(l_.count, block / width_);
    lines_ = l_.post == 1 ? std::min(l_.pre, std::max<std::int64_t>(1, block / l_.count)) : 1;
    across_ = ceil_div(l_.post, width_);
    groups_ = ceil_div(l_.pre, lines_) * across_;
    carry_bytes_ = round_up(carry_bytes(width_), kAlign);
    std::size_t at = 0;
    const auto take = [&](std::size_t bytes) {
      const std::size_t start = at;
      at += static_cast<std::size_t>(round_up(static_cast<std::int64_t>(bytes), kAlign));
      return start;
    };
    a_at_ = take(a_ ? a_->scratch_bytes() : 0);
    b_at_ = take(b_ ? b_->scratch_bytes() : 0);
    epilogue_at_ = take(epilogue_.scratch_bytes());
    acc_at_ = take(static_cast<std::size_t>(block + 16) * sizeof(Word));
    carry_at_ = take(static_cast<std::size_t>(2 * carry_bytes_));
    worker_bytes = at;
  }

  void plan_tasks() {
    double cost = epilogue_.element_cost() + 1;
    if (a_) cost += a_->element_cost();
    if (b_) cost += b_->element_cost();
    tasks_ = task_count(static_cast<double>(elements_) * cost, groups_);
    const std::int64_t size = l_.count * width_;
    if (groups_ >= kFewGroups || lines_ > 1 || size < 2 * kChunkElements) return;
    const std::int64_t wanted = std::min(kMaxChunks, size / kChunkElements);
    chunk_ = round_up(ceil_div(l_.count, wanted), steps_);
    chunks_ = ceil_div(l_.count, chunk_);
    shared_bytes = static_cast<std::size_t>(groups_ * chunks_ * 2 * carry_bytes_);
  }

  Worker worker_at(std::byte* scratch) const {
    Worker w;
    if (a_) w.a = a_->frame(scratch + a_at_);
    if (b_) w.b = b_->frame(scratch + b_at_);
    w.epilogue = epilogue_.frame(scratch + epilogue_at_);
    w.acc = reinterpret_cast<Word*>(scratch + acc_at_);
    w.carry = scratch + carry_at_;
    w.product = w.carry + carry_bytes_;
    return w;
  }

  [[nodiscard]] Lines lines_of(std::int64_t group) const {
    const std::int64_t p = group / across_ * lines_, q = group % across_ * width_;
    return {p, q, std::min(width_, l_.post - q), std::min(lines_, l_.pre - p)};
  }

  static const Word* compute(const std::optional<VectorProgram>& vector_program, Frame& frame,
                             std::int64_t first, std::int64_t count) {
    if (!vector_program) return nullptr;
    frame.first = first;
    frame.count = count;
    vector_program->run(vector_program->ops, frame);
    return vector_program->result(frame);
  }

  // Scans steps [t, t + steps) of lines whose carry is initialized. Without `finish`, only updates
  // the carry.
  void run_block(Worker& w, const Lines& of, std::int64_t t, std::int64_t steps,
                 bool finish) const {
    const std::int64_t first = (of.p * l_.count + t) * l_.post + of.q, count = steps * of.width;
    const Word* a = compute(a_, w.a, first, count);
    const Word* b = compute(b_, w.b, first, count);
    carry_.kernel()(a, b, t, steps, of.width, l_.reverse, w.carry, w.acc);
    if (finish) return finish_block(w, first, count);
    if (l_.op != ScanOp::kLinear) return;
    product_.kernel()(a, nullptr, t, steps, of.width, l_.reverse, w.product, w.acc);
  }

  void finish_block(Worker& w, std::int64_t first, std::int64_t count) const {
    w.epilogue.first = first;
    w.epilogue.count = count;
    w.epilogue.acc = w.acc;
    epilogue_.run(epilogue_.ops, w.epilogue);
  }

  // Scans steps [begin, end) in blocks.
  void run_steps(Worker& w, const Lines& of, std::int64_t begin, std::int64_t end,
                 bool finish) const {
    const std::int64_t blocks = ceil_div(end - begin, steps_);
    for (std::int64_t i = 0; i < blocks; ++i) {
      const std::int64_t t = begin + (l_.reverse ? blocks - 1 - i : i) * steps_;
      run_block(w, of, t, std::min(steps_, end - t), finish);
    }
  }

  void run_group(Worker& w, std::int64_t group) const {
    const Lines of = lines_of(group);
    if (lines_ == 1) {
      carry_.begin(w.carry, of.width);
      run_steps(w, of, 0, l_.count, true);
      return;
    }
    const std::int64_t first = of.p * l_.count, count = of.lines * l_.count;
    const Word* a = compute(a_, w.a, first, count);
    const Word* b = compute(b_, w.b, first, count);
    for (std::int64_t i = 0; i < count; i += l_.count) {
      carry_.begin(w.carry, 1);
      carry_.kernel()(a == nullptr ? a : a + i, b == nullptr ? b : b + i, 0, l_.count, 1,
                      l_.reverse, w.carry, w.acc + i);
    }
    finish_block(w, first, count);
  }

  void run_chunks(const RunContext& context) const {
    const auto state = [&](std::int64_t task) { return context.shared + task * 2 * carry_bytes_; };
    const auto work = [&](bool finish) {
      context.pool.parallel_for(groups_ * chunks_, [&](std::int64_t task, int worker) {
        const Lines of = lines_of(task / chunks_);
        Worker w = worker_at(context.scratch(worker));
        w.carry = state(task);
        w.product = w.carry + carry_bytes_;
        if (!finish) {
          carry_.begin(w.carry, of.width);
          product_.begin(w.product, of.width);
        }
        const std::int64_t begin = task % chunks_ * chunk_;
        run_steps(w, of, begin, std::min(l_.count, begin + chunk_), finish);
      });
    };
    work(false);
    std::byte* carry = context.scratch(0) + carry_at_;
    for (std::int64_t g = 0; g < groups_; ++g) {
      const std::int64_t width = lines_of(g).width;
      carry_.begin(carry, width);
      for (std::int64_t i = 0; i < chunks_; ++i) {
        std::byte* chunk = state(g * chunks_ + (l_.reverse ? chunks_ - 1 - i : i));
        std::byte* next = carry + carry_bytes_;
        std::copy_n(carry, carry_bytes(width), next);
        carry_.go_over(next, chunk, chunk + carry_bytes_, width);
        std::copy_n(carry, carry_bytes(width), chunk);
        std::swap_ranges(carry, carry + carry_bytes(width), next);
      }
    }
    work(true);
  }

  const ScanLaunch& l_;
  Carry carry_, product_;
  std::int64_t elements_;
  std::optional<VectorProgram> a_, b_;
  VectorProgram epilogue_;
  // A block has `steps_` steps of `width_` neighboring lines, or `lines_` whole lines.
  std::int64_t width_ = 1, steps_ = 1, lines_ = 1, across_ = 1, groups_ = 1;
  std::int64_t tasks_ = 1, chunk_ = 0, chunks_ = 1;  // steps per chunk; chunks per group
  std::int64_t carry_bytes_ = 0;
  std::size_t a_at_ = 0, b_at_ = 0, epilogue_at_ = 0, acc_at_ = 0, carry_at_ = 0;
};

}  // namespace

std::unique_ptr<LaunchRunner> make_runner(const Prepare& prepare, const ScanLaunch& scan) {
  return std::make_unique<ScanRunner>(prepare, scan);
}

}  // namespace tensorgrad::cpu
