// SPDX-License-Identifier: MIT
// Contraction launches: out[b, m, n] = body(sum_k a[b, m, k] * b[b, k, n]). Plans the tiles of the
// result that are tasks; where there is one batch, B is packed once for all of them, and A where it
// is the same for all batches.
#include "backend/cpu/contraction.h"

#include <algorithm>

namespace tensorgrad::cpu {
namespace {

// A block of A stays in a second-level cache of 512 KiB, beside a tile of the result.
constexpr std::int64_t kBlockOfA = 56 * 1024;
constexpr std::int64_t kTileOfC = 32 * 1024;
// Small results of several batches are finished together.
constexpr std::int64_t kBatchedResult = 4 * 1024;
// Packed rows of A, where tasks share them, and columns of B at a time: 16 MiB for all workers, 1
// MiB for each where batches pack their own.
constexpr std::int64_t kShared = 4 << 20;
constexpr std::int64_t kOwnB = 256 << 10;
// How the result is cut.
struct Plan {
  std::int64_t batches = 1;         // per task
  std::int64_t rows = 1;            // of a tile
  std::int64_t columns = 1;         // of a tile
  std::int64_t shared_columns = 1;  // of B packed at a time
};

Plan plan_tiles(const ProductShape& s, bool epilogue_in_place) {
  const GemmKernels& kernels = gemm_kernels();
  // To judge what is worth sharing: a core does about two multiply-adds a nanosecond for each
  // column of the micro-kernel (32 of them with AVX-512, 16 with AVX2).
  const double ns = static_cast<double>(s.batch * s.m * s.n * s.k) / (2 * kernels.nr);
  const std::int64_t most_tasks = task_count(ns, kTasks);
  Plan plan;
  plan.columns = s.n;
  plan.shared_columns = s.n;
  const std::int64_t by_a =
      std::max<std::int64_t>(kernels.mr, kBlockOfA / s.k / kernels.mr * kernels.mr);
  if (s.batch > 1 && s.m * s.n <= kBatchedResult && s.m <= by_a) {
    plan.rows = s.m;
    plan.batches =
        std::clamp(kBatchedResult / (s.m * s.n), std::int64_t{1}, ceil_div(s.batch, most_tasks));
    return plan;
  }
  const std::int64_t per_batch = ceil_div(most_tasks, s.batch);
  const std::int64_t least = s.batch > 1 ? 16 * kernels.mr : 4 * kernels.mr;
  plan.rows = std::max(round_up(ceil_div(s.m, per_batch), kernels.mr), least);
  plan.rows = std::min({plan.rows, by_a, s.m});
  const std::int64_t across = ceil_div(per_batch, ceil_div(s.m, plan.rows));
  plan.columns = round_up(ceil_div(s.n, across), 2 * kernels.nr);
  const std::int64_t pack_limit = s.batch > 1 ? kOwnB : kShared;
  plan.shared_columns =
      std::max<std::int64_t>(kernels.nr, pack_limit / s.k / kernels.nr * kernels.nr);
  plan.columns = std::min(plan.columns, plan.shared_columns);
  if (!epilogue_in_place) {
    const std::int64_t by_c =
        std::max<std::int64_t>(2 * kernels.nr, kTileOfC / plan.rows / kernels.nr * kernels.nr);
    plan.columns = std::min(plan.columns, by_c);
  }
  plan.columns = std::min(plan.columns, s.n);
  plan.shared_columns = std::min(plan.shared_columns, s.n);
  if (plan.shared_columns < s.n) {
    plan.shared_columns = std::max(plan.columns, plan.shared_columns / plan.columns * plan.columns);
  }
  return plan;
}

ResultTile largest_tile(const Plan& plan) {
  ResultTile tile;
  tile.batches = plan.batches;
  tile.rows = plan.rows;
  tile.columns = plan.columns;
  return tile;
}

class ContractionStep final : public Step {
 public:
  ContractionStep(const Prepare& prepare, const ProductShape& shape, const Plan& plan)
      : plan_(plan), engine_(prepare, shape, largest_tile(plan)) {
    worker_bytes = engine_.worker_bytes();
    shares_b_ = shape.batch == 1 && !engine_.direct_b(shape.m);
    const std::int64_t words_b = shares_b_ ? engine_.packed_words(plan_.shared_columns) : 0;
    // Tiles beside each other, or of batches with one A, would each pack the same rows.
    const std::int64_t words_a = round_up(shape.m, gemm_kernels().mr) * shape.k;
    const bool costly = engine_.packs_a(plan_.columns) || !engine_.left().plain();
    const bool again = shape.batch == 1 ? plan_.columns < shape.n : engine_.left().repeats();
    shares_a_ = again && costly && words_a <= kShared;
    packed_a_ = words_b;
    shared_bytes = static_cast<std::size_t>(words_b + (shares_a_ ? words_a : 0)) * sizeof(float);
  }

  void run(const RunContext& context) override {
    engine_.start(context.hyper);
    const std::int64_t n = engine_.shape().n;
    auto* shared = reinterpret_cast<float*>(context.shared);
    for (std::int64_t begin = 0; begin < n; begin += plan_.shared_columns) {
      const std::int64_t end = std::min(n, begin + plan_.shared_columns);
      const bool pack_a = shares_a_ && begin == 0;
      pack(context, pack_a ? shared + packed_a_ : nullptr, shares_b_ ? shared : nullptr, begin,
           end);
      multiply(context, begin, end);
    }
  }

 private:
  // Stripes of A and panels of columns [begin, end) of B, in one loop over both.
  void pack(const RunContext& context, float* a, float* b, std::int64_t begin,
            std::int64_t end) const {
    constexpr double kPackNs = 0.3;  // of an element
    const ProductShape& s = engine_.shape();
    const auto tasks_for = [&](const float* out, const Operand& operand, std::int64_t elements,
                               std::int64_t pieces) {
      if (out == nullptr) return std::int64_t{0};
      const double each = operand.plain() ? kPackNs : 4 * kPackNs;
      return task_count(static_cast<double>(elements) * each, pieces);
    };
    const std::int64_t stripes = ceil_div(s.m, plan_.rows),
                       panels = engine_.panel_count(end - begin);
    const std::int64_t tasks_a = tasks_for(a, engine_.left(), s.m * s.k, stripes);
    const std::int64_t tasks_b = tasks_for(b, engine_.right(), (end - begin) * s.k, panels);
    const std::int64_t rows = tasks_a == 0 ? 0 : ceil_div(stripes, tasks_a) * plan_.rows;
    const std::int64_t columns = tasks_b == 0 ? 0 : ceil_div(panels, tasks_b) * gemm_kernels().nr;
    const std::int64_t tasks = tasks_a + tasks_b;
    context.pool.parallel_for(tasks, [&](std::int64_t task, int worker) {
      std::byte* scratch = context.scratch(worker);
      // Both evenly spread over the tasks: a thread packs the rows that it multiplies.
      const std::int64_t before = task * tasks_a / tasks;  // stripes of tasks before this one
      if ((task + 1) * tasks_a / tasks > before) {
        const std::int64_t last = std::min(s.m, (before + 1) * rows);
        // As much at a time as the scratch has room for.
        for (std::int64_t i = before * rows; i < last; i += plan_.rows) {
          engine_.pack_a(0, i, std::min(last, i + plan_.rows), scratch, a + i * s.k);
        }
        return;
      }
      const std::int64_t from = begin + (task - before) * columns;
      if (from < end)
        engine_.pack_b(0, from, std::min(end, from + columns), scratch, b + (from - begin) * s.k);
    });
  }

  void multiply(const RunContext& context, std::int64_t begin, std::int64_t end) const {
    const ProductShape& s = engine_.shape();
    const std::int64_t down = ceil_div(s.m, plan_.rows);
    const std::int64_t across = ceil_div(end - begin, plan_.columns);
    const std::int64_t groups = ceil_div(s.batch, plan_.batches);
    context.pool.parallel_for(groups * across * down, [&](std::int64_t task, int worker) {
      ResultTile tile;
      tile.column = begin + task % across * plan_.columns;
      tile.row = task / across % down * plan_.rows;
      tile.batch = task / across / down * plan_.batches;
      tile.rows = std::min(plan_.rows, s.m - tile.row);
      tile.columns = std::min(plan_.columns, end - tile.column);
      tile.batches = std::min(plan_.batches, s.batch - tile.batch);
      const auto* shared = reinterpret_cast<const float*>(context.shared);
      engine_.run(tile, shares_a_ ? shared + packed_a_ + tile.row * s.k : nullptr,
                  shares_b_ ? shared + (tile.column - begin) * s.k : nullptr,
                  context.scratch(worker));
    });
  }

  Plan plan_;
  TileEngine engine_;
  bool shares_a_ = false, shares_b_ = false;
  std::int64_t packed_a_ = 0;  // word of the launch's scratch at which packed rows start
};

}  // namespace

std::unique_ptr<Step> make_contraction(const Prepare& prepare) {
  const Launch& launch = prepare.launch;
  if (std::unique_ptr<Step> step = make_row_product(prepare)) return step;
  const ProductShape shape{launch.batch, launch.m, launch.n, launch.k};
  const bool plain = launch.body.instrs.size() == 1 && launch.stores.size() == 1;
  return std::make_unique<ContractionStep>(prepare, shape, plan_tiles(shape, plain));
}

}  // namespace tensorgrad::cpu
