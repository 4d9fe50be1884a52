// SPDX-License-Identifier: MIT
// Selective scans by blocks of channels: a workgroup has the channels of a block of one batch, a
// thread four states of a channel, neighbours have neighbouring channels. It goes over the steps a
// chunk at a time: what a chunk reads lies in workgroup memory, and while it is worked on, the next
// one is on its way. Backward, the states of the chunk are computed anew from the one before it and
// stay in registers. Sums over states and over the block's channels go by way of workgroup memory,
// some steps at a time, in a fixed order.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kernel/wgsl_selective.h"

namespace tensorgrad::wgsl {
namespace {

constexpr std::int64_t kVectorBytes = 16;

class BlockWriter : SelectiveWriter {
 public:
  BlockWriter(const Launch& launch, const WgslOptions& options)
      : SelectiveWriter(launch, options),
        block_(s_.block()),
        fours_(s_.fours()),
        threads_(block_ * fours_) {}

  Shader write() {
    CHECK(threads_ <= options_.max_threads, l_.name + ": a workgroup has too few threads");
    const std::int64_t segments = forward() ? 1 : s_.segments();
    const std::int64_t each = segments * s_.blocks(), groups = window_.count * each;
    choose_sums();
    share();
    open_rows(scope_, Tile{1, static_cast<int>(threads_), true}, groups, "unit");
    scope_.line("let p = unit / " + u32_literal(each) + " + " + u32_literal(window_.first) + ";");
    scope_.line("let segment = unit / " + u32_literal(s_.blocks()) + " % " + u32_literal(segments) +
                ";");
    scope_.line("let block = unit % " + u32_literal(s_.blocks()) + ";");
    scope_.line("let channel = local % " + u32_literal(block_) + ";");
    scope_.line("let four = local / " + u32_literal(block_) + ";");
    const std::string own = "block * " + u32_literal(block_) + " + channel";
    const std::string most = u32_literal(s_.channels - 1);
    const bool even = s_.channels % block_ == 0;
    scope_.line("let real = " + (even ? "true" : own + " <= " + most) + ";");
    scope_.line("let q = " + (even ? own : "min(" + own + ", " + most + ")") + ";");
    scope_.line("let first = segment * " + u32_literal(s_.segment() / kChunk) + ";");
    scope_.line("let chunks = " +
                (segments == 1 ? u32_literal(s_.chunks())
                               : "min(" + u32_literal(s_.segment() / kChunk) + ", " +
                                     u32_literal(s_.chunks()) + " - first)") +
                ";");
    read_four(scope_, "rate", "rate_at(0u, ", ", q)", "");
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
    return make_shader(module_, scope_, static_cast<int>(threads_), groups);
  }

 private:
  // ---- what a chunk reads ---------------------------------------------------------------------

  // How many steps' sums are made at a time; by how many threads each sum over channels; and how
  // far apart its vectors begin, so that neighbours read from different banks.
  struct Sums {
    std::int64_t steps = 1, shares = 1, pitch = 1;
  };
  [[nodiscard]] std::int64_t vectors() const { return sums_.steps * 2 * fours_; }
  [[nodiscard]] std::int64_t workgroup_bytes() const {
    const std::int64_t read =
        kChunk * (block_ * 4 * (forward() ? 2 : 3) + 2 * fours_ * kVectorBytes);
    if (forward()) return read + sums_.steps * threads_ * 4;
    const std::int64_t shared = sums_.shares > 1 ? vectors() * sums_.shares : 0;
    return read + (vectors() * sums_.pitch + shared) * kVectorBytes + sums_.steps * threads_ * 8;
  }
  void choose_sums() {
    for (std::int64_t steps = forward() ? kChunk : 4; steps > 0; steps /= 2) {
      for (std::int64_t shares : {block_ / (2 * steps), std::int64_t{1}}) {
        shares = std::max<std::int64_t>(1, shares);
        sums_ = {steps, shares, block_ + (shares < 8 ? shares : 0)};
        if (workgroup_bytes() <= options_.max_workgroup_bytes) return;
      }
    }
    sums_.pitch = block_;
    CHECK(workgroup_bytes() <= options_.max_workgroup_bytes,
          l_.name + ": too little workgroup memory");
  }

  void share() {
    module_.shared("delta_of", "f32", kChunk * block_, 4);
    module_.shared("u_of", "f32", kChunk * block_, 4);
    module_.shared("gates_of", "vec4<f32>", kChunk * 2 * fours_, kVectorBytes);
    if (forward()) {
      module_.shared("parts_y", "f32", sums_.steps * threads_, 4);
    } else {
      module_.shared("dy_of", "f32", kChunk * block_, 4);
      module_.shared("parts", "vec4<f32>", vectors() * sums_.pitch, kVectorBytes);
      module_.shared("parts_s", "vec2<f32>", sums_.steps * threads_, 8);
      if (sums_.shares > 1)
        module_.shared("shared_sums", "vec4<f32>", vectors() * sums_.shares, kVectorBytes);
    }
  }

  // Steps of the thread's channel that it brings, every `fours`-th; and vectors of B and C.
  [[nodiscard]] std::int64_t own_steps() const { return kChunk / fours_; }
  [[nodiscard]] std::int64_t own_gates() const { return 2 * kChunk / block_; }

  // The variables in which the next chunk waits.
  void declare_next(Scope& scope) const {
    for (std::int64_t e = 0; e < own_steps(); ++e) {
      scope.line("var next_delta" + std::to_string(e) + " = 0.0f;");
      scope.line("var next_u" + std::to_string(e) + " = 0.0f;");
      if (!forward()) scope.line("var next_dy" + std::to_string(e) + " = 0.0f;");
    }
    for (std::int64_t e = 0; e < own_gates(); ++e) {
      scope.line("var next_gates" + std::to_string(e) + " = vec4<f32>();");
    }
    if (!forward()) scope.line("var next_h = vec4<f32>();");
  }

  // Reads chunk number `chunk`; zeros behind the last step, where then nothing changes.
  void bring(Scope& scope, const std::string& chunk) const {
    scope.line("let coming = " + chunk + ";");
    for (std::int64_t e = 0; e < own_steps(); ++e) {
      Scope one(&scope), there(&scope);
      const std::string number = std::to_string(e);
      one.line("let t = coming * " + u32_literal(kChunk) + " + " + u32_literal(e * fours_) +
               " + four;");
      one.line("let there = real && t < " + u32_literal(s_.length) + ";");
      one.line("next_delta" + number + " = 0.0f;");
      one.line("next_u" + number + " = 0.0f;");
      if (!forward()) one.line("next_dy" + number + " = 0.0f;");
      there.line("next_delta" + number + " = delta_at(p, t, q);");
      there.line("next_u" + number + " = u_at(p, t, q);");
      if (!forward()) there.line("next_dy" + number + " = dy_at(p, t, q);");
      one.block("if (there)", there);
      scope.block("", one);
    }
    for (std::int64_t e = 0; e < own_gates(); ++e) {
      Scope one(&scope);
      one.line("let place = local + " + u32_literal(e * threads_) + ";");
      one.line("let t = coming * " + u32_literal(kChunk) + " + place / " + u32_literal(2 * fours_) +
               ";");
      one.line("let half = place / " + u32_literal(fours_) + " % 2u;");
      one.line("let four = place % " + u32_literal(fours_) + ";");
      read_four(one, "gates", "gate_at(p, t, half * " + u32_literal(s_.states) + " + ", ")",
                "t < " + u32_literal(s_.length));
      one.line("next_gates" + std::to_string(e) + " = gates;");
      scope.block("", one);
    }
    if (forward()) return;
    read_four(scope, "before", "state_at(p, coming * " + u32_literal(s_.states) + " + ", ", q)",
              "real");
    scope.line("next_h = before;");
  }

  // Puts what has come to where all threads see it. Nobody reads the chunk before any more: after
  // its last step there is a barrier.
  void unload(Scope& scope) const {
    for (std::int64_t e = 0; e < own_steps(); ++e) {
      const std::string number = std::to_string(e),
                        place = "[local + " + u32_literal(e * threads_) + "] = next_";
      scope.line("delta_of" + place + "delta" + number + ";");
      scope.line("u_of" + place + "u" + number + ";");
      if (!forward()) scope.line("dy_of" + place + "dy" + number + ";");
    }
    for (std::int64_t e = 0; e < own_gates(); ++e) {
      scope.line("gates_of[local + " + u32_literal(e * threads_) + "] = next_gates" +
                 std::to_string(e) + ";");
    }
    scope.line("workgroupBarrier();");
  }

  // `name`: four numbers, of states four * 4 and the next, each read by a call; zero where there is
  // no such state, or where the condition does not hold.
  void read_four(Scope& scope, const std::string& name, const std::string& call,
                 const std::string& rest, const std::string& condition) const {
    scope.line("var " + name + " = vec4<f32>();");
    // One branch at most: drivers take long to compile many.
    Scope there(&scope);
    Scope& reads = condition.empty() ? scope : there;
    const std::string last = u32_literal(s_.states - 1);
    for (int i = 0; i < 4; ++i) {
      const std::string n = "four * 4u + " + u32_literal(i);
      const std::string read = s_.states == 4 * fours_
                                   ? call + n + rest
                                   : "select(0.0f, " + call + "min(" + n + ", " + last + ")" +
                                         rest + ", " + n + " <= " + last + ")";
      reads.line(name + "." + component(i) + " = " + read + ";");
    }
    if (!condition.empty()) scope.block("if (" + condition + ")", there);
  }
  // The reverse: a call for each of four numbers.
  void store_four(Scope& scope, const std::string& name, const std::string& call,
                  const std::string& condition) const {
    for (int i = 0; i < 4; ++i) {
      const std::string n = "four * 4u + " + u32_literal(i);
      when(scope, n, condition, call + n + ", q, " + name + "." + component(i) + ");");
    }
  }
  void when(Scope& scope, const std::string& n, std::string condition,
            const std::string& statement) const {
    if (s_.states != 4 * fours_) {
      condition += (condition.empty() ? "" : " && ") + n + " < " + u32_literal(s_.states);
    }
    scope.line(condition.empty() ? statement : "if (" + condition + ") { " + statement + " }");
  }
  static std::string component(int i) { return std::string(1, "xyzw"[i]); }

  // What step i of the chunk reads: delta, u, B, and, if asked for, C and dy; the names end with
  // the step's number.
  void load_step(Scope& scope, std::int64_t i, bool all) const {
    const std::string n = std::to_string(i), place = "[" + u32_literal(i * block_) + " + channel];";
    scope.line("let delta" + n + " = delta_of" + place);
    scope.line("let u" + n + " = u_of" + place);
    const std::string gates = "gates_of[" + u32_literal(i * 2 * fours_);
    scope.line("let b" + n + " = " + gates + " + four];");
    if (!all) return;
    scope.line("let c" + n + " = " + gates + " + " + u32_literal(fours_) + " + four];");
    if (!forward()) scope.line("let dy" + n + " = dy_of" + place);
  }
  // The same by plain names; a, and wu, by which B is multiplied.
  void open_step(Scope& scope, std::int64_t i, bool all) const {
    std::vector<std::string> names = {"delta", "u", "b"};
    if (all) names.push_back("c");
    if (all && !forward()) names.push_back("dy");
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

  // ---- forward --------------------------------------------------------------------------------

  void write_forward() {
    if (has(SelectiveInput::kInitial)) {
      read_four(scope_, "h", "initial_at(p, ", ", q)", "real");
    } else {
      scope_.line("var h = vec4<f32>();");
    }
    declare_next(scope_);
    bring_first("0u");
    Scope chunk(&scope_);
    chunk.line("let start = chunk * " + u32_literal(kChunk) + ";");
    unload(chunk);
    store_four(chunk, "h", "store2(p, chunk * " + u32_literal(s_.states) + " + ", "real");
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
    store_four(scope_, "h", "store1(p, ", "real");
  }

  void bring_first(const std::string& chunk) {
    Scope start(&scope_);
    bring(start, chunk);
    scope_.block("", start);
  }

  // A loop of the workgroup's threads over `count` things, thing number f at a time.
  void share_out(Scope& scope, const Scope& body, std::int64_t count) const {
    scope.block(
        "for (var f = local; f < " + u32_literal(count) + "; f += " + u32_literal(threads_) + ")",
        body);
  }

  // The outputs of steps `from` and the next of the chunk.
  void sum_outputs(Scope& scope, std::int64_t from) const {
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

  // ---- backward -------------------------------------------------------------------------------

  void write_backward() {
    if (has(SelectiveInput::kEnds)) {
      read_four(scope_, "e", "end_at(p, segment * " + u32_literal(s_.states) + " + ", ", q)",
                "real");
    } else {
      scope_.line("var e = vec4<f32>();");
    }
    scope_.line("var drate = vec4<f32>();");
    scope_.line("let own_part = four * " + u32_literal(sums_.pitch) + " + channel;");
    write_sum();
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
      if (i % sums_.steps != 0) continue;
      chunk.line("workgroupBarrier();");
      chunk.line("sum(p, block, start, " + u32_literal(i) + ", local, q, real);");
      chunk.line("workgroupBarrier();");
      if (sums_.shares > 1)
        chunk.line("add_shares(p, block, start, " + u32_literal(i) + ", local);");
    }
    scope_.block("for (var left = chunks; left > 0u; left--)", chunk);
    store_four(scope_, "drate", "store3(p, segment * " + u32_literal(s_.states) + " + ", "real");
    store_four(scope_, "e", "store4(p, ", "real && segment == 0u");
  }

  void write_step_back(Scope& scope, std::int64_t i) const {
    const bool hold = l_.zero_order_hold;
    open_step(scope, i, true);
    scope.line("let g = c * dy + e;");
    scope.line("e = a * g;");
    scope.line("let through = e * h" + std::to_string(i) + ";");
    const std::int64_t of_step = i % sums_.steps * 2 * fours_ * sums_.pitch;
    const std::string c_parts = u32_literal(of_step + fours_ * sums_.pitch);
    scope.line("parts[" + u32_literal(of_step) + " + own_part] = g * wu;");
    scope.line("parts[" + c_parts + " + own_part] = dy * h" + std::to_string(i + 1) + ";");
    if (hold) {
      scope.line("let w = delta * hold_factor(delta * rate);");
      scope.line("let gbu = g * b * u;");
      scope.line("drate += delta * through + gbu * delta * delta * hold_slope(delta * rate);");
    } else {
      scope.line("drate += delta * through;");
    }
    scope.line("parts_s[" + u32_literal(i % sums_.steps * threads_) + " + local] = vec2<f32>(" +
               (hold ? "dot(g * w, b), dot(rate, through) + dot(gbu, a)"
                     : "dot(g, b), dot(rate, through)") +
               ");");
  }

  // fn sum: the sums of the chunk's steps `origin` and the next, over states and over channels.
  void write_sum() {
    Scope all;
    Scope of_states(&all);
    of_states.line("let i = f / " + u32_literal(block_) + ";");
    of_states.line("let channel = f % " + u32_literal(block_) + ";");
    of_states.line("let t = start + origin + i;");
    of_states.line("var s = parts_s[i * " + u32_literal(threads_) + " + channel];");
    for (std::int64_t k = 1; k < fours_; ++k) {
      of_states.line("s += parts_s[i * " + u32_literal(threads_) + " + " + u32_literal(k * block_) +
                     " + channel];");
    }
    Scope store(&of_states);
    const std::string place = "_of[(origin + i) * " + u32_literal(block_) + " + channel]";
    const bool hold = l_.zero_order_hold;
    store.line(std::string("store0(p, t, q, s.x") + (hold ? "" : " * delta" + place) + ");");
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
      for (int i = 0; i < 4; ++i)
        store_gate(of_channels, "f", u32_literal(i), "total." + component(i));
    }
    share_out(all, of_channels, vectors() * sums_.shares);
    const std::string parameters = "p: u32, block: u32, start: u32, origin: u32, local: u32";
    module_.function("sum",
                     "fn sum(" + parameters + ", q: u32, real: bool) {\n" + all.text() + "}\n");
    if (!shared) return;
    // What the threads that shared a sum have.
    Scope rest, one(&rest);
    one.line("let vector = f / 4u * " + u32_literal(sums_.shares) + ";");
    one.line("var total = shared_sums[vector][f % 4u];");
    for (std::int64_t k = 1; k < sums_.shares; ++k)
      one.line("total += shared_sums[vector + " + u32_literal(k) + "][f % 4u];");
    store_gate(one, "(f / 4u)", "f % 4u", "total");
    share_out(rest, one, vectors() * 4);
    module_.function("add_shares", "fn add_shares(" + parameters + ") {\n" + rest.text() + "}\n");
  }

  // The sum over channels of one component of vector number `vector` of `parts`.
  void store_gate(Scope& scope, const std::string& vector, const std::string& i,
                  const std::string& value) const {
    Scope inner(&scope), store(&inner);
    inner.line("let t = start + origin + " + vector + " / " + u32_literal(2 * fours_) + ";");
    inner.line("let half = " + vector + " / " + u32_literal(fours_) + " % 2u;");
    inner.line("let n = " + vector + " % " + u32_literal(fours_) + " * 4u + " + i + ";");
    store.line("store2(p, block * " + u32_literal(s_.length) + " + t, half * " +
               u32_literal(s_.states) + " + n, " + value + ");");
    inner.block("if (n < " + u32_literal(s_.states) + " && t < " + u32_literal(s_.length) + ")",
                store);
    scope.block("", inner);
  }

  std::int64_t block_, fours_, threads_;
  Sums sums_;
};

}  // namespace

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
  return BlockWriter(launch, options).write();
}

}  // namespace tensorgrad::wgsl
