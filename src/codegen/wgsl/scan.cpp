// SPDX-License-Identifier: MIT
// Scan: out[p,i,q] = finish(h of line (p, q) after its elements up to i). Several lanes may share a
// line:
// - Each lane scans its own stretch from the identity.
// - A parallel prefix over the lanes, by doubling strides in workgroup memory (Kogge and Stone
//   1973), computes the value before each stretch.
// - Each lane scans its stretch again from that value. A single lane needs only this scan.
//
// Long stretches of f32 are summed in blocks and in blocks of blocks, so that rounding errors grow
// with the size of one level only.
#include <algorithm>

#include "codegen/wgsl/parts.h"

namespace tensorgrad::wgsl {
namespace {

constexpr std::int64_t kShortStretch = 8;
// Longer stretches are summed in blocks. Block size, blocks per block of blocks, and number of
// these are all about the cube root of the length.
constexpr std::int64_t kUnblocked = 64;

bool is_arg(const ScanLaunch& scan) {
  return scan.op == ScanOp::kArgMax || scan.op == ScanOp::kArgMin;
}

Tile scan_tile(const ScanLaunch& scan, std::int64_t lines, const WgslOptions& options) {
  const int most = std::min(256, floor_pow2(options.max_threads));
  Tile tile;
  // If lines are contiguous or nearly so, neighboring threads share a line; otherwise each has its
  // own.
  tile.lanes_first = scan.post < 8;
  tile.lanes = floor_pow2(std::max<std::int64_t>(1, options.gpu.full_threads / lines));
  if (tile.lanes_first) tile.lanes = std::max(tile.lanes, 16);
  tile.lanes = std::min(tile.lanes, ceil_pow2(ceil_div(scan.count, kShortStretch)));
  if (options.lanes > 0) tile.lanes = options.lanes;
  tile.lanes = std::clamp(tile.lanes, 1, most);
  tile.rows = std::max(1, std::min(tile.lanes >= 64 ? 256 : 64, most) / tile.lanes);
  if (tile.lanes == 1) tile.rows = std::min(64, most);
  return tile;
}

class ScanWriter {
 public:
  ScanWriter(const Launch& launch, const ScanLaunch& scan, const WgslOptions& options)
      : launch_(launch),
        scan_(scan),
        window_(window_of(launch)),
        tile_(scan_tile(scan, window_.count * scan.post, options)),
        type_(register_type(scan.line().instrs.back().dtype)),
        module_(launch) {}

  Shader write() {
    const Domain domain = {{"p", scan_.pre}, {"i", scan_.count}, {"q", scan_.post}};
    if (!scan_.a.instrs.empty()) write_source(module_, "a_at", scan_.a, domain);
    if (!scan_.b.instrs.empty()) write_source(module_, "b_at", scan_.b, domain);
    write_finish(module_, launch_, domain, scan_.dtype());
    const std::int64_t lines = window_.count * scan_.post;
    const Domain line = {{"line", scan_.pre * scan_.post}};
    const std::string live = open_rows(scope_, tile_, lines, "line", window_.first * scan_.post);
    scope_.line("let q = " + coordinate(scope_, line, 1, scan_.post) + ";");
    scope_.line("let p = " + coordinate(scope_, line, scan_.post, scan_.pre) + ";");
    scope_.line("var h = " + nothing() + ";");
    if (is_arg(scan_)) scope_.line("var at = 0u;");
    begin_ = "0u";
    end_ = u32_literal(scan_.count);
    const std::int64_t stretch = ceil_div(scan_.count, tile_.lanes);
    if (scan_.op == ScanOp::kSum && type_ == "f32" && stretch > kUnblocked) begin_blocks(stretch);
    if (tile_.lanes > 1) share();
    Scope last(&scope_);
    add_step(last);
    const std::string finish = "finish(p, t, q, " + result() + ");";
    last.line(live.empty() ? finish : "if (" + live + ") { " + finish + " }");
    loop(scope_, last);
    return make_shader(module_, scope_, tile_.threads(), ceil_div(lines, tile_.rows));
  }

 private:
  std::string nothing() {
    const DType dtype = scan_.line().instrs.back().dtype;
    if (scan_.op == ScanOp::kProduct) return type_ + "(1)";
    if (!is_arg(scan_)) return type_ + "(0)";
    const bool max = scan_.op == ScanOp::kArgMax;
    if (dtype == DType::kU32) return max ? "0u" : "0xffffffffu";
    if (dtype == DType::kI32) return module_.constant(dtype, max ? 0x80000000u : 0x7fffffffu);
    return module_.constant(dtype, max ? 0xff800000u : 0x7f800000u);
  }

  // Returns the argument of `finish`.
  [[nodiscard]] std::string result() const {
    if (is_arg(scan_)) return "i32(at)";
    return scan_.op == ScanOp::kSum && tile_.lanes > 1 ? "base + " + total() : total();
  }

  void begin_blocks(std::int64_t stretch) {
    for (block_ = 4; block_ * block_ * block_ < stretch;) block_ *= 2;
    scope_.line("var block = 0.0f;");
    scope_.line("var blocks = 0.0f;");
  }

  // Returns the lane's result over its own elements so far.
  [[nodiscard]] std::string total() const { return block_ > 0 ? "(blocks + (block + h))" : "h"; }

  // Writes step(). At the end of a block, or block of blocks, adds its sum to the next level.
  void add_step(Scope& scope) {
    step(scope);
    if (block_ == 0) return;
    const std::string done = "(i - " + begin_ + " + 1u) % ";
    Scope one(&scope), all(&one);
    one.line("block += h;");
    one.line("h = 0.0f;");
    all.line("blocks += block;");
    all.line("block = 0.0f;");
    one.block("if (" + done + u32_literal(block_ * block_) + " == 0u)", all);
    scope.block("if (" + done + u32_literal(block_) + " == 0u)", one);
  }

  // Returns the condition that `later` replaces `best`. Of equal values, and of NaNs, the last
  // wins.
  std::string reaches(const std::string& later, const std::string& best) {
    const std::string compare = scan_.op == ScanOp::kArgMax ? " >= " : " <= ";
    const bool real = type_ == "f32";
    if (real) module_.use_helpers("tg_isnan(x)");
    const std::string test = later + compare + best;
    return real ? "tg_isnan(" + later + ") || (!tg_isnan(" + best + ") && " + test + ")" : test;
  }

  // Writes scan step `i`, which processes element `t`.
  void step(Scope& scope) {
    scope.line(scan_.reverse ? "let t = " + u32_literal(scan_.count - 1) + " - i;" : "let t = i;");
    switch (scan_.op) {
      case ScanOp::kSum: scope.line("h += b_at(p, t, q);"); break;
      case ScanOp::kProduct: scope.line("h *= a_at(p, t, q);"); break;
      case ScanOp::kLinear: scope.line("h = a_at(p, t, q) * h + b_at(p, t, q);"); break;
      case ScanOp::kArgMax:
      case ScanOp::kArgMin:
        scope.line("let x = b_at(p, t, q);");
        scope.line("if (" + reaches("x", "h") + ") { h = x; at = t; }");
        break;
    }
  }

  void loop(Scope& scope, const Scope& body) const {
    scope.block("for (var i = " + begin_ + "; i < " + end_ + "; i++)", body);
  }

  // Divides the line among lanes. Sets h (and `at`) to the result of all previous lanes.
  void share() {
    const std::int64_t stretch = ceil_div(scan_.count, tile_.lanes);
    scope_.line("let begin = min(lane * " + u32_literal(stretch) + ", " + end_ + ");");
    scope_.line("let end = min(begin + " + u32_literal(stretch) + ", " + end_ + ");");
    begin_ = "begin";
    end_ = "end";
    const bool linear = scan_.op == ScanOp::kLinear;
    if (linear) scope_.line("var product = 1.0f;");
    Scope own(&scope_);
    add_step(own);
    if (linear) own.line("product *= a_at(p, t, q);");
    loop(scope_, own);
    if (block_ > 0) scope_.line("h = " + total() + ";");
    module_.shared("hs", type_, tile_.threads(), 4);
    if (linear) module_.shared("products", "f32", tile_.threads(), 4);
    if (is_arg(scan_)) module_.shared("places", "u32", tile_.threads(), 4);
    const std::string pitch = tile_.lanes_first ? "1u" : u32_literal(tile_.rows);
    write_doubling(pitch);
    // Sums restart from 0, and `base` is added last, which rounds less.
    const bool sum = scan_.op == ScanOp::kSum;
    const std::string from = sum ? "base" : "h";
    scope_.line((sum ? "var base = " : "h = ") + nothing() + ";");
    if (sum) scope_.line("h = base;");
    if (block_ > 0) {
      scope_.line("block = 0.0f;");
      scope_.line("blocks = 0.0f;");
    }
    Scope take(&scope_);
    take.line(from + " = hs[local - " + pitch + "];");
    if (is_arg(scan_)) take.line("at = places[local - " + pitch + "];");
    scope_.block("if (lane > 0u)", take);
  }

  void publish(Scope& scope) const {
    scope.line("hs[local] = h;");
    if (scan_.op == ScanOp::kLinear) scope.line("products[local] = product;");
    if (is_arg(scan_)) scope.line("places[local] = at;");
    scope.line("workgroupBarrier();");
  }

  // Afterwards each entry combines its lane and all previous ones.
  void write_doubling(const std::string& pitch) {
    publish(scope_);
    Scope round(&scope_), join(&round);
    join.line("let other = local - s * " + pitch + ";");
    switch (scan_.op) {
      case ScanOp::kSum: join.line("h = hs[other] + h;"); break;
      case ScanOp::kProduct: join.line("h = hs[other] * h;"); break;
      case ScanOp::kLinear:
        // Zero stays zero even if the product has overflowed.
        join.line("if (hs[other] != 0.0f) { h = product * hs[other] + h; }");
        join.line("product = products[other] * product;");
        break;
      case ScanOp::kArgMax:
      case ScanOp::kArgMin:
        join.line("if (!(" + reaches("h", "hs[other]") +
                  ")) { h = hs[other]; at = places[other]; }");
        break;
    }
    round.block("if (lane >= s)", join);
    round.line("workgroupBarrier();");
    publish(round);
    scope_.block("for (var s = 1u; s < " + u32_literal(tile_.lanes) + "; s = s << 1u)", round);
  }

  const Launch& launch_;
  const ScanLaunch& scan_;
  Window window_;
  Tile tile_;
  std::string type_;
  Module module_;
  Scope scope_;
  std::string begin_, end_;  // of the lane's stretch, in the order of the scan
  std::int64_t block_ = 0;   // elements of a block, a power of two; 0: no blocks
};

}  // namespace

Shader write_kind(const Launch& launch, const ScanLaunch& scan, const WgslOptions& options) {
  return ScanWriter(launch, scan, options).write();
}

}  // namespace tensorgrad::wgsl
