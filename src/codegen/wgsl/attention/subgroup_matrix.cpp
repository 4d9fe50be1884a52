// SPDX-License-Identifier: MIT
// Attention with subgroup matrices, if q, k, v and dy are f16 and the weights may be. A workgroup
// has a block of rows, each of its subgroups a line of matrices of them, and loops over the columns
// in blocks. Scores pass as f32 through workgroup memory, where each thread computes the
// weights of some runs of a row. The weights replace the scores there, as f16. The sums over the
// columns stay in matrices. Blocks that a boolean mask excludes entirely are skipped. Rows are
// those of q; for dk and dv they are those of k, and columns are those of q.
#include <algorithm>
#include <array>
#include <bit>

#include "codegen/wgsl/attention/attention.h"

namespace tensorgrad::wgsl {
namespace {

constexpr std::array<int, 4> kSubgroups = {8, 4, 2, 1};  // the first that fits
constexpr std::array<int, 3> kColumns = {32, 16, 8};     // the first that fits
// The weights of the forward pass are relative to a maximum of the scores of a row. It is raised,
// and the results are rescaled, only if a score exceeds it by more than this. So weights are at
// most exp(4), and in f16 a factor of dropout may be up to 1000.
constexpr const char* kGrowth = "4.0f";
constexpr std::int64_t kPad = 16;  // bytes of padding per line, to avoid bank conflicts
constexpr const char* kLowest = "-3.4028234e38f";

std::string number(std::int64_t i) { return std::to_string(i); }

// Distance of lines of f16 or f32, in elements, in an array of vec4<u32>.
std::int64_t pitch_of_halves(std::int64_t width) { return width + kPad / 2; }
std::int64_t pitch_of_floats(std::int64_t width) { return width + kPad / 4; }

class SubgroupMatrixAttention : private AttentionParts {
 public:
  using AttentionParts::AttentionParts;

  bool write(Shader& shader);

 private:
  [[nodiscard]] bool takes() const;
  [[nodiscard]] int block_rows() const { return subgroups_ * unit_.m; }
  [[nodiscard]] int threads() const { return subgroups_ * unit_.subgroup; }
  // The threads that compute the weights of a row, and the runs of unit_.k columns per thread.
  [[nodiscard]] int row_threads() const { return unit_.subgroup / unit_.m; }
  [[nodiscard]] int runs() const { return columns_ / unit_.k / row_threads(); }
  [[nodiscard]] std::int64_t work_vectors(int columns, std::int64_t width) const;
  [[nodiscard]] std::int64_t bytes(int columns) const;
  [[nodiscard]] bool pick();
  [[nodiscard]] std::string scale() {
    return module_.constant(DType::kF32,
                            std::bit_cast<std::uint32_t>(static_cast<float>(s_.scale)));
  }

  void write_eight(const std::string& operand);
  // Lines of an operand, stored as f16 in an array.
  struct Lines {
    std::string operand, array;
    std::int64_t width;
    int count;

    [[nodiscard]] int each(int threads) const;
  };
  void fetch(Scope& scope, const Lines& lines, const std::string& first,
             const std::string& var) const;
  void keep(Scope& scope, const Lines& lines) const;
  void hold_rows(Scope& scope, const std::string& name, const std::string& operand,
                 const std::string& array, std::int64_t width);
  void write_scores(Scope& scope, const std::string& rows, const std::string& columns,
                    const std::string& into, std::int64_t width) const;
  void declare(Scope& scope, const std::string& name, std::int64_t width) const;
  void hold_weights(Scope& scope, const std::string& weights) const;
  void add_products(Scope& scope, const std::string& name, const std::string& columns,
                    std::int64_t width) const;
  void write_sums(Scope& scope, const std::string& name, const std::string& weights,
                  const std::string& columns, std::int64_t width) const;
  void write_rescaling(Scope& scope);
  // Returns the sum of `lanes` over the threads of a row; with one such thread, `sum`.
  [[nodiscard]] std::string sum_of_lanes() const {
    if (row_threads() == 1) return "sum";
    std::string total;
    for (int t = 0; t < row_threads(); ++t)
      total += (t > 0 ? " + lanes[row * " : "(lanes[row * ") + u32_literal(row_threads()) + " + " +
               u32_literal(t) + "]";
    return total + ")";
  }
  void stage(Scope& scope, const std::string& name, const std::string& array, std::int64_t first,
             std::int64_t width) const;
  void store(Scope& scope, int which, const std::string& name, std::int64_t width,
             const std::string& factor);
  std::string in_range(Scope& scope, int v);
  void write_seen(Scope& scope);
  void write_score(Scope& scope, int r, int v);
  std::string of_pairs(const std::string& name, int v) const;
  std::string vector_of(const std::string& function, int v, const char* type = "f32") const;
  void write_forward(Scope& scope);
  void write_backward(Scope& scope);

  // Loops over blocks of columns. The columns of the next block are prefetched.
  template <class Body>
  void over_columns(Scope& scope, const std::string& first, const std::array<Lines, 2>& lines,
                    const Body& body) {
    std::string end = u32_literal(columns());
    if (s_.causal && !keys())
      end = "min(" + end + ", row_start + " + u32_literal(block_rows()) + ")";
    scope.line("let end = " + end + ";");
    Scope loop(&scope);
    if (truth_mask()) {  // the next block may be skipped
      scope.line("if (local == 0u) { atomicStore(&tiles_seen[0], 0u); }");
      loop.line("workgroupBarrier();");
      write_seen(loop);
      Scope open(&loop);
      for (const Lines& each : lines) fetch(open, each, "col_start", "let ");
      for (const Lines& each : lines) keep(open, each);
      body(open, [] {});
      loop.block("if (workgroupUniformLoad(&last_seen[0]) > col_start)", open);
    } else {
      for (const Lines& each : lines) fetch(scope, each, first, "var ");
      loop.line("workgroupBarrier();");
      for (const Lines& each : lines) keep(loop, each);
      body(loop, [&] {
        for (const Lines& each : lines)
          fetch(loop, each, "col_start + " + u32_literal(columns_), "");
      });
    }
    scope.block("for (var col_start = " + first +
                    "; col_start < end; col_start += " + u32_literal(columns_) + ")",
                loop);
  }

  // Calls `body` for every four columns of each of a thread's runs. Declares `run`, the index of
  // the run, `at`, its first vector in an array of scores, and `col`, its first column.
  template <class Body>
  void over_columns_of_runs(Scope& scope, const Body& body) {
    for (int r = 0; r < runs(); ++r) {
      Scope run(&scope);
      run.line("let run = row_lane + " + u32_literal(r * row_threads()) + ";");
      run.line("let at = row * " + u32_literal(pitch_of_floats(columns_) / 4) + " + run * " +
               u32_literal(unit_.k / 4) + ";");
      run.line("let col = col_start + run * " + u32_literal(unit_.k) + ";");
      for (int v = 0; v < unit_.k / 4; ++v) body(run, r, v);
      scope.block("", run);
    }
  }
  template <class Body>
  void over_runs(Scope& scope, const Body& body) {
    over_columns_of_runs(scope, [&](Scope& run, int r, int v) {
      write_score(run, r, v);
      body(run, v);
    });
  }

  const SubgroupMatrix& unit_ = options_.subgroup_matrix;
  int subgroups_ = 0, columns_ = 0;  // per block
};

bool SubgroupMatrixAttention::takes() const {
  if (!unit_.present() || !s_.half || options_.attention_columns > 0 ||
      options_.subgroup_matrix_tile < 0)
    return false;
  if (s_.depth % unit_.k != 0 || s_.width % unit_.k != 0 || s_.depth % unit_.n != 0 ||
      s_.width % unit_.n != 0)
    return false;
  if (unit_.subgroup % unit_.m != 0) return false;
  for (const AttentionInput which :
       {AttentionInput::kQ, AttentionInput::kK, AttentionInput::kV, AttentionInput::kDy}) {
    if (has(which) && !is_half(opaque_.input(which))) return false;
  }
  return true;
}

// Size of a work array. In turn, it holds the rows during their load into registers, the scores,
// and as many columns of the results.
std::int64_t SubgroupMatrixAttention::work_vectors(int columns, std::int64_t width) const {
  return block_rows() * std::max(pitch_of_floats(columns) / 4, pitch_of_halves(width) / 8);
}

std::int64_t SubgroupMatrixAttention::bytes(int columns) const {
  const std::int64_t lines = pitch_of_halves(s_.depth) + pitch_of_halves(s_.width);
  const std::int64_t wide = std::max(s_.depth, s_.width);
  std::int64_t all = 2 * columns * lines;
  all += 16 * (forward() ? 1 : 2) * work_vectors(columns, wide);
  all += truth_mask() ? 8 : 0;
  all += forward() ? 8 : 0;  // whether to rescale
  return all + 4 * (forward() ? threads() : keys() ? 2 * columns : 0);
}

bool SubgroupMatrixAttention::pick() {
  for (const int subgroups : kSubgroups) {
    subgroups_ = subgroups;
    const bool idle = subgroups > 1 && block_rows() / 2 >= rows();
    if (idle || threads() > options_.max_threads) continue;
    for (const int columns : kColumns) {
      const bool runs_fit = columns % unit_.n == 0 && columns % (unit_.k * row_threads()) == 0;
      if (!runs_fit || columns > threads() || bytes(columns) > options_.max_workgroup_bytes)
        continue;
      columns_ = columns;
      return true;
    }
  }
  return false;
}

// Writes fn NAME_eight(p, i, at), which returns a vector of eight f16 of line i.
void SubgroupMatrixAttention::write_eight(const std::string& operand) {
  const std::string line = operand + "_line(p, i, at * 2u", name = operand + "_eight";
  module_.function(name, "fn " + name + "(p: u32, i: u32, at: u32) -> vec4<u32> {\n  let x = " +
                             line + ");\n  let y = " + line +
                             " + 1u);\n  return vec4<u32>(bitcast<vec2<u32>>(vec4<f16>(x)), "
                             "bitcast<vec2<u32>>(vec4<f16>(y)));\n}\n");
}

int SubgroupMatrixAttention::Lines::each(int threads) const {
  return static_cast<int>(ceil_div(count * (width / 8), threads));
}

// Loads a thread's vectors of the lines from `first` on into registers.
void SubgroupMatrixAttention::fetch(Scope& scope, const Lines& lines, const std::string& first,
                                    const std::string& var) const {
  const std::string n = u32_literal(lines.width / 8);
  for (int j = 0; j < lines.each(threads()); ++j) {
    const std::string e = "(local + " + u32_literal(j * threads()) + ")";
    scope.line(var + "next_" + lines.operand + number(j) + " = " + lines.operand + "_eight(p, " +
               first + " + " + e + " / " + n + ", " + e + " % " + n + ");");
  }
}

void SubgroupMatrixAttention::keep(Scope& scope, const Lines& lines) const {
  const std::int64_t vectors = lines.width / 8, all = lines.count * vectors;
  const std::string n = u32_literal(vectors);
  for (int j = 0; j < lines.each(threads()); ++j) {
    const std::string e = "(local + " + u32_literal(j * threads()) + ")";
    const std::string put = lines.array + "[" + e + " / " + n + " * " +
                            u32_literal(pitch_of_halves(lines.width) / 8) + " + " + e + " % " + n +
                            "] = next_" + lines.operand + number(j) + ";";
    const bool whole = std::int64_t{j + 1} * threads() <= all;
    scope.line(whole ? put : "if (" + e + " < " + u32_literal(all) + ") { " + put + " }");
  }
}

// Declares NAMEk: the subgroup's rows of an operand, as left matrices.
void SubgroupMatrixAttention::hold_rows(Scope& scope, const std::string& name,
                                        const std::string& operand, const std::string& array,
                                        std::int64_t width) {
  const Lines lines = {operand, array, width, block_rows()};
  Scope load(&scope);
  fetch(load, lines, "row_start", "let ");
  keep(load, lines);
  scope.block("", load);
  scope.line("workgroupBarrier();");
  const std::int64_t pitch = pitch_of_halves(width);
  for (std::int64_t k = 0; k < width / unit_.k; ++k) {
    scope.line("let " + name + number(k) + " = " +
               load_matrix(unit_, MatrixSide::kLeft, array,
                           "sub_row * " + u32_literal(pitch) + " + " + u32_literal(k * unit_.k),
                           false, pitch) +
               ";");
  }
}

// Computes rows times columns, as f32.
void SubgroupMatrixAttention::write_scores(Scope& scope, const std::string& rows,
                                           const std::string& columns, const std::string& into,
                                           std::int64_t width) const {
  const std::int64_t pitch = pitch_of_halves(width), out = pitch_of_floats(columns_);
  for (int c = 0; c < columns_; c += unit_.n) {
    Scope part(&scope);
    part.line("var s = " + result_type(unit_) + "();");
    for (std::int64_t k = 0; k < width / unit_.k; ++k) {
      part.line("s = subgroupMatrixMultiplyAccumulate(" + rows + number(k) + ", " +
                load_matrix(unit_, MatrixSide::kRight, columns,
                            u32_literal(c * pitch + k * unit_.k), true, pitch) +
                ", s);");
    }
    part.line(
        store_matrix(into, "sub_row * " + u32_literal(out) + " + " + u32_literal(c), "s", out));
    scope.block("", part);
  }
}

void SubgroupMatrixAttention::declare(Scope& scope, const std::string& name,
                                      std::int64_t width) const {
  for (std::int64_t j = 0; j < width / unit_.n; ++j)
    scope.line("var " + name + number(j) + " = " + result_type(unit_) + "();");
}

// Declares wG, the subgroup's weights as left matrices. The weights of a run begin where its scores
// began.
void SubgroupMatrixAttention::hold_weights(Scope& scope, const std::string& weights) const {
  const std::int64_t line = 2 * pitch_of_floats(columns_);
  for (int g = 0; g < columns_ / unit_.k; ++g) {
    scope.line("let w" + number(g) + " = " +
               load_matrix(unit_, MatrixSide::kLeft, weights,
                           "sub_row * " + u32_literal(line) + " + " + u32_literal(2 * unit_.k * g),
                           false, line) +
               ";");
  }
}

// NAMEj += weights times columns.
void SubgroupMatrixAttention::add_products(Scope& scope, const std::string& name,
                                           const std::string& columns, std::int64_t width) const {
  const std::int64_t pitch = pitch_of_halves(width);
  for (int g = 0; g < columns_ / unit_.k; ++g) {
    for (std::int64_t j = 0; j < width / unit_.n; ++j) {
      const std::string sum = name + number(j);
      scope.line(sum + " = subgroupMatrixMultiplyAccumulate(w" + number(g) + ", " +
                 load_matrix(unit_, MatrixSide::kRight, columns,
                             u32_literal(g * unit_.k * pitch + j * unit_.n), false, pitch) +
                 ", " + sum + ");");
    }
  }
}

void SubgroupMatrixAttention::write_sums(Scope& scope, const std::string& name,
                                         const std::string& weights, const std::string& columns,
                                         std::int64_t width) const {
  Scope part(&scope);
  hold_weights(part, weights);
  add_products(part, name, columns, width);
  scope.block("", part);
}

// Stores columns `first` to `first` + columns_ of results in an array.
void SubgroupMatrixAttention::stage(Scope& scope, const std::string& name, const std::string& array,
                                    std::int64_t first, std::int64_t width) const {
  const std::int64_t pitch = pitch_of_floats(columns_);
  for (std::int64_t j = first; j < std::min(first + columns_, width); j += unit_.n) {
    scope.line(store_matrix(array,
                            "sub_row * " + u32_literal(pitch) + " + " + u32_literal(j - first),
                            name + number(j / unit_.n), pitch));
  }
}

void SubgroupMatrixAttention::store(Scope& scope, int which, const std::string& name,
                                    std::int64_t width, const std::string& factor) {
  write_result_of_four(which, rows(), width);
  for (std::int64_t first = 0; first < width; first += columns_) {
    if (first > 0) scope.line("workgroupBarrier();");
    stage(scope, name, "work0", first, width);
    scope.line("workgroupBarrier();");
    const std::int64_t piece = std::min<std::int64_t>(columns_, width - first);
    const std::string n = u32_literal(piece / 4);
    Scope each(&scope);
    each.line("let line = e / " + n + ";");
    each.line("let i = row_start + line;");
    each.line("if (i < " + u32_literal(rows()) + ") { store" + number(which) + "_four(p, i, " +
              u32_literal(first) + " + e % " + n + " * 4u, bitcast<vec4<f32>>(work0[line * " +
              u32_literal(pitch_of_floats(columns_) / 4) + " + e % " + n + "])" + factor + "); }");
    scope.block("for (var e = local; e < " + u32_literal(block_rows() * piece / 4) +
                    "; e += " + u32_literal(threads()) + ")",
                each);
  }
}

// Declares jV, four columns, and returns the condition for which of their scores are in range and
// not causally masked.
std::string SubgroupMatrixAttention::in_range(Scope& scope, int v) {
  const std::string j = "j" + number(v);
  scope.line("let " + j + " = vec4<u32>(col) + vec4<u32>(" + u32_literal(4 * v) + ", " +
             u32_literal(4 * v + 1) + ", " + u32_literal(4 * v + 2) + ", " +
             u32_literal(4 * v + 3) + ");");
  std::string test = "(" + j + " < vec4<u32>(" + u32_literal(columns()) + "))";
  if (rows() % block_rows() != 0) test += " & vec4<bool>(i < " + u32_literal(rows()) + ")";
  if (s_.causal)
    test += keys() ? " & (vec4<u32>(i) <= " + j + ")" : " & (" + j + " <= vec4<u32>(i))";
  return test;
}

// Declares seenR, with a bit for each column of run R that a boolean mask includes. Afterwards,
// `last_seen` exceeds col_start if any thread has such a bit.
void SubgroupMatrixAttention::write_seen(Scope& scope) {
  module_.shared("tiles_seen", "atomic<u32>", 1, 4);
  module_.shared("last_seen", "u32", 1, 4);
  std::string any;
  for (int r = 0; r < runs(); ++r) {
    scope.line("var seen" + number(r) + " = 0u;");
    any += (r > 0 ? " | seen" : "seen") + number(r);
  }
  over_columns_of_runs(scope, [&](Scope& run, int r, int v) {
    const std::string n = number(v), range = in_range(run, v);
    run.line("let bits" + n + " = select(vec4<u32>(), vec4<u32>(1u, 2u, 4u, 8u), " + range + " & " +
             vector_of("mask_at", v, "bool") + ");");
    run.line("seen" + number(r) + " |= (bits" + n + ".x | bits" + n + ".y | bits" + n +
             ".z | bits" + n + ".w) << " + u32_literal(4 * v) + ";");
  });
  scope.line("if ((" + any + ") != 0u) { atomicMax(&tiles_seen[0], col_start + 1u); }");
  scope.line("workgroupBarrier();");
  scope.line("if (local == 0u) { last_seen[0] = atomicLoad(&tiles_seen[0]); }");
}

// Returns four values of fn FUNCTION(p, query, key); indices out of range are clamped.
std::string SubgroupMatrixAttention::vector_of(const std::string& function, int v,
                                               const char* type) const {
  std::string all;
  for (int c = 0; c < 4; ++c) {
    const std::string j = "j" + number(v) + "." + "xyzw"[c];
    const std::string jj = "min(" + j + ", " + u32_literal(columns() - 1) + ")";
    const std::string ii = "min(i, " + u32_literal(rows() - 1) + ")";
    all +=
        (c > 0 ? ", " : "") + function + "(p, " + (keys() ? jj + ", " + ii : ii + ", " + jj) + ")";
  }
  return "vec4<" + std::string(type) + ">(" + all + ")";
}

// Declares liveV and sV.
void SubgroupMatrixAttention::write_score(Scope& scope, int r, int v) {
  const std::string n = number(v), range = in_range(scope, v);
  const std::string seen = "(vec4<u32>(seen" + number(r) + " >> " + u32_literal(4 * v) +
                           ") & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>()";
  scope.line("let live" + n + " = " + (truth_mask() ? seen : range) + ";");
  scope.line("var s" + n + " = bitcast<vec4<f32>>(work0[at + " + u32_literal(v) + "]) * " +
             scale() + ";");
  if (has(AttentionInput::kMask) && !truth_mask())
    scope.line("s" + n + " += " + vector_of("mask_at", v) + ";");
}

// Returns NAMEv and its successor as eight f16.
std::string SubgroupMatrixAttention::of_pairs(const std::string& name, int v) const {
  return "vec4<u32>(bitcast<vec2<u32>>(vec4<f16>(" + name + number(v) +
         ")), bitcast<vec2<u32>>(vec4<f16>(" + name + number(v + 1) + ")))";
}

// Multiplies the results by `shrink` of their rows, by way of work0.
void SubgroupMatrixAttention::write_rescaling(Scope& scope) {
  const std::int64_t pitch = pitch_of_floats(columns_);
  const std::string begin = "row * " + u32_literal(pitch / 4);
  for (std::int64_t first = 0; first < s_.width; first += columns_) {
    stage(scope, "o", "work0", first, s_.width);
    scope.line("workgroupBarrier();");
    Scope each(&scope);
    each.line("work0[e] = bitcast<vec4<u32>>(bitcast<vec4<f32>>(work0[e]) * shrink);");
    scope.block("for (var e = " + begin + " + row_lane; e < " + begin + " + " +
                    u32_literal(std::min<std::int64_t>(columns_, s_.width - first) / 4) +
                    "; e += " + u32_literal(row_threads()) + ")",
                each);
    scope.line("workgroupBarrier();");
    for (std::int64_t j = first; j < std::min(first + columns_, s_.width); j += unit_.n) {
      scope.line("o" + number(j / unit_.n) + " = subgroupMatrixLoad<" + result_type(unit_) +
                 ", row_major>(&work0, (sub_row * " + u32_literal(pitch) + " + " +
                 u32_literal(j - first) + ") / 4u, " + u32_literal(pitch / 4) + ");");
    }
    scope.line("workgroupBarrier();");
  }
}

void SubgroupMatrixAttention::write_forward(Scope& scope) {
  const std::string step = u32_literal(row_threads());
  module_.shared("lanes", "f32", threads(), 4);
  module_.shared("grown", "atomic<u32>", 1, 4);
  module_.shared("rescaled", "u32", 1, 4);
  hold_rows(scope, "x", "q", "work0", s_.depth);
  declare(scope, "o", s_.width);
  scope.line(std::string("var top = ") + kLowest + ";");
  scope.line("var sum = 0.0f;");
  scope.line("if (local == 0u) { atomicStore(&grown[0], 0u); }");
  const std::array<Lines, 2> lines = {
      {{"k", "columns0", s_.depth, columns_}, {"v", "columns1", s_.width, columns_}}};
  over_columns(scope, "0u", lines, [&](Scope& loop, const auto& fetch_next) {
    loop.line("workgroupBarrier();");
    fetch_next();
    write_scores(loop, "x", "columns0", "work0", s_.depth);
    loop.line("workgroupBarrier();");
    loop.line("var most = top;");
    over_runs(loop, [&](Scope& run, int v) {
      const std::string n = number(v);
      run.line("let m" + n + " = select(vec4<f32>(" + kLowest + "), s" + n + ", live" + n + ");");
      run.line("most = max(most, max(max(m" + n + ".x, m" + n + ".y), max(m" + n + ".z, m" + n +
               ".w)));");
    });
    if (row_threads() > 1) {
      loop.line("lanes[local] = most;");
      loop.line("workgroupBarrier();");
      for (int t = 0; t < row_threads(); ++t)
        loop.line("most = max(most, lanes[row * " + step + " + " + u32_literal(t) + "]);");
    }
    loop.line(std::string("let grows = most > top + ") + kGrowth + ";");
    loop.line("if (grows && col_start > 0u) { atomicStore(&grown[0], 1u); }");
    loop.line("most = select(top, most, grows);");
    loop.line("let shrink = exp(top - most);");
    loop.line("top = most;");
    loop.line("sum *= shrink;");
    over_runs(loop, [&](Scope& run, int v) {
      const std::string n = number(v);
      run.line("var w" + n + " = select(vec4<f32>(), exp(s" + n + " - vec4<f32>(top)), live" + n +
               ");");
      run.line("sum += dot(w" + n + ", vec4<f32>(1.0f));");
      if (has(AttentionInput::kKeep)) run.line("w" + n + " *= " + vector_of("keep_at", v) + ";");
      if (v % 2 == 1)
        run.line("work0[at + " + u32_literal(v / 2) + "] = " + of_pairs("w", v - 1) + ";");
    });
    loop.line("workgroupBarrier();");
    loop.line("if (local == 0u) { rescaled[0] = atomicExchange(&grown[0], 0u); }");
    hold_weights(loop, "work0");
    Scope rescaling(&loop);
    write_rescaling(rescaling);
    loop.block("if (workgroupUniformLoad(&rescaled[0]) != 0u)", rescaling);
    add_products(loop, "o", "columns1", s_.width);
  });
  scope.line("workgroupBarrier();");
  scope.line("lanes[local] = sum;");
  scope.line("workgroupBarrier();");
  scope.line("let total = " + sum_of_lanes() + ";");
  scope.line("let nothing = total == 0.0f;");
  scope.line("workgroupBarrier();");
  scope.line("if (row_lane == 0u) { lanes[row] = select(1.0f / total, 0.0f, nothing); }");
  write_result(1, s_.rows, 1);
  scope.line("if (row_lane == 0u && i < " + u32_literal(s_.rows) +
             ") { store1(p, i, 0u, select(top + log(total), 0.0f, nothing)); }");
  store(scope, 0, "o", s_.width, " * lanes[line]");
}

void SubgroupMatrixAttention::write_backward(Scope& scope) {
  const std::string x0 = keys() ? "k" : "q", x1 = keys() ? "v" : "dy";
  const std::string y0 = keys() ? "q" : "k", y1 = keys() ? "dy" : "v";
  hold_rows(scope, "x", x0, "work0", s_.depth);
  hold_rows(scope, "z", x1, "work1", s_.width);
  declare(scope, "d", s_.depth);
  if (keys()) declare(scope, "g", s_.width);
  std::string first = "0u";
  if (s_.causal && keys())
    first = "row_start / " + u32_literal(columns_) + " * " + u32_literal(columns_);
  // Results of the forward pass for each query.
  const std::array<std::string, 2> left = {"lse", "delta"};
  if (!keys()) {
    scope.line("let query = min(i, " + u32_literal(s_.rows - 1) + ");");
    for (const std::string& name : left)
      scope.line("let " + name + " = vec4<f32>(" + name + "_at(p, query, 0u));");
  }
  const std::array<Lines, 2> lines = {
      {{y0, "columns0", s_.depth, columns_}, {y1, "columns1", s_.width, columns_}}};
  over_columns(scope, first, lines, [&](Scope& loop, const auto& fetch_next) {
    if (keys()) {
      Scope some(&loop);
      some.line("let query = min(col_start + local, " + u32_literal(s_.rows - 1) + ");");
      for (const std::string& name : left) {
        module_.shared(name + "s", "f32", columns_, 4);
        some.line(name + "s[local] = " + name + "_at(p, query, 0u);");
      }
      loop.block("if (local < " + u32_literal(columns_) + ")", some);
    }
    loop.line("workgroupBarrier();");
    fetch_next();
    write_scores(loop, "x", "columns0", "work0", s_.depth);
    write_scores(loop, "z", "columns1", "work1", s_.width);
    loop.line("workgroupBarrier();");
    over_runs(loop, [&](Scope& run, int v) {
      const std::string n = number(v);
      const auto of_query = [&](const std::string& name) {
        if (!keys()) return name;
        std::string all;
        for (int c = 0; c < 4; ++c) {
          all += (c > 0 ? ", " : "") + name + "s[run * " + u32_literal(unit_.k) + " + " +
                 u32_literal(4 * v + c) + "]";
        }
        return "vec4<f32>(" + all + ")";
      };
      run.line("var w" + n + " = select(vec4<f32>(), exp(s" + n + " - " + of_query("lse") +
               "), live" + n + ");");
      run.line("var t" + n + " = bitcast<vec4<f32>>(work1[at + " + u32_literal(v) + "]);");
      if (has(AttentionInput::kKeep)) {
        run.line("let keep" + n + " = " + vector_of("keep_at", v) + ";");
        run.line("t" + n + " *= keep" + n + ";");
      }
      // Masked elements may have any value, including infinity.
      run.line("t" + n + " = select(vec4<f32>(), w" + n + " * (t" + n + " - " + of_query("delta") +
               "), live" + n + ");");
      if (has(AttentionInput::kKeep)) run.line("w" + n + " *= keep" + n + ";");
      if (v % 2 == 0) return;
      const std::string at = "[at + " + u32_literal(v / 2) + "] = ";
      if (keys()) run.line("work0" + at + of_pairs("w", v - 1) + ";");
      run.line((keys() ? "work1" : "work0") + at + of_pairs("t", v - 1) + ";");
    });
    loop.line("workgroupBarrier();");
    if (keys()) write_sums(loop, "g", "work0", "columns1", s_.width);
    write_sums(loop, "d", keys() ? "work1" : "work0", "columns0", s_.depth);
  });
  scope.line("workgroupBarrier();");
  store(scope, 0, "d", s_.depth, " * " + scale());
  if (!keys()) return;
  scope.line("workgroupBarrier();");
  store(scope, 1, "g", s_.width, "");
}

bool SubgroupMatrixAttention::write(Shader& shader) {
  if (!takes() || !pick()) return false;
  write_inputs(true);
  for (const char* const operand : {"q", "k", "v"}) write_eight(operand);
  if (has(AttentionInput::kDy)) write_eight("dy");
  const std::int64_t wide = std::max(s_.depth, s_.width);
  const auto array = [&](const std::string& name, std::int64_t count) {
    module_.shared(name, "vec4<u32>", count, 16);
  };
  array("columns0", columns_ * pitch_of_halves(s_.depth) / 8);
  array("columns1", columns_ * pitch_of_halves(s_.width) / 8);
  array("work0", work_vectors(columns_, wide));
  if (!forward()) array("work1", work_vectors(columns_, wide));
  const std::int64_t down = ceil_div(rows(), block_rows());
  const std::int64_t groups = window_.count * down;
  Scope scope;
  open_rows(scope, Tile{1, threads(), true}, groups, "unit");
  // The last rows of a causal mask take longest, so they run first.
  scope.line("let row_start = (" + u32_literal(down - 1) + " - unit % " + u32_literal(down) +
             ") * " + u32_literal(block_rows()) + ";");
  scope.line("let p = unit / " + u32_literal(down) + " + " + u32_literal(window_.first) + ";");
  scope.line("let sub_row = local / " + u32_literal(unit_.subgroup) + " * " + u32_literal(unit_.m) +
             ";");
  scope.line("let row = local / " + u32_literal(row_threads()) + ";");
  scope.line("let row_lane = local % " + u32_literal(row_threads()) + ";");
  scope.line("let i = row_start + row;");
  forward() ? write_forward(scope) : write_backward(scope);
  shader = make_shader(module_, scope, threads(), groups);
  shader.uses_subgroup_matrix = true;
  return true;
}

}  // namespace

bool write_attention_by_subgroup_matrix(const Launch& launch, const WgslOptions& options,
                                        Shader& shader) {
  return options.subgroup_matrix.present() &&
         SubgroupMatrixAttention(launch, options).write(shader);
}

}  // namespace tensorgrad::wgsl
