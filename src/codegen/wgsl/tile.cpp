// SPDX-License-Identifier: MIT
// Assignment of rows to workgroups: dispatch sizes, thread numbering, and reductions in a fixed
// order, so that equal input produces equal bits. Each lane first reduces its own columns. A binary
// tree then combines the lanes, via workgroup memory or by shuffles within subgroups.
#include <algorithm>

#include "base/check.h"
#include "codegen/wgsl/parts.h"

namespace tensorgrad::wgsl {
namespace {

constexpr std::int64_t kMaxWorkgroupsPerDimension = 65535;  // per dimension of a dispatch
constexpr int kMaxArrays = 8;                               // reduced at one barrier

// Tests the bits, as compilers may assume that a value is not NaN.
constexpr const char* kIsNan =
    "fn is_nan_bits(x: f32) -> bool {\n"
    "  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;\n"
    "}\n";

bool is_max(ReduceOp op) { return op == ReduceOp::kMax || op == ReduceOp::kArgMax; }

std::string identity(Module& module, const Partial& partial) {
  const bool max = is_max(partial.op);
  switch (partial.dtype) {
    case DType::kF32:
      if (partial.op == ReduceOp::kSum) return "0.0f";
      return module.constant(DType::kF32, max ? 0xff800000u : 0x7f800000u);
    case DType::kI32:
      if (partial.op == ReduceOp::kSum) return "0i";
      return module.constant(DType::kI32, max ? 0x80000000u : 0x7fffffffu);
    case DType::kU32:
    case DType::kBool:
    case DType::kF16: break;
  }
  return partial.op == ReduceOp::kSum || max ? "0u" : "0xffffffffu";
}

// Returns a max or min that propagates NaN.
std::string extreme(Module& module, const Partial& partial, const std::string& a,
                    const std::string& b) {
  const std::string plain = is_max(partial.op) ? "max" : "min";
  if (partial.dtype != DType::kF32) return plain + "(" + a + ", " + b + ")";
  const std::string name = plain + "_or_nan";
  module.function("is_nan_bits", kIsNan);
  module.function(name, "fn " + name +
                            "(a: f32, b: f32) -> f32 {\n"
                            "  if (is_nan_bits(a)) { return a; }\n"
                            "  if (is_nan_bits(b)) { return b; }\n"
                            "  return " +
                            plain + "(a, b);\n}\n");
  return name + "(" + a + ", " + b + ")";
}

// Returns the name of a function that is true if b, found at b_at, replaces a: the first NaN, else
// the first extreme value, is chosen.
std::string wins(Module& module, const Partial& partial) {
  const std::string type(memory_type(partial.dtype));
  const std::string name = std::string(is_max(partial.op) ? "above" : "below") + "_" + type;
  std::string text =
      "fn " + name + "(a: " + type + ", a_at: u32, b: " + type + ", b_at: u32) -> bool {\n";
  if (partial.dtype == DType::kF32) {
    module.function("is_nan_bits", kIsNan);
    text +=
        "  let a_nan = is_nan_bits(a);\n"
        "  let b_nan = is_nan_bits(b);\n"
        "  if (a_nan || b_nan) { return b_nan && (!a_nan || b_at < a_at); }\n";
  }
  text += std::string("  return b ") + (is_max(partial.op) ? ">" : "<") +
          " a || (b == a && b_at < a_at);\n}\n";
  module.function(name, text);
  return name;
}

std::string element_type(const Partial& partial) { return std::string(memory_type(partial.dtype)); }

// The value reduced so far and, for indexed reductions, its position.
struct Entry {
  std::string value, at;
};
Entry entry(const std::string& name, const std::string& index = "") {
  return {name + index, name + "_at" + index};
}

void join(Scope& scope, Module& module, const Partial& partial, const Entry& mine,
          const Entry& other) {
  if (partial.op == ReduceOp::kSum) {
    scope.line(mine.value + " += " + other.value + ";");
  } else if (!partial.indexed()) {
    scope.line(mine.value + " = " + extreme(module, partial, mine.value, other.value) + ";");
  } else {
    Scope better(&scope);
    better.line(mine.value + " = " + other.value + ";");
    better.line(mine.at + " = " + other.at + ";");
    scope.block("if (" + wins(module, partial) + "(" + mine.value + ", " + mine.at + ", " +
                    other.value + ", " + other.at + "))",
                better);
  }
}

void give(Scope& scope, const Partial& partial, const Entry& to, const Entry& from) {
  scope.line(to.value + " = " + from.value + ";");
  if (partial.indexed()) scope.line(to.at + " = " + from.at + ";");
}

void declare_entries(Module& module, const Partial& partial, const std::string& array, int count) {
  module.shared(array, element_type(partial), count, 4);
  if (partial.indexed()) module.shared(array + "_at", "u32", count, 4);
}

// Returns the name of a function that returns the value of the thread whose index differs in the
// bits of a mask.
std::string exchange(Module& module, const std::string& type, int threads,
                     const Subgroups& subgroups) {
  std::string name = "exchange_lanes_" + type, body = "  return subgroupShuffleXor(x, mask);\n";
  if (subgroups.in_memory) {
    const std::string array = "traded_" + type;
    module.shared(array, type, threads, 4);
    body = "  " + array + "[local] = x;\n  workgroupBarrier();\n  let given = " + array +
           "[local ^ mask];\n  workgroupBarrier();\n  return given;\n";
  } else {
    module.use_subgroups(subgroups.enabled);
  }
  module.function(name, "fn " + name + "(local: u32, x: " + type + ", mask: u32) -> " + type +
                            " {\n" + body + "}\n");
  return name;
}

// Returns how many lanes of a row can exchange values within a subgroup; 1 if they cannot.
int lanes_of_subgroup(const Tile& tile, const Subgroups& subgroups) {
  const bool side_by_side = tile.lanes_first || tile.rows == 1;
  const int together = side_by_side ? std::min(tile.lanes, std::max(1, subgroups.size)) : 1;
  return tile.lanes / together <= kMaxWrittenOut ? together : 1;
}

// Butterfly reduction: in each round, a lane and its partner exchange and combine their values. The
// results of subgroups are then combined via workgroup memory. Consecutive calls use different
// arrays.
void combine_subgroups(Scope& scope, Module& module, const Tile& tile,
                       const std::vector<Partial>& partials, const WgslOptions& options) {
  const int together = lanes_of_subgroup(tile, options.subgroups);
  for (int mask = 1; mask < together; mask *= 2) {
    for (const Partial& partial : partials) {
      const std::string given = partial.name + "_of_" + std::to_string(mask);
      const auto take = [&](const std::string& name, const std::string& value,
                            const std::string& type) {
        scope.line("let " + name + " = " +
                   exchange(module, type, tile.threads(), options.subgroups) + "(local, " + value +
                   ", " + u32_literal(mask) + ");");
      };
      take(given, partial.name, element_type(partial));
      if (partial.indexed()) take(given + "_at", partial.name + "_at", "u32");
      join(scope, module, partial, entry(partial.name), entry(given));
    }
  }
  const int parts = tile.lanes / together;
  if (parts == 1) return;
  const std::string turn = module.next_turn() ? "b" : "a";
  const auto array_of = [&](std::size_t i) {
    return "parts_" + element_type(partials[i]) + "_" + turn + std::to_string(i);
  };
  Scope first(&scope);
  const std::string part = "[local / " + u32_literal(together) + "]";
  for (std::size_t i = 0; i < partials.size(); ++i) {
    declare_entries(module, partials[i], array_of(i), tile.threads() / together);
    give(first, partials[i], entry(array_of(i), part), entry(partials[i].name));
  }
  scope.block("if (lane % " + u32_literal(together) + " == 0u)", first);
  scope.line("workgroupBarrier();");
  const std::string row =
      tile.rows == 1 ? ""
                     : "local / " + u32_literal(tile.lanes) + " * " + u32_literal(parts) + " + ";
  for (std::size_t i = 0; i < partials.size(); ++i) {
    const auto of = [&](int j) { return entry(array_of(i), "[" + row + u32_literal(j) + "]"); };
    give(scope, partials[i], entry(partials[i].name), of(0));
    for (int j = 1; j < parts; ++j)
      join(scope, module, partials[i], entry(partials[i].name), of(j));
  }
  // The next launch of a fused sequence uses the same arrays.
  if (options.blocks > 0) scope.line("workgroupBarrier();");
}

void combine_batch(Scope& scope, Module& module, const Tile& tile,
                   const std::vector<Partial>& partials) {
  std::vector<std::string> arrays;
  for (std::size_t i = 0; i < partials.size(); ++i) {
    const std::string array = "lanes_" + element_type(partials[i]) + "_" + std::to_string(i);
    declare_entries(module, partials[i], array, tile.threads());
    give(scope, partials[i], entry(array, "[local]"), entry(partials[i].name));
    arrays.push_back(array);
  }
  scope.line("workgroupBarrier();");
  Scope step(&scope);
  Scope half(&step);
  half.line("let other = local + s" + (tile.lanes_first ? "" : " * " + u32_literal(tile.rows)) +
            ";");
  for (std::size_t i = 0; i < partials.size(); ++i)
    join(half, module, partials[i], entry(arrays[i], "[local]"), entry(arrays[i], "[other]"));
  step.block("if (lane < s)", half);
  step.line("workgroupBarrier();");
  scope.block("for (var s = " + u32_literal(tile.lanes / 2) + "; s > 0u; s = s >> 1u)", step);
  const std::string first =
      tile.rows == 1 ? "0u"
                     : (tile.lanes_first ? "local - lane" : "local % " + u32_literal(tile.rows));
  for (std::size_t i = 0; i < partials.size(); ++i)
    give(scope, partials[i], entry(partials[i].name), entry(arrays[i], "[" + first + "]"));
  // After this barrier, the arrays may be overwritten.
  scope.line("workgroupBarrier();");
}

}  // namespace

int floor_pow2(std::int64_t value) {
  int power = 1;
  while (power <= value / 2 && power < (1 << 20)) power *= 2;
  return power;
}

int ceil_pow2(std::int64_t value) {
  int power = 1;
  while (power < value && power < (1 << 20)) power *= 2;
  return power;
}

Grid fold_groups(std::int64_t groups) {
  CHECK(groups >= 1 && groups <= kMaxWorkgroupsPerDimension * kMaxWorkgroupsPerDimension);
  const std::int64_t y = ceil_div(groups, kMaxWorkgroupsPerDimension);
  return {static_cast<std::uint32_t>(ceil_div(groups, y)), static_cast<std::uint32_t>(y)};
}

std::string open_rows(Scope& scope, const Tile& tile, std::int64_t rows, const std::string& row,
                      std::int64_t first) {
  const std::int64_t groups = ceil_div(rows, tile.rows);
  const Grid grid = fold_groups(groups);
  const std::string from = first == 0 ? "" : " + " + u32_literal(first);
  scope.line(grid.y == 1 ? "let group = group_id.x;"
                         : "let group = group_id.y * " + u32_literal(grid.x) + " + group_id.x;");
  if (tile.lanes == 1 && tile.rows > 1) {
    scope.line("let " + row + " = group * " + u32_literal(tile.rows) + " + local" + from + ";");
    scope.line("if (" + row + " >= " + u32_literal(first + rows) + ") { return; }");
    return {};
  }
  // Only whole workgroups may return early, as barriers follow. A workgroup of one thread is no
  // exception, because browsers do not recognize it.
  if (std::int64_t{grid.x} * grid.y > groups) {
    scope.line("if (group >= " + u32_literal(groups) + ") { return; }");
  }
  if (tile.rows == 1) {
    scope.line("let " + row + " = group" + from + ";");
    scope.line("let lane = local;");
    return {};
  }
  const std::string split = u32_literal(tile.lanes_first ? tile.lanes : tile.rows);
  const std::string quotient = "local / " + split;
  const std::string rest = "local % " + split;
  scope.line("let lane = " + (tile.lanes_first ? rest : quotient) + ";");
  const std::string number =
      "group * " + u32_literal(tile.rows) + " + " + (tile.lanes_first ? quotient : rest) + from;
  if (rows % tile.rows == 0) {
    scope.line("let " + row + " = " + number + ";");
    return {};
  }
  scope.line("let place = " + number + ";");
  scope.line("let live = place < " + u32_literal(first + rows) + ";");
  scope.line("let " + row + " = min(place, " + u32_literal(first + rows - 1) + ");");
  return "live";
}

Shader make_shader(const Module& module, const Scope& body, int threads, std::int64_t groups) {
  Shader shader = module.shader();
  shader.main = body.text();
  shader.threads = threads;
  shader.groups = groups;
  return shader;
}

int group_threads(int wanted, const WgslOptions& options) {
  const int most = std::min(256, floor_pow2(options.max_threads));
  return options.joined ? most : std::min(wanted, most);
}

void declare_partial(Scope& scope, Module& module, const Partial& partial) {
  scope.line("var " + partial.name + " = " + identity(module, partial) + ";");
  if (partial.indexed()) scope.line("var " + partial.name + "_at = 0xffffffffu;");
  if (partial.watches_nan()) scope.line("var " + partial.name + "_bits = 0u;");
}

void accumulate(Scope& scope, Module& module, const Partial& partial, const std::string& value,
                const std::string& col) {
  const std::string& name = partial.name;
  const std::string word = partial.dtype == DType::kBool ? "select(0u, 1u, " + value + ")" : value;
  if (partial.op == ReduceOp::kSum) {
    scope.line(name + " += " + word + ";");
  } else if (!partial.indexed()) {
    scope.line(name + " = " + (is_max(partial.op) ? "max(" : "min(") + name + ", " + word + ");");
    if (partial.watches_nan()) {
      const std::string magnitude = "bitcast<u32>(" + word + ") & 0x7fffffffu";
      scope.line(name + "_bits = max(" + name + "_bits, " + magnitude + ");");
    }
  } else {
    Scope better(&scope);
    better.line(name + " = " + word + ";");
    better.line(name + "_at = " + col + ";");
    scope.block("if (" + wins(module, partial) + "(" + name + ", " + name + "_at, " + word + ", " +
                    col + "))",
                better);
  }
}

void combine_lanes(Scope& scope, Module& module, const Tile& tile,
                   const std::vector<Partial>& partials, const WgslOptions& options) {
  for (const Partial& partial : partials) {
    if (!partial.watches_nan()) continue;
    const std::string bits = partial.name + "_bits";
    scope.line(partial.name + " = select(" + partial.name + ", bitcast<f32>(" + bits + "), " +
               bits + " > 0x7f800000u);");
  }
  if (tile.lanes == 1) return;
  const std::int64_t room = options.max_workgroup_bytes / (tile.threads() * std::int64_t{4});
  // An indexed reduction needs two arrays, so a batch uses at most a third of the workgroup memory.
  const auto batch = static_cast<std::size_t>(std::clamp<std::int64_t>(room / 6, 1, kMaxArrays));
  for (std::size_t start = 0; start < partials.size(); start += batch) {
    const std::size_t end = std::min(partials.size(), start + batch);
    const std::vector<Partial> some(partials.begin() + static_cast<std::ptrdiff_t>(start),
                                    partials.begin() + static_cast<std::ptrdiff_t>(end));
    if (lanes_of_subgroup(tile, options.subgroups) > 1) {
      combine_subgroups(scope, module, tile, some, options);
    } else {
      combine_batch(scope, module, tile, some);
    }
  }
}

}  // namespace tensorgrad::wgsl
