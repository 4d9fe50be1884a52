// SPDX-License-Identifier: MIT
// sample_tokens(): computes the operands, then samples the rows in parallel.
#include "kernel/sample_tokens.h"

#include <algorithm>
#include <span>

#include "backend/cpu/in_blocks.h"
#include "backend/cpu/opaque.h"

namespace tensorgrad::cpu {
namespace {

constexpr double kTokenNs = 10;  // rough time of a logit, which exponentials and a sort take

class SampleTokensRunner final : public LaunchRunner {
 public:
  explicit SampleTokensRunner(const Prepare& prepare)
      : kernel_(kernel_of<SampleTokensKernel>(prepare.launch)),
        logits_(operand(prepare, 0)),
        uniform_(operand(prepare, 1)),
        controls_(operand(prepare, 2)) {
    const Store& store = prepare.launch.stores.at(0);
    result_ = prepare.data[static_cast<std::size_t>(store.binding)] + store.map.views[0].offset;
  }

  void run(const RunContext& context) override {
    const auto* controls = reinterpret_cast<const float*>(controls_.compute(context));
    const auto row_controls = [&](std::int64_t row) {
      return std::span(controls + row * kSampleControls, kSampleControls);
    };
    bool any = false;
    for (std::int64_t row = 0; row < kernel_.rows; ++row)
      any = any || row_controls(row)[kTemperature] >= 0;
    if (!any) {
      std::fill_n(result_, kernel_.rows, 0);
      return;
    }
    const auto* logits = reinterpret_cast<const float*>(logits_.compute(context));
    const auto* uniform = reinterpret_cast<const float*>(uniform_.compute(context));
    const double ns = static_cast<double>(kernel_.rows * kernel_.tokens) * kTokenNs;
    const std::int64_t tasks = task_count(ns, kernel_.rows);
    const std::int64_t each = ceil_div(kernel_.rows, tasks);
    context.pool.parallel_for(tasks, [&](std::int64_t task, int) {
      const std::int64_t end = std::min(kernel_.rows, (task + 1) * each);
      for (std::int64_t row = task * each; row < end; ++row) {
        const std::span of_row(logits + row * kernel_.tokens,
                               static_cast<std::size_t>(kernel_.tokens));
        result_[row] = static_cast<Word>(sample_token(of_row, uniform[row], row_controls(row)));
      }
    });
  }

 private:
  OperandElements operand(const Prepare& prepare, std::size_t number) {
    return {prepare, prepare.launch.as<OpaqueLaunch>().inputs[number], kernel_.inputs[number].size,
            *this};
  }

  const SampleTokensKernel& kernel_;
  OperandElements logits_, uniform_, controls_;
  Word* result_ = nullptr;
};

}  // namespace

std::unique_ptr<LaunchRunner> make_sample_tokens(const Prepare& prepare) {
  return std::make_unique<SampleTokensRunner>(prepare);
}

}  // namespace tensorgrad::cpu
