// SPDX-License-Identifier: MIT
// Map launches (one thread per element or per four neighbors) and row launches (several threads per
// row, in passes).
#include <algorithm>
#include <cstdlib>

#include "base/check.h"
#include "codegen/wgsl/parts.h"
#include "codegen/wgsl/vectorize.h"
#include "kernel/row_plan.h"

namespace tensorgrad::wgsl {
namespace {

// Smallest number of lanes that reads whole cache lines.
constexpr int kFewLanes = 32;

int map_threads(std::int64_t elements, const WgslOptions& options) {
  return group_threads(elements >= (1 << 18) ? 256 : 64, options);
}

// In a fused sequence, a workgroup has elements of one block only: the largest number that divides
// a block.
std::int64_t elements_of_group(std::int64_t elements, std::int64_t threads,
                               const WgslOptions& options) {
  if (options.blocks == 0) return threads;
  std::int64_t each = std::min(threads, elements / options.blocks);
  while (elements / options.blocks % each != 0) --each;
  return each;
}

// Returns true if rows are kept in registers: they have several passes, are bound by memory, and
// are then read only once. A lane's elements are unrolled, unless that makes the kernel too long.
bool keeps_rows(const Launch& launch, const RowLaunch& row, const WgslOptions& options) {
  return options.blocks == 0 && row.rows * row.cols * 4 >= options.gpu.cached_bytes &&
         launch.body.instrs.size() <= kMaxKeptInstrs && plan_rows(launch).passes.size() > 1;
}

Tile row_tile(const Launch& launch, const RowLaunch& row, bool kept, const WgslOptions& options) {
  const Domain domain = {{"row", row.rows}, {"col", row.cols}};
  const int most = std::min(256, floor_pow2(options.max_threads));
  Tile tile;
  tile.lanes_first = !runs_along(launch.body, domain, 0, 1);
  if (tile.lanes_first) {
    tile.lanes = row.cols < 8 ? 1 : ceil_pow2(ceil_div(row.cols, 4));
    // Lanes wait for each other, so use the fewest lanes that still fill the GPU.
    if (kept && row.rows * kFewLanes >= options.gpu.full_threads) {
      const int few = ceil_pow2(ceil_div(row.cols, kMaxWrittenOut));
      tile.lanes = std::min(tile.lanes, std::max(few, kFewLanes));
    }
  } else {
    // Neighboring rows share cache lines, but a few rows must be split finely to fill a GPU.
    tile.lanes =
        std::min(ceil_pow2(ceil_div(row.cols, 8)), floor_pow2(options.gpu.full_threads / row.rows));
  }
  if (options.lanes > 0) tile.lanes = options.lanes;
  tile.lanes = std::clamp(tile.lanes, 1, most);
  // If rows are kept in registers, 64 lanes have a workgroup of their own, so that few threads wait
  // at its barriers.
  const int most_lanes = kept ? 64 : 32;
  const int wanted = tile.lanes == 1 || (tile.lanes_first && tile.lanes <= most_lanes) ? 64 : 256;
  tile.rows = std::max(1, group_threads(wanted, options) / tile.lanes);
  while (options.blocks > 0 && row.rows / options.blocks % tile.rows != 0) {
    tile.rows /= 2;
    tile.lanes *= 2;
  }
  return tile;
}

// Writes the passes of a row program.
class RowWriter {
 public:
  RowWriter(const Launch& launch, const RowDomain& domain, const Tile& tile, Module& module,
            Scope& scope, const WgslOptions& options)
      : launch_(launch),
        options_(options),
        domain_(domain),
        cols_(domain.cols),
        live_(domain.live),
        plan_(plan_rows(launch)),
        tile_(tile),
        module_(module),
        scope_(scope),
        program_(module_, launch.body, {{"row", domain.rows}, {"col", domain.cols}},
                 {{"row", domain.rows}}, domain.acc),
        written_(launch.body.instrs.size(), false) {
    const std::int64_t parts = ceil_div(cols_, tile_.lanes);
    if (!domain.kept || parts > kMaxWrittenOut) return;
    for (std::int64_t j = 0; j < parts; ++j) {
      const std::string suffix = "_" + std::to_string(j);
      parts_.push_back(
          {ProgramWriter(module_, launch.body, {{"row", domain.rows}, {"col" + suffix, cols_}},
                         {{"row", domain.rows}}, domain.acc, suffix),
           "col" + suffix, (j + 1) * tile_.lanes > cols_ ? "in" + suffix : ""});
    }
  }

  void write() {
    open_parts();
    for (const RowPass& pass : plan_.passes) write_pass(pass);
    write_end();
  }

 private:
  [[nodiscard]] const Instr& instr(int number) const {
    return launch_.body.instrs.at(static_cast<std::size_t>(number));
  }

  void write_pass(const RowPass& pass) {
    program_.write_all(scope_, pass.row_before);
    std::vector<Partial> partials;
    for (const int reduce : pass.reduces) {
      const DType dtype = program_.dtype(instr(reduce).operands.at(0));
      partials.push_back({"r" + std::to_string(reduce), dtype, instr(reduce).reduce});
      declare_partial(scope_, module_, partials.back());
    }
    if (!partials.empty() || !pass.stores.empty()) {
      if (parts_.empty()) {
        write_loop(pass, partials);
      } else {
        write_parts(pass, partials);
      }
    }
    combine_lanes(scope_, module_, tile_, partials, options_);
    for (std::size_t i = 0; i < partials.size(); ++i) name_result(pass.reduces[i], partials[i]);
  }

  // One of a lane's columns, if its columns are unrolled.
  struct Part {
    ProgramWriter program;
    std::string col, inside;  // condition under which the column exists; empty: always
  };

  void open_parts() {
    for (std::size_t j = 0; j < parts_.size(); ++j) {
      const Part& part = parts_[j];
      scope_.own(part.col);
      const std::string at = std::string(tile_.lanes == 1 ? "0u" : "lane") + " + " +
                             u32_literal(static_cast<std::int64_t>(j) * tile_.lanes);
      if (part.inside.empty()) {
        scope_.line("let " + part.col + " = " + at + ";");
        continue;
      }
      scope_.line("let " + part.inside + " = " + at + " < " + u32_literal(cols_) + ";");
      scope_.line("let " + part.col + " = min(" + at + ", " + u32_literal(cols_ - 1) + ");");
    }
  }

  // Values are computed in the first pass that needs them and reused by later ones.
  void write_parts(const RowPass& pass, const std::vector<Partial>& partials) {
    for (const int number : pass.elements) {
      if (written_.at(static_cast<std::size_t>(number))) continue;
      written_.at(static_cast<std::size_t>(number)) = true;
      for (Part& part : parts_) {
        share_row_values(part, instr(number).operands);
        part.program.write(scope_, number);
      }
    }
    for (Part& part : parts_) {
      Scope inner(&scope_);
      const std::string live = pass.stores.empty() ? "" : live_;
      const bool both = !part.inside.empty() && !live.empty();
      const std::string inside = part.inside + (both ? " && " : "") + live;
      Scope& target = inside.empty() ? scope_ : inner;
      for (std::size_t i = 0; i < partials.size(); ++i) {
        const int operand = instr(pass.reduces[i]).operands.at(0);
        share_row_values(part, {operand});
        accumulate(target, module_, partials[i], part.program.value(operand), part.col);
      }
      for (const int store : pass.stores) {
        share_row_values(part, {store_of(store).value});
        write_store(target, part.program, store, part.col);
      }
      if (!inside.empty()) scope_.block("if (" + inside + ")", inner);
    }
  }

  void share_row_values(Part& part, const std::vector<int>& values) {
    for (const int value : values) {
      if (instr(value).level == Level::kRow) part.program.set_value(value, program_.value(value));
    }
  }

  void write_loop(const RowPass& pass, const std::vector<Partial>& partials) {
    Scope loop(&scope_);
    loop.own("col");
    program_.write_all(loop, pass.elements);
    for (std::size_t i = 0; i < partials.size(); ++i) {
      accumulate(loop, module_, partials[i], program_.value(instr(pass.reduces[i]).operands.at(0)),
                 "col");
    }
    if (!pass.stores.empty()) {
      Scope stores(&loop);
      Scope& target = live_.empty() ? loop : stores;
      for (const int store : pass.stores) write_store(target, program_, store, "col");
      if (!live_.empty()) loop.block("if (" + live_ + ")", stores);
    }
    const std::string first = tile_.lanes == 1 ? "0u" : "lane";
    scope_.block("for (var col = " + first + "; col < " + u32_literal(cols_) +
                     "; col += " + u32_literal(tile_.lanes) + ")",
                 loop);
  }

  void write_store(Scope& scope, ProgramWriter& program, int store, const std::string& col) {
    if (domain_.array.empty()) return program.store(scope, store_of(store));
    scope.line(domain_.array + "[" + domain_.array_row + " * " + u32_literal(cols_) + " + " + col +
               "] = " + program.value(store_of(store).value) + ";");
  }

  // Declares a reduction's result in the type of the program.
  void name_result(int reduce, const Partial& partial) {
    const DType dtype = instr(reduce).dtype;
    std::string text = partial.indexed() ? partial.name + "_at" : partial.name;
    if (partial.indexed()) {
      text = std::string(register_type(dtype)) + "(" + text + ")";
    } else if (dtype == DType::kBool) {
      text += " != 0u";
    }
    const std::string name = "v" + std::to_string(reduce);
    scope_.line("let " + name + " = " + text + ";");
    program_.set_value(reduce, name);
  }

  // Row-level values and stores after the last loop, by one lane.
  void write_end() {
    if (plan_.row_stores.empty()) return;
    if (tile_.lanes == 1) {
      program_.write_all(scope_, plan_.row_after);
      for (const int store : plan_.row_stores) program_.store(scope_, store_of(store));
      return;
    }
    // Other lanes may not yet have read, in the loops, what is overwritten here.
    const bool in_place =
        std::any_of(plan_.row_stores.begin(), plan_.row_stores.end(), [&](int store) {
          const auto binding = static_cast<std::size_t>(store_of(store).binding);
          return launch_.bindings.at(binding).mode == BindMode::kReadWrite;
        });
    if (in_place) scope_.line("storageBarrier();");
    Scope last(&scope_);
    program_.write_all(last, plan_.row_after);
    for (const int store : plan_.row_stores) program_.store(last, store_of(store));
    scope_.block("if (lane == 0u" + (live_.empty() ? "" : " && " + live_) + ")", last);
  }

  [[nodiscard]] const Store& store_of(int number) const {
    return launch_.stores.at(static_cast<std::size_t>(number));
  }

  const Launch& launch_;
  const WgslOptions& options_;
  const RowDomain& domain_;
  std::int64_t cols_;
  std::string live_;
  RowPlan plan_;
  Tile tile_;
  Module& module_;
  Scope& scope_;
  ProgramWriter program_;
  std::vector<Part> parts_;    // empty: loops over the columns
  std::vector<bool> written_;  // instructions that all parts have computed
};

// ---- maps --------------------------------------------------------------------------------------

std::vector<int> stored_by(const Launch& launch) {
  std::vector<int> values;
  for (const Store& store : launch.stores) {
    values.push_back(store.value);
    if (store.at >= 0) values.push_back(store.at);
  }
  return values;
}

// Returns true if adjacent elements are more than one element apart in memory.
bool apart(const IndexMap& map) {
  const View& view = map.views.back();
  return map.views.size() == 1 && !view.shape.empty() && view.shape.back() > 1 &&
         std::abs(view.strides.back()) > 1;
}

// Vectorizes a map if enough threads remain to fill the GPU, as more memory is then in flight.
// Accesses that are contiguous and aligned must be of floats, so that they can be vectors. No
// access may be strided.
Vectorized vectorized_map(const Launch& launch, const MapLaunch& map, const Window& window,
                          const WgslOptions& options) {
  Vectorized part{.program = &launch.body,
                  .domain = {{"row", map.rows}},
                  .operand = true,
                  .stores = launch.stores};
  const bool many = options.map_width > 0 ? options.map_width == kFour
                                          : window.count >= options.gpu.full_map_elements;
  if (!many || options.blocks > 0 || window.first % kFour != 0 || window.count % kFour != 0)
    return part;
  // Excludes stores at run-time offsets, gathers and transposed operands. On an H100 with 50,280 x
  // 768 elements, a gather of rows takes 816 us vectorized and 704 us with one element per thread;
  // a transposed operand takes 724 us and 659 us.
  const auto& instrs = launch.body.instrs;
  if (std::any_of(instrs.begin(), instrs.end(),
                  [](const Instr& instr) { return instr.kind == InstrKind::kLoadAt; }))
    return part;
  if (std::any_of(launch.stores.begin(), launch.stores.end(),
                  [](const Store& store) { return store.at >= 0; }))
    return part;
  const auto refuses = [&](const IndexMap& by, DType dtype, Level level) {
    const bool real = dtype == DType::kF32 || dtype == DType::kF16;
    if (level != Level::kElement) return false;
    return apart(by) || (!real && vec_access(part.domain, by, part.axis) == VecAccess::kTouching);
  };
  const auto& accesses = launch.body.accesses;
  if (std::any_of(accesses.begin(), accesses.end(),
                  [&](const Access& a) { return refuses(a.map, a.dtype, a.level); }) ||
      std::any_of(launch.stores.begin(), launch.stores.end(),
                  [&](const Store& s) { return refuses(s.map, s.dtype, s.level); }))
    return part;
  part.chosen = true;
  return part;
}

struct Grouping {
  int threads;
  std::int64_t groups;
};

// Opens a map with one thread per `step` elements; `name` is the index of the thread.
Grouping open_map(Scope& scope, const Window& window, const std::string& name, int step,
                  const WgslOptions& options) {
  const std::int64_t count = window.count / step;
  const int threads = map_threads(count, options);
  const std::int64_t each = elements_of_group(count, threads, options);
  if (each == threads) {
    open_rows(scope, Tile{threads, 1, true}, count, name, window.first / step);
  } else {
    scope.line("if (local >= " + u32_literal(each) + ") { return; }");
    scope.line("let " + name + " = group_id.x * " + u32_literal(each) + " + local;");
  }
  return {threads, ceil_div(count, each)};
}

}  // namespace

Shader write_kind(const Launch& launch, const MapLaunch& map, const WgslOptions& options) {
  Module module(launch);
  const Window window = window_of(launch);
  Vectorized vectorized = vectorized_map(launch, map, window, options);
  std::set<int> vectors;
  if (vectorized.chosen) vectors = choose_vectorized(launch, {&vectorized}, options);
  Scope scope;
  if (!vectorized.chosen) {
    ProgramWriter program(module, launch.body, vectorized.domain, vectorized.domain);
    program.relax(launch.stores);
    const Grouping by = open_map(scope, window, "row", 1, options);
    program.write_all(scope, program.needed(stored_by(launch)));
    for (const Store& store : launch.stores) program.store(scope, store);
    return make_shader(module, scope, by.threads, by.groups);
  }
  VectorWriter program(module, vectorized, vectors);
  const Grouping by = open_map(scope, window, "four", kFour, options);
  scope.line("let row = four * 4u;");
  scope.own("row");
  program.write(scope, stored_by(launch));
  for (const Store& store : launch.stores) program.store(scope, store);
  return make_shader(module, scope, by.threads, by.groups);
}

void write_row_passes(Scope& scope, Module& module, const Launch& launch, const RowDomain& domain,
                      const Tile& tile, const WgslOptions& options) {
  RowWriter(launch, domain, tile, module, scope, options).write();
}

Shader write_kind(const Launch& launch, const RowLaunch& row, const WgslOptions& options) {
  const Window window = window_of(launch);
  const bool kept = keeps_rows(launch, row, options);
  const Tile tile = row_tile(launch, row, kept, options);
  Module module(launch);
  Scope scope;
  const RowDomain domain{row.rows, row.cols,
                         open_rows(scope, tile, window.count, "row", window.first), "", kept};
  write_row_passes(scope, module, launch, domain, tile, options);
  return make_shader(module, scope, tile.threads(), ceil_div(window.count, tile.rows));
}

}  // namespace tensorgrad::wgsl
