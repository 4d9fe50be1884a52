// SPDX-License-Identifier: MIT
#include "codegen/wgsl/matmul/contraction.h"

namespace tensorgrad::wgsl {
namespace {

// Tests are combined with `|` rather than `||`, which would branch. The guards of operands are
// inlined dozens of times, and SwiftShader takes minutes to compile that many branches.
std::string outside(const std::string& index, std::int64_t size) {
  return "(" + index + " >= " + u32_literal(size) + ")";
}

}  // namespace

ContractionParts::ContractionParts(const Launch& launch, const WgslOptions& options)
    : launch_(launch),
      product_(launch.as<ContractionLaunch>()),
      options_(options),
      out_domain_{{"z", product_.batch * product_.parts}, {"m", product_.m}, {"n", product_.n}},
      module_(launch),
      a_(module_, launch, options, true),
      b_(module_, launch, options, false),
      window_(window_of(launch)) {}

void ContractionParts::write_tile_place(Scope& scope, int side_m, int side_n, std::int64_t tiles_m,
                                        std::int64_t tiles_n) const {
  const Domain flat = {{"tile", tiles_n * tiles_m * window_.outer_count}};
  scope.line("let n0 = " + coordinate(scope, flat, 1, tiles_n) + " * " + u32_literal(side_n) + ";");
  scope.line("let m0 = " + coordinate(scope, flat, tiles_n, tiles_m) + " * " + u32_literal(side_m) +
             (window_.first > 0 ? " + " + u32_literal(window_.first) : "") + ";");
  scope.line(
      "let z = " + batch_of(coordinate(scope, flat, tiles_n * tiles_m, window_.outer_count)) + ";");
  write_part(scope);
}

void ContractionParts::write_part(Scope& scope) const {
  if (product_.parts == 1) return;
  const std::string each = u32_literal(product_.part_depth);
  scope.line("let first_k = z * " + each + ";");
  scope.line("let end_k = min(first_k + " + each + ", " + u32_literal(product_.k) + ");");
}

std::string ContractionParts::place_rows(Scope& rows, int lanes, const std::string& first,
                                         bool whole) const {
  for (const char* name : {"row", "lane", "place", "live"}) rows.own(name);
  rows.line("let lane = local % " + u32_literal(lanes) + ";");
  rows.line("let place = " + first + " + local / " + u32_literal(lanes) + ";");
  if (whole) {
    rows.line("let row = place;");
    return {};
  }
  rows.line("let live = place < " + u32_literal(window_.end()) + ";");
  rows.line("let row = min(place, " + u32_literal(window_.end() - 1) + ");");
  return "live";
}

void ContractionParts::write_finish(bool guarded, bool with_bias_grad,
                                    const std::set<int>& vectors) {
  Scope scope;
  if (with_bias_grad) {
    Scope ones(&scope);
    ones.line(product_.bias_grad_row ? "finish_bias_grad(n, acc);" : "finish_bias_grad(m, acc);");
    ones.line("return;");
    scope.block(product_.bias_grad_row ? "if (m == " + u32_literal(product_.m) + ")"
                                       : "if (n == " + u32_literal(product_.n) + ")",
                ones);
  }
  if (guarded) {
    scope.line("if (" + outside("m", window_.end()) + " | " + outside("n", product_.n) +
               ") { return; }");
  }
  std::vector<int> roots;
  for (const Store& store : launch_.stores) roots.push_back(store.value);
  if (finish_.chosen) {
    VectorWriter writer(module_, finish_, vectors, "acc");
    writer.write(scope, roots);
    for (const Store& store : launch_.stores) writer.store(scope, store);
  } else {
    ProgramWriter writer(module_, launch_.body, out_domain_, out_domain_, "acc");
    writer.relax(launch_.stores);
    writer.write_all(scope, writer.needed(roots));
    for (const Store& store : launch_.stores) writer.store(scope, store);
  }
  module_.function("finish",
                   "fn finish(z: u32, m: u32, n: u32, acc: " + vector_type(finish_.chosen ? 4 : 1) +
                       ") {\n" + scope.text() + "}\n");
}

void ContractionParts::write_bias_grad() {
  ScalarProgram sum;
  Instr acc;
  acc.kind = InstrKind::kAcc;
  sum.instrs.push_back(acc);
  const Domain domain = {{"i", product_.bias_grad_row ? product_.n : product_.m}};
  ProgramWriter writer(module_, sum, domain, domain, "acc");
  Scope scope;
  writer.write(scope, 0);
  Store store = product_.bias_grad_store;
  store.value = 0;
  writer.store(scope, store);
  module_.function("finish_bias_grad",
                   "fn finish_bias_grad(i: u32, acc: f32) {\n" + scope.text() + "}\n");
}

void ContractionParts::write_functions(int side_m, int side_n, int depth, bool vectorized,
                                       bool vec8) {
  const bool ragged_m = window_.count % side_m != 0, ragged_n = product_.n % side_n != 0;
  const bool ragged_k = product_.k % depth != 0;
  const auto guard = [&](bool side, const std::string& name, std::int64_t size) {
    std::string test = side ? outside(name, size) : "";
    if (ragged_k) test += (test.empty() ? "" : " | ") + outside("k", product_.k);
    return test;
  };
  finish_ = {&launch_.body, out_domain_, 2, false, vectorized && product_.n % 4 == 0,
             launch_.stores};
  std::vector<Vectorized*> parts = {&b_.vectorized(), &finish_};
  if (!product_.a_by_rows) parts.push_back(&a_.vectorized());
  const std::set<int> vectors = choose_vectorized(launch_, parts, options_);
  const auto write = [&](TileOperand& operand, const std::string& test) {
    vec8 ? operand.write_vec8(test, vectors) : operand.write_tile_function(test, vectors);
  };
  if (!product_.a_by_rows) write(a_, guard(ragged_m, "m", window_.end()));
  write(b_, guard(ragged_n, "n", product_.n));
  if (!product_.by_rows) write_finish(ragged_m || ragged_n, false, vectors);
}

}  // namespace tensorgrad::wgsl
