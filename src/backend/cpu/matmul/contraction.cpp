// SPDX-License-Identifier: MIT
// Contraction launches:
//   out[b, m, n] = body(sum_k a[b, m, k] * b[b, k, n])
// Plans the tiles of the result that become tasks, and which thread packs what. Reading data packed
// by another core costs more (about 20 ns per 64-byte line) than packing it again (5 ns). If there
// is one batch, each thread therefore packs the columns of B that its tiles need once, and the
// tiles are chosen such that threads pack little. Operands that must be computed first are packed
// once, by all threads together.
#include "backend/cpu/matmul/contraction.h"

#include <algorithm>

#include "base/check.h"

namespace tensorgrad::cpu {
namespace {

// Words of a block of A, which stays in an L2 cache of 512 KiB with a tile of the result.
constexpr std::int64_t kBlockOfA = 56 * 1024;
constexpr std::int64_t kTileOfC = 32 * 1024;
// The epilogue runs once for several batches with small results.
constexpr std::int64_t kBatchedResult = 4 * 1024;
// Words of packed rows of A that tasks share, and of computed columns of B at a time: 16 MiB for
// all workers. Words of a worker's own columns of B: 1 MiB.
constexpr std::int64_t kSharedCache = 4 << 20;
constexpr std::int64_t kOwnB = 256 << 10;
// Minimum nanoseconds of work for which timing decides whether to share a product. Lower than for
// other launches, as a product reads little for what it computes.
constexpr double kMayBeWorthSharing = 6000;
// Nanoseconds to pack an element.
constexpr double kPackNs = 0.3;

// How tiles obtain their columns of B.
enum class ColumnsOfB {
  kByTile,    // read in place, or packed by each tile
  kByWorker,  // packed once by each worker that needs them
  kByAll,     // packed in advance, by all workers
};

// How the result is divided.
struct Plan {
  std::int64_t batches = 1;        // per task
  std::int64_t rows = 1;           // per tile
  std::int64_t columns = 1;        // per tile
  std::int64_t block_columns = 1;  // columns of a block; blocks are computed one after another
  std::int64_t groups = 1;         // column groups of a block; each has its own threads
  bool small = false;              // small enough that timing decides whether to share it
  ColumnsOfB columns_of_b = ColumnsOfB::kByTile;
};

// Divides the result based on its shape, on how its operands are packed, and on the number of
// threads. The division does not affect the values.
class Planner {
 public:
  Planner(const TileEngine& engine, int threads)
      : engine_(engine), s_(engine.shape()), threads_(threads) {}

  Plan plan() {
    // To estimate whether sharing pays: a core does about two multiply-adds per nanosecond for each
    // column of the micro-kernel (32 columns with AVX-512, 16 with AVX2).
    const auto results = static_cast<double>(s_.batch * s_.m * s_.n);
    const double ns = results * (static_cast<double>(s_.k) / static_cast<double>(2 * k_.nr) +
                                 engine_.result_ns());
    tasks_ = threads_ == 1
                 ? 1
                 : task_count(ns, std::max<std::int64_t>(kTasks, 4 * threads_), kMayBeWorthSharing);
    plan_.small = tasks_ > 1 && ns < kIsWorthSharing;
    plan_.columns = plan_.block_columns = s_.n;
    if (s_.batch > 1) {
      cut_batches();
    } else {
      place_columns();
      cut_rows();
      cut_columns();
    }
    return plan_;
  }

 private:
  // Returns how many rows of A stay in the L2 cache.
  [[nodiscard]] std::int64_t most_rows() const {
    return std::min(s_.m, std::max<std::int64_t>(k_.mr, kBlockOfA / s_.k / k_.mr * k_.mr));
  }

  void cut_batches() {
    if (s_.m * s_.n <= kBatchedResult && s_.m <= most_rows()) {
      plan_.rows = s_.m;
      plan_.batches =
          std::clamp(kBatchedResult / (s_.m * s_.n), std::int64_t{1}, ceil_div(s_.batch, tasks_));
      return;
    }
    const std::int64_t each = ceil_div(tasks_, s_.batch);
    plan_.rows = std::max<std::int64_t>(round_up(ceil_div(s_.m, each), k_.mr), 16 * k_.mr);
    plan_.rows = std::min(plan_.rows, most_rows());
    plan_.block_columns = std::min(s_.n, fitting_columns(kOwnB));
    cut_block(ceil_div(each, ceil_div(s_.m, plan_.rows)));
  }

  // Returns how many columns of B fit into `words`.
  [[nodiscard]] std::int64_t fitting_columns(std::int64_t words) const {
    return std::max<std::int64_t>(k_.nr, words / s_.k / k_.nr * k_.nr);
  }

  // For one batch, decides how B is packed and into how many groups the columns are divided.
  void place_columns() {
    const Operand &a = engine_.left(), &b = engine_.right();
    if (engine_.direct_b(s_.m)) return;
    const bool lies = b.plain() || b.windowed();
    plan_.columns_of_b = lies ? ColumnsOfB::kByWorker : ColumnsOfB::kByAll;
    plan_.block_columns = std::min(s_.n, fitting_columns(lies ? kOwnB : kSharedCache));
    if (!lies || !(a.plain() || a.windowed()) || tasks_ == 1) return;
    // Each thread packs its group's columns and its rows of A, and runs the epilogue on its rows.
    // With one group, a call of the epilogue processes many rows, otherwise one.
    const auto m = static_cast<double>(s_.m), n = static_cast<double>(s_.n);
    const double pack = kPackNs * static_cast<double>(s_.k);
    const double of_a = engine_.packs_a(s_.n) ? m : 0.0;
    const auto cost = [&](std::int64_t groups) {
      const auto g = static_cast<double>(groups);
      const double rows = groups == 1 ? 0.0 : m * g / threads_;
      return pack * (n / g + of_a * g / threads_) + rows * engine_.epilogue_ns();
    };
    for (std::int64_t groups = 2; groups <= threads_; ++groups) {
      if (threads_ % groups != 0 || plan_.block_columns / groups < 2 * k_.nr) continue;
      if (cost(groups) < cost(plan_.groups)) plan_.groups = groups;
    }
  }

  // Returns the maximum number of panels that a thread computes if the tiles have `panels` panels
  // of A.
  [[nodiscard]] std::int64_t longest(std::int64_t panels) const {
    const std::int64_t all = ceil_div(s_.m, k_.mr), tiles = ceil_div(all, panels);
    const std::int64_t threads = std::max<std::int64_t>(1, threads_ / plan_.groups);
    std::int64_t most = 0;
    for (std::int64_t t = 0; t < threads; ++t) {
      const std::int64_t from = tiles * t / threads, to = tiles * (t + 1) / threads;
      most = std::max(most, std::min(all, to * panels) - from * panels);
    }
    return most;
  }

  // Chooses the rows of a tile: about as many tiles as tasks, and equal work for all threads.
  void cut_rows() {
    constexpr std::int64_t kMinRows = 24;
    const std::int64_t least = ceil_div(kMinRows, k_.mr);
    std::int64_t most = ceil_div(most_rows(), k_.mr);
    if (!engine_.stores_in_place()) {
      most = std::min(most, std::max(least, kTileOfC / plan_.block_columns / k_.mr));
    }
    std::int64_t best = most;  // panels
    if (tasks_ > 1) {
      const std::int64_t all = ceil_div(s_.m, k_.mr), tiles = ceil_div(tasks_, plan_.groups);
      const std::int64_t wanted = std::min(most, std::max(least, ceil_div(all, tiles)));
      best = wanted;
      const auto consider = [&](std::int64_t panels) {
        if (longest(panels) < longest(best)) best = panels;
      };
      for (std::int64_t panels = wanted - 1; panels >= least; --panels) consider(panels);
      for (std::int64_t panels = wanted + 1; panels <= std::min(most, 8 * wanted); ++panels)
        consider(panels);
    }
    plan_.rows = std::min(best * k_.mr, s_.m);
  }

  void cut_columns() {
    const std::int64_t down = ceil_div(s_.m, plan_.rows) * plan_.groups;
    // Avoids tiles with only some of the columns: their epilogue runs row by row, and tiles next to
    // each other pack the same rows of A.
    if (plan_.small && down >= threads_) return cut_block(1);
    cut_block(engine_.stores_in_place() ? ceil_div(tasks_, down)
                                        : std::max<std::int64_t>(1, tasks_ / down));
  }

  // Divides a block into at least `across` tiles per group.
  void cut_block(std::int64_t across) {
    const std::int64_t group = ceil_div(plan_.block_columns, plan_.groups);
    plan_.columns = round_up(ceil_div(group, across), plan_.groups > 1 ? k_.nr : 2 * k_.nr);
    if (!engine_.stores_in_place()) {
      const std::int64_t by_c =
          std::max<std::int64_t>(2 * k_.nr, kTileOfC / plan_.rows / k_.nr * k_.nr);
      plan_.columns = std::min(plan_.columns, by_c);
    }
    plan_.columns = std::min(plan_.columns, plan_.block_columns);
    if (plan_.block_columns < s_.n) {
      const std::int64_t tiles = std::max<std::int64_t>(
          plan_.groups, plan_.block_columns / plan_.columns / plan_.groups * plan_.groups);
      plan_.block_columns = plan_.columns * tiles;
    }
  }

  const TileEngine& engine_;
  const GemmKernels& k_ = gemm_kernels();
  const ContractionLaunch& s_;
  const int threads_;
  std::int64_t tasks_ = 1;
  Plan plan_;
};

ResultTile largest_tile(const Plan& plan) {
  ResultTile tile;
  tile.batches = plan.batches;
  tile.rows = plan.rows;
  tile.columns = plan.columns;
  return tile;
}

class ContractionRunner final : public LaunchRunner {
 public:
  ContractionRunner(const Prepare& prepare, const ContractionLaunch& shape)
      : engine_(prepare, shape), plan_(Planner(engine_, prepare.threads).plan()) {
    small = plan_.small;
    engine_.lay_out(largest_tile(plan_));
    worker_bytes = own_b_ = engine_.worker_bytes();
    const std::int64_t words_b =
        plan_.columns_of_b == ColumnsOfB::kByTile ? 0 : engine_.packed_words(plan_.block_columns);
    if (owns_b()) {
      worker_bytes += static_cast<std::size_t>(words_b) * sizeof(float);
      // At least one cache line, to avoid false sharing between workers.
      const auto tiles = std::max<std::int64_t>(8, ceil_div(plan_.block_columns, plan_.columns));
      packed_.assign(static_cast<std::size_t>(prepare.threads),
                     std::vector<std::uint64_t>(static_cast<std::size_t>(tiles)));
    }
    // Tiles next to each other, or batches with the same A, would pack the same rows repeatedly.
    const std::int64_t words_a = round_up(shape.m, gemm_kernels().mr) * shape.k;
    const bool costly = engine_.packs_a(plan_.columns) || !engine_.left().plain();
    const bool again =
        shape.batch == 1 ? plan_.columns * plan_.groups < shape.n : engine_.left().repeats();
    shares_a_ = again && costly && words_a <= kSharedCache;
    packed_a_ = shares_b() ? words_b : 0;
    shared_bytes = static_cast<std::size_t>(packed_a_ + (shares_a_ ? words_a : 0)) * sizeof(float);
  }

  void run(const RunContext& context) override {
    engine_.start(context.runtime_scalars);
    const std::int64_t n = engine_.shape().n;
    auto* shared = reinterpret_cast<float*>(context.shared);
    for (std::int64_t begin = 0; begin < n; begin += plan_.block_columns) {
      const std::int64_t end = std::min(n, begin + plan_.block_columns);
      const bool pack_a = shares_a_ && begin == 0;
      pack(context, pack_a ? shared + packed_a_ : nullptr, shares_b() ? shared : nullptr, begin,
           end);
      ++block_;
      multiply(context, begin, end);
    }
  }

 private:
  // Packs stripes of A and panels of columns [begin, end) of B in one parallel loop.
  void pack(const RunContext& context, float* a, float* b, std::int64_t begin,
            std::int64_t end) const {
    const ContractionLaunch& s = engine_.shape();
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
      // Interleaves both kinds of tasks evenly, so that a thread packs the rows that it multiplies.
      const std::int64_t before = task * tasks_a / tasks;  // tasks for A before this one
      if ((task + 1) * tasks_a / tasks > before) {
        const std::int64_t last = std::min(s.m, (before + 1) * rows);
        // At most what fits into the scratch memory at a time.
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
    const ContractionLaunch& s = engine_.shape();
    const std::int64_t down = ceil_div(s.m, plan_.rows);
    const std::int64_t across = ceil_div(end - begin, plan_.columns);
    const std::int64_t in_group = ceil_div(across, plan_.groups);
    const std::int64_t each = in_group * down * plan_.groups;  // tiles of a batch
    const std::int64_t batches = ceil_div(s.batch, plan_.batches);
    const float* shared = reinterpret_cast<const float*>(context.shared);
    context.pool.parallel_for(batches * each, [&](std::int64_t task, int worker) {
      const std::int64_t group = task % each / (in_group * down);
      const std::int64_t number = group * in_group + task % in_group;  // column index of the tile
      ResultTile tile;
      tile.column = begin + number * plan_.columns;
      if (tile.column >= end) return;
      tile.row = task / in_group % down * plan_.rows;
      tile.batch = task / each * plan_.batches;
      tile.rows = std::min(plan_.rows, s.m - tile.row);
      tile.columns = std::min(plan_.columns, end - tile.column);
      tile.batches = std::min(plan_.batches, s.batch - tile.batch);
      std::byte* scratch = context.scratch(worker);
      const float* b = nullptr;
      if (owns_b()) {
        b = own_columns(tile, number, begin, worker, scratch);
      } else if (shares_b()) {
        b = shared + (tile.column - begin) * s.k;
      }
      engine_.run(tile, shares_a_ ? shared + packed_a_ + tile.row * s.k : nullptr, b, scratch);
    });
  }

  // Returns the worker's own packed copy of the tile's columns; `number` is the tile's number in
  // the block.
  const float* own_columns(const ResultTile& tile, std::int64_t number, std::int64_t begin,
                           int worker, std::byte* scratch) const {
    auto* own =
        reinterpret_cast<float*>(scratch + own_b_) + (tile.column - begin) * engine_.shape().k;
    std::uint64_t& block =
        packed_[static_cast<std::size_t>(worker)][static_cast<std::size_t>(number)];
    if (block != block_) {
      engine_.pack_b(0, tile.column, tile.column + tile.columns, scratch, own);
      block = block_;
    }
    return own;
  }

  [[nodiscard]] bool owns_b() const { return plan_.columns_of_b == ColumnsOfB::kByWorker; }
  [[nodiscard]] bool shares_b() const { return plan_.columns_of_b == ColumnsOfB::kByAll; }

  TileEngine engine_;
  Plan plan_;
  bool shares_a_ = false;
  std::int64_t packed_a_ = 0;  // word offset of packed rows in the launch's scratch memory
  std::size_t own_b_ = 0;      // byte offset of packed columns in a worker's scratch memory
  // The number of blocks so far; and, per worker and tile, the block whose columns are packed.
  std::uint64_t block_ = 0;
  mutable std::vector<std::vector<std::uint64_t>> packed_;
};

}  // namespace

std::unique_ptr<LaunchRunner> make_runner(const Prepare& prepare,
                                          const ContractionLaunch& product) {
  CHECK(product.parts == 1, prepare.launch.name + ": split-K is only for GPUs");
  if (std::unique_ptr<LaunchRunner> gemv = make_row_product(prepare, product)) return gemv;
  return std::make_unique<ContractionRunner>(prepare, product);
}

}  // namespace tensorgrad::cpu
