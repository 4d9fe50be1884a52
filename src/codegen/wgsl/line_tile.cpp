// SPDX-License-Identifier: MIT
#include "codegen/wgsl/line_tile.h"

namespace tensorgrad::wgsl {
namespace {

// Largest number of prefetched vectors per thread; each adds text to compile.
constexpr int kMaxLinesAtOnce = 4;

std::string next(const LineTile& tile, int j) { return "next_" + tile.operand + std::to_string(j); }

}  // namespace

int LineTile::each() const { return static_cast<int>(ceil_div(count * vectors, threads)); }

bool LineTile::at_once() const { return each() <= kMaxLinesAtOnce; }

void LineTile::declare(Scope& scope) const {
  for (int j = 0; j < each(); ++j) scope.line("var " + next(*this, j) + " = vec4<f32>();");
}

void LineTile::fetch(Scope& scope, const std::string& first) const {
  const std::string n = u32_literal(vectors);
  for (int j = 0; j < each(); ++j) {
    const std::string e = "(local + " + u32_literal(j * threads) + ")";
    scope.line(next(*this, j) + " = " + operand + "_line(p, " + first + " + " + e + " / " + n +
               ", " + e + " % " + n + ");");
  }
}

void LineTile::keep(Scope& scope) const {
  const std::string n = u32_literal(vectors);
  for (int j = 0; j < each(); ++j) {
    const std::string e = "(local + " + u32_literal(j * threads) + ")";
    const std::string put = array + "[" + e + " / " + n + " * " + u32_literal(pitch) + " + " + e +
                            " % " + n + "] = " + next(*this, j) + ";";
    const bool whole = std::int64_t{j + 1} * threads <= count * vectors;
    scope.line(whole ? put
                     : "if (" + e + " < " + u32_literal(count * vectors) + ") { " + put + " }");
  }
}

void LineTile::begin(Scope& scope, const std::string& first) const {
  if (!at_once()) return;
  declare(scope);
  fetch(scope, first);
}

void LineTile::end(Scope& scope, const std::string& first) const {
  if (at_once()) return keep(scope);
  const std::string n = u32_literal(vectors);
  Scope one(&scope);
  one.line("let i = e / " + n + ";");
  one.line("let at = e % " + n + ";");
  one.line(array + "[i * " + u32_literal(pitch) + " + at] = " + operand + "_line(p, " + first +
           " + i, at);");
  scope.block("for (var e = local; e < " + u32_literal(count * vectors) +
                  "; e += " + u32_literal(threads) + ")",
              one);
}

void LineTile::load(Scope& scope, const std::string& first) const {
  begin(scope, first);
  end(scope, first);
}

}  // namespace tensorgrad::wgsl
