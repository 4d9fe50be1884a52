// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"
#include "codegen/wgsl/attention/attention.h"

namespace tensorgrad::wgsl {

// Writes fn NAME(p, i, q), which returns the value of the program.
void AttentionParts::write_input(AttentionInput which, const std::string& name, std::int64_t count,
                                 std::int64_t width) {
  if (!has(which)) return;
  write_source(module_, name, opaque_.input(which), {{"p", s_.batch}, {"i", count}, {"q", width}});
}

// Writes fn NAME_line(p, i, at), which returns a vector of line i, or zeros out of range.
void AttentionParts::write_line(const Lines& lines, const std::set<int>& bindings) {
  if (lines.vectorized.program == nullptr) return;
  Scope scope;
  scope.line("if (i >= " + u32_literal(lines.count) + ") { return vec4<f32>(); }");
  if (lines.vectorized.chosen) {
    VectorWriter writer(module_, lines.vectorized, bindings);
    const int last = static_cast<int>(lines.vectorized.program->instrs.size()) - 1;
    scope.line("let q = at * 4u;");
    scope.own("q");
    writer.write(scope, {last});
    scope.line("return " + writer.value(last) + ";");
  } else {
    write_input(lines.which, lines.name + "_at", lines.count, lines.width);
    scope.line("var x = vec4<f32>();");
    for (int c = 0; c < 4; ++c) {
      const std::string at = "at * 4u + " + u32_literal(c);
      const std::string take =
          std::string("x.") + "xyzw"[c] + " = " + lines.name + "_at(p, i, " + at + ");";
      const bool always = lines.width % 4 == 0 || c < lines.width % 4;
      scope.line(always ? take
                        : "if (" + at + " < " + u32_literal(lines.width) + ") { " + take + " }");
    }
    scope.line("return x;");
  }
  module_.function(lines.name + "_line", "fn " + lines.name +
                                             "_line(p: u32, i: u32, at: u32) -> vec4<f32> {\n" +
                                             scope.text() + "}\n");
}

void AttentionParts::write_inputs(bool vectorized) {
  std::array<Lines, 4> lines = {{{AttentionInput::kQ, "q", s_.rows, s_.depth},
                                 {AttentionInput::kK, "k", s_.columns, s_.depth},
                                 {AttentionInput::kV, "v", s_.columns, s_.width},
                                 {AttentionInput::kDy, "dy", s_.rows, s_.width}}};
  // Programs that are read element by element, and the stores.
  std::vector<Vectorized> rest;
  for (const ScalarProgram* program : programs_of(l_))
    rest.push_back({program, {}, 0, false, false, vectorized ? std::vector<Store>() : l_.stores});
  for (const Store& store : l_.stores) {
    if (!vectorized) break;
    const Domain domain = result_domain(store.value);
    rest.push_back({&l_.body, domain, 2, false, domain[2].size % 4 == 0, {store}});
  }
  std::vector<Vectorized*> all;
  for (Lines& each : lines) {
    if (!has(each.which)) continue;
    const ScalarProgram& program = opaque_.input(each.which);
    std::erase_if(rest, [&](const Vectorized& other) { return other.program == &program; });
    each.vectorized = {&program,
                       {{"p", s_.batch}, {"i", each.count}, {"q", each.width}},
                       2,
                       true,
                       each.width % 4 == 0};
    all.push_back(&each.vectorized);
  }
  for (Vectorized& each : rest) all.push_back(&each);
  vectors_ = choose_vectorized(l_, all, options_);
  for (const Lines& each : lines) write_line(each, vectors_);
  write_input(AttentionInput::kLse, "lse_at", s_.rows, 1);
  write_input(AttentionInput::kDelta, "delta_at", s_.rows, 1);
  write_input(AttentionInput::kMask, "mask_at", s_.rows, s_.columns);
  write_input(AttentionInput::kKeep, "keep_at", s_.rows, s_.columns);
}

Domain AttentionParts::result_domain(int which) const {
  const bool first = which == 0;
  if (forward()) return {{"p", s_.batch}, {"i", s_.rows}, {"w", first ? s_.width : 1}};
  if (which == 2) return {{"p", s_.batch}, {"i", s_.dq_parts * s_.rows}, {"w", s_.depth}};
  return {{"p", s_.batch}, {"i", rows()}, {"w", first ? s_.depth : s_.width}};
}

const Store* AttentionParts::store_of(int which) const {
  const auto at = std::find_if(l_.stores.begin(), l_.stores.end(),
                               [&](const Store& store) { return store.value == which; });
  return at == l_.stores.end() ? nullptr : &*at;
}

void AttentionParts::write_store(int which, const Domain& domain, const std::string& name,
                                 const std::string& type, bool four, bool add) {
  Scope scope;
  if (const Store* const store = store_of(which)) {
    const ElementRef place = place_of(scope, domain, store->map);
    const bool lse = forward() && which == 1;
    std::string value = "x";
    if (s_.half && !lse && store->dtype == DType::kF32) {  // f16 on a device that cannot store it
      module_.use_helpers("tg_round_to_f16(");
      value = "tg_round_to_f16(x)";
    }
    if (four) {
      CHECK(value == "x", l_.name);
      module_.hold_vectors(store->binding, store->dtype);
      if (add) value = Module::load_vector(store->binding, store->dtype, place.index) + " + x";
      scope.line(Module::store_vector(store->binding, store->dtype, place.index, value));
    } else {
      if (add) value = module_.load(store->binding, store->dtype, place.index) + " + x";
      scope.line(module_.store(store->binding, store->dtype, place.index, value));
    }
  }
  module_.function(
      name, "fn " + name + "(p: u32, i: u32, w: u32, x: " + type + ") {\n" + scope.text() + "}\n");
}

void AttentionParts::write_result(int which, std::int64_t count, std::int64_t width) {
  const Domain domain = {{"p", s_.batch}, {"i", count}, {"w", width}};
  write_store(which, domain, "store" + std::to_string(which), "f32", false);
}

void AttentionParts::write_sum(int which, std::int64_t count, std::int64_t width) {
  const Domain domain = {{"p", s_.batch}, {"i", count}, {"w", width}};
  write_store(which, domain, "add" + std::to_string(which), "f32", false, true);
}

void AttentionParts::write_result_of_four(int which, std::int64_t count, std::int64_t width) {
  const Domain domain = {{"p", s_.batch}, {"i", count}, {"w", width}};
  write_four(which, domain, "store" + std::to_string(which), false);
}

void AttentionParts::write_sum_of_four(int which, std::int64_t count, std::int64_t width) {
  const Domain domain = {{"p", s_.batch}, {"i", count}, {"w", width}};
  write_four(which, domain, "add" + std::to_string(which), true);
}

// Writes fn ONE_four, which stores a vector, or else calls fn ONE.
void AttentionParts::write_four(int which, const Domain& domain, const std::string& one, bool add) {
  const std::string name = one + "_four";
  const Store* const store = store_of(which);
  if (store != nullptr && vectors_.contains(store->binding))
    return write_store(which, domain, name, "vec4<f32>", true, add);
  write_store(which, domain, one, "f32", false, add);
  std::string body;
  for (int c = 0; c < 4; ++c) {
    body += "  " + one + "(p, i, w + " + u32_literal(c) + ", x." + "xyzw"[c] + ");\n";
  }
  module_.function(name,
                   "fn " + name + "(p: u32, i: u32, w: u32, x: vec4<f32>) {\n" + body + "}\n");
}

}  // namespace tensorgrad::wgsl
