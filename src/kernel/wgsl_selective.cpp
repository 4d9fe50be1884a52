// SPDX-License-Identifier: MIT
// Selective scans (names as in ops/selective_scan.cpp). Forward and adjoint: a thread has all
// states of a channel, neighbours have neighbouring channels. Where there are few lines, the steps
// of one are shared by several lanes: each first finds what its own stretch makes of nothing, then,
// by doubling steps over the lanes, what it goes on from (an earlier pair (a1, b1) and a later one
// (a2, b2) make (a1 a2, a2 b1 + b2); the product of all a of a stretch is the exponential of A
// times the sum of delta), then goes over its stretch again. Backward: a workgroup has a segment of
// the steps and a block of channels, a thread four states of one channel, a chunk at a time: states
// are computed anew from the one before the chunk, and on the way back sums over states and over
// the block's channels are made in workgroup memory, in a fixed order.
#include <algorithm>
#include <functional>

#include "base/check.h"
#include "kernel/wgsl_parts.h"

namespace tensorgrad::wgsl {
namespace {

constexpr std::int64_t kChunk = SelectiveSizes::kChunk, kSegment = SelectiveSizes::kSegment;

// (e^z - 1) / z of four numbers, and its slope.
constexpr const char* kHoldFactor = R"(fn hold_factor(z: vec4<f32>) -> vec4<f32> {
  let small = abs(z) < vec4<f32>(0.25f);
  let far = select(z, vec4<f32>(1.0f), small);
  let near = 1.0f + z * (0.5f + z * (0.16666667f + z * (0.041666668f + z * (0.008333334f + z * 0.0013888889f))));
  return select((exp(far) - 1.0f) / far, near, small);
}
)";
constexpr const char* kHoldSlope = R"(fn hold_slope(z: vec4<f32>) -> vec4<f32> {
  let small = abs(z) < vec4<f32>(0.25f);
  let far = select(z, vec4<f32>(1.0f), small);
  let e = exp(far);
  let near = 0.5f + z * (0.33333334f + z * (0.125f + z * (0.033333335f + z * (0.0069444445f + z * 0.0011904762f))));
  return select((far * e - (e - 1.0f)) / (far * far), near, small);
}
)";

class SelectiveWriter {
 public:
  SelectiveWriter(const Launch& launch, const WgslOptions& options)
      : l_(launch),
        options_(options),
        s_(selective_sizes(launch)),
        window_(window_of(launch)),
        module_(launch) {}

  Shader write() {
    write_inputs();
    return l_.selective == SelectivePart::kBackward ? write_backward() : write_lines();
  }

 private:
  [[nodiscard]] bool has(SelectiveInput which) const { return !l_.input(which).instrs.empty(); }
  [[nodiscard]] bool forward() const { return l_.selective == SelectivePart::kForward; }

  void write_inputs() {
    using enum SelectiveInput;
    const std::int64_t n = s_.states, d = s_.channels;
    write_input(kU, "u_at", s_.batch, s_.length, d);
    write_input(kDelta, "delta_at", s_.batch, s_.length, d);
    write_input(kDy, "dy_at", s_.batch, s_.length, d);
    write_input(kBC, "gate_at", s_.batch, s_.length, 2 * n);
    write_input(kA, "rate_at", 1, n, d);
    write_input(kInitial, "initial_at", s_.batch, n, d);
    write_input(kStates, "state_at", s_.batch, s_.chunks() * n, d);
    write_input(kEnds, "end_at", s_.batch, s_.segments() * n, d);
    if (!l_.zero_order_hold) return;
    module_.function("hold_factor", kHoldFactor);
    module_.function("hold_slope", kHoldSlope);
  }

  void write_input(SelectiveInput which, const std::string& name, std::int64_t batch,
                   std::int64_t rows, std::int64_t columns) {
    if (!has(which)) return;
    write_source(module_, name, l_.input(which), {{"p", batch}, {"i", rows}, {"q", columns}});
  }

  // fn storeN(p, i, q, x), over [batch, rows, columns].
  void write_result(std::size_t which, std::int64_t rows, std::int64_t columns) {
    const Store& store = l_.stores.at(which);
    const Domain domain = {{"p", l_.batch}, {"i", rows}, {"q", columns}};
    Scope scope;
    const Place place = place_of(scope, domain, store.map);
    scope.line(module_.store(store.binding, DType::kF32, place.index, "x"));
    const std::string name = "store" + std::to_string(which);
    module_.function(name,
                     "fn " + name + "(p: u32, i: u32, q: u32, x: f32) {\n" + scope.text() + "}\n");
  }

  // step(scope, n) for each state: written out where they are few.
  void each_state(Scope& scope, const std::function<void(Scope&, const std::string&)>& step) const {
    if (s_.states > kMostWrittenOut) {
      Scope loop(&scope);
      step(loop, "n");
      scope.block("for (var n = 0u; n < " + u32_literal(s_.states) + "; n++)", loop);
      return;
    }
    for (std::int64_t n = 0; n < s_.states; ++n) {
      Scope one(&scope);
      step(one, u32_literal(n));
      scope.block("", one);
    }
  }

  // ---- forward and adjoint: lines of steps ----------------------------------------------------

  [[nodiscard]] Tile line_tile(std::int64_t lines) const {
    const int most = std::min(256, floor_pow2(options_.max_threads));
    Tile tile;
    tile.lanes_first = false;
    tile.lanes = floor_pow2(std::max<std::int64_t>(1, kFullGpu / lines));
    tile.lanes = std::min(tile.lanes, ceil_pow2(s_.chunks()));
    if (options_.lanes > 0) tile.lanes = options_.lanes;
    tile.lanes = std::clamp(tile.lanes, 1, most);
    tile.rows = std::max(1, std::min(tile.lanes >= 64 ? 256 : 64, most) / tile.lanes);
    return tile;
  }

  Shader write_lines() {
    const std::int64_t lines = window_.count * s_.channels;
    tile_ = line_tile(lines);
    if (forward()) {
      write_result(0, s_.length, s_.channels);
      write_result(1, s_.states, s_.channels);
      write_result(2, s_.chunks() * s_.states, s_.channels);
    } else {
      write_result(0, s_.segments() * s_.states, s_.channels);
    }
    live_ = open_rows(scope_, tile_, lines, "line", window_.first * s_.channels);
    const Domain line = {{"line", s_.batch * s_.channels}};
    scope_.line("let q = " + coordinate(scope_, line, 1, s_.channels) + ";");
    scope_.line("let p = " + coordinate(scope_, line, s_.channels, s_.batch) + ";");
    const std::string array = "array<f32, " + std::to_string(s_.states) + ">";
    scope_.line("var h: " + array + ";");
    scope_.line("var rate: " + array + ";");
    each_state(scope_, [&](Scope& s, const std::string& n) {
      s.line("rate[" + n + "] = rate_at(0u, " + n + ", q) * 1.44269504f;");
      const bool carried = has(SelectiveInput::kInitial) && tile_.lanes == 1;
      s.line("h[" + n + "] = " + (carried ? "initial_at(p, " + n + ", q)" : "0.0f") + ";");
    });
    begin_ = "0u";
    end_ = u32_literal(s_.length);
    if (tile_.lanes > 1) share();
    if (!forward()) store_state(scope_, "0", u32_literal(s_.segments() - 1), first_lane());
    Scope last(&scope_);
    write_step(last, true);
    loop(last);
    if (forward()) store_state(scope_, "1", "0u", last_lane());
    return make_shader(module_, scope_, tile_.threads(), ceil_div(lines, tile_.rows));
  }

  // Who begins, and who ends, in the order of the scan; with the condition that the line is real.
  [[nodiscard]] std::string joined(const std::string& condition) const {
    if (condition.empty() || live_.empty()) return condition + live_;
    return condition + " && " + live_;
  }
  [[nodiscard]] std::string first_lane() const {
    return joined(tile_.lanes > 1 ? "lane == 0u" : "");
  }
  [[nodiscard]] std::string last_lane() const {
    return joined(tile_.lanes > 1 ? "lane == " + u32_literal(tile_.lanes - 1) : "");
  }

  // All states to number `i` of what result `which` keeps of a line.
  void store_state(Scope& scope, const std::string& which, const std::string& i,
                   const std::string& condition) const {
    Scope inner(&scope);
    each_state(inner, [&](Scope& s, const std::string& n) {
      s.line("store" + which + "(p, " + i + " * " + u32_literal(s_.states) + " + " + n + ", q, h[" +
             n + "]);");
    });
    scope.block(condition.empty() ? "" : "if (" + condition + ")", inner);
  }

  void loop(const Scope& body) {
    scope_.block("for (var i = " + begin_ + "; i < " + end_ + "; i++)", body);
  }

  // Step number i of the scan; `finish`: with what comes out of it.
  void write_step(Scope& scope, bool finish) {
    scope.line(forward() ? "let t = i;" : "let t = " + u32_literal(s_.length - 1) + " - i;");
    scope.line("let delta = delta_at(p, t, q);");
    if (!finish) scope.line("total += delta;");
    if (!forward()) return write_adjoint_step(scope, finish);
    if (finish) {
      store_state(scope, "2", "(t / " + u32_literal(kChunk) + ")",
                  joined("t % " + u32_literal(kChunk) + " == 0u"));
      scope.line("var y = 0.0f;");
    }
    scope.line("let u = u_at(p, t, q);");
    if (!l_.zero_order_hold) scope.line("let x = delta * u;");
    each_state(scope, [&](Scope& s, const std::string& n) {
      const std::string h = "h[" + n + "]";
      if (l_.zero_order_hold) {
        s.line("let x = delta * u * hold_factor(vec4<f32>(delta * rate[" + n +
               "] * 0.693147182f)).x;");
      }
      s.line(h + " = exp2(delta * rate[" + n + "]) * " + h + " + x * gate_at(p, t, " + n + ");");
      if (finish) {
        s.line("y += " + h + " * gate_at(p, t, " + u32_literal(s_.states) + " + " + n + ");");
      }
    });
    if (!finish) return;
    const std::string store = "store0(p, t, q, y);";
    scope.line(live_.empty() ? store : "if (" + live_ + ") { " + store + " }");
  }

  void write_adjoint_step(Scope& scope, bool finish) {
    scope.line("let dy = dy_at(p, t, q);");
    each_state(scope, [&](Scope& s, const std::string& n) {
      const std::string h = "h[" + n + "]";
      s.line(h + " = exp2(delta * rate[" + n + "]) * (gate_at(p, t, " + u32_literal(s_.states) +
             " + " + n + ") * dy + " + h + ");");
    });
    if (!finish || s_.segments() == 1) return;
    store_state(scope, "0", "(t / " + u32_literal(kSegment) + " - 1u)",
                joined("t > 0u && t % " + u32_literal(kSegment) + " == 0u"));
  }

  // Leaves in h what the lanes before this one have made of the initial state.
  void share() {
    const std::int64_t stretch = ceil_div(s_.chunks(), tile_.lanes) * kChunk;
    scope_.line("let begin = min(lane * " + u32_literal(stretch) + ", " + end_ + ");");
    scope_.line("let end = min(begin + " + u32_literal(stretch) + ", " + end_ + ");");
    begin_ = "begin";
    end_ = "end";
    scope_.line("var total = 0.0f;");
    Scope own(&scope_);
    write_step(own, false);
    loop(own);
    module_.shared("hs", "f32", tile_.threads(), 4);
    module_.shared("totals", "f32", tile_.threads(), 4);
    const std::string pitch = u32_literal(tile_.rows);
    each_state(scope_, [&](Scope& s, const std::string& n) {
      s.line("var made = h[" + n + "];");
      s.line("var sum = total;");
      const auto publish = [](Scope& to) {
        to.line("hs[local] = made;");
        to.line("totals[local] = sum;");
        to.line("workgroupBarrier();");
      };
      publish(s);
      Scope round(&s), join(&round);
      join.line("let other = local - s * " + pitch + ";");
      // Nothing stays nothing, also where the product has overflown.
      join.line("if (hs[other] != 0.0f) { made = exp2(sum * rate[" + n +
                "]) * hs[other] + made; }");
      join.line("sum = totals[other] + sum;");
      round.block("if (lane >= s)", join);
      round.line("workgroupBarrier();");
      publish(round);
      s.block("for (var s = 1u; s < " + u32_literal(tile_.lanes) + "; s = s << 1u)", round);
      s.line("var carried = 0.0f;");
      if (has(SelectiveInput::kInitial)) s.line("carried = initial_at(p, " + n + ", q);");
      Scope take(&s);
      take.line("let before = local - " + pitch + ";");
      if (has(SelectiveInput::kInitial)) {
        take.line("if (carried != 0.0f) { carried *= exp2(totals[before] * rate[" + n + "]); }");
      }
      take.line("carried += hs[before];");
      s.block("if (lane > 0u)", take);
      s.line("workgroupBarrier();");
      s.line("h[" + n + "] = carried;");
    });
  }

  // ---- backward: blocks of channels -----------------------------------------------------------

  static std::string part(int i) { return std::string(1, "xyzw"[i]); }

  // The four states of a thread of what `read` gives for a state; zero where there is none.
  void read_four(Scope& scope, const std::string& name,
                 const std::function<std::string(const std::string&)>& read,
                 const std::string& condition = "") const {
    scope.line("var " + name + " = vec4<f32>();");
    for (int i = 0; i < 4; ++i) {
      const std::string n = "four * 4u + " + u32_literal(i);
      const bool always = s_.states == 4 * s_.fours();
      std::string when = always ? "" : n + " < " + u32_literal(s_.states);
      if (!condition.empty()) when += (when.empty() ? "" : " && ") + condition;
      const std::string assign = name + "." + part(i) + " = " + read("(" + n + ")") + ";";
      scope.line(when.empty() ? assign : "if (" + when + ") { " + assign + " }");
    }
  }
  void store_four(
      Scope& scope, const std::string& name, const std::string& four, const std::string& condition,
      const std::function<std::string(const std::string&, const std::string&)>& store) const {
    for (int i = 0; i < 4; ++i) {
      const std::string n = "(" + four + " * 4u + " + u32_literal(i) + ")";
      std::string when = s_.states == 4 * s_.fours() ? "" : n + " < " + u32_literal(s_.states);
      if (!condition.empty()) when += (when.empty() ? "" : " && ") + condition;
      const std::string text = store(n, name + "." + part(i));
      scope.line(when.empty() ? text : "if (" + when + ") { " + text + " }");
    }
  }

  Shader write_backward() {
    const std::int64_t block = s_.block(), fours = s_.fours(), threads = block * fours;
    CHECK(threads <= options_.max_threads, l_.name + ": a workgroup has too few threads");
    write_result(0, s_.length, s_.channels);
    write_result(1, s_.length, s_.channels);
    write_result(2, s_.blocks() * s_.length, 2 * s_.states);
    write_result(3, s_.segments() * s_.states, s_.channels);
    write_result(4, s_.states, s_.channels);
    helpers_ = std::min<std::int64_t>(8, block);
    module_.shared("parts_b", "vec4<f32>", threads, 16);
    module_.shared("parts_c", "vec4<f32>", threads, 16);
    module_.shared("parts_s", "vec2<f32>", threads, 8);
    module_.shared("folded", "vec4<f32>", 2 * fours * helpers_, 16);
    const std::int64_t each = s_.segments() * s_.blocks();
    const std::int64_t groups = window_.count * each;
    open_rows(scope_, Tile{1, static_cast<int>(threads), true}, groups, "unit");
    scope_.line("let p = unit / " + u32_literal(each) + " + " + u32_literal(window_.first) + ";");
    scope_.line("let segment = unit / " + u32_literal(s_.blocks()) + " % " +
                u32_literal(s_.segments()) + ";");
    scope_.line("let block = unit % " + u32_literal(s_.blocks()) + ";");
    scope_.line("let channel = local % " + u32_literal(block) + ";");
    scope_.line("let four = local / " + u32_literal(block) + ";");
    const std::string own = "block * " + u32_literal(block) + " + channel";
    const bool even = s_.channels % block == 0;
    scope_.line("let real = " + (even ? "true" : own + " < " + u32_literal(s_.channels)) + ";");
    scope_.line(
        "let q = " + (even ? own : "min(" + own + ", " + u32_literal(s_.channels - 1) + ")") + ";");
    read_four(scope_, "rate", [](const std::string& n) { return "rate_at(0u, " + n + ", q)"; });
    scope_.line("var e = vec4<f32>();");
    if (has(SelectiveInput::kEnds)) {
      read_four(
          scope_, "flowing",
          [&](const std::string& n) {
            return "end_at(p, segment * " + u32_literal(s_.states) + " + " + n + ", q)";
          },
          "real");
      scope_.line("e = flowing;");
    }
    scope_.line("var drate = vec4<f32>();");
    scope_.line("let first = segment * " + u32_literal(kSegment / kChunk) + ";");
    scope_.line("let chunks = min(" + u32_literal(kSegment / kChunk) + ", " +
                u32_literal(s_.chunks()) + " - first);");
    Scope chunk(&scope_);
    write_chunk(chunk);
    scope_.block("for (var c = chunks; c > 0u; c--)", chunk);
    store_four(scope_, "drate", "four", "real", [&](const std::string& n, const std::string& x) {
      return "store3(p, segment * " + u32_literal(s_.states) + " + " + n + ", q, " + x + ");";
    });
    store_four(scope_, "e", "four", "real && segment == 0u",
               [](const std::string& n, const std::string& x) {
                 return "store4(p, " + n + ", q, " + x + ");";
               });
    return make_shader(module_, scope_, static_cast<int>(threads), groups);
  }

  // u, delta and dy of step t, which may be behind the end: then all are zero, and nothing changes.
  void read_step(Scope& scope, bool dy) const {
    scope.line("let there = real && t < " + u32_literal(s_.length) + ";");
    scope.line("var delta = 0.0f;");
    scope.line("var u = 0.0f;");
    if (dy) scope.line("var dy = 0.0f;");
    scope.line(std::string("if (there) { delta = delta_at(p, t, q); u = u_at(p, t, q); ") +
               (dy ? "dy = dy_at(p, t, q); " : "") + "}");
    const std::string inside = "t < " + u32_literal(s_.length);
    read_four(scope, "b", [](const std::string& n) { return "gate_at(p, t, " + n + ")"; }, inside);
    if (!dy) return;
    read_four(
        scope, "c",
        [&](const std::string& n) {
          return "gate_at(p, t, " + u32_literal(s_.states) + " + " + n + ")";
        },
        inside);
  }

  void write_weight(Scope& scope) const {
    scope.line(l_.zero_order_hold ? "let w = delta * hold_factor(delta * rate);"
                                  : "let w = vec4<f32>(delta);");
  }

  void write_chunk(Scope& scope) {
    scope.line("let start = (first + c - 1u) * " + u32_literal(kChunk) + ";");
    scope.line("var held: array<vec4<f32>, " + std::to_string(kChunk) + ">;");
    read_four(
        scope, "h",
        [&](const std::string& n) {
          return "state_at(p, (first + c - 1u) * " + u32_literal(s_.states) + " + " + n + ", q)";
        },
        "real");
    Scope ahead(&scope);
    ahead.line("held[i] = h;");
    ahead.line("let t = start + i;");
    read_step(ahead, false);
    write_weight(ahead);
    ahead.line("h = exp(delta * rate) * h + w * b * u;");
    scope.block("for (var i = 0u; i < " + u32_literal(kChunk) + "; i++)", ahead);
    Scope back(&scope);
    write_step_back(back);
    scope.block("for (var r = 0u; r < " + u32_literal(kChunk) + "; r++)", back);
  }

  void write_step_back(Scope& scope) {
    const std::int64_t block = s_.block(), fours = s_.fours();
    scope.line("let i = " + u32_literal(kChunk - 1) + " - r;");
    scope.line("let t = start + i;");
    read_step(scope, true);
    write_weight(scope);
    scope.line("let a = exp(delta * rate);");
    scope.line("let g = c * dy + e;");
    scope.line("e = a * g;");
    scope.line("let through = e * held[i];");
    scope.line("parts_b[local] = g * w * u;");
    scope.line("parts_c[local] = dy * (a * held[i] + w * b * u);");
    if (l_.zero_order_hold) {
      scope.line("let gbu = g * b * u;");
      scope.line("drate += delta * through + gbu * delta * delta * hold_slope(delta * rate);");
      scope.line("parts_s[local] = vec2<f32>(dot(g * w, b), dot(rate, through) + dot(gbu, a));");
    } else {
      scope.line("drate += delta * through;");
      scope.line("parts_s[local] = vec2<f32>(dot(g, b), dot(rate, through));");
    }
    scope.line("workgroupBarrier();");
    Scope sums(&scope);  // over states
    sums.line("var s = parts_s[local];");
    for (std::int64_t f = 1; f < fours; ++f) {
      sums.line("s += parts_s[local + " + u32_literal(f * block) + "];");
    }
    const bool hold = l_.zero_order_hold;
    sums.line(std::string("store0(p, t, q, s.x") + (hold ? "" : " * delta") + ");");
    sums.line(std::string("store1(p, t, q, s.y") + (hold ? "" : " + u * s.x") + ");");
    scope.block("if (four == 0u && there)", sums);
    fold_channels(scope);
  }

  // Sums over the block's channels: some helpers for each four of B and of C, then one.
  void fold_channels(Scope& scope) {
    const std::int64_t block = s_.block(), fours = s_.fours(), threads = block * fours;
    const std::int64_t targets = 2 * fours, of_each = block / helpers_;
    const std::int64_t work = targets * helpers_;
    Scope some(&scope);
    some.line("let target_four = f / " + u32_literal(helpers_) + ";");
    some.line("let origin = (target_four % " + u32_literal(fours) + ") * " + u32_literal(block) +
              " + f % " + u32_literal(helpers_) + ";");
    some.line("var total = vec4<f32>();");
    Scope of_b(&some), of_c(&some);
    for (std::int64_t k = 0; k < of_each; ++k) {
      of_b.line("total += parts_b[origin + " + u32_literal(k * helpers_) + "];");
      of_c.line("total += parts_c[origin + " + u32_literal(k * helpers_) + "];");
    }
    some.block("if (target_four < " + u32_literal(fours) + ")", of_b);
    some.block("else", of_c);
    some.line("folded[f] = total;");
    scope.block(
        "for (var f = local; f < " + u32_literal(work) + "; f += " + u32_literal(threads) + ")",
        some);
    scope.line("workgroupBarrier();");
    Scope one(&scope);
    one.line("var total = folded[f * " + u32_literal(helpers_) + "];");
    for (std::int64_t k = 1; k < helpers_; ++k) {
      one.line("total += folded[f * " + u32_literal(helpers_) + " + " + u32_literal(k) + "];");
    }
    one.line("let half = f / " + u32_literal(fours) + ";");
    one.line("let own = f % " + u32_literal(fours) + ";");
    store_four(one, "total", "own", "t < " + u32_literal(s_.length),
               [&](const std::string& n, const std::string& x) {
                 return "store2(p, block * " + u32_literal(s_.length) + " + t, half * " +
                        u32_literal(s_.states) + " + " + n + ", " + x + ");";
               });
    scope.block(
        "for (var f = local; f < " + u32_literal(targets) + "; f += " + u32_literal(threads) + ")",
        one);
  }

  const Launch& l_;
  const WgslOptions& options_;
  SelectiveSizes s_;
  Window window_;
  Module module_;
  Scope scope_;
  Tile tile_;
  std::string live_, begin_, end_;
  std::int64_t helpers_ = 1;
};

}  // namespace

Shader write_selective_scan(const Launch& launch, const WgslOptions& options) {
  return SelectiveWriter(launch, options).write();
}

}  // namespace tensorgrad::wgsl
