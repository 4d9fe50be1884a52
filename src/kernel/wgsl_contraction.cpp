// SPDX-License-Identifier: MIT
// Contractions: out[z,m,n] = epilogue(sum_k a[z,m,k] * b[z,k,n]). Two forms:
// - tiled: a workgroup of ny x nx threads computes BM x BN results, each thread TM x TN of them in
//   registers; per step of BK, both operands pass through workgroup memory, evaluated by their own
//   programs while they are loaded. Reads per result: K/BN of a and K/BM of b. Where tiles are few,
//   slices of threads share a tile, each over its own k, and add up at the end in a fixed order.
// - by lanes: some threads share one result, each over its own k, combined by a tree. For few
//   results or short K, where tiles would leave the GPU idle.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "kernel/wgsl_parts.h"

namespace tensorgrad::wgsl {
namespace {

constexpr double kGroupsAtOnce = 128;

struct TileShape {
  int side;          // BM = BN
  int depth;         // BK
  int per_m, per_n;  // TM, TN
  int slices;        // of k
  double rate;       // relative speed once the GPU is full, as measured on an H200

  [[nodiscard]] int threads_m() const { return side / per_m; }
  [[nodiscard]] int threads_n() const { return side / per_n; }
  [[nodiscard]] int slice_threads() const { return threads_m() * threads_n(); }
  [[nodiscard]] int threads() const { return slice_threads() * slices; }
  // Registers are vectors of so many results, and so are the entries of workgroup memory.
  [[nodiscard]] int width_m() const { return std::min(4, per_m); }
  [[nodiscard]] int width_n() const { return std::min(4, per_n); }
};
// Every side and every depth divides the number of threads, or is a multiple of it.
constexpr std::array<TileShape, 4> kShapes = {{{128, 8, 16, 8, 1, 1.0},
                                               {64, 16, 4, 4, 1, 1.05},
                                               {32, 32, 2, 2, 1, 0.55},
                                               {16, 64, 2, 2, 4, 0.23}}};

std::string vector_type(int width) {
  return width == 1 ? "f32" : "vec" + std::to_string(width) + "<f32>";
}

// Component i of a vector of that width.
std::string component(int i, int width) {
  return width == 1 ? std::string() : std::string(".") + "xyzw"[i % width];
}

// Where result i of a thread lies along a side, counted from the thread's first: threads take turns
// vector by vector, so that neighbours read neighbouring entries.
int place_of_result(int i, int width, int threads) {
  return (i / width) * threads * width + i % width;
}

// Functions a_at, b_at and finish, which both forms call.
class Contraction {
 public:
  Contraction(const Launch& launch, const WgslOptions& options)
      : launch_(launch),
        options_(options),
        a_domain_{{"z", launch.batch}, {"m", launch.m}, {"k", launch.k}},
        b_domain_{{"z", launch.batch}, {"k", launch.k}, {"n", launch.n}},
        out_domain_{{"z", launch.batch}, {"m", launch.m}, {"n", launch.n}},
        module_(launch),
        window_(window_of(launch)) {}

  WgslKernel write();

 private:
  void write_operand(const std::string& name, const ScalarProgram& program, const Domain& domain,
                     const std::string& guard);
  void write_finish(bool guarded, bool with_ones);
  void write_ones();
  [[nodiscard]] Tile pick_lanes() const;
  [[nodiscard]] const TileShape* pick_tile() const;
  WgslKernel write_by_lanes(const Tile& tile);
  WgslKernel write_tiled(const TileShape& tile);
  void write_fetch(Scope& scope, const TileShape& tile, bool is_a, const std::string& k0) const;
  void write_keep(Scope& scope, const TileShape& tile, bool is_a) const;
  void write_products(Scope& scope, const TileShape& tile);
  void write_results(Scope& scope, const TileShape& tile);
  void write_sliced_results(Scope& scope, const TileShape& tile);
  void write_places(Scope& scope, const TileShape& tile, std::int64_t tiles_m,
                    std::int64_t tiles_n) const;

  // Of this launch's window, for each of its batches.
  [[nodiscard]] std::int64_t rows() const { return window_.count + (launch_.ones_row ? 1 : 0); }
  [[nodiscard]] std::int64_t columns() const { return launch_.n + (launch_.ones_column ? 1 : 0); }
  [[nodiscard]] std::string batch_of(const std::string& number) const {
    return number + (window_.outer_first > 0 ? " + " + u32_literal(window_.outer_first) : "");
  }
  [[nodiscard]] bool has_ones() const { return launch_.ones_row || launch_.ones_column; }

  const Launch& launch_;
  const WgslOptions& options_;
  Domain a_domain_, b_domain_, out_domain_;
  Module module_;
  Window window_;
  bool a_along_k_ = false, b_along_k_ = false;
};

void Contraction::write_operand(const std::string& name, const ScalarProgram& program,
                                const Domain& domain, const std::string& guard) {
  CHECK(!program.instrs.empty());
  ProgramWriter writer(module_, program, domain, domain);
  Scope scope;
  if (!guard.empty()) scope.line(guard);
  const int last = static_cast<int>(program.instrs.size()) - 1;
  writer.write_all(scope, writer.needed({last}));
  scope.line("return " + writer.value(last) + ";");
  module_.function(name, "fn " + name + "(z: u32, " + domain[1].name + ": u32, " + domain[2].name +
                             ": u32) -> f32 {\n" + scope.text() + "}\n");
}

// The epilogue and the stores of one result; what ones add to the product goes to its own store.
void Contraction::write_finish(bool guarded, bool with_ones) {
  ProgramWriter writer(module_, launch_.body, out_domain_, out_domain_, "acc");
  Scope scope;
  if (with_ones) {
    Scope ones(&scope);
    ones.line(launch_.ones_row ? "finish_ones(n, acc);" : "finish_ones(m, acc);");
    ones.line("return;");
    scope.block(launch_.ones_row ? "if (m == " + u32_literal(launch_.m) + ")"
                                 : "if (n == " + u32_literal(launch_.n) + ")",
                ones);
  }
  if (guarded) {
    scope.line("if (m >= " + u32_literal(window_.end()) + " || n >= " + u32_literal(launch_.n) +
               ") { return; }");
  }
  std::vector<int> roots;
  for (const Store& store : launch_.stores) roots.push_back(store.value);
  writer.write_all(scope, writer.needed(roots));
  for (const Store& store : launch_.stores) writer.store(scope, store);
  module_.function("finish",
                   "fn finish(z: u32, m: u32, n: u32, acc: f32) {\n" + scope.text() + "}\n");
}

void Contraction::write_ones() {
  ScalarProgram sum;
  Instr acc;
  acc.kind = InstrKind::kAcc;
  sum.instrs.push_back(acc);
  const Domain domain = {{"i", launch_.ones_row ? launch_.n : launch_.m}};
  ProgramWriter writer(module_, sum, domain, domain, "acc");
  Scope scope;
  writer.write(scope, 0);
  Store store = launch_.ones_store;
  store.value = 0;
  writer.store(scope, store);
  module_.function("finish_ones", "fn finish_ones(i: u32, acc: f32) {\n" + scope.text() + "}\n");
}

// Threads per result: as many as fill the GPU, but each with a few products of its own.
Tile Contraction::pick_lanes() const {
  const std::int64_t results = window_.outer_count * rows() * columns();
  const int most = std::min(256, floor_pow2(options_.max_threads));
  Tile tile;
  tile.lanes_first = b_along_k_;
  tile.lanes = std::min(ceil_pow2(ceil_div(launch_.k, 4)),
                        floor_pow2(std::max<std::int64_t>(1, kFullGpu / results)));
  if (options_.lanes > 0) tile.lanes = options_.lanes;
  tile.lanes = std::clamp(tile.lanes, 1, most);
  tile.rows = std::max(1, (tile.lanes >= 64 ? tile.lanes : std::min(64, most)) / tile.lanes);
  return tile;
}

// The tile with the least estimated time, or null where lanes do better.
const TileShape* Contraction::pick_tile() const {
  if (options_.tile == 1) return nullptr;
  const TileShape* best = nullptr;
  double best_time = 0;
  for (const TileShape& shape : kShapes) {
    if (shape.threads() > options_.max_threads) continue;
    if (options_.tile == shape.side) return &shape;
    const auto groups =
        static_cast<double>(window_.outer_count * ceil_div(window_.count, shape.side) *
                            ceil_div(launch_.n, shape.side));
    // Loads of b along k leave the 64 tile behind.
    const double rate = shape.rate * (shape.side == 128 && b_along_k_ ? 1.15 : 1.0);
    const double time = std::max(groups, kGroupsAtOnce) * shape.side * shape.side / rate;
    if (best == nullptr || time < best_time) {
      best = &shape;
      best_time = time;
    }
  }
  const std::int64_t results = window_.outer_count * rows() * columns();
  const bool small = results * launch_.k <= (1 << 19);
  const bool long_k = results <= 32 * 16 * 16 && launch_.k >= 512;  // few tiles, each a long loop
  if (options_.tile == 0 && (small || long_k || launch_.k <= 4)) return nullptr;
  return best;
}

WgslKernel Contraction::write() {
  a_along_k_ = runs_along(launch_.a, a_domain_, 2, 1);
  b_along_k_ = runs_along(launch_.b, b_domain_, 1, 2);
  if (has_ones()) write_ones();
  const TileShape* tile = pick_tile();
  return tile == nullptr ? write_by_lanes(pick_lanes()) : write_tiled(*tile);
}

WgslKernel Contraction::write_by_lanes(const Tile& tile) {
  const std::string m = u32_literal(launch_.m);
  write_operand("a_at", launch_.a, a_domain_,
                launch_.ones_row ? "if (m == " + m + ") { return 1.0f; }" : "");
  write_operand(
      "b_at", launch_.b, b_domain_,
      launch_.ones_column ? "if (n == " + u32_literal(launch_.n) + ") { return 1.0f; }" : "");
  write_finish(false, has_ones());
  const std::int64_t results = window_.outer_count * rows() * columns();
  const Domain domain = {{"result", results}};
  Scope scope;
  const std::string live = open_rows(scope, tile, results, "result");
  scope.line("let n = " + coordinate(scope, domain, 1, columns()) + ";");
  std::string row = coordinate(scope, domain, columns(), rows());
  if (window_.first > 0) row += " + " + u32_literal(window_.first);
  // The row of ones comes after all others.
  if (launch_.ones_row && window_.end() < launch_.m) {
    scope.line("let at = " + row + ";");
    row = "select(at, " + m + ", at == " + u32_literal(window_.end()) + ")";
  }
  scope.line("let m = " + row + ";");
  scope.line("let z = " +
             batch_of(coordinate(scope, domain, columns() * rows(), window_.outer_count)) + ";");
  const Partial sum{"acc", DType::kF32, ReduceOp::kSum};
  declare_partial(scope, module_, sum);
  Scope loop(&scope);
  loop.line("acc += a_at(z, m, k) * b_at(z, k, n);");
  scope.block(std::string("for (var k = ") + (tile.lanes == 1 ? "0u" : "lane") + "; k < " +
                  u32_literal(launch_.k) + "; k += " + u32_literal(tile.lanes) + ")",
              loop);
  combine_lanes(scope, module_, tile, {sum}, options_);
  if (tile.lanes == 1) {
    scope.line("finish(z, m, n, acc);");
  } else {
    scope.line("if (lane == 0u" + (live.empty() ? "" : " && " + live) +
               ") { finish(z, m, n, acc); }");
  }
  return make_kernel(module_, scope, tile.threads(), ceil_div(results, tile.rows));
}

// Vectors per step of k. One more where the load runs along k, so that neighbouring threads, which
// then write a column, meet different banks.
int pitch_of(const TileShape& tile, int width, bool along_k) {
  return tile.side / width + (along_k ? 1 : 0);
}

// A thread's share of a tile: elements local, local + threads, ... in the order in which memory
// runs. As sides and depth fit the number of threads, only one of its two coordinates moves.
struct Share {
  int count;           // elements per thread
  int step_i, step_k;  // from one element to the next
};
Share share_of(const TileShape& tile, bool along_k) {
  const int threads = tile.threads();
  const int fast = along_k ? tile.depth : tile.side;
  CHECK(threads % fast == 0);
  const int step = threads / fast;
  return {tile.side * tile.depth / threads, along_k ? step : 0, along_k ? 0 : step};
}

// Evaluates a thread's share of the operand's tile at k0 into registers.
void Contraction::write_fetch(Scope& scope, const TileShape& tile, bool is_a,
                              const std::string& k0) const {
  const Share share = share_of(tile, is_a ? a_along_k_ : b_along_k_);
  const std::string name = is_a ? "a" : "b";
  for (int j = 0; j < share.count; ++j) {
    const std::string i = name + "_i + " + u32_literal(j * share.step_i);
    const std::string k = k0 + " + " + name + "_k + " + u32_literal(j * share.step_k);
    scope.line(
        "next_" + name + std::to_string(j) + " = " +
        (is_a ? "a_at(z, m0 + " + i + ", " + k + ");" : "b_at(z, " + k + ", n0 + " + i + ");"));
  }
}

// Puts the registers into workgroup memory: entry (k, i) with i along m or n.
void Contraction::write_keep(Scope& scope, const TileShape& tile, bool is_a) const {
  const bool along_k = is_a ? a_along_k_ : b_along_k_;
  const Share share = share_of(tile, along_k);
  const int width = is_a ? tile.width_m() : tile.width_n();
  const std::string name = is_a ? "a" : "b";
  const std::string pitch = u32_literal(pitch_of(tile, width, along_k));
  for (int j = 0; j < share.count; ++j) {
    const std::string i = "(" + name + "_i + " + u32_literal(j * share.step_i) + ")";
    const std::string k = "(" + name + "_k + " + u32_literal(j * share.step_k) + ")";
    std::string entry = "tile_" + name + "[" + k + " * " + pitch + " + " + i;
    if (width > 1) {
      entry += " / " + u32_literal(width) + "][" + i + " % " + u32_literal(width);
    }
    scope.line(entry + "] = next_" + name + std::to_string(j) + ";");
  }
}

void Contraction::write_products(Scope& scope, const TileShape& tile) {
  const int width_m = tile.width_m(), width_n = tile.width_n();
  Scope loop(&scope);
  const auto read = [&](const std::string& name, bool along_k, int width, int count, int threads,
                        const std::string& thread) {
    for (int i = 0; i < count / width; ++i) {
      const std::string skip = i == 0 ? "" : " + " + u32_literal(i * threads);
      loop.line("let " + name + std::to_string(i) + " = tile_" + name + "[k * " +
                u32_literal(pitch_of(tile, width, along_k)) + " + " + thread + skip + "];");
    }
  };
  read("a", a_along_k_, width_m, tile.per_m, tile.threads_m(), "ty");
  read("b", b_along_k_, width_n, tile.per_n, tile.threads_n(), "tx");
  for (int row = 0; row < tile.per_m; ++row) {
    for (int col = 0; col < tile.per_n / width_n; ++col) {
      loop.line("acc" + std::to_string(row) + "_" + std::to_string(col) + " += a" +
                std::to_string(row / width_m) + component(row, width_m) + " * b" +
                std::to_string(col) + ";");
    }
  }
  for (int col = 0; launch_.ones_row && col < tile.per_n / width_n; ++col) {
    loop.line("ones" + std::to_string(col) + " += b" + std::to_string(col) + ";");
  }
  for (int row = 0; launch_.ones_column && row < tile.per_m / width_m; ++row) {
    loop.line("ones" + std::to_string(row) + " += a" + std::to_string(row) + ";");
  }
  scope.block("for (var k = " + std::string(tile.slices > 1 ? "slice" : "0u") + "; k < " +
                  u32_literal(tile.depth) + "; k += " + u32_literal(tile.slices) + ")",
              loop);
}

// One loop over a thread's results, taken from an array: unrolled, the epilogue would be compiled
// once per result. What the array costs is paid once, after all products.
void Contraction::write_results(Scope& scope, const TileShape& tile) {
  const int blocks = tile.per_n / tile.width_n();
  const std::string type = vector_type(tile.width_n());
  const auto place = [](const std::string& i, int width, int threads) {
    if (width == 1) return i + " * " + u32_literal(threads);
    const std::string w = u32_literal(width);
    return i + " / " + w + " * " + u32_literal(threads * width) + " + " + i + " % " + w;
  };
  scope.line("let m = m0 + ty * " + u32_literal(tile.width_m()) + ";");
  scope.line("let n = n0 + tx * " + u32_literal(tile.width_n()) + ";");
  std::string list;
  for (int i = 0; i < tile.per_m * blocks; ++i) {
    list +=
        (i > 0 ? ", acc" : "acc") + std::to_string(i / blocks) + "_" + std::to_string(i % blocks);
  }
  scope.line("var results = array<" + type + ", " + std::to_string(tile.per_m * blocks) + ">(" +
             list + ");");
  Scope rows(&scope), cols(&rows);
  std::string result = "results[i * " + u32_literal(blocks) + " + j";
  if (tile.width_n() > 1) {
    result += " / " + u32_literal(tile.width_n()) + "][j % " + u32_literal(tile.width_n());
  }
  cols.line("finish(z, m + " + place("i", tile.width_m(), tile.threads_m()) + ", n + " +
            place("j", tile.width_n(), tile.threads_n()) + ", " + result + "]);");
  rows.block("for (var j = 0u; j < " + u32_literal(tile.per_n) + "; j++)", cols);
  scope.block("for (var i = 0u; i < " + u32_literal(tile.per_m) + "; i++)", rows);
  if (!has_ones()) return;
  // The first row of tiles sees all of b, its first row of threads all columns; and so for a.
  const bool of_b = launch_.ones_row;
  const int width = of_b ? tile.width_n() : tile.width_m();
  const int threads = of_b ? tile.threads_n() : tile.threads_m();
  Scope ones(&scope);
  for (int i = 0; i < (of_b ? tile.per_n : tile.per_m); ++i) {
    const std::string at =
        (of_b ? "n + " : "m + ") + u32_literal(place_of_result(i, width, threads));
    ones.line("if (" + at + " < " + u32_literal(of_b ? launch_.n : window_.end()) +
              ") { finish_ones(" + at + ", ones" + std::to_string(i / width) + component(i, width) +
              "); }");
  }
  scope.block(of_b ? "if (m0 == " + u32_literal(window_.first) + " && ty == 0u)"
                   : "if (n0 == 0u && tx == 0u)",
              ones);
}

// Every slice puts its sums into workgroup memory; then each thread adds up results of its own.
void Contraction::write_sliced_results(Scope& scope, const TileShape& tile) {
  const auto keep = [](Scope& to, const std::string& array, const std::string& at,
                       const std::string& value) {
    to.line(array + "[" + at + "] = " + value + ";");
  };
  const auto along = [](const std::string& thread, int i, int width, int threads) {
    return thread + " * " + u32_literal(width) + " + " +
           u32_literal(place_of_result(i, width, threads));
  };
  const int results = tile.side * tile.side;
  module_.shared("slice_sums", "f32", std::int64_t{tile.slices} * results, 4);
  for (int i = 0; i < tile.per_m; ++i) {
    for (int j = 0; j < tile.per_n; ++j) {
      keep(scope, "slice_sums",
           "slice * " + u32_literal(results) + " + (" +
               along("ty", i, tile.width_m(), tile.threads_m()) + ") * " + u32_literal(tile.side) +
               " + " + along("tx", j, tile.width_n(), tile.threads_n()),
           "acc" + std::to_string(i) + "_" + std::to_string(j / tile.width_n()) +
               component(j, tile.width_n()));
    }
  }
  const bool of_b = launch_.ones_row;
  if (has_ones()) {
    const int width = of_b ? tile.width_n() : tile.width_m();
    const int threads = of_b ? tile.threads_n() : tile.threads_m();
    const std::string thread = of_b ? "tx" : "ty";
    module_.shared("slice_ones", "f32", std::int64_t{tile.slices} * tile.side, 4);
    Scope first(&scope);
    for (int i = 0; i < (of_b ? tile.per_n : tile.per_m); ++i) {
      keep(first, "slice_ones",
           "slice * " + u32_literal(tile.side) + " + " + along(thread, i, width, threads),
           "ones" + std::to_string(i / width) + component(i, width));
    }
    scope.block(of_b ? "if (ty == 0u)" : "if (tx == 0u)", first);
  }
  scope.line("workgroupBarrier();");
  const auto sum = [&](Scope& to, const std::string& array, const std::string& at, int stride) {
    std::string text = array + "[" + at + "]";
    for (int slice = 1; slice < tile.slices; ++slice) {
      text += " + " + array + "[" + at + " + " + u32_literal(slice * stride) + "]";
    }
    to.line("let sum = " + text + ";");
  };
  const std::string side = u32_literal(tile.side);
  Scope loop(&scope);
  sum(loop, "slice_sums", "r", results);
  loop.line("finish(z, m0 + r / " + side + ", n0 + r % " + side + ", sum);");
  scope.block("for (var r = local; r < " + u32_literal(results) +
                  "; r += " + u32_literal(tile.threads()) + ")",
              loop);
  if (!has_ones()) return;
  Scope ones(&scope);
  sum(ones, "slice_ones", "local", tile.side);
  ones.line(std::string("finish_ones(") + (of_b ? "n0" : "m0") + " + local, sum);");
  const std::string first = of_b ? "m0 == " + u32_literal(window_.first) : "n0 == 0u";
  scope.block("if (" + first + " && local < " + side + " && " + (of_b ? "n0" : "m0") +
                  " + local < " + u32_literal(of_b ? launch_.n : window_.end()) + ")",
              ones);
}

// Where the group and the thread stand, and the registers that are filled over the steps of k.
void Contraction::write_places(Scope& scope, const TileShape& tile, std::int64_t tiles_m,
                               std::int64_t tiles_n) const {
  const Domain flat = {{"tile", tiles_n * tiles_m * window_.outer_count}};
  const std::string side = u32_literal(tile.side), threads_n = u32_literal(tile.threads_n());
  scope.line("let n0 = " + coordinate(scope, flat, 1, tiles_n) + " * " + side + ";");
  scope.line("let m0 = " + coordinate(scope, flat, tiles_n, tiles_m) + " * " + side +
             (window_.first > 0 ? " + " + u32_literal(window_.first) : "") + ";");
  scope.line(
      "let z = " + batch_of(coordinate(scope, flat, tiles_n * tiles_m, window_.outer_count)) + ";");
  if (tile.slices > 1) {
    const std::string slice = u32_literal(tile.slice_threads());
    scope.line("let slice = local / " + slice + ";");
    scope.line("let ty = local % " + slice + " / " + threads_n + ";");
  } else {
    scope.line("let ty = local / " + threads_n + ";");
  }
  scope.line("let tx = local % " + threads_n + ";");
  for (const bool is_a : {true, false}) {
    const bool along_k = is_a ? a_along_k_ : b_along_k_;
    const std::string name = is_a ? "a" : "b";
    const std::string fast = u32_literal(along_k ? tile.depth : tile.side);
    scope.line("let " + name + "_i = local " + (along_k ? "/ " : "% ") + fast + ";");
    scope.line("let " + name + "_k = local " + (along_k ? "% " : "/ ") + fast + ";");
    const int count = share_of(tile, along_k).count;
    for (int j = 0; j < count; ++j) scope.line("var next_" + name + std::to_string(j) + " = 0.0f;");
  }
  const auto zero = [&](const std::string& name, int width) {
    scope.line("var " + name + " = " + vector_type(width) + "(0.0f);");
  };
  for (int row = 0; row < tile.per_m; ++row) {
    for (int col = 0; col < tile.per_n / tile.width_n(); ++col) {
      zero("acc" + std::to_string(row) + "_" + std::to_string(col), tile.width_n());
    }
  }
  if (!has_ones()) return;
  const int width = launch_.ones_row ? tile.width_n() : tile.width_m();
  const int blocks = (launch_.ones_row ? tile.per_n : tile.per_m) / width;
  for (int i = 0; i < blocks; ++i) zero("ones" + std::to_string(i), width);
}

WgslKernel Contraction::write_tiled(const TileShape& tile) {
  const std::int64_t tiles_m = ceil_div(window_.count, tile.side);
  const std::int64_t tiles_n = ceil_div(launch_.n, tile.side);
  const bool ragged_m = window_.count % tile.side != 0;
  const bool ragged_n = launch_.n % tile.side != 0;
  const bool ragged_k = launch_.k % tile.depth != 0;
  const auto guard = [&](bool side, const std::string& name, std::int64_t size) {
    std::string test = side ? name + " >= " + u32_literal(size) : "";
    if (ragged_k) test += (test.empty() ? "k >= " : " || k >= ") + u32_literal(launch_.k);
    return test.empty() ? test : "if (" + test + ") { return 0.0f; }";
  };
  write_operand("a_at", launch_.a, a_domain_, guard(ragged_m, "m", window_.end()));
  write_operand("b_at", launch_.b, b_domain_, guard(ragged_n, "n", launch_.n));
  write_finish(ragged_m || ragged_n, false);
  module_.shared("tile_a", vector_type(tile.width_m()),
                 std::int64_t{tile.depth} * pitch_of(tile, tile.width_m(), a_along_k_),
                 4 * tile.width_m());
  module_.shared("tile_b", vector_type(tile.width_n()),
                 std::int64_t{tile.depth} * pitch_of(tile, tile.width_n(), b_along_k_),
                 4 * tile.width_n());
  const std::int64_t groups = window_.outer_count * tiles_m * tiles_n;
  Scope scope;
  open_rows(scope, Tile{1, tile.threads(), true}, groups, "tile");
  write_places(scope, tile, tiles_m, tiles_n);
  // The next tile is on its way from memory while this one is multiplied.
  for (const bool is_a : {true, false}) write_fetch(scope, tile, is_a, "0u");
  Scope loop(&scope);
  for (const bool is_a : {true, false}) write_keep(loop, tile, is_a);
  loop.line("workgroupBarrier();");
  const std::string depth = u32_literal(tile.depth);
  if (launch_.k > tile.depth) {
    Scope ahead(&loop);
    for (const bool is_a : {true, false}) write_fetch(ahead, tile, is_a, "k0 + " + depth);
    loop.block("if (k0 + " + depth + " < " + u32_literal(launch_.k) + ")", ahead);
  }
  write_products(loop, tile);
  loop.line("workgroupBarrier();");
  scope.block("for (var k0 = 0u; k0 < " + u32_literal(launch_.k) + "; k0 += " + depth + ")", loop);
  if (tile.slices > 1) {
    write_sliced_results(scope, tile);
  } else {
    write_results(scope, tile);
  }
  return make_kernel(module_, scope, tile.threads(), groups);
}

}  // namespace

WgslKernel write_contraction(const Launch& launch, const WgslOptions& options) {
  return Contraction(launch, options).write();
}

}  // namespace tensorgrad::wgsl
