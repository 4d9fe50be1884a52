// SPDX-License-Identifier: MIT
// Selective scans by blocks of channels. A workgroup processes the steps in chunks. Inputs of the
// current chunk are staged in workgroup memory while the next chunk is prefetched. The backward
// pass recomputes the states of a chunk from the state saved before it, and keeps them in
// registers.
//
// Names in the shader: `channel` is the thread's channel in the block, and `q` its channel in the
// tensor. `row` numbers the groups of four states of a channel.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "codegen/wgsl/selective_scan/block.h"
#include "codegen/wgsl/selective_scan/lanes.h"

namespace tensorgrad::wgsl {
namespace {

std::string both(const std::string& a, const std::string& b) {
  return a + (a.empty() || b.empty() ? "" : " && ") + b;
}

}  // namespace

SelectiveBlock::SelectiveBlock(const Launch& launch, const WgslOptions& options)
    : SelectiveChunks(launch, options),
      block_(std::max<std::int64_t>(4, s_.block())),
      threads_per_channel_(s_.threads_per_channel()),
      threads_(block_ * threads_per_channel_) {
  CHECK(threads_ <= options_.max_threads, l_.name + ": a workgroup has too few threads");
  choose_sums();
  CHECK(shared_bytes() <= options_.max_workgroup_bytes, l_.name + ": too little workgroup memory");
}

Shader SelectiveBlock::write() {
  const std::int64_t segments = forward() ? 1 : s_.segments();
  list_staged();
  write_staged();
  write_input(SelectiveInput::kA, "rate_at", 1, s_.rates(), s_.channels);
  write_input(SelectiveInput::kInitial, "initial_at", s_.batch, s_.states, s_.channels);
  write_input(SelectiveInput::kEnds, "end_at", s_.batch, s_.segments() * s_.states, s_.channels);
  write_states();
  share();
  open_workgroup(threads_, segments);
  open_channel();
  read_quad(scope_, "rate", "rate_at(0u, ");
  scope_.line("let rate2 = rate * 1.44269504f;");  // for exp2
  if (!euler()) scope_.line("let inverse = 1.0f / rate;");
  if (s_.skip) scope_.line("let skip = rate_at(0u, " + u32_literal(s_.states) + ", q);");
  if (gated()) write_sigmoid(forward() ? "f32" : "vec4<f32>");
  if (forward()) {
    write_place(0, s_.length, s_.channels);
    write_state_results();
    write_forward();
  } else {
    write_result(0, s_.length, s_.channels);
    write_result(1, s_.length, s_.channels);
    write_result(2, s_.blocks() * s_.length, 2 * s_.states);
    write_result(3, s_.segments() * s_.rates(), s_.channels);
    write_result(4, s_.states, s_.channels);
    if (gated()) write_result(5, s_.length, s_.channels);
    write_backward();
  }
  return make_shader(module_, scope_, static_cast<int>(threads_),
                     window_.count * segments * s_.blocks());
}

// Declares the thread's `channel` and `row`, and the row and first channel that it prefetches.
void SelectiveBlock::open_channel() {
  scope_.line("let channel = local % " + u32_literal(block_) + ";");
  scope_.line("let row = local / " + u32_literal(block_) + ";");
  const std::string most = u32_literal(s_.channels - 1);
  const std::string q = "block * " + u32_literal(block_) + " + channel";
  scope_.line("let real = " + (even() ? "true" : q + " <= " + most) + ";");
  scope_.line("let q = " + (even() ? q : "min(" + q + ", " + most + ")") + ";");
  const std::string first =
      "block * " + u32_literal(block_) + " + local % " + u32_literal(quads()) + " * 4u";
  scope_.line("let brought_row = local / " + u32_literal(quads()) +
              (rows_at_once() > kChunk ? " % " + u32_literal(kChunk) : "") + ";");
  scope_.line(
      "let brought_channel = " +
      (even() ? first : "min(" + first + ", " + u32_literal((s_.channels - 1) / 4 * 4) + ")") +
      ";");
  if (!even()) {
    const std::string channels = u32_literal(s_.channels);
    scope_.line("let real_brought = " +
                (s_.channels % 4 == 0
                     ? first + " < " + channels
                     : "vec4<u32>(" + first + ") + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(" +
                           channels + ")") +
                ";");
  }
  open_bc(scope_);
}

// ---- inputs of a chunk -------------------------------------------------------------------------

std::int64_t SelectiveBlock::shared_bytes() const {
  const auto arrays = static_cast<std::int64_t>(of_steps().size());
  const std::int64_t read = kChunk * (4 * quads() * arrays + 2 * padded()) * 4;
  return read + (forward() ? sums_.steps * threads_ * 4 : sums_bytes());
}

void SelectiveBlock::share() {
  for (const std::string& name : of_steps())
    module_.shared(name + "_of", "vec4<f32>", kChunk * quads(), 16);
  module_.shared("bc_of", "vec4<f32>", kChunk * 2 * threads_per_channel_, 16);
  if (forward()) {
    module_.shared("parts_y", "f32", sums_.steps * threads_, 4);
  } else {
    share_sums();
  }
}

std::vector<std::string> SelectiveBlock::of_steps() const {
  if (!forward()) return {"delta", "u", "dy"};
  if (!euler()) return {"delta", "u"};
  return s_.skip ? std::vector<std::string>{"delta", "wu", "u"}
                 : std::vector<std::string>{"delta", "wu"};
}

std::int64_t SelectiveBlock::own_rows() const {
  return std::max<std::int64_t>(1, kChunk / rows_at_once());
}

void SelectiveBlock::list_staged() {
  std::vector<std::int64_t> behind;
  for (std::int64_t e = 0; e < own_rows(); ++e) behind.push_back(e * rows_at_once());
  const auto add = [&](SelectiveInput which, const char* name) {
    staged_.push_back({which, name, 4, s_.length, s_.channels, kChunk, behind, "brought_row",
                       "brought_channel", even() ? "" : "real_brought"});
  };
  add(SelectiveInput::kDelta, "delta");
  add(SelectiveInput::kU, "u");
  if (!forward()) add(SelectiveInput::kDy, "dy");
  bring_bc(threads_);
  if (!gated()) return;
  if (forward()) {  // for the outputs that the thread finishes
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < kChunk; i += rows_between()) rows.push_back(i);
    staged_.push_back({SelectiveInput::kZ, "z", 1, s_.length, s_.channels, kChunk, rows, "out_row",
                       "q", even() ? "" : "real"});
  } else {
    add(SelectiveInput::kZ, "z");
    add(SelectiveInput::kUngated, "ungated");
  }
}

// Writes the prefetched values to workgroup memory. A barrier must follow. The previous chunk is no
// longer in use: the last read of it is before a barrier.
void SelectiveBlock::unload(Scope& scope) const {
  const auto put = [&](Scope& to, const std::string& name, std::int64_t e) {
    to.line(name + "_of[local + " + u32_literal(e * threads_) + "] = next_" + name +
            std::to_string(e) + ";");
  };
  Scope steps(&scope);
  for (std::int64_t e = 0; e < own_rows(); ++e) {
    const std::string n = std::to_string(e);
    if (gated() && !forward()) {
      pass_gate(steps, n);
      store_dz(steps, e);
    }
    if (forward() && euler())
      steps.line("let next_wu" + n + " = " + step_of("next_delta" + n) + " * next_u" + n + ";");
    for (const std::string& name : of_steps()) put(steps, name, e);
  }
  scope.block(rows_at_once() > kChunk ? "if (local < " + u32_literal(kChunk * quads()) + ")" : "",
              steps);
  for (std::int64_t e = 0; e < own_bc(threads_); ++e) put(scope, "bc", e);
}

void SelectiveBlock::store_dz(Scope& scope, std::int64_t e) const {
  const std::string n = std::to_string(e);
  const std::string t = "start + brought_row + " + u32_literal(e * rows_at_once());
  for (int c = 0; c < 4; ++c) {
    std::string real = whole() ? "" : t + " < " + u32_literal(s_.length);
    if (!even()) {
      real = both(real, "real_brought" + (s_.channels % 4 == 0 ? "" : "." + component(c)));
    }
    const std::string store = "store5(p, " + t + ", brought_channel + " + u32_literal(c) + ", dz" +
                              n + "." + component(c) + ");";
    scope.line(real.empty() ? store : "if (" + real + ") { " + store + " }");
  }
}

// ---- four states of a thread -------------------------------------------------------------------

// state_of() returns the number of the thread's state i, and there() the condition under which it
// exists (empty: always).
std::string SelectiveBlock::state_of(const std::string& vector, std::int64_t i) const {
  return vector + " * 4u + " + u32_literal(i);
}
std::string SelectiveBlock::there(std::int64_t i) const {
  const std::string state =
      s_.states == padded() ? "" : state_of("row", i) + " < " + u32_literal(s_.states);
  return both(even() ? "" : "real", state);
}

// Returns the call's value for state n, or 0 if there is no such state. Avoids branches because
// drivers compile many of them slowly.
std::string SelectiveBlock::read_state(const std::string& call, const std::string& n,
                                       const std::string& rest) const {
  if (s_.states == padded()) return call + n + rest;
  const std::string last = u32_literal(s_.states - 1);
  return "select(0.0f, " + call + "min(" + n + ", " + last + ")" + rest + ", " + n + " <= " + last +
         ")";
}

// Declares `name`, the values for the thread's four states. `call` is the beginning of a call that
// takes the state and the channel last. Values of missing states or channels are 0.
void SelectiveBlock::read_quad(Scope& scope, const std::string& name,
                               const std::string& call) const {
  scope.line("var " + name + " = vec4<f32>();");
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::string read = read_state(call, state_of("row", i), ", q)");
    scope.line(name + "." + component(i) + " = " +
               (even() ? read : "select(0.0f, " + read + ", real)") + ";");
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

// Reads the inputs of step i of the chunk: delta, u or wu, and B; with `all`, also C and dy. The
// step number is appended to their names.
void SelectiveBlock::load_step(Scope& scope, std::int64_t i, bool all) const {
  const std::string n = std::to_string(i);
  for (const std::string& name : of_steps()) {
    if ((name == "dy" && !all) || (name == "u" && forward() && euler())) continue;
    scope.line("let " + name + n + " = " + name + "_of[" + u32_literal(i * quads()) +
               " + channel / 4u][channel % 4u];");
  }
  const auto of_bc = [&](const std::string& name, std::int64_t half) {
    scope.line("let " + name + "_" + n + " = bc_of[" +
               u32_literal((2 * i + half) * threads_per_channel_) + " + row];");
  };
  of_bc("b", 0);
  if (all) of_bc("c", 1);
}

// Renames the inputs of step i to names without the number. Declares the decay a, and wu, the
// factor of B.
void SelectiveBlock::open_step(Scope& scope, std::int64_t i, bool all) const {
  const std::string n = std::to_string(i);
  for (const std::string name : {"delta", "u", "dy", "b", "c"}) {
    if ((name == "u" && forward() && euler()) || (name == "dy" && (forward() || !all)) ||
        (name == "c" && !all))
      continue;
    const bool of_bc = name == "b" || name == "c";  // bindings are named b0, b1 etc.
    const std::string given = std::string(name) + (of_bc ? "_" : "") + n;
    scope.line("let " + name + " = " + (name == "delta" ? step_of(given) : given) + ";");
  }
  scope.line("var a = exp2(delta * rate2);");
  if (!whole()) {  // past the last step; 0 times an infinite rate is NaN
    scope.line("if (start + " + u32_literal(i) + " >= " + u32_literal(s_.length) +
               ") { a = vec4<f32>(1.0f); }");
  }
  scope.line(!euler()    ? "let wu = u * held(vec4<f32>(delta), rate, inverse, a);"
             : forward() ? "let wu = vec4<f32>(wu" + n + ");"
                         : "let wu = vec4<f32>(delta * u);");
}

// Returns the state before step i, or the gradient that flows back into it; 0 if the step has a
// reset.
std::string SelectiveBlock::unless_reset(const std::string& state, std::int64_t i) const {
  if (!scan_.resets) return state;
  return "select(" + state + ", vec4<f32>(), delta" + std::to_string(i) + " < 0.0f)";
}

// ---- forward -----------------------------------------------------------------------------------

void SelectiveBlock::write_forward() {
  if (has(SelectiveInput::kInitial)) {
    read_quad(scope_, "h", "initial_at(p, ");
  } else {
    scope_.line("var h = vec4<f32>();");
  }
  const std::string row = threads_per_channel_ > sums_.steps
                              ? "min(row, " + u32_literal(sums_.steps - 1) + ")"
                              : std::string("row");
  scope_.line("let out_row = " + row + ";");
  bring_first("0u");
  scope_.line("var out_y = place0(p, out_row, q);");
  Scope chunk(&scope_);
  chunk.line("let start = chunk * " + u32_literal(kChunk) + ";");
  unload(chunk);
  for (std::int64_t k = 0; gated() && k < kChunk / rows_between(); ++k)
    chunk.line("let z" + std::to_string(k) + " = next_z" + std::to_string(k) + ";");
  // Prefetch the next chunk before the stores. Its reads would otherwise wait for them.
  Scope next(&chunk);
  bring_next(next, "chunk + 1u");
  chunk.block("if (chunk + 1u < chunks)", next);
  chunk.line("workgroupBarrier();");
  if (scan_.keeps_states)
    store_quad(chunk, "h",
               "store" + std::to_string(s_.states_result()) + "(p, chunk * " +
                   u32_literal(s_.states) + " + ",
               "");
  // The reads of each step precede the writes of the previous step, because compilers do not move
  // reads above writes.
  load_step(chunk, 0, true);
  for (std::int64_t i = 0; i < kChunk; ++i) {
    if (i + 1 < kChunk) load_step(chunk, i + 1, true);
    Scope step(&chunk);
    open_step(step, i, true);
    step.line("h = a * " + unless_reset("h", i) + " + wu * b;");
    step.line("parts_y[" + u32_literal(i % sums_.steps * threads_) + " + local] = dot(h, c);");
    chunk.block("", step);
    if ((i + 1) % sums_.steps != 0) continue;
    sum_outputs(chunk, i + 1 - sums_.steps);
    if (i + 1 < kChunk) chunk.line("workgroupBarrier();");
  }
  chunk.line("out_y += " + u32_literal(kChunk * s_.channels) + ";");
  scope_.block("for (var chunk = 0u; chunk < chunks; chunk++)", chunk);
  store_quad(scope_, "h", "store1(p, ", "");
}

// Sums and stores the outputs of `sums_.steps` steps of the chunk, from step `from`. A thread
// finishes every `threads_per_channel_`-th of them for its channel. All values are read before the
// first store: otherwise threads that do not store would branch around the reads too.
void SelectiveBlock::sum_outputs(Scope& scope, std::int64_t from) const {
  const std::int64_t rounds = ceil_div(sums_.steps, threads_per_channel_);
  const auto y = [&](std::int64_t r) {
    return "y" + std::to_string(from + r * threads_per_channel_);
  };
  // Read u before the barrier. After it, threads may overwrite u with the next chunk.
  for (std::int64_t r = 0; r < rounds && s_.skip; ++r) {
    scope.line("let skip_" + y(r) + " = skip * u_of[out_row * " + u32_literal(quads()) + " + " +
               u32_literal((from + r * threads_per_channel_) * quads()) +
               " + channel / 4u][channel % 4u];");
  }
  scope.line("workgroupBarrier();");
  for (std::int64_t r = 0; r < rounds; ++r) {
    std::string sum;
    for (std::int64_t k = 0; k < threads_per_channel_; ++k) {
      sum += (k == 0 ? "parts_y[out_row * " : " + parts_y[out_row * ") + u32_literal(threads_) +
             " + " + u32_literal(r * threads_per_channel_ * threads_ + k * block_) + " + channel]";
    }
    if (s_.skip) sum += " + skip_" + y(r);
    scope.line("let " + y(r) + " = " + sum + ";");
  }
  for (std::int64_t r = 0; r < rounds; ++r) {
    const std::int64_t step = from + r * threads_per_channel_;
    std::string condition = even() ? "" : "real";
    if (threads_per_channel_ > sums_.steps)
      condition = both(condition, "row < " + u32_literal(sums_.steps));
    if (!whole()) {
      condition =
          both(condition, "start + " + u32_literal(step) + " + row < " + u32_literal(s_.length));
    }
    Scope stores(&scope);
    const auto store = [&](std::int64_t behind, const std::string& value) {
      stores.line(module_.store(l_.stores.at(0).binding, DType::kF32,
                                "out_y + " + u32_literal(step * s_.channels + behind), value));
    };
    if (keeps_ungated()) store(behind_first(SelectiveSizes::kUngatedResult), y(r));
    const std::string z = "z" + std::to_string(step / rows_between());
    store(0, gated() ? y(r) + " * (" + z + " * sigmoid_of(" + z + "))" : y(r));
    scope.block(condition.empty() ? "" : "if (" + condition + ")", stores);
  }
}

// ---- backward ----------------------------------------------------------------------------------

void SelectiveBlock::write_backward() {
  if (has(SelectiveInput::kEnds)) {
    read_quad(scope_, "e", "end_at(p, segment * " + u32_literal(s_.states) + " + ");
  } else {
    scope_.line("var e = vec4<f32>();");
  }
  scope_.line("var drate = vec4<f32>();");
  if (s_.skip) scope_.line("var dskip = 0.0f;");
  write_sums();
  bring_first("first + chunks - 1u");
  read_quad(scope_, "before", "state_at(p, begin * " + u32_literal(s_.states) + " + ");
  scope_.line("var next_h = before;");
  Scope chunk(&scope_);
  chunk.line("let start = (first + left - 1u) * " + u32_literal(kChunk) + ";");
  unload(chunk);
  chunk.line("workgroupBarrier();");
  chunk.line("let h0 = next_h;");
  Scope next(&chunk);
  bring_next(next, "first + left - 2u");
  read_quad(next, "before", "state_at(p, coming * " + u32_literal(s_.states) + " + ");
  next.line("next_h = before;");
  chunk.block("if (left > 1u)", next);
  for (std::int64_t i = 0; i < kChunk; ++i) {  // h<i>: the state before step i
    const std::string before = "h" + std::to_string(i), after = "h" + std::to_string(i + 1);
    chunk.line("var " + after + " = vec4<f32>();");
    Scope step(&chunk);
    load_step(step, i, false);
    open_step(step, i, false);
    step.line(after + " = a * " + unless_reset(before, i) + " + wu * b;");
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
  store_quad(scope_, "drate", "store3(p, segment * " + u32_literal(s_.rates()) + " + ", "");
  store_quad(scope_, "e", "store4(p, ", "segment == 0u");
  if (s_.skip) store_skip();
}

void SelectiveBlock::write_step_back(Scope& scope, std::int64_t i) const {
  open_step(scope, i, true);
  scope.line("let g = c * dy + e;");
  scope.line("e = a * g;");
  scope.line("let through = e * " + unless_reset("h" + std::to_string(i), i) + ";");
  if (scan_.resets) scope.line("e = " + unless_reset("e", i) + ";");
  scope.line("let of_b = g * wu;");
  scope.line("let of_c = dy * h" + std::to_string(i + 1) + ";");
  if (scan_.zero_order_hold) {
    scope.line("let w = held(vec4<f32>(delta), rate, inverse, a);");
    scope.line("let gbu = g * b * u;");
    scope.line(
        "drate += delta * through + gbu * held_slope(vec4<f32>(delta), rate, inverse, a, w);");
    scope.line("let of_u = g * w * b;");
    scope.line("let of_delta = rate * through + gbu * a;");
  } else {
    scope.line("drate += delta * through;");
    // The sums are later multiplied by delta and by u.
    scope.line("let of_u = g * b;");
    scope.line("let of_delta = rate * through;");
  }
  give_to_sums(scope, i);
}

bool selective_by_block(const Launch& launch, const WgslOptions& options) {
  const SelectiveParams& scan = kernel_of<SelectiveKernel>(launch).scan;
  if (scan.pass != SelectivePass::kForward) return scan.pass == SelectivePass::kBackward;
  if (options.lanes > 0) return false;
  // The steps run sequentially. This is fast if there are few, or if other blocks keep the GPU
  // busy.
  const SelectiveSizes& s = scan.sizes;
  return s.chunks() > 1 && (s.chunks() <= 4 || s.fills_gpu());
}

Shader write_selective_block(const Launch& launch, const WgslOptions& options) {
  if (const std::optional<LaneSizes> sizes = lane_sizes(launch, options))
    return SelectiveLanes(launch, options, *sizes).write();
  return SelectiveBlock(launch, options).write();
}

// ---- sums -----------------------------------------------------------------------------------

// Sums of the backward pass: over states for the gradients of u and delta, and over the channels of
// the block for those of B and C. They pass through workgroup memory, a few steps at a time, in a
// fixed order. The gradient of D is accumulated over the steps by the same function.

namespace {

constexpr std::int64_t kVectorBytes = 16;

}  // namespace

void SelectiveBlock::choose_sums() {
  for (std::int64_t steps = forward() ? kChunk : 4; steps > 0; steps /= 2) {
    for (std::int64_t shares : {block_ / (2 * steps), std::int64_t{1}}) {
      shares = std::max<std::int64_t>(1, shares);
      sums_ = {steps, shares, block_ + (shares < 8 ? shares : 0)};
      if (shared_bytes() <= options_.max_workgroup_bytes) return;
    }
  }
  sums_.pitch = block_;
}

std::int64_t SelectiveBlock::sums_bytes() const {
  const std::int64_t shared = sums_.shares > 1 ? vectors() * sums_.shares : 0;
  return (vectors() * sums_.pitch + shared) * kVectorBytes + sums_.steps * threads_ * 8;
}

void SelectiveBlock::share_sums() {
  module_.shared("parts", "vec4<f32>", vectors() * sums_.pitch, kVectorBytes);
  module_.shared("parts_s", "vec2<f32>", sums_.steps * threads_, 8);
  if (sums_.shares > 1)
    module_.shared("shared_sums", "vec4<f32>", vectors() * sums_.shares, kVectorBytes);
}

void SelectiveBlock::give_to_sums(Scope& scope, std::int64_t i) const {
  const std::int64_t of_step = i % sums_.steps * 2 * threads_per_channel_ * sums_.pitch;
  const std::string c_parts = u32_literal(of_step + threads_per_channel_ * sums_.pitch);
  scope.line("parts[" + u32_literal(of_step) + " + own_part] = of_b;");
  scope.line("parts[" + c_parts + " + own_part] = of_c;");
  scope.line("parts_s[" + u32_literal(i % sums_.steps * threads_) +
             " + local] = vec2<f32>(of_u.x + of_u.y + of_u.z + of_u.w, of_delta.x + of_delta.y + "
             "of_delta.z + of_delta.w);");
}

// Writes the sums for `sums_.steps` steps of the chunk, from step `from`.
void SelectiveBlock::sum_steps(Scope& scope, std::int64_t from) const {
  scope.line("workgroupBarrier();");
  const std::string which = "start, " + u32_literal(from) + ", local";
  scope.line(s_.skip ? "dskip += sum(p, block, " + which + ", q, real, skip);"
                     : "sum(p, block, " + which + ", q, real);");
  scope.line("workgroupBarrier();");
  if (sums_.shares > 1) scope.line("add_shares(p, block, " + which + ");");
}

void SelectiveBlock::share_out(Scope& scope, const Scope& body, std::int64_t count) const {
  scope.block(
      "for (var f = local; f < " + u32_literal(count) + "; f += " + u32_literal(threads_) + ")",
      body);
}

// Writes fn sum, which computes and stores the sums over states and channels for `sums_.steps`
// steps of the chunk, from step `origin`. It returns the thread's part of the gradient of D.
void SelectiveBlock::write_sums() {
  scope_.line("let own_part = row * " + u32_literal(sums_.pitch) + " + channel;");
  Scope all;
  if (s_.skip) all.line("var dskip = 0.0f;");
  Scope of_states(&all);
  of_states.line("let i = f / " + u32_literal(block_) + ";");
  of_states.line("let channel = f % " + u32_literal(block_) + ";");
  of_states.line("let t = start + origin + i;");
  of_states.line("var s = parts_s[i * " + u32_literal(threads_) + " + channel];");
  for (std::int64_t k = 1; k < threads_per_channel_; ++k) {
    of_states.line("s += parts_s[i * " + u32_literal(threads_) + " + " + u32_literal(k * block_) +
                   " + channel];");
  }
  Scope store(&of_states);
  const std::string place =
      "_of[(origin + i) * " + u32_literal(quads()) + " + channel / 4u][channel % 4u]";
  const bool hold = scan_.zero_order_hold;
  const std::string through_skip = s_.skip ? " + skip * dy" + place : "";
  store.line("store0(p, t, q, s.x" + (hold ? "" : " * " + step_of("delta" + place)) + through_skip +
             ");");
  if (s_.skip) store.line("dskip += dy" + place + " * u" + place + ";");
  store.line(std::string("store1(p, t, q, s.y") + (hold ? "" : " + u" + place + " * s.x") + ");");
  of_states.block("if (real && t < " + u32_literal(s_.length) + ")", store);
  share_out(all, of_states, sums_.steps * block_);

  const bool shared = sums_.shares > 1;
  Scope of_channels(&all);
  of_channels.line("let origin_part = f / " + u32_literal(sums_.shares) + " * " +
                   u32_literal(sums_.pitch) + " + f % " + u32_literal(sums_.shares) + ";");
  of_channels.line("var total = parts[origin_part];");
  for (std::int64_t k = 1; k < block_ / sums_.shares; ++k)
    of_channels.line("total += parts[origin_part + " + u32_literal(k * sums_.shares) + "];");
  if (shared) {
    of_channels.line("shared_sums[f] = total;");
  } else {
    for (int i = 0; i < 4; ++i) store_bc(of_channels, "f", u32_literal(i), "total." + component(i));
  }
  share_out(all, of_channels, vectors() * sums_.shares);
  const std::string parameters = "p: u32, block: u32, start: u32, origin: u32, local: u32";
  if (s_.skip) all.line("return dskip;");
  module_.function("sum", "fn sum(" + parameters + ", q: u32, real: bool" +
                              (s_.skip ? ", skip: f32) -> f32 {\n" : ") {\n") + all.text() + "}\n");
  if (!shared) return;
  // Adds the partial sums of the threads that share a sum.
  Scope rest, one(&rest);
  one.line("let vector = f / 4u * " + u32_literal(sums_.shares) + ";");
  one.line("var total = shared_sums[vector][f % 4u];");
  for (std::int64_t k = 1; k < sums_.shares; ++k)
    one.line("total += shared_sums[vector + " + u32_literal(k) + "][f % 4u];");
  store_bc(one, "(f / 4u)", "f % 4u", "total");
  share_out(rest, one, vectors() * 4);
  module_.function("add_shares", "fn add_shares(" + parameters + ") {\n" + rest.text() + "}\n");
}

// Stores the gradient of D. Each thread has accumulated part of the steps of a channel.
void SelectiveBlock::store_skip() {
  scope_.line("parts_s[local] = vec2<f32>(dskip, 0.0f);");
  scope_.line("workgroupBarrier();");
  std::string total;
  for (std::int64_t k = 0; k < threads_per_channel_; ++k) {
    total += (k == 0 ? "parts_s[" : " + parts_s[") + u32_literal(k * block_) + " + channel].x";
  }
  scope_.line(std::string("if (row == 0u") + (even() ? "" : " && real") +
              ") { store3(p, segment * " + u32_literal(s_.rates()) + " + " +
              u32_literal(s_.states) + ", q, " + total + "); }");
}

// Stores the sum over channels of one component of vector number `vector` of `parts`.
void SelectiveBlock::store_bc(Scope& scope, const std::string& vector, const std::string& i,
                              const std::string& value) const {
  Scope inner(&scope), store(&inner);
  inner.line("let t = start + origin + " + vector + " / " + u32_literal(2 * threads_per_channel_) +
             ";");
  inner.line("let half = " + vector + " / " + u32_literal(threads_per_channel_) + " % 2u;");
  inner.line("let n = " + vector + " % " + u32_literal(threads_per_channel_) + " * 4u + " + i +
             ";");
  store.line("store2(p, block * " + u32_literal(s_.length) + " + t, half * " +
             u32_literal(s_.states) + " + n, " + value + ");");
  inner.block("if (n < " + u32_literal(s_.states) + " && t < " + u32_literal(s_.length) + ")",
              store);
  scope.block("", inner);
}

}  // namespace tensorgrad::wgsl
