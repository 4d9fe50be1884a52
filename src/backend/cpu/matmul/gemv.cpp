// SPDX-License-Identifier: MIT
// Contractions with m = 1 or n = 1:
//   out[j] = body(sum_k v[k] * w[k, j])
// w is read in place, with contiguous rows or columns, or unpacked along k. Memory-bound.
#include <algorithm>

#include "backend/cpu/block_size.h"
#include "backend/cpu/matmul/contraction.h"

namespace tensorgrad::cpu {
namespace {

// Minimum number of results of a task.
constexpr std::int64_t kMinColumns = 64;
constexpr double kReadNs = 0.15;

class RowProductRunner final : public LaunchRunner {
 public:
  // `flipped`: n = 1, so v is B and w is A transposed.
  RowProductRunner(const Prepare& prepare, const ContractionLaunch& l, std::unique_ptr<Operand> v,
                   std::unique_ptr<Operand> w, bool flipped)
      : v_(std::move(v)),
        w_(std::move(w)),
        flipped_(flipped),
        k_(l.k),
        n_(flipped ? l.m : l.n),
        epilogue_(prepare, epilogue_spec(prepare.launch, n_)) {
    epilogue_.lay_out(block_elements(epilogue_.element_registers()), 0);
    const double ns = static_cast<double>(k_ * n_) * kReadNs;
    const std::int64_t tasks = share(ns, ceil_div(n_, kMinColumns));
    each_ = round_up(ceil_div(n_, tasks), kMinColumns);
    v_scratch_ = round_up(static_cast<std::int64_t>(epilogue_.scratch_bytes()), 64);
    worker_bytes = static_cast<std::size_t>(v_scratch_) + v_->scratch_bytes(k_, 1);
    v_words_ = round_up(k_, 16);
    sums_words_ = round_up(n_, 16);
    adds_up_ = l.bias_grad_column;
    shared_bytes =
        static_cast<std::size_t>(v_words_ + (adds_up_ ? 2 : 1) * sums_words_) * sizeof(float);
    if (adds_up_) bias_grad_ = BiasGradStore(prepare, l);
  }

  void run(const RunContext& context) override {
    v_->start(context.runtime_scalars);
    epilogue_.start(context.runtime_scalars);
    bias_grad_.start(context.runtime_scalars);
    auto* v = reinterpret_cast<float*>(context.shared);
    float* sums = v + v_words_;
    gather_v(context.scratch(0) + v_scratch_, v);
    if (w_->packed()) return run_packed(context, v, sums);
    Matrix w = flipped_ ? w_->block(0, 0, n_, 0, k_, nullptr).transposed()
                        : w_->block(0, 0, k_, 0, n_, nullptr);
    const GemmKernels& kernels = gemm_kernels();
    context.pool.parallel_for(ceil_div(n_, each_), [&](std::int64_t task, int worker) {
      const std::int64_t begin = task * each_, count = std::min(each_, n_ - begin);
      const Matrix part = w.at(0, begin);
      if (w.cs == 1 && !(n_ == 1 && w.rs == 1)) {
        kernels.row_times_rows(k_, count, v, part.data, w.rs, sums + begin);
      } else {
        kernels.row_times_columns(k_, count, v, part.data, w.cs, sums + begin);
      }
      if (adds_up_) {
        float* ones = sums + sums_words_ + begin;
        std::fill_n(ones, count, 0.0F);
        simd().add_rows(ones, part.data, k_, part.rs, count);
        bias_grad_.store(ones, begin, count);
      }
      finish(begin, count, sums, context.scratch(worker));
    });
  }

 private:
  void finish(std::int64_t begin, std::int64_t count, const float* sums, std::byte* scratch) const {
    Frame frame = epilogue_.frame(scratch);
    for (std::int64_t done = 0; done < count; done += frame.count) {
      frame.first = begin + done;
      frame.count = std::min(epilogue_.capacity(), count - done);
      frame.acc = reinterpret_cast<const Word*>(sums) + frame.first;
      epilogue_.run(epilogue_.ops, frame);
    }
  }

  void run_packed(const RunContext& context, float* v, float* sums) const {
    w_->dequant_read().arrange(v);
    context.pool.parallel_for(ceil_div(n_, each_), [&](std::int64_t task, int worker) {
      const std::int64_t begin = task * each_, count = std::min(each_, n_ - begin);
      w_->dequant_read().multiply(v, begin, count, sums + begin);
      finish(begin, count, sums, context.scratch(worker));
    });
  }

  void gather_v(std::byte* scratch, float* v) const {
    Matrix from = flipped_ ? v_->block(0, 0, k_, 0, 1, scratch).transposed()
                           : v_->block(0, 0, 1, 0, k_, scratch);
    for (std::int64_t k = 0; k < k_; ++k) v[k] = from.data[k * from.cs];
  }

  std::unique_ptr<Operand> v_, w_;
  bool flipped_;
  std::int64_t k_, n_, each_ = 1, v_scratch_ = 0, v_words_ = 0, sums_words_ = 0;
  VectorProgram epilogue_;
  bool adds_up_ = false;  // bias_grad_column: sums the rows of A, which are columns of w
  BiasGradStore bias_grad_;
};

}  // namespace

std::unique_ptr<LaunchRunner> make_row_product(const Prepare& prepare, const ContractionLaunch& l) {
  if (l.batch != 1 || (l.m != 1 && l.n != 1) || l.k == 1 || l.bias_grad_row) return nullptr;
  const bool flipped = l.m != 1;
  auto a = std::make_unique<Operand>(prepare, l.a, 1, l.m, l.k);
  auto b = std::make_unique<Operand>(prepare, l.b, 1, l.k, l.n);
  const Operand &w = flipped ? *a : *b, &v = flipped ? *b : *a;
  const bool lines = flipped ? w.rows_are_contiguous() : w.columns_are_contiguous();
  const bool lies = w.plain() && (w.rows_are_contiguous() || w.columns_are_contiguous());
  if (v.windowed() || !(lies || (w.packed() && lines))) return nullptr;
  // The row sums of A are supported only if the columns of A are contiguous.
  if (l.bias_grad_column && !(flipped && lies && w.columns_are_contiguous())) return nullptr;
  if (flipped) std::swap(a, b);
  return std::make_unique<RowProductRunner>(prepare, l, std::move(a), std::move(b), flipped);
}

}  // namespace tensorgrad::cpu
