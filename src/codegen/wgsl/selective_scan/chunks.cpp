// SPDX-License-Identifier: MIT
#include "codegen/wgsl/selective_scan/chunks.h"

#include <algorithm>

namespace tensorgrad::wgsl {

std::string SelectiveChunks::run_below(const std::string& first, int width, std::int64_t limit) {
  if (limit % width == 0) return first + " < " + u32_literal(limit);
  const std::string type = "vec" + std::to_string(width) + "<u32>(";
  return type + first + ") + " + type + (width == 2 ? "0u, 1u" : "0u, 1u, 2u, 3u") + ") < " + type +
         u32_literal(limit) + ")";
}

std::string SelectiveChunks::Staged::only_real(const std::string& value, std::size_t n) const {
  if (real.empty()) return value;
  const char* piece = pieces == 1 ? "" : piece_of(n) == 0 ? ".xy" : ".zw";
  return "select(" + type() + "(), " + value + ", " + real + piece + ")";
}

void SelectiveChunks::bring_bc(std::int64_t threads) {
  std::vector<std::int64_t> behind;
  for (std::int64_t e = 0; e < own_bc(threads); ++e)
    behind.push_back(e * threads / (2 * s_.threads_per_channel()));
  staged_.push_back({SelectiveInput::kBC, "bc", 4, s_.length, 2 * s_.states, kChunk, behind,
                     "bc_row", "bc_column", s_.states == padded() ? "" : "real_bc"});
}

void SelectiveChunks::open_bc(Scope& scope) const {
  const std::string states = u32_literal(s_.states),
                    threads_per_channel = u32_literal(s_.threads_per_channel());
  const bool all = s_.states == padded();
  scope.line("let bc_row = local / " + u32_literal(2 * s_.threads_per_channel()) + ";");
  scope.line("let bc_state = local % " + threads_per_channel + " * 4u;");
  scope.line("let bc_column = local / " + threads_per_channel + " % 2u * " + states + " + " +
             (!all && s_.states % 4 == 0 ? "min(bc_state, " + u32_literal(s_.states - 4) + ")"
                                         : "bc_state") +
             ";");
  if (all) return;
  scope.line("let real_bc = " +
             (s_.states % 4 == 0
                  ? "bc_state < " + states
                  : "vec4<u32>(bc_state) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(" + states + ")") +
             ";");
}

std::int64_t SelectiveChunks::own_bc(std::int64_t threads) const {
  return kChunk * 2 * s_.threads_per_channel() / threads;
}

void SelectiveChunks::write_staged() {
  std::vector<Vectorized> rest;  // scalar inputs, and the results
  for (const ScalarProgram* program : programs_of(l_))
    rest.push_back({program, {}, 0, false, false, l_.stores});
  std::vector<Vectorized*> all;
  for (Staged& each : staged_) {
    const ScalarProgram& program = opaque_.input(each.which);
    std::erase_if(rest, [&](const Vectorized& other) { return other.program == &program; });
    // C follows B in a row. Vectors need both to begin at a multiple of four.
    const std::int64_t multiple = each.which == SelectiveInput::kBC ? 8 : each.width;
    const Domain domain = {{"p", s_.batch}, {"i", each.rows}, {"q", each.columns}};
    each.vectorized = {&program, domain, 2, true, each.width > 1 && each.columns % multiple == 0};
    each.vectorized.width = each.width;
    all.push_back(&each.vectorized);
  }
  for (Vectorized& each : rest) all.push_back(&each);
  const std::set<int> vectors = choose_vectorized(l_, all, options_);
  for (Staged& each : staged_) write_vector(each, vectors);
}

// Columns past the last repeat the last one. Their values are not used.
void SelectiveChunks::write_vector(Staged& staged, const std::set<int>& vectors) {
  const ScalarProgram& program = *staged.vectorized.program;
  const auto function = [&](const std::string& name, const std::string& type, const Scope& body) {
    module_.function(
        name, "fn " + name + "(p: u32, i: u32, q: u32) -> " + type + " {\n" + body.text() + "}\n");
  };
  Scope scope;
  std::string value;
  if (staged.vectorized.chosen) {
    VectorWriter writer(module_, staged.vectorized, vectors);
    const int last = static_cast<int>(program.instrs.size()) - 1;
    writer.write(scope, {last});
    value = writer.value(last);
  } else {
    write_input(staged.which, staged.name + "_at", s_.batch, staged.rows, staged.columns);
    const std::string at = staged.name + "_at(p, i, ";
    const std::string last = u32_literal(staged.columns - 1);
    for (int c = 0; c < staged.width; ++c)
      value += (c == 0 ? "" : ", ") + at + "min(q + " + u32_literal(c) + ", " + last + "))";
    value = staged.width == 1 ? at + "q)" : staged.type() + "(" + value + ")";
  }
  scope.line("return " + value + ";");
  function(staged.name + "_vector", staged.type(), scope);
  const bool at_once = staged.vectorized.chosen || staged.width == 1;
  if (!at_once || program.instrs.size() != 1 || program.instrs[0].kind != InstrKind::kLoad ||
      ragged(staged, false))
    return;
  const Access& access = program.accesses.at(static_cast<std::size_t>(program.instrs[0].index));
  const std::optional<std::int64_t> step = even_step(staged.vectorized.domain, access.map, 1);
  if (!step || *step % staged.width != 0 || (staged.width > 1 && !vectors.contains(access.binding)))
    return;
  staged.step = *step / staged.width;
  Scope at;
  at.line("return (" + place_of(at, staged.vectorized.domain, access.map).index + ") / " +
          u32_literal(staged.width) + ";");
  function(staged.name + "_place", "u32", at);
  staged.place = at.text();
}

// The forward pass reads the last chunk last, the backward pass first.
bool SelectiveChunks::ragged(const Staged& staged, bool first) const {
  if (whole() || staged.which == SelectiveInput::kStates) return false;
  return first ? !forward() || s_.chunks() == 1 : forward();
}

std::string SelectiveChunks::read(const Staged& staged, const std::string& origin, std::size_t n,
                                  bool first) const {
  const std::string row = origin + " + " + u32_literal(staged.row_of(n));
  const std::string last = u32_literal(s_.length - 1), none = "select(" + staged.type() + "(), ";
  const bool may_end = ragged(staged, first);
  std::string value =
      staged.name + "_vector(p, " + (may_end ? "min(" + row + ", " + last + ")" : row) + ", " +
      staged.column +
      (staged.piece_of(n) > 0 ? " + " + u32_literal(staged.piece_of(n) * staged.width) : "") + ")";
  value = staged.only_real(value, n);
  if (may_end) value = none + value + ", " + row + " <= " + last + ")";
  return value;
}

void SelectiveChunks::bring_first(const std::string& chunk) {
  scope_.line("let begin = " + chunk + ";");
  for (Staged& each : staged_) {
    const std::string row = "begin * " + u32_literal(each.chunk_rows) + " + " + each.row;
    for (std::size_t e = 0; e < each.vectors(); ++e)
      scope_.line("var " + each.next(e) + " = " + read(each, row, e, true) + ";");
    if (!each.step) continue;
    const auto alike = std::find_if(staged_.begin(), staged_.end(), [&](const Staged& other) {
      return !other.at.empty() && other.place == each.place && other.row == each.row &&
             other.column == each.column;
    });
    each.at = alike != staged_.end() ? alike->at : each.name + "_from";
    if (alike != staged_.end()) continue;
    scope_.line("var " + each.at + " = " + each.name + "_place(p, " + row + ", " + each.column +
                ");");
  }
}

void SelectiveChunks::bring_next(Scope& scope, const std::string& chunk) const {
  scope.line("let coming = " + chunk + ";");
  std::set<std::string> moved;
  for (const Staged& each : staged_) {
    if (each.step && moved.insert(each.at).second) {
      scope.line(each.at + (forward() ? " += " : " -= ") +
                 u32_literal(each.chunk_rows * *each.step) + ";");
    }
    for (std::size_t e = 0; e < each.vectors(); ++e) {
      std::string value;
      if (each.step) {
        const Access& access = each.vectorized.program->accesses.front();
        const std::string place =
            each.at + " + " + u32_literal(each.row_of(e) * *each.step + each.piece_of(e));
        value = "b" + std::to_string(access.binding) + "[" + place + "]";
        if (access.dtype == DType::kF16) value = each.type() + "(" + value + ")";
        if (each.width == 1) value = module_.load(access.binding, access.dtype, place);
        value = each.only_real(value, e);
      } else {
        value = read(each, "coming * " + u32_literal(each.chunk_rows) + " + " + each.row, e, false);
      }
      scope.line(each.next(e) + " = " + value + ";");
    }
  }
}

void SelectiveChunks::pass_gate(Scope& scope, const std::string& n) {
  const std::string dy = "next_dy" + n, z = "next_z" + n, sigmoid = "sigmoid" + n;
  const std::string silu = "silu" + n;
  scope.line("let " + sigmoid + " = sigmoid_of(" + z + ");");
  scope.line("let " + silu + " = " + z + " * " + sigmoid + ";");
  scope.line("let dz" + n + " = " + dy + " * next_ungated" + n + " * (" + sigmoid + " + " + silu +
             " * (1.0f - " + sigmoid + "));");
  scope.line(dy + " *= " + silu + ";");
}

void SelectiveChunks::bring_none(Scope& scope) const {
  for (const Staged& each : staged_) {
    for (std::size_t e = 0; e < each.vectors(); ++e)
      scope.line(each.next(e) + " = " + each.type() + "();");
  }
}

}  // namespace tensorgrad::wgsl
