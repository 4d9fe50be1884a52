// SPDX-License-Identifier: MIT
#include "codegen/wgsl/matmul/operand.h"

#include <array>
#include <utility>
#include <vector>

#include "base/check.h"

namespace tensorgrad::wgsl {
namespace {

const char* axis_name(bool is_a) { return is_a ? "m" : "n"; }

}  // namespace

std::string vector_type(int width) {
  return width == 1 ? "f32" : "vec" + std::to_string(width) + "<f32>";
}

std::string component(int i, int width) {
  return width == 1 ? std::string() : std::string(".") + "xyzw"[i % width];
}

// A thread's share of a tile: pieces local, local + threads, ... in memory order, each of count()
// elements. As sides and depth fit the number of threads, only one of the two coordinates varies.
struct TileOperand::Share {
  int pieces;          // per thread
  int fast;            // contiguous pieces in memory
  int step_i, step_k;  // elements between consecutive pieces
  std::string there;   // condition for threads that have a piece, if some have none
};

TileOperand::TileOperand(Module& module, const Launch& launch, const WgslOptions& options,
                         bool is_a)
    : module_(module),
      launch_(launch),
      product_(launch.as<ContractionLaunch>()),
      options_(options),
      is_a_(is_a),
      name_(is_a ? "a" : "b"),
      program_(is_a ? product_.a : product_.b),
      domain_(is_a ? Domain{{"z", product_.batch}, {"m", product_.m}, {"k", product_.k}}
                   : Domain{{"z", product_.batch}, {"k", product_.k}, {"n", product_.n}}),
      computed_(is_a && product_.a_by_rows),
      packed_(!computed_ && packs_along(program_, domain_, is_a ? 2 : 1)),
      along_k_(computed_ || packed_ || runs_along(program_, domain_, is_a ? 2 : 1, is_a ? 1 : 2)) {
  CHECK(!program_.instrs.empty());
  vectorized_ = {&program_, domain_, along_k_ == is_a_ ? std::size_t{2} : std::size_t{1}, true,
                 false};
  vectorized_.chosen = may_be_vectorized(launch);
  vectorized_.packed = packed_;
}

bool TileOperand::may_be_vectorized(const Launch& launch) const {
  const Window window = window_of(launch);
  const bool ragged = is_a_ && !along_k_ && (window.first % 4 != 0 || window.end() % 4 != 0);
  return !ragged && !computed_ && domain_[vectorized_.axis].size % 4 == 0;
}

void TileOperand::write_text(const std::string& function, const Scope& body,
                             const std::string& type) {
  const std::string name = name_ + function;
  module_.function(name, "fn " + name + "(z: u32, " + domain_[1].name + ": u32, " +
                             domain_[2].name + ": u32) -> " + type + " {\n" + body.text() + "}\n");
}

void TileOperand::write_function(const std::string& guard, const std::string& otherwise) {
  ProgramWriter writer(module_, program_, domain_, domain_);
  Scope scope;
  if (!guard.empty()) scope.line("if (" + guard + ") { return " + otherwise + "; }");
  const int last = static_cast<int>(program_.instrs.size()) - 1;
  writer.write_all(scope, writer.needed({last}));
  scope.line("return " + writer.value(last) + ";");
  write_text("_at", scope, vector_type(1));
}

void TileOperand::write_tile_function(const std::string& guard, const std::set<int>& vectors) {
  if (!vectorized_.chosen) return write_function(guard, "0.0f");
  Scope scope;
  if (!guard.empty()) scope.line("if (" + guard + ") { return vec4<f32>(); }");
  const int last = static_cast<int>(program_.instrs.size()) - 1;
  VectorWriter writer(module_, vectorized_, vectors);
  writer.write(scope, {last});
  scope.line("return " + writer.value(last) + ";");
  write_text("_at", scope, vector_type(4));
}

// One vector more than a line has. If the load is along k, neighboring threads write a column and
// so access different banks. Otherwise, a power of two as pitch makes products up to 20% slower,
// probably because such sums do not fold into the instructions' immediate offsets.
int TileOperand::pitch(const TileShape& tile) const { return side(tile) / width(tile) + 1; }

TileOperand::Share TileOperand::share(const TileShape& tile) const {
  const int threads = tile.threads();
  const int fast = (along_k_ ? tile.depth : side(tile)) / count();
  CHECK(threads % fast == 0);
  const int step = threads / fast, all = side(tile) * tile.depth / count();
  return {std::max(1, all / threads), fast, along_k_ ? step : 0, along_k_ ? 0 : step,
          all < threads ? "if (local < " + u32_literal(all) + ")" : ""};
}

void TileOperand::write_places(Scope& scope, const TileShape& tile) const {
  const Share mine = share(tile);
  const std::string fast = u32_literal(mine.fast);
  const std::string quick = "local % " + fast + (count() > 1 ? " * " + u32_literal(count()) : "");
  const std::string type = split_ ? vector_type(4) : vec8_ ? "vec4<u32>" : vector_type(count());
  std::string slow = "local / " + fast;
  if (vec8_ && mine.fast == 4 && tile.threads() % 32 == 0) {
    // Eight threads store to workgroup memory at a time: two lines of 64 bytes. If these are four
    // lines of 80 bytes apart, they are in different banks.
    slow = "(local / 32u * 8u + local / 4u % 2u * 4u + local / 8u % 4u)";
  }
  scope.line("let " + name_ + "_i = " + (along_k_ ? slow : quick) + ";");
  scope.line("let " + name_ + "_k = " + (along_k_ ? quick : slow) + ";");
  for (int j = 0; j < mine.pieces; ++j) {
    scope.line("var next_" + name_ + std::to_string(j) + " = " + type + "();");
    if (split_) scope.line("var more_" + name_ + std::to_string(j) + " = " + type + "();");
  }
}

void TileOperand::write_fetch(Scope& scope, const TileShape& tile, const std::string& k0) const {
  const Share mine = share(tile);
  Scope own(&scope);
  Scope& to = mine.there.empty() ? scope : own;
  const std::string function = name_ + (split_ ? "_four" : vec8_ ? "_eight" : "_at");
  for (int j = 0; j < mine.pieces; ++j) {
    const auto fetch = [&](const char* var, int more) {
      const std::string i = axis_name(is_a_) + ("0 + " + name_) + "_i + " +
                            u32_literal(j * mine.step_i + (along_k_ ? 0 : more));
      const std::string k =
          k0 + " + " + name_ + "_k + " + u32_literal(j * mine.step_k + (along_k_ ? more : 0));
      to.line(var + name_ + std::to_string(j) + " = " + function +
              (product_.parts > 1 ? "(0u, " : "(z, ") + (is_a_ ? i + ", " + k : k + ", " + i) +
              ");");
    };
    fetch("next_", 0);
    if (split_) fetch("more_", 4);
  }
  if (!mine.there.empty()) scope.block(mine.there, own);
}

namespace {

// Returns true for f16 loads, zero, values rounded to f16, and selections of these.
bool is_half_value(const ScalarProgram& program, const std::vector<bool>& half, int number) {
  const Instr& instr = program.instrs[static_cast<std::size_t>(number)];
  switch (instr.kind) {
    case InstrKind::kConst: return instr.bits == 0;
    case InstrKind::kLoad:
    case InstrKind::kLoadAt:
      return program.accesses[static_cast<std::size_t>(instr.index)].dtype == DType::kF16;
    case InstrKind::kOp: {
      const std::string_view name = instr.code->name;
      if (name == "round_to_f16") return true;
      return name == "where" && half[static_cast<std::size_t>(instr.operands[1])] &&
             half[static_cast<std::size_t>(instr.operands[2])];
    }
    default: return false;
  }
}

// Padding per line in elements, so that adjacent lines are in different banks.
constexpr int kHalfPad = 8;

constexpr std::array<std::pair<const char*, const char*>, 2> kSplitFunctions = {
    {{"split_pack",
      "fn split_pack(x: vec4<f32>, y: vec4<f32>) -> vec4<u32> {\n"
      "  return vec4<u32>(bitcast<vec2<u32>>(vec4<f16>(x)), bitcast<vec2<u32>>(vec4<f16>(y)));\n"
      "}\n"},
     {"split_low",
      "fn split_low(x: vec4<f32>, y: vec4<f32>, high: vec4<u32>) -> vec4<u32> {\n"
      "  let h = vec4<f32>(unpack2x16float(high.x), unpack2x16float(high.y));\n"
      "  let g = vec4<f32>(unpack2x16float(high.z), unpack2x16float(high.w));\n"
      "  return split_pack((x - h) * 2048.0f, (y - g) * 2048.0f);\n}\n"}}};

}  // namespace

bool is_half(const ScalarProgram& program) {
  std::vector<bool> half;  // per instruction; operands come first
  for (int i = 0; i < static_cast<int>(program.instrs.size()); ++i)
    half.push_back(is_half_value(program, half, i));
  return half.back();
}

bool TileOperand::is_half() const { return wgsl::is_half(program_); }

// Returns true if the operand can be loaded as vectors of eight f16. The launch must not access its
// buffer otherwise, so that the array may have any element type.
bool TileOperand::is_vec8_in_memory() const {
  if (program_.instrs.size() != 1 || program_.instrs[0].kind != InstrKind::kLoad) return false;
  const Access& access = program_.accesses[static_cast<std::size_t>(program_.instrs[0].index)];
  const auto binding = static_cast<std::size_t>(access.binding);
  if (access.dtype != DType::kF16 || access.level != Level::kElement) return false;
  if (options_.scalar_buffers.contains(launch_.bindings[binding].buffer)) return false;
  int uses = 0;
  for (const ScalarProgram* const program : programs_of(launch_)) {
    for (const Access& each : program->accesses) uses += each.binding == access.binding ? 1 : 0;
  }
  for (const Store* store : stores_of(launch_)) uses += store->binding == access.binding ? 1 : 0;
  const Window window = window_of(launch_);
  const bool ragged = is_a_ && !along_k_ && (window.first % 8 != 0 || window.end() % 8 != 0);
  return uses == 1 && !ragged && domain_[vectorized_.axis].size % 8 == 0 &&
         vec_access(domain_, access.map, vectorized_.axis, 8) == VecAccess::kTouching;
}

void TileOperand::write_vec8(const std::string& guard, const std::set<int>& vectors) {
  vec8_ = true;
  if (split_) {
    write_four(guard, vectors);
    for (const auto& [name, text] : kSplitFunctions) module_.function(name, text);
    return;
  }
  Scope scope;
  if (is_vec8_in_memory()) {
    if (!guard.empty()) scope.line("if (" + guard + ") { return vec4<u32>(); }");
    const Access& access = program_.accesses[static_cast<std::size_t>(program_.instrs[0].index)];
    module_.hold_vec8(access.binding);
    const ElementRef place = place_of(scope, domain_, access.map);
    scope.line("return b" + std::to_string(access.binding) + "[(" + place.index + ") / 8u];");
  } else {
    write_four(guard, vectors);
    scope.line("let x = vec4<f16>(" + call_at("_four", 0) + ");");
    scope.line("let y = vec4<f16>(" + call_at("_four", 4) + ");");
    scope.line("return vec4<u32>(bitcast<vec2<u32>>(x), bitcast<vec2<u32>>(y));");
  }
  write_text("_eight", scope, "vec4<u32>");
}

// Returns the call of a function at the coordinates, `more` elements further in memory order.
std::string TileOperand::call_at(const char* function, int more) const {
  std::string text = name_ + function + "(z";
  for (std::size_t d = 1; d < domain_.size(); ++d)
    text += ", " + domain_[d].name + (d == vectorized_.axis ? " + " + u32_literal(more) : "");
  return text + ")";
}

// Writes the function `a_four` or `b_four`, which returns four elements.
void TileOperand::write_four(const std::string& guard, const std::set<int>& vectors) {
  write_tile_function(guard, vectors);
  Scope scope;
  scope.line("return " +
             (vectorized_.chosen ? call_at("_at", 0)
                                 : "vec4<f32>(" + call_at("_at", 0) + ", " + call_at("_at", 1) +
                                       ", " + call_at("_at", 2) + ", " + call_at("_at", 3) + ")") +
             ";");
  write_text("_four", scope, vector_type(4));
}

bool TileOperand::fits_vec8(const TileShape& tile) const {
  const int fast = (along_k_ ? tile.depth : side(tile)) / 8;
  const int all = side(tile) * tile.depth / 8;
  return tile.threads() % fast == 0 && (all % tile.threads() == 0 || all < tile.threads());
}

int TileOperand::half_pitch(const TileShape& tile) const {
  return (along_k_ ? tile.depth : side(tile)) + kHalfPad;
}

int TileOperand::half_vectors(const TileShape& tile) const {
  return half_pitch(tile) / 8 * lines(tile) * (split_ ? 2 : 1);
}

template <class Write>
void TileOperand::each_piece(Scope& scope, const TileShape& tile, const Write& write) const {
  const Share mine = share(tile);
  Scope own(&scope);
  Scope& to = mine.there.empty() ? scope : own;
  for (int j = 0; j < mine.pieces; ++j) {
    const std::string i = "(" + name_ + "_i + " + u32_literal(j * mine.step_i) + ")";
    const std::string k = "(" + name_ + "_k + " + u32_literal(j * mine.step_k) + ")";
    write(to, j, i, k);
  }
  if (!mine.there.empty()) scope.block(mine.there, own);
}

void TileOperand::write_keep_vec8(Scope& scope, const TileShape& tile, const std::string& array,
                                  int start) const {
  each_piece(scope, tile, [&](Scope& to, int j, const std::string& i, const std::string& k) {
    const auto put = [&](Scope& into, int first, const std::string& value) {
      into.line(array + "[" + u32_literal(first) + " + " + (along_k_ ? i : k) + " * " +
                u32_literal(half_pitch(tile) / 8) + " + " + (along_k_ ? k : i) +
                " / 8u] = " + value + ";");
    };
    const std::string number = name_ + std::to_string(j);
    if (!split_) {
      put(to, start, "next_" + number);
      return;
    }
    const std::string both = "next_" + number + ", more_" + number;
    Scope parts(&to);
    // Compilers simplify x - f32(f16(x)) to 0. They do not know that group_id.z is 0.
    parts.line("let high = split_pack(" + both + ") ^ vec4<u32>(group_id.z);");
    put(parts, start, "high");
    put(parts, start + low_part(tile) / 8, "split_low(" + both + ", high)");
    to.block("", parts);
  });
}

// Lines along k are padded by one vector, so that threads of adjacent lines access different banks.
int TileOperand::line_pitch(const TileShape& tile) const {
  return along_k_ ? tile.depth / 4 + 1 : side(tile) / 4;
}

int TileOperand::line_vectors(const TileShape& tile) const {
  return line_pitch(tile) * lines(tile);
}

void TileOperand::write_keep_lines(Scope& scope, const TileShape& tile, const std::string& array,
                                   int start) const {
  each_piece(scope, tile, [&](Scope& to, int j, const std::string& i, const std::string& k) {
    const std::string& along = along_k_ ? k : i;
    to.line(array + "[" + u32_literal(start) + " + " + (along_k_ ? i : k) + " * " +
            u32_literal(line_pitch(tile)) + " + " + along + " / 4u]" +
            (count() > 1 ? "" : "[" + along + " % 4u]") + " = next_" + name_ + std::to_string(j) +
            ";");
  });
}

// Stores element (k, i) to workgroup memory, with i along m or n.
void TileOperand::write_keep(Scope& scope, const TileShape& tile, const std::string& from) const {
  const Share mine = share(tile);
  const int entry = width(tile);
  const std::string start = "tile_" + name_ + "[" + (from.empty() ? "" : from + " + ");
  const auto put = [&](const std::string& k, const std::string& i, const std::string& value,
                       bool whole) {
    std::string at = start + k + " * " + u32_literal(pitch(tile)) + " + " + i;
    if (entry > 1) at += " / " + u32_literal(entry) + "]";
    if (entry > 1 && !whole) at += "[" + i + " % " + u32_literal(entry);
    scope.line(at + (whole && entry > 1 ? "" : "]") + " = " + value + ";");
  };
  for (int j = 0; j < mine.pieces; ++j) {
    const std::string value = "next_" + name_ + std::to_string(j);
    const auto place = [&](const std::string& axis, int more) {
      return "(" + name_ + axis + " + " + u32_literal(more) + ")";
    };
    const int i = j * mine.step_i, k = j * mine.step_k;
    if (count() > 1 && !along_k_ && entry == 4) {
      put(place("_k", k), place("_i", i), value, true);
      continue;
    }
    for (int c = 0; c < count(); ++c) {
      put(place("_k", k + (along_k_ ? c : 0)), place("_i", i + (along_k_ ? 0 : c)),
          value + component(c, count()), false);
    }
  }
}

}  // namespace tensorgrad::wgsl
