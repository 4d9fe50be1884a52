// SPDX-License-Identifier: MIT
// Selective scans by blocks of channels. A workgroup goes over the steps a chunk at a time: what a
// chunk reads lies in workgroup memory, and while it is worked on, the next one is on its way.
// Backward, the states of the chunk are computed anew from the one before it and stay in registers.
// Names of the shader: `channel` is the thread's in the block, `q` in the tensor; `row` numbers its
// four states, and the step of a chunk that it brings.
#include "kernel/wgsl_selective_block.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kernel/wgsl_selective_lanes.h"

namespace tensorgrad::wgsl {
namespace {

std::string both(const std::string& a, const std::string& b) {
  return a + (a.empty() || b.empty() ? "" : " && ") + b;
}

}  // namespace

SelectiveBlock::SelectiveBlock(const Launch& launch, const WgslOptions& options)
    : SelectiveWriter(launch, options),
      block_(s_.block()),
      fours_(s_.fours()),
      threads_(block_ * fours_) {
  CHECK(threads_ <= options_.max_threads, l_.name + ": a workgroup has too few threads");
  write_inputs();
  choose_sums();
  CHECK(shared_bytes() <= options_.max_workgroup_bytes, l_.name + ": too little workgroup memory");
}

Shader SelectiveBlock::write() {
  const std::int64_t segments = forward() ? 1 : s_.segments();
  share();
  open_unit(threads_, segments);
  open_channel();
  read_quad(scope_, "rate", "rate_at(0u, ");
  scope_.line("let rate2 = rate * 1.44269504f;");  // for powers of two
  if (forward()) {
    write_forward_results();
    write_forward();
  } else {
    write_result(0, s_.length, s_.channels);
    write_result(1, s_.length, s_.channels);
    write_result(2, s_.blocks() * s_.length, 2 * s_.states);
    write_result(3, s_.segments() * s_.states, s_.channels);
    write_result(4, s_.states, s_.channels);
    write_backward();
  }
  return make_shader(module_, scope_, static_cast<int>(threads_),
                     window_.count * segments * s_.blocks());
}

// `channel` and `row` of the thread.
void SelectiveBlock::open_channel() {
  scope_.line("let channel = local % " + u32_literal(block_) + ";");
  scope_.line("let row = local / " + u32_literal(block_) + ";");
  const std::string most = u32_literal(s_.channels - 1);
  const std::string q = "block * " + u32_literal(block_) + " + channel";
  const bool even = s_.channels % block_ == 0;
  scope_.line("let real = " + (even ? "true" : q + " <= " + most) + ";");
  scope_.line("let q = " + (even ? q : "min(" + q + ", " + most + ")") + ";");
}

// ---- what a chunk reads ------------------------------------------------------------------------

std::int64_t SelectiveBlock::shared_bytes() const {
  const std::int64_t read = kChunk * (block_ * (forward() ? 2 : 3) + 2 * padded()) * 4;
  return read + (forward() ? sums_.steps * threads_ * 4 : sums_bytes());
}

void SelectiveBlock::share() {
  for (const char* name : {"delta_of", "u_of"}) module_.shared(name, "f32", kChunk * block_, 4);
  module_.shared("gates_of", "vec4<f32>", kChunk * 2 * fours_, 16);
  if (forward()) {
    module_.shared("parts_y", "f32", sums_.steps * threads_, 4);
    return;
  }
  module_.shared("dy_of", "f32", kChunk * block_, 4);
  share_sums();
}

std::vector<std::string> SelectiveBlock::of_channels() const {
  std::vector<std::string> names = {"delta", "u"};
  if (!forward()) names.emplace_back("dy");
  return names;
}

// Steps of a channel that a thread brings, every `fours`-th, and vectors of B and C.
std::int64_t SelectiveBlock::own_steps() const { return kChunk / fours_; }
std::int64_t SelectiveBlock::own_gates() const { return kChunk * 2 * fours_ / threads_; }

// The variables in which the next chunk waits.
void SelectiveBlock::declare_next(Scope& scope) const {
  for (std::int64_t e = 0; e < own_steps(); ++e) {
    for (const std::string& name : of_channels())
      scope.line("var next_" + name + std::to_string(e) + " = 0.0f;");
  }
  for (std::int64_t e = 0; e < own_gates(); ++e)
    scope.line("var next_gates" + std::to_string(e) + " = vec4<f32>();");
  if (!forward()) scope.line("var next_h = vec4<f32>();");
}

// Reads chunk number `chunk`; zeros behind the last step, where then nothing changes.
void SelectiveBlock::bring(Scope& scope, const std::string& chunk) const {
  scope.line("let coming = " + chunk + ";");
  for (std::int64_t e = 0; e < own_steps(); ++e) {
    Scope one(&scope), read(&scope);
    one.line("let t = coming * " + u32_literal(kChunk) + " + " + u32_literal(e * fours_) +
             " + row;");
    for (const std::string& name : of_channels()) {
      const std::string next = "next_" + name + std::to_string(e), call = name + "_at(p, t, q)";
      one.line(next + " = 0.0f;");
      read.line(next + " = " +
                (s_.channels % block_ == 0 ? call : "select(0.0f, " + call + ", real)") + ";");
    }
    one.block("if (t < " + u32_literal(s_.length) + ")", read);
    scope.block("", one);
  }
  for (std::int64_t e = 0; e < own_gates(); ++e) {
    Scope one(&scope), read(&scope);
    const std::string next = "next_gates" + std::to_string(e);
    one.line("let place = local + " + u32_literal(e * threads_) + ";");
    one.line("let t = coming * " + u32_literal(kChunk) + " + place / " + u32_literal(2 * fours_) +
             ";");
    one.line("let half = place / " + u32_literal(fours_) + " % 2u;");
    one.line(next + " = vec4<f32>();");
    for (std::int64_t i = 0; i < 4; ++i) {
      read.line(next + "." + component(i) + " = " +
                read_state("gate_at(p, t, half * " + u32_literal(s_.states) + " + ",
                           state_of("place % " + u32_literal(fours_), i), ")") +
                ";");
    }
    one.block("if (t < " + u32_literal(s_.length) + ")", read);
    scope.block("", one);
  }
  if (forward()) return;
  read_quad(scope, "before", "state_at(p, coming * " + u32_literal(s_.states) + " + ");
  scope.line("next_h = before;");
}

void SelectiveBlock::bring_first(const std::string& chunk) {
  Scope start(&scope_);
  bring(start, chunk);
  scope_.block("", start);
}

// Puts what has come to where all threads see it, whole vectors: to write one component may touch
// the others. Nobody reads the chunk before any more: after its last step there is a barrier.
void SelectiveBlock::unload(Scope& scope) const {
  const auto put = [&](const std::string& name, std::int64_t e) {
    scope.line(name + "_of[local + " + u32_literal(e * threads_) + "] = next_" + name +
               std::to_string(e) + ";");
  };
  for (std::int64_t e = 0; e < own_steps(); ++e) {
    for (const std::string& name : of_channels()) put(name, e);
  }
  for (std::int64_t e = 0; e < own_gates(); ++e) put("gates", e);
  scope.line("workgroupBarrier();");
}

// ---- a thread's quad ---------------------------------------------------------------------------

// The state of number i of a quad, and the condition under which there is one (empty: always).
std::string SelectiveBlock::state_of(const std::string& vector, std::int64_t i) const {
  return vector + " * 4u + " + u32_literal(i);
}
std::string SelectiveBlock::there(std::int64_t i) const {
  const std::string state =
      s_.states == padded() ? "" : state_of("row", i) + " < " + u32_literal(s_.states);
  return both(s_.channels % block_ == 0 ? "" : "real", state);
}

// What a call with state n gives; zero where there is no such state. Without branches: drivers take
// long to compile many.
std::string SelectiveBlock::read_state(const std::string& call, const std::string& n,
                                       const std::string& rest) const {
  if (s_.states == padded()) return call + n + rest;
  const std::string last = u32_literal(s_.states - 1);
  return "select(0.0f, " + call + "min(" + n + ", " + last + ")" + rest + ", " + n + " <= " + last +
         ")";
}

// `name`: numbers that are read by a call with its state and its channel behind `call`; zero where
// there are none.
void SelectiveBlock::read_quad(Scope& scope, const std::string& name,
                               const std::string& call) const {
  scope.line("var " + name + " = vec4<f32>();");
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::string read = read_state(call, state_of("row", i), ", q)");
    scope.line(name + "." + component(i) + " = " +
               (s_.channels % block_ == 0 ? read : "select(0.0f, " + read + ", real)") + ";");
  }
}

void SelectiveBlock::store_quad(Scope& scope, const std::string& name, const std::string& call,
                                const std::string& condition) const {
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::string store =
        call + state_of("row", i) + ", q, " + name + "." + component(i) + ");";
    const std::string real = both(condition, there(i));
    scope.line(real.empty() ? store : "if (" + real + ") { " + store + " }");
  }
}

// What step i of the chunk reads: delta, u, B, and, if asked for, C and dy; the names end with the
// step's number.
void SelectiveBlock::load_step(Scope& scope, std::int64_t i, bool all) const {
  const std::string n = std::to_string(i);
  const std::string place = "_of[" + u32_literal(i * block_) + " + channel];";
  const auto gate = [&](std::int64_t half) {
    return "gates_of[" + u32_literal((2 * i + half) * fours_) + " + row];";
  };
  scope.line("let delta" + n + " = delta" + place);
  scope.line("let u" + n + " = u" + place);
  scope.line("let b" + n + " = " + gate(0));
  if (!all) return;
  scope.line("let c" + n + " = " + gate(1));
  if (!forward()) scope.line("let dy" + n + " = dy" + place);
}

// The same by plain names; a, and wu, by which B is multiplied.
void SelectiveBlock::open_step(Scope& scope, std::int64_t i, bool all) const {
  std::vector<std::string> names = {"delta", "u", "b"};
  if (all) names.emplace_back("c");
  if (all && !forward()) names.emplace_back("dy");
  for (const std::string& name : names)
    scope.line("let " + name + " = " + name + std::to_string(i) + ";");
  scope.line("var a = exp2(delta * rate2);");
  if (s_.length % kChunk != 0) {  // behind the last step; an infinite rate has made NaN of zero
    scope.line("if (start + " + u32_literal(i) + " >= " + u32_literal(s_.length) +
               ") { a = vec4<f32>(1.0f); }");
  }
  scope.line(l_.zero_order_hold ? "let wu = delta * u * hold_factor(delta * rate);"
                                : "let wu = vec4<f32>(delta * u);");
}

// ---- forward -----------------------------------------------------------------------------------

void SelectiveBlock::write_forward() {
  if (has(SelectiveInput::kInitial)) {
    read_quad(scope_, "h", "initial_at(p, ");
  } else {
    scope_.line("var h = vec4<f32>();");
  }
  declare_next(scope_);
  bring_first("0u");
  Scope chunk(&scope_);
  chunk.line("let start = chunk * " + u32_literal(kChunk) + ";");
  unload(chunk);
  if (keeps_states(l_))
    store_quad(chunk, "h", "store2(p, chunk * " + u32_literal(s_.states) + " + ", "");
  Scope next(&chunk);
  bring(next, "chunk + 1u");
  chunk.block("if (chunk + 1u < chunks)", next);
  // A step's reads stand before what the one before it writes: compilers keep that order.
  load_step(chunk, 0, true);
  for (std::int64_t i = 0; i < kChunk; ++i) {
    if (i + 1 < kChunk) load_step(chunk, i + 1, true);
    Scope step(&chunk);
    open_step(step, i, true);
    step.line("h = a * h + wu * b;");
    step.line("parts_y[" + u32_literal(i % sums_.steps * threads_) + " + local] = dot(h, c);");
    chunk.block("", step);
    if ((i + 1) % sums_.steps != 0) continue;
    chunk.line("workgroupBarrier();");
    sum_outputs(chunk, i + 1 - sums_.steps);
    if (i + 1 < kChunk) chunk.line("workgroupBarrier();");
  }
  scope_.block("for (var chunk = 0u; chunk < chunks; chunk++)", chunk);
  store_quad(scope_, "h", "store1(p, ", "");
}

void SelectiveBlock::share_out(Scope& scope, const Scope& body, std::int64_t count) const {
  scope.block(
      "for (var f = local; f < " + u32_literal(count) + "; f += " + u32_literal(threads_) + ")",
      body);
}

// The outputs of steps `from` and the next of the chunk.
void SelectiveBlock::sum_outputs(Scope& scope, std::int64_t from) const {
  Scope one(&scope);
  one.line("let i = f / " + u32_literal(block_) + ";");
  one.line("let t = start + " + u32_literal(from) + " + i;");
  one.line("var y = 0.0f;");
  for (std::int64_t k = 0; k < fours_; ++k) {
    one.line("y += parts_y[i * " + u32_literal(threads_) + " + " + u32_literal(k * block_) +
             " + channel];");
  }
  one.line("if (real && t < " + u32_literal(s_.length) + ") { store0(p, t, q, y); }");
  share_out(scope, one, sums_.steps * block_);
}

// ---- backward ----------------------------------------------------------------------------------

void SelectiveBlock::write_backward() {
  if (has(SelectiveInput::kEnds)) {
    read_quad(scope_, "e", "end_at(p, segment * " + u32_literal(s_.states) + " + ");
  } else {
    scope_.line("var e = vec4<f32>();");
  }
  scope_.line("var drate = vec4<f32>();");
  write_sums();
  declare_next(scope_);
  bring_first("first + chunks - 1u");
  Scope chunk(&scope_);
  chunk.line("let start = (first + left - 1u) * " + u32_literal(kChunk) + ";");
  unload(chunk);
  chunk.line("let h0 = next_h;");
  Scope next(&chunk);
  bring(next, "first + left - 2u");
  chunk.block("if (left > 1u)", next);
  for (std::int64_t i = 0; i < kChunk; ++i) {  // h<i>: the state before step i
    const std::string before = "h" + std::to_string(i), after = "h" + std::to_string(i + 1);
    chunk.line("var " + after + " = vec4<f32>();");
    Scope step(&chunk);
    load_step(step, i, false);
    open_step(step, i, false);
    step.line(after + " = a * " + before + " + wu * b;");
    chunk.block("", step);
  }
  load_step(chunk, kChunk - 1, true);
  for (std::int64_t i = kChunk; i-- > 0;) {
    if (i > 0) load_step(chunk, i - 1, true);
    Scope step(&chunk);
    write_step_back(step, i);
    chunk.block("", step);
    if (i % sums_.steps == 0) sum_steps(chunk, i);
  }
  scope_.block("for (var left = chunks; left > 0u; left--)", chunk);
  store_quad(scope_, "drate", "store3(p, segment * " + u32_literal(s_.states) + " + ", "");
  store_quad(scope_, "e", "store4(p, ", "segment == 0u");
}

void SelectiveBlock::write_step_back(Scope& scope, std::int64_t i) const {
  open_step(scope, i, true);
  scope.line("let g = c * dy + e;");
  scope.line("e = a * g;");
  scope.line("let through = e * h" + std::to_string(i) + ";");
  scope.line("let of_b = g * wu;");
  scope.line("let of_c = dy * h" + std::to_string(i + 1) + ";");
  if (l_.zero_order_hold) {
    scope.line("let w = delta * hold_factor(delta * rate);");
    scope.line("let gbu = g * b * u;");
    scope.line("drate += delta * through + gbu * delta * delta * hold_slope(delta * rate);");
    scope.line("let of_u = g * w * b;");
    scope.line("let of_delta = rate * through + gbu * a;");
  } else {
    scope.line("drate += delta * through;");
    // The sums are still to be multiplied by delta, and by u.
    scope.line("let of_u = g * b;");
    scope.line("let of_delta = rate * through;");
  }
  give_to_sums(scope, i);
}

bool selective_by_block(const Launch& launch, const WgslOptions& options) {
  if (launch.selective != SelectivePart::kForward) {
    return launch.selective == SelectivePart::kBackward;
  }
  if (options.lanes > 0) return false;
  // Steps go one after another: either there are few, or others keep the GPU busy meanwhile.
  const SelectiveSizes s = selective_sizes(launch);
  return s.chunks() > 1 && (s.chunks() <= 4 || s.fills_gpu());
}

Shader write_selective_block(const Launch& launch, const WgslOptions& options) {
  if (const std::optional<LaneSizes> sizes = lane_sizes(launch, options))
    return SelectiveLanes(launch, options, *sizes).write();
  return SelectiveBlock(launch, options).write();
}

}  // namespace tensorgrad::wgsl
