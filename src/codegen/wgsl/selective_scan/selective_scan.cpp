// SPDX-License-Identifier: MIT
// Selective scans by lines, used by the adjoint and by forward passes that selective_by_block()
// rejects: those with few channels and many steps, or with a single chunk. A thread has all states
// of a channel; neighboring threads have neighboring channels. block.cpp has the other variants.
//
// Several lanes may share the steps of a line:
// - Each lane scans its own steps from a zero state.
// - A parallel prefix over the lanes, by doubling strides, computes the state before each lane's
//   steps. An earlier pair (a1, b1) and a later pair (a2, b2) combine to (a1 a2, a2 b1 + b2). The
//   product of all a of a lane is the exponential of A times the sum of delta.
// - Each lane scans its steps again from that state.
#include "codegen/wgsl/selective_scan/selective_scan.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "codegen/wgsl/opaque.h"

namespace tensorgrad::wgsl {
namespace {

// Zero-order hold, for four values. held() returns the factor of u B, and held_slope() its
// derivative with respect to the rate:
//   w = (e^(delta rate) - 1) / rate
//   dw/drate = (delta a - w) / rate
// The caller passes a = e^(delta rate) and inverse = 1 / rate. If |delta rate| is small, both
// functions use series.
constexpr const char* kHeld =
    R"(fn held(delta: vec4<f32>, rate: vec4<f32>, inverse: vec4<f32>, a: vec4<f32>) -> vec4<f32> {
  let z = delta * rate;
  let near = delta * (1.0f + z * (0.5f + z * (0.16666667f + z * (0.041666668f + z * (0.008333334f + z * 0.0013888889f)))));
  return select((a - 1.0f) * inverse, near, abs(z) < vec4<f32>(0.25f));
}
)";
constexpr const char* kHeldSlope =
    R"(fn held_slope(delta: vec4<f32>, rate: vec4<f32>, inverse: vec4<f32>, a: vec4<f32>, w: vec4<f32>) -> vec4<f32> {
  let z = delta * rate;
  let near = delta * delta * (0.5f + z * (0.33333334f + z * (0.125f + z * (0.033333335f + z * (0.0069444445f + z * 0.0011904762f)))));
  return select((delta * a - w) * inverse, near, abs(z) < vec4<f32>(0.25f));
}
)";

// Marks the sum of delta over steps with a reset. Larger than any real sum.
constexpr const char* kForgets = "1e30f";

class LineWriter : SelectiveWriter {
 public:
  LineWriter(const Launch& launch, const WgslOptions& options) : SelectiveWriter(launch, options) {}

  Shader write() {
    write_inputs();
    const std::int64_t lines = window_.count * s_.channels;
    tile_ = line_tile(lines);
    if (forward()) {
      write_result(0, s_.length, s_.channels);
      write_state_results();
      if (gated()) write_sigmoid("f32");
      if (keeps_ungated()) write_result(SelectiveSizes::kUngatedResult, s_.length, s_.channels);
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
    each_state(scope_, "n", [&](Scope& s, const std::string& n) {
      s.line("rate[" + n + "] = rate_at(0u, " + n + ", q) * 1.44269504f;");
      const bool carried = has(SelectiveInput::kInitial) && tile_.lanes == 1;
      s.line("h[" + n + "] = " + (carried ? "initial_at(p, " + n + ", q)" : "0.0f") + ";");
    });
    if (forward() && s_.skip)
      scope_.line("let skip = rate_at(0u, " + u32_literal(s_.states) + ", q);");
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

 private:
  // Writes step(scope, name) for each state, in a loop over `name` if there are many.
  using StateStep = std::function<void(Scope&, const std::string&)>;
  void each_state(Scope& scope, const std::string& name, const StateStep& step) const {
    if (s_.states > kMaxWrittenOut) {
      Scope loop(&scope);
      step(loop, name);
      const std::string count = u32_literal(s_.states);
      scope.block("for (var " + name + " = 0u; " + name + " < " + count + "; " + name + "++)",
                  loop);
      return;
    }
    for (std::int64_t n = 0; n < s_.states; ++n) {
      Scope one(&scope);
      step(one, u32_literal(n));
      scope.block("", one);
    }
  }

  [[nodiscard]] Tile line_tile(std::int64_t lines) const {
    const int most = std::min(256, floor_pow2(options_.max_threads));
    Tile tile;
    tile.lanes_first = false;
    tile.lanes = floor_pow2(std::max<std::int64_t>(1, options_.gpu.full_threads / lines));
    tile.lanes = std::min(tile.lanes, ceil_pow2(s_.chunks()));
    if (options_.lanes > 0) tile.lanes = options_.lanes;
    tile.lanes = std::clamp(tile.lanes, 1, most);
    tile.rows = std::max(1, std::min(tile.lanes >= 64 ? 256 : 64, most) / tile.lanes);
    return tile;
  }

  // Conditions for the first and the last lane in the order of the scan. joined() adds the
  // condition that the line exists.
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

  // Stores all states of a line as entry `i` of result `which`.
  void store_state(Scope& scope, const std::string& which, const std::string& i,
                   const std::string& condition) const {
    Scope inner(&scope);
    each_state(inner, "n", [&](Scope& s, const std::string& n) {
      s.line("store" + which + "(p, " + i + " * " + u32_literal(s_.states) + " + " + n + ", q, h[" +
             n + "]);");
    });
    scope.block(condition.empty() ? "" : "if (" + condition + ")", inner);
  }

  // Returns the state before a step, or the gradient that flows back into it; 0 if the step has a
  // reset.
  [[nodiscard]] std::string unless_reset(const std::string& state) const {
    return scan_.resets ? "select(" + state + ", 0.0f, given < 0.0f)" : state;
  }
  // Returns the condition that steps with this sum of delta contain a reset.
  [[nodiscard]] static std::string forgets(const std::string& sum) {
    return sum + " >= " + kForgets;
  }

  void loop(const Scope& body) {
    scope_.block("for (var i = " + begin_ + "; i < " + end_ + "; i++)", body);
  }

  // Writes step i of the scan. With `finish`, also computes and stores its results.
  void write_step(Scope& scope, bool finish) {
    scope.line(forward() ? "let t = i;" : "let t = " + u32_literal(s_.length - 1) + " - i;");
    scope.line(scan_.resets ? "let given = delta_at(p, t, q);" : "let delta = delta_at(p, t, q);");
    if (scan_.resets) scope.line("let delta = abs(given);");
    if (!finish && scan_.resets) {
      scope.line("total = select(total + delta, " + std::string(kForgets) + ", given < 0.0f);");
    } else if (!finish) {
      scope.line("total += delta;");
    }
    if (!forward()) return write_adjoint_step(scope, finish);
    if (finish && scan_.keeps_states) {
      store_state(scope, std::to_string(s_.states_result()), "(t / " + u32_literal(kChunk) + ")",
                  joined("t % " + u32_literal(kChunk) + " == 0u"));
    }
    if (finish) scope.line("var y = 0.0f;");
    scope.line("let u = u_at(p, t, q);");
    if (!scan_.zero_order_hold) scope.line("let x = delta * u;");
    each_state(scope, "n", [&](Scope& s, const std::string& n) {
      const std::string h = "h[" + n + "]";
      s.line("let a = exp2(delta * rate[" + n + "]);");
      if (scan_.zero_order_hold) {
        s.line("let r = rate[" + n + "] * 0.693147182f;");
        s.line(
            "let x = u * held(vec4<f32>(delta), vec4<f32>(r), vec4<f32>(1.0f / r), "
            "vec4<f32>(a)).x;");
      }
      s.line(h + " = a * " + unless_reset(h) + " + x * bc_at(p, t, " + n + ");");
      if (finish) {
        s.line("y += " + h + " * bc_at(p, t, " + u32_literal(s_.states) + " + " + n + ");");
      }
    });
    if (!finish) return;
    if (s_.skip) scope.line("y += skip * u;");
    Scope stores(&scope);
    if (keeps_ungated())
      stores.line("store" + std::to_string(SelectiveSizes::kUngatedResult) + "(p, t, q, y);");
    if (gated()) {
      stores.line("let z = z_at(p, t, q);");
      stores.line("y *= z * sigmoid_of(z);");
    }
    stores.line("store0(p, t, q, y);");
    scope.block(live_.empty() ? "" : "if (" + live_ + ")", stores);
  }

  void write_adjoint_step(Scope& scope, bool finish) {
    scope.line("let dy = dy_at(p, t, q);");
    each_state(scope, "n", [&](Scope& s, const std::string& n) {
      const std::string h = "h[" + n + "]";
      s.line(h + " = exp2(delta * rate[" + n + "]) * (bc_at(p, t, " + u32_literal(s_.states) +
             " + " + n + ") * dy + " + h + ");");
      if (scan_.resets) s.line(h + " = " + unless_reset(h) + ";");
    });
    if (!finish || s_.segments() == 1) return;
    store_state(scope, "0", "(t / " + u32_literal(s_.segment()) + " - 1u)",
                joined("t > 0u && t % " + u32_literal(s_.segment()) + " == 0u"));
  }

  // Divides the steps among lanes. Sets h to the state before the lane's own steps.
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
    // All threads run this loop and its barriers. It has its own name because the uniformity check
    // of the tests identifies variables by name.
    each_state(scope_, "joined", [&](Scope& s, const std::string& n) {
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
      // A zero state stays zero even if the product of decays has overflowed.
      join.line("if (hs[other] != 0.0f" + (scan_.resets ? " && !(" + forgets("sum") + ")" : "") +
                ") { made = exp2(sum * rate[" + n + "]) * hs[other] + made; }");
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
        if (scan_.resets) take.line("if (" + forgets("totals[before]") + ") { carried = 0.0f; }");
      }
      take.line("carried += hs[before];");
      s.block("if (lane > 0u)", take);
      s.line("workgroupBarrier();");
      s.line("h[" + n + "] = carried;");
    });
  }

  Tile tile_;
  std::string live_, begin_, end_;
};

}  // namespace

SelectiveWriter::SelectiveWriter(const Launch& launch, const WgslOptions& options)
    : l_(launch),
      opaque_(launch.as<OpaqueLaunch>()),
      options_(options),
      scan_(kernel_of<SelectiveKernel>(launch).scan),
      s_(scan_.sizes),
      window_(window_of(launch)),
      module_(launch) {
  if (!scan_.zero_order_hold) return;
  module_.function("held", kHeld);
  module_.function("held_slope", kHeldSlope);
}

void SelectiveWriter::write_inputs() {
  using enum SelectiveInput;
  const std::int64_t n = s_.states, d = s_.channels;
  write_input(kU, "u_at", s_.batch, s_.length, d);
  write_input(kDelta, "delta_at", s_.batch, s_.length, d);
  write_input(kDy, "dy_at", s_.batch, s_.length, d);
  write_input(kBC, "bc_at", s_.batch, s_.length, 2 * n);
  write_input(kA, "rate_at", 1, s_.rates(), d);
  write_input(kZ, "z_at", s_.batch, s_.length, d);
  write_input(kInitial, "initial_at", s_.batch, n, d);
  write_states();
  write_input(kEnds, "end_at", s_.batch, s_.segments() * n, d);
}

void SelectiveWriter::write_input(SelectiveInput which, const std::string& name, std::int64_t batch,
                                  std::int64_t rows, std::int64_t columns) {
  if (!has(which)) return;
  write_source(module_, name, opaque_.input(which), {{"p", batch}, {"i", rows}, {"q", columns}});
}

// Writes fn state_at(p, i, q) of saved states in logical order, whether or not they are paired.
void SelectiveWriter::write_states() {
  if (!has(SelectiveInput::kStates)) return;
  write_input(SelectiveInput::kStates, by_pairs() ? "kept_at" : "state_at", s_.batch, kept_rows(),
              kept_columns());
  if (!by_pairs()) return;
  module_.function("state_at",
                   "fn state_at(p: u32, i: u32, q: u32) -> f32 {\n"
                   "  return kept_at(p, i / 2u, q * 2u + i % 2u);\n}\n");
}

bool SelectiveWriter::by_pairs() const {
  int binding = -1;
  if (forward() && scan_.keeps_states) {
    binding = l_.stores.at(s_.states_result()).binding;
  } else if (has(SelectiveInput::kStates)) {
    const ScalarProgram& states = opaque_.input(SelectiveInput::kStates);
    if (!states.accesses.empty()) binding = states.accesses[0].binding;
  }
  if (binding < 0 || s_.states % 2 != 0) return false;
  return options_.paired_states.contains(l_.bindings.at(static_cast<std::size_t>(binding)).buffer);
}

std::int64_t SelectiveWriter::kept_rows() const {
  return s_.chunks() * s_.states / (by_pairs() ? 2 : 1);
}
std::int64_t SelectiveWriter::kept_columns() const { return s_.channels * (by_pairs() ? 2 : 1); }

void SelectiveWriter::open_workgroup(std::int64_t threads, std::int64_t segments) {
  const std::int64_t each = segments * s_.blocks();
  open_rows(scope_, Tile{1, static_cast<int>(threads), true}, window_.count * each, "unit");
  scope_.line("let p = unit / " + u32_literal(each) + " + " + u32_literal(window_.first) + ";");
  scope_.line("let segment = unit / " + u32_literal(s_.blocks()) + " % " + u32_literal(segments) +
              ";");
  scope_.line("let block = unit % " + u32_literal(s_.blocks()) + ";");
  const std::string most_chunks = u32_literal(s_.segment() / kChunk);
  scope_.line("let first = segment * " + most_chunks + ";");
  scope_.line("let chunks = " +
              (segments == 1
                   ? u32_literal(s_.chunks())
                   : "min(" + most_chunks + ", " + u32_literal(s_.chunks()) + " - first)") +
              ";");
}

void SelectiveWriter::write_result(std::size_t which, std::int64_t rows, std::int64_t columns) {
  Scope scope;
  write_store(which, {{"p", s_.batch}, {"i", rows}, {"q", columns}}, scope);
}

void SelectiveWriter::write_store(std::size_t which, const Domain& domain, Scope& scope) {
  const Store& store = l_.stores.at(which);
  const ElementRef place = place_of(scope, domain, store.map);
  scope.line(module_.store(store.binding, DType::kF32, place.index, "x"));
  const std::string name = "store" + std::to_string(which);
  module_.function(name,
                   "fn " + name + "(p: u32, i: u32, q: u32, x: f32) {\n" + scope.text() + "}\n");
}

void SelectiveWriter::write_place(std::size_t which, std::int64_t rows, std::int64_t columns) {
  const Store& store = l_.stores.at(which);
  const Domain domain = {{"p", s_.batch}, {"i", rows}, {"q", columns}};
  CHECK(rows == 1 || even_step(domain, store.map, 1) == columns, l_.name);
  Scope scope;
  scope.line("return " + place_of(scope, domain, store.map).index + ";");
  const std::string name = "place" + std::to_string(which);
  module_.function(name,
                   "fn " + name + "(p: u32, i: u32, q: u32) -> u32 {\n" + scope.text() + "}\n");
}

std::int64_t SelectiveWriter::behind_first(std::size_t which) const {
  const Store &first = l_.stores.at(0), &other = l_.stores.at(which);
  const View &from = first.map.views.at(0), &to = other.map.views.at(0);
  View moved = to;
  moved.offset = from.offset;
  CHECK(first.binding == other.binding && first.map.views.size() == 1 &&
            other.map.views.size() == 1 && moved == from,
        l_.name);
  return to.offset - from.offset;
}

// The argument of exp2 is never positive: WGSL leaves an overflowing exponential undefined.
void SelectiveWriter::write_sigmoid(const std::string& type) {
  module_.function("sigmoid_of", "fn sigmoid_of(z: " + type + ") -> " + type +
                                     " {\n  let e = exp2(abs(z) * -1.44269504f);\n"
                                     "  return select(" +
                                     type + "(1.0f), e, z < " + type + "()) / (1.0f + e);\n}\n");
}

void SelectiveWriter::write_state_results() {
  write_result(1, s_.states, s_.channels);
  if (!scan_.keeps_states) return;
  Scope scope;
  scope.line(by_pairs() ? "let row = i / 2u;" : "let row = i;");
  scope.line(by_pairs() ? "let column = q * 2u + i % 2u;" : "let column = q;");
  write_store(s_.states_result(),
              {{"p", s_.batch}, {"row", kept_rows()}, {"column", kept_columns()}}, scope);
}

Shader write_selective_scan(const Launch& launch, const WgslOptions& options) {
  if (selective_by_block(launch, options)) return write_selective_block(launch, options);
  return LineWriter(launch, options).write();
}

}  // namespace tensorgrad::wgsl
