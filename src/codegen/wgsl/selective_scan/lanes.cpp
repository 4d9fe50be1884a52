// SPDX-License-Identifier: MIT
// The backward pass of a selective scan by lanes. A workgroup processes the steps in chunks. Inputs
// of the current chunk are staged in workgroup memory while the next chunk is prefetched. The
// states of a chunk are recomputed from the state saved before it, and stay in registers.
//
// Sums over states (gradients of u and delta) and over channels (gradients of B and C) are reduced
// by recursive halving:
// - In each round a lane keeps half of its sums, sends the other half to its partner, and adds what
//   it receives.
// - In the first round all lanes send their second half. Partners with different states have their
//   two channels in opposite order, and partners with different channels their two states.
// - Lanes with swapped states read B and C from a copy with swapped neighbors. Two steps of a
//   channel are adjacent.
// - The sums for u and delta of four steps are then reduced together. Factors that all states share
//   are applied last.
//
// Measured on an NVIDIA GPU:
// - Reading two 4-byte values costs as much as one if lanes that differ only in the lowest or
//   second lowest bit of their number read the same values. Therefore the lowest bit stands for a
//   channel and the second for a state.
// - Branches between steps prevent compilers from hiding the latency of exchanges.
// - Three workgroups fit a multiprocessor if each uses at most 16 KiB.
#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "codegen/wgsl/selective_scan/lanes.h"

namespace tensorgrad::wgsl {
namespace {

constexpr std::int64_t kPairBytes = 8, kNumberBytes = 4;
// The most steps to be summed at a time that, with up to 16 states, leaves room for three
// workgroups per multiprocessor.
constexpr std::int64_t kMaxSumSteps = 8;

std::int64_t bytes_of(const LaneSizes& z, bool zero_order_hold, bool in_memory) {
  const std::int64_t chunk = SelectiveSizes::kChunk;
  const std::int64_t steps = (zero_order_hold ? 3 : 4) * chunk * z.block * kNumberBytes;
  const std::int64_t of_bc = chunk * z.bc() * kNumberBytes * (z.channel_lanes() > 1 ? 2 : 1);
  const std::int64_t parts = z.sum_steps * z.subgroups() * z.bc() * kNumberBytes;
  return steps + of_bc + parts + (in_memory ? z.threads() * kPairBytes : 0);
}

std::string bit(const std::string& number, int mask) {
  return "(" + number + " & " + u32_literal(mask) + ") != 0u";
}

}  // namespace

std::optional<LaneSizes> lane_sizes(const Launch& launch, const WgslOptions& options) {
  const SelectiveParams& scan = kernel_of<SelectiveKernel>(launch).scan;
  if (scan.pass != SelectivePass::kBackward) return std::nullopt;
  const SelectiveSizes& s = scan.sizes;
  LaneSizes z = {s.block(), s.threads_per_channel()};
  z.subgroup = std::min<std::int64_t>(options.subgroups.size, z.threads());
  if (z.block < 4 || z.threads() > options.max_threads || z.state_lanes() > z.subgroup)
    return std::nullopt;
  for (z.sum_steps = kMaxSumSteps; z.sum_steps > 1; z.sum_steps /= 2) {
    if (bytes_of(z, scan.zero_order_hold, options.subgroups.in_memory) <=
        options.max_workgroup_bytes)
      return z;
  }
  return std::nullopt;
}

SelectiveLanes::SelectiveLanes(const Launch& launch, const WgslOptions& options,
                               const LaneSizes& sizes)
    : SelectiveChunks(launch, options), z_(sizes) {
  const int bits = std::countr_zero(static_cast<std::uint64_t>(z_.subgroup));
  const int of_channels = std::countr_zero(static_cast<std::uint64_t>(z_.channel_lanes()));
  for (int b = 0; b < bits; ++b) {
    const bool channel = of_channels > 0 && b != 1 && b <= of_channels;
    (channel ? channel_bits_ : state_bits_).push_back(b);
  }
}

Shader SelectiveLanes::write() {
  list_staged();
  if (!by_pairs()) write_states();
  write_input(SelectiveInput::kA, "rate_at", 1, s_.rates(), s_.channels);
  write_input(SelectiveInput::kEnds, "end_at", s_.batch, s_.segments() * s_.states, s_.channels);
  write_staged();
  write_exchanges();
  write_place(0, s_.length, s_.channels);
  write_place(2, s_.blocks() * s_.length, 2 * s_.states);
  write_result(3, s_.segments() * s_.rates(), s_.channels);
  write_result(4, s_.states, s_.channels);
  if (gated()) {
    write_place(5, s_.length, s_.channels);
    write_sigmoid("vec2<f32>");
  }
  share();
  open_workgroup(z_.threads(), s_.segments());
  open_lanes();
  read_own(scope_, "rate", "rate_at(0u, ");
  scope_.line("let rate2 = rate * 1.44269504f;");  // for exp2
  if (!euler()) scope_.line("let inverse = 1.0f / rate;");
  write_chunks();
  store_own(scope_, "drate", "store3(p, segment * " + u32_literal(s_.rates()) + " + ", "");
  store_own(scope_, "e", "store4(p, ", "segment == 0u");
  if (s_.skip) store_skip();
  if (!options_.subgroups.in_memory) module_.use_subgroups(options_.subgroups.enabled);
  return make_shader(module_, scope_, static_cast<int>(z_.threads()),
                     window_.count * s_.segments() * s_.blocks());
}

// ---- functions and workgroup memory ------------------------------------------------------------

void SelectiveLanes::list_staged() {
  const auto of_steps = [&](SelectiveInput which, const char* name) {
    std::vector<std::int64_t> behind;
    for (std::int64_t e = 0; e < own_row_pairs(); ++e)
      behind.insert(behind.end(), {e * rows_at_once(), e * rows_at_once() + 1});
    staged_.push_back({which, name, 2, s_.length, s_.channels, kChunk, behind, "row", "in",
                       even() ? "" : "real_in"});
  };
  of_steps(SelectiveInput::kU, "u");
  of_steps(SelectiveInput::kDelta, "delta");
  of_steps(SelectiveInput::kDy, "dy");
  if (gated()) {
    of_steps(SelectiveInput::kZ, "z");
    of_steps(SelectiveInput::kUngated, "ungated");
  }
  bring_bc(z_.threads());
  if (!by_pairs()) return;
  // With a gate, o is in the same buffer, and all vectors of a buffer have the same width.
  staged_.push_back({SelectiveInput::kStates,
                     "kept",
                     gated() ? 2 : 4,
                     kept_rows(),
                     kept_columns(),
                     s_.states / 2,
                     {0},
                     "kept_row",
                     "kept_column",
                     even() && s_.states == z_.padded() ? "" : "real_kept",
                     gated() ? 2 : 1});
}

// Writes fn exchangeN, which returns the value of the lane whose number differs by `mask`.
void SelectiveLanes::write_exchanges() {
  const bool memory = options_.subgroups.in_memory;
  const char* const types[] = {"f32", "vec2<f32>"};
  const char* const put[] = {"vec2<f32>(x, 0.0f)", "x"};
  const char* const part[] = {".x", ""};
  for (int k = 0; k < 2; ++k) {
    const std::string type = types[k], name = "exchange" + std::to_string(1 << k);
    const std::string body = memory ? std::string("  traded[local] = ") + put[k] +
                                          ";\n  workgroupBarrier();\n"
                                          "  let given = traded[local ^ mask]" +
                                          part[k] + ";\n  workgroupBarrier();\n  return given;\n"
                                    : "  return subgroupShuffleXor(x, mask);\n";
    module_.function(name, "fn " + name + "(local: u32, x: " + type + ", mask: u32) -> " + type +
                               " {\n" + body + "}\n");
  }
}

void SelectiveLanes::share() {
  const std::int64_t steps = kChunk * z_.pairs();
  for (const char* name : {"delta_of", "u_of", "dy_of"})
    module_.shared(name, "vec2<f32>", steps, kPairBytes);
  if (euler()) module_.shared("wu_of", "vec2<f32>", steps, kPairBytes);
  module_.shared("bc_of", "vec2<f32>", kChunk * z_.padded() * (states_by_lanes() ? 2 : 1),
                 kPairBytes);
  module_.shared("parts", "f32", z_.sum_steps * z_.subgroups() * z_.bc(), kNumberBytes);
  if (options_.subgroups.in_memory) module_.shared("traded", "vec2<f32>", z_.threads(), kPairBytes);
}

// ---- work of a thread --------------------------------------------------------------------------

std::string SelectiveLanes::number_of(const std::vector<int>& bits) const {
  std::string sum;
  for (std::size_t k = 0; k < bits.size(); ++k) {
    sum += (k == 0 ? "((sub_lane >> " : " + ((sub_lane >> ") + u32_literal(bits[k]) + ") & 1u) * " +
           u32_literal(1 << k);
  }
  return sum.empty() ? "0u" : sum;
}

// Declares the thread's states s0 and s1 and channels q0 and q1; c0 and c1 are their numbers in the
// block. The thread keeps the sums of the first and sends those of the second. Also declares the
// rows and columns that it prefetches.
void SelectiveLanes::open_lanes() {
  const auto let = [&](const std::string& name, const std::string& value) {
    scope_.line("let " + name + " = " + value + ";");
  };
  let("sub_lane", "local % " + u32_literal(z_.subgroup));
  let("sub", "local / " + u32_literal(z_.subgroup));
  let("own_states", number_of(state_bits_));
  let("own_channels", "sub * " + u32_literal(2 * z_.channel_lanes()) + " + (" +
                          number_of(channel_bits_) + ") * 2u");
  for (std::size_t k = 0; k < channel_bits_.size(); ++k)
    let("channel_up" + std::to_string(k), bit("sub_lane", 1 << channel_bits_[k]));
  for (std::size_t k = 0; k < state_bits_.size(); ++k)
    let("state_up" + std::to_string(k), bit("sub_lane", 1 << state_bits_[k]));
  let("swapped", states_by_lanes()
                     ? "select(0u, 1u, channel_up" + std::to_string(channel_bits_.size() - 1) + ")"
                     : "0u");
  let("s0", "own_states * 2u + swapped");
  let("s1", "own_states * 2u + 1u - swapped");
  let("turned", "select(0u, 1u, state_up" + std::to_string(state_bits_.size() - 1) + ")");
  let("c0", "own_channels + turned");
  let("c1", "own_channels + 1u - turned");
  const std::string origin = "block * " + u32_literal(z_.block) + " + ";
  const std::string most = u32_literal(s_.channels - 1);
  for (const std::string c : {"0", "1"}) {
    const std::string q = origin + "c" + c;
    let("real_q" + c, even() ? "true" : q + " <= " + most);
    let("q" + c, even() ? q : "min(" + q + ", " + most + ")");
  }
  // Prefetched per-step inputs: two channels of two rows.
  const std::string last_pair = u32_literal((s_.channels - 1) / 2 * 2);
  const std::string first_in = origin + "local % " + u32_literal(z_.pairs()) + " * 2u";
  let("row", "local / " + u32_literal(z_.pairs()) + " * 2u" +
                 (rows_at_once() > kChunk ? " % " + u32_literal(kChunk) : ""));
  let("in", even() ? first_in : "min(" + first_in + ", " + last_pair + ")");
  if (!even()) let("real_in", run_below(first_in, 2, s_.channels));
  const bool all = s_.states == z_.padded();
  open_bc(scope_);
  let("own_b",
      states_by_lanes()
          ? "swapped * " + u32_literal(kChunk * z_.padded() + z_.padded() / 2) + " + own_states"
          : "own_states");
  let("own_c", states_by_lanes() ? "swapped * " + u32_literal(kChunk * z_.padded()) + " + " +
                                       u32_literal(z_.padded() / 2) + " - swapped * " +
                                       u32_literal(z_.padded() / 2) + " + own_states"
                                 : u32_literal(z_.padded() / 2) + " + own_states");
  if (by_pairs()) {
    const std::string first = origin + "own_channels", pairs = u32_literal(s_.states / 2);
    let("kept_row", all ? "own_states" : "min(own_states, " + pairs + " - 1u)");
    let("kept_column",
        (even() ? "(" + first + ")" : "min(" + first + ", " + last_pair + ")") + " * 2u");
    std::string real = all ? "" : "own_states < " + pairs;
    if (!even() && s_.channels % 2 == 0) {
      real += (all ? "" : " && ") + run_below(first, 2, s_.channels);
    } else if (!even()) {
      const std::string each = "(" + run_below(first, 2, s_.channels) + ").xxyy";
      real = all ? each : "select(vec4<bool>(), " + each + ", " + real + ")";
    }
    if (!real.empty()) let("real_kept", gated() ? "vec4<bool>(" + real + ")" : real);
  }
  // Positions of sums: of B and C, and of u and delta.
  let("own_part",
      "sub * " + u32_literal(z_.sum_steps * z_.bc()) + " + s0" +
          (channel_bits_.size() > 1 ? " + select(0u, " + u32_literal(z_.padded()) + ", channel_up0)"
                                    : ""));
  const std::size_t halved = state_bits_.size() - 1;  // rounds that halve steps, at most two
  let("out_step", std::string(halved > 0 ? "select(0u, 1u, state_up0)" : "0u") +
                      (halved > 1 ? " + select(0u, 2u, state_up1)" : ""));
  let("own_out", "out_step / 2u * " + u32_literal(z_.block) + " + c0");
}

// ---- inputs of a chunk -------------------------------------------------------------------------

std::int64_t SelectiveLanes::own_row_pairs() const {
  return std::max<std::int64_t>(1, kChunk / rows_at_once());
}

// Writes the prefetched values to workgroup memory. The previous chunk is no longer in use: its
// last step is followed by a barrier.
void SelectiveLanes::unload(Scope& scope) const {
  Scope steps(&scope);
  for (std::int64_t e = 0; e < own_row_pairs(); ++e) {
    const std::string even = std::to_string(2 * e), odd = std::to_string(2 * e + 1);
    for (const std::string& n : {even, odd}) {
      if (gated()) {
        pass_gate(steps, n);
        store_dz(steps, e * rows_at_once() + (n == odd ? 1 : 0), n);
      }
      if (s_.skip) steps.line("dskip += next_dy" + n + " * next_u" + n + ";");
    }
    if (euler()) {
      for (const std::string& n : {even, odd})
        steps.line("let next_wu" + n + " = " + step_of("next_delta" + n) + " * next_u" + n + ";");
    }
    for (const std::string name : {"delta", "u", "dy", "wu"}) {
      if (name == "wu" && !euler()) continue;
      const std::string at = name + "_of[local * 2u + " + u32_literal(e * z_.threads() * 2);
      const std::string next = "next_" + name;
      for (const std::string c : {"x", "y"}) {
        steps.line(at + (c == "x" ? "" : " + 1u") + "] = vec2<f32>(" + next + even + "." + c +
                   ", " + next + odd + "." + c + ");");
      }
    }
  }
  scope.block(
      rows_at_once() > kChunk ? "if (local < " + u32_literal(kChunk / 2 * z_.pairs()) + ")" : "",
      steps);
  for (std::int64_t e = 0; e < own_bc(z_.threads()); ++e) {
    const std::string next = "next_bc" + std::to_string(e);
    const std::string at = "local * 2u + " + u32_literal(e * z_.threads() * 2);
    scope.line("bc_of[" + at + "] = " + next + ".xy;");
    scope.line("bc_of[" + at + " + 1u] = " + next + ".zw;");
    if (!states_by_lanes()) continue;
    // The copy has C before B, so that the two are in different banks.
    const std::string copy = u32_literal(kChunk * z_.padded()) + " + ((" + at + ") ^ " +
                             u32_literal(z_.padded() / 2) + ")";
    scope.line("bc_of[" + copy + "] = " + next + ".yx;");
    scope.line("bc_of[" + copy + " + 1u] = " + next + ".wz;");
  }
  scope.line("workgroupBarrier();");
}

// Stores prefetched vector n of dz, which belongs to the row that is `behind` rows after `row`.
void SelectiveLanes::store_dz(Scope& scope, std::int64_t behind, const std::string& n) const {
  const std::string late =
      whole() ? "" : "start + row + " + u32_literal(behind) + " < " + u32_literal(s_.length);
  for (const std::string c : {"x", "y"}) {
    std::string real = late;
    if (!even()) {
      real += (late.empty() ? "" : " && ") + std::string("real_in") +
              (s_.channels % 2 == 0 ? "" : "." + c);
    }
    const std::string store = module_.store(
        l_.stores.at(5).binding, DType::kF32,
        "out_z + " + u32_literal(behind * s_.channels + (c == "x" ? 0 : 1)), "dz" + n + "." + c);
    scope.line(real.empty() ? store : "if (" + real + ") { " + store + " }");
  }
}

// Stores the gradient of D. Each thread has the part of the values that it prefetched.
void SelectiveLanes::store_skip() {
  const std::int64_t rows = std::min(z_.threads(), kChunk / 2 * z_.pairs()) / z_.pairs();
  const std::string give = "u_of[local] = dskip;";
  const bool all = rows * z_.pairs() == z_.threads();
  scope_.line(all ? give : "if (local < " + u32_literal(rows * z_.pairs()) + ") { " + give + " }");
  scope_.line("workgroupBarrier();");
  Scope sum(&scope_);
  sum.line("var total = 0.0f;");
  sum.line("for (var r = 0u; r < " + u32_literal(rows) + "; r++) { total += u_of[r * " +
           u32_literal(z_.pairs()) + " + local / 2u][local % 2u]; }");
  const std::string q = "block * " + u32_literal(z_.block) + " + local";
  sum.line("store3(p, segment * " + u32_literal(s_.rates()) + " + " + u32_literal(s_.states) +
           ", " + q + ", total);");
  scope_.block("if (local < " + u32_literal(z_.block) +
                   (even() ? ")" : " && " + q + " < " + u32_literal(s_.channels) + ")"),
               sum);
}

void SelectiveLanes::read_states(Scope& scope, const std::string& chunk,
                                 const std::string& declared) const {
  if (by_pairs()) return;
  read_own(scope, "before", "state_at(p, " + chunk + " * " + u32_literal(s_.states) + " + ");
  scope.line(declared + "next_h = before;");
}

// Declares h0, the states before the chunk.
void SelectiveLanes::take_states(Scope& scope) const {
  if (!by_pairs()) return scope.line("let h0 = next_h;");
  if (gated()) scope.line("let next_kept = vec4<f32>(next_kept0, next_kept1);");
  const std::string kept = gated() ? "next_kept" : "next_kept0";
  scope.line("let by_state = select(" + kept + ", " + kept + ".yxwz, swapped == 1u);");
  scope.line("let h0 = select(by_state, by_state.zwxy, turned == 1u);");
}

// Declares `name`, the values for the thread's states and channels. `call` is the beginning of a
// call that takes the state and the channel last. Values of missing states or channels are 0.
void SelectiveLanes::read_own(Scope& scope, const std::string& name,
                              const std::string& call) const {
  const std::string last = u32_literal(s_.states - 1);
  const bool all = s_.states == z_.padded();
  std::string list;
  for (const std::string c : {"0", "1"}) {
    for (const std::string s : {"s0", "s1"}) {
      std::string read = call + (all ? s : "min(" + s + ", " + last + ")") + ", q" + c + ")";
      if (!all) read = "select(0.0f, " + read + ", " + s + " <= " + last + ")";
      if (!even()) read = "select(0.0f, " + read + ", real_q" + c + ")";
      list += (list.empty() ? "" : ", ") + read;
    }
  }
  scope.line("let " + name + " = vec4<f32>(" + list + ");");
}

void SelectiveLanes::store_own(Scope& scope, const std::string& name, const std::string& call,
                               const std::string& condition) const {
  for (int i = 0; i < 4; ++i) {
    const std::string s = "s" + std::to_string(i % 2), c = std::to_string(i / 2);
    std::string real = condition;
    const auto also = [&](const std::string& more) { real += (real.empty() ? "" : " && ") + more; };
    if (!even()) also("real_q" + c);
    if (s_.states != z_.padded()) also(s + " < " + u32_literal(s_.states));
    const std::string store = call + s + ", q" + c + ", " + name + "." + "xyzw"[i] + ");";
    scope.line(real.empty() ? store : "if (" + real + ") { " + store + " }");
  }
}

// ---- steps ----------------------------------------------------------------------------------

// Steps of the backward pass by lanes, and how lanes add up their sums.

namespace {

// The next chunk is prefetched when this many steps of the backward loop remain. The steps before
// have freed their registers by then.
constexpr std::int64_t kFetchAt = 10;

// From this step of a chunk on, decays are kept for the backward loop. Keeping more takes too many
// registers for three workgroups per multiprocessor. With the zero-order hold these do not fit
// anyway.
constexpr std::int64_t kKeptFrom = 8;

// Returns the vector of the same component of two vectors.
std::string both_of(const std::string& first, const std::string& second, const char* component) {
  return "vec2<f32>(" + first + "." + component + ", " + second + "." + component + ")";
}

}  // namespace

// ---- the steps of a chunk ----------------------------------------------------------------------

// Reads the inputs of step i as vectors over the thread's channels and states. Two steps of a
// channel are adjacent, and are read together with the first of them. `again`: to recompute the
// states of a chunk; the names then have an f before the step number.
void SelectiveLanes::load_step(Scope& scope, std::int64_t i, bool again) const {
  const std::string f = again ? "f" : "", n = f + std::to_string(i);
  const std::string place = u32_literal(i / 2 * z_.block);
  const auto channels = [&](const std::string& name) {
    const std::string both = name + "_both" + f + std::to_string(i / 2);
    if ((i % 2 == 0) == again) {
      scope.line("let " + both + " = vec4<f32>(" + name + "_of[c0 + " + place + "], " + name +
                 "_of[c1 + " + place + "]);");
    }
    const bool given = scan_.resets && name == "delta";
    scope.line("let " + (given ? "given" : name) + n + " = " + both +
               (i % 2 == 0 ? ".xxzz;" : ".yyww;"));
    if (given) scope.line("let delta" + n + " = abs(given" + n + ");");
  };
  const auto of_bc = [&](const std::string& name) {
    scope.line("let " + name + "_" + n + " = bc_of[own_" + name + " + " +
               u32_literal(i * z_.padded()) + "].xyxy;");
  };
  channels("delta");
  channels(euler() ? "wu" : "u");
  of_bc("b");
  if (again) return;
  of_bc("c");
  channels("dy");
}

// Returns the state before a step, or the gradient that flows back into it; 0 if the step has a
// reset. `n` is the suffix of the step's names.
std::string SelectiveLanes::unless_reset(const std::string& state, const std::string& n) const {
  if (!scan_.resets) return state;
  return "select(" + state + ", vec4<f32>(), given" + n + " < vec4<f32>())";
}

// Declares the decay of step i and, with the zero-order hold, the factor of B.
void SelectiveLanes::decay(Scope& scope, std::int64_t i, bool again) const {
  const std::string n = (again ? "f" : "") + std::to_string(i);
  const bool kept = euler() && !again && i >= kKeptFrom;
  std::string a = kept ? "af" + n : "exp2(delta" + n + " * rate2)";
  if (!kept && !whole()) {  // past the last step; 0 times an infinite rate is NaN
    a = "select(" + a + ", vec4<f32>(1.0f), start + " + u32_literal(i) +
        " >= " + u32_literal(s_.length) + ")";
  }
  scope.line("let a" + n + " = " + a + ";");
  if (euler()) return;
  scope.line("let w" + n + " = held(delta" + n + ", rate, inverse, a" + n + ");");
  scope.line("let wu" + n + " = w" + n + " * u" + n + ";");
}

void SelectiveLanes::step_forward(Scope& scope, std::int64_t i) const {
  const std::string n = "f" + std::to_string(i);
  load_step(scope, i, true);
  decay(scope, i, true);
  const std::string before = unless_reset("h" + std::to_string(i), n);
  scope.line("let h" + std::to_string(i + 1) + " = a" + n + " * " + before + " + wu" + n + " * b_" +
             n + ";");
}

// Writes step i of the backward loop. e is the gradient that flows into the previous step.
void SelectiveLanes::step_back(Scope& scope, std::int64_t i) {
  const std::string n = std::to_string(i), above = std::to_string(i + 1);
  const auto let = [&](const std::string& name, const std::string& value) {
    scope.line("let " + name + n + " = " + value + ";");
  };
  decay(scope, i, false);
  let("g", "c_" + n + " * dy" + n + " + e" + (i + 1 == kChunk ? "" : above));
  let("e", unless_reset("a" + n + " * g" + n, n));
  let("through", "e" + n + " * " + unless_reset("h" + n, n));
  let("of_b", "g" + n + " * wu" + n);
  let("of_c", "dy" + n + " * h" + above);
  if (euler()) {
    scope.line("drate += delta" + n + " * through" + n + ";");
    // The sums are later multiplied by delta and by u.
    let("of_u", "g" + n + " * b_" + n);
    let("of_delta", "rate2 * through" + n);  // and later by log(2)
  } else {
    let("gb", "g" + n + " * b_" + n);
    let("gbu", "gb" + n + " * u" + n);
    scope.line("drate += delta" + n + " * through" + n + " + gbu" + n + " * held_slope(delta" + n +
               ", rate, inverse, a" + n + ", w" + n + ");");
    let("of_u", "gb" + n + " * w" + n);
    let("of_delta", "rate * through" + n + " + gbu" + n + " * a" + n);
  }
  run_later(scope);
  exchange_bc(scope, i);
  exchange_sums(scope, i);
}

void SelectiveLanes::run_later(Scope& scope) {
  for (const Later& each : std::exchange(later_, {})) each(scope);
}

// Reduces the gradients of B and C over lanes with different channels. A thread has two of each. In
// the first round all lanes send the second of both, then those of either B or C; after that all
// lanes add the same sum. The received sum is added to the kept products one at a time, so that
// compilers emit fused multiply-adds.
void SelectiveLanes::exchange_bc(Scope& scope, std::int64_t i) {
  const std::string n = std::to_string(i);
  const auto mask = [&](std::size_t k) { return u32_literal(1 << channel_bits_[k]) + ")"; };
  const std::string b = "of_b" + n, c = "of_c" + n;
  if (channel_bits_.empty()) {
    return store_bc(scope, i,
                    {b + ".x + " + b + ".z", b + ".y + " + b + ".w", c + ".x + " + c + ".z",
                     c + ".y + " + c + ".w"});
  }
  const std::size_t rounds = channel_bits_.size();
  scope.line("let given_bc" + n + " = exchange2(local, " + both_of(b, c, "y") + " + " +
             both_of(b, c, "w") + ", " + mask(rounds - 1) + ";");
  later_.emplace_back([=, this](Scope& at) {
    const std::string both = "both" + n;
    at.line("let " + both + " = " + both_of(b, c, "x") + " + (" + both_of(b, c, "z") +
            " + given_bc" + n + ");");
    if (rounds == 1) return store_bc(at, i, {both + ".x", "", both + ".y", ""});
    at.line("let half" + n + " = select(" + both + ".x, " + both + ".y, channel_up0);");
    at.line("let given_half" + n + " = exchange1(local, select(" + both + ".y, " + both +
            ".x, channel_up0), " + mask(0) + ";");
    later_.emplace_back([=, this](Scope& last) {
      std::string sum = "half" + n + " + given_half" + n;
      for (std::size_t k = 1; k + 1 < rounds; ++k) {
        const std::string name = "half" + n + "_" + std::to_string(k);
        last.line("let " + name + " = " + sum + ";");
        sum = name + " + exchange1(local, " + name + ", " + mask(k);
      }
      store_bc(last, i, {sum});
    });
  });
}

// Stores one value at `own_part`, or several: two states of B, then two of C. Empty values are
// skipped.
void SelectiveLanes::store_bc(Scope& scope, std::int64_t i,
                              const std::vector<std::string>& values) {
  const std::int64_t step = i % z_.sum_steps * z_.bc();
  std::string only;
  for (std::size_t k = 1; k + 1 < channel_bits_.size(); ++k)
    only += (only.empty() ? "!" : " && !") + ("channel_up" + std::to_string(k));
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (values[k].empty()) continue;
    const std::int64_t place =
        step + static_cast<std::int64_t>(k / 2) * z_.padded() + static_cast<std::int64_t>(k % 2);
    const std::string store = "parts[own_part + " + u32_literal(place) + "] = ";
    if (only.empty()) {
      scope.line(store + values[k] + ";");
    } else {
      const std::string name = "part" + std::to_string(i);
      scope.line("let " + name + " = " + values[k] + ";");
      scope.line("if (" + only + ") { " + store + name + "; }");
    }
  }
}

// Reduces the gradients of u and delta over lanes with different states. In the first round all
// lanes send those of the second channel. Then lanes take one of two steps, then one of two pairs
// of steps; after that all lanes add the same sum.
void SelectiveLanes::exchange_sums(Scope& scope, std::int64_t i) {
  const std::size_t rounds = state_bits_.size() - 1;  // after the first round
  const std::string n = std::to_string(i), sum = "sum" + n;
  const auto exchange = [this](const std::string& value, std::size_t k) {
    return "exchange2(local, " + value + ", " + u32_literal(1 << state_bits_[k]) + ")";
  };
  const auto halve = [=](Scope& at, const std::string& name, const std::string& a,
                         const std::string& b, std::size_t k) {
    const std::string up = ", state_up" + std::to_string(k) + ")";
    at.line("let own_" + name + " = select(" + a + ", " + b + up + ";");
    at.line("let given_" + name + " = " + exchange("select(" + b + ", " + a + up, k) + ";");
  };
  const std::string u = "of_u" + n, delta = "of_delta" + n;
  scope.line("let given_" + sum + " = " +
             exchange(both_of(u, delta, "z") + " + " + both_of(u, delta, "w"), rounds) + ";");
  later_.emplace_back([=, this](Scope& at) {
    at.line("let " + sum + " = " + both_of(u, delta, "x") + " + (" + both_of(u, delta, "y") +
            " + given_" + sum + ");");
    if (rounds == 0) return finish_sums(at, i, sum);
    if (i % 2 != 0) return;
    const std::string pair = "pair" + n;
    halve(at, pair, sum, "sum" + std::to_string(i + 1), 0);
    later_.emplace_back([=, this](Scope& next) {
      next.line("let " + pair + " = own_" + pair + " + given_" + pair + ";");
      if (rounds == 1) return finish_sums(next, i, pair);
      if (i % 4 != 0) return;
      halve(next, "four" + n, pair, "pair" + std::to_string(i + 2), 1);
      later_.emplace_back([=, this](Scope& last) {
        std::string four = "four" + n;
        last.line("let " + four + " = own_" + four + " + given_" + four + ";");
        for (std::size_t k = 2; k < rounds; ++k) {
          const std::string name = "four" + n + "_" + std::to_string(k);
          last.line("let " + name + " = " + four + " + " + exchange(four, k) + ";");
          four = name;
        }
        finish_sums(last, i, four);
      });
    });
  });
}

// Stores the gradients of u and delta for step i + out_step and the first channel. `sums` has both.
void SelectiveLanes::finish_sums(Scope& scope, std::int64_t i, const std::string& sums) const {
  std::string real;
  const auto also = [&](const std::string& more) { real += (real.empty() ? "" : " && ") + more; };
  if (!whole()) also("start + " + u32_literal(i) + " + out_step < " + u32_literal(s_.length));
  for (std::size_t k = 2; k + 1 < state_bits_.size(); ++k) also("!state_up" + std::to_string(k));
  if (!even()) also("real_q0");
  const std::string u = sums + ".x", delta = sums + ".y", more = u32_literal(i * s_.channels);
  const std::string at = "_of[own_out + " + u32_literal(i / 2 * z_.block) + "][" +
                         (state_bits_.size() == 1 ? u32_literal(i % 2) : "out_step % 2u") + "]";
  Scope store(&scope);
  const std::string through_skip = s_.skip ? " + skip * dy" + at : "";
  store.line(module_.store(l_.stores.at(0).binding, DType::kF32, "out_u + " + more,
                           (euler() ? u + " * " + step_of("delta" + at) : u) + through_skip));
  store.line(module_.store(l_.stores.at(1).binding, DType::kF32,
                           "out_u + " + u32_literal(i * s_.channels + behind_first(1)),
                           euler() ? delta + " * 0.693147182f + " + u + " * u" + at : delta));
  scope.block(real.empty() ? "" : "if (" + real + ")", store);
}

// Adds the subgroups' sums for B and C of `sum_steps` steps, from step `from`, and stores them. All
// values are read before the first store: otherwise threads that do not store would branch around
// the reads too.
void SelectiveLanes::sum_subgroups(Scope& scope, std::int64_t from) const {
  const std::int64_t sums = z_.sum_steps * z_.bc(), columns = 2 * s_.states;
  const bool all = s_.states == z_.padded(), full = sums % z_.threads() == 0;
  const std::int64_t rounds = ceil_div(sums, z_.threads());
  const auto name = [&](const std::string& what, std::int64_t r) {
    return what + std::to_string(from) + "_" + std::to_string(r);
  };
  scope.line("workgroupBarrier();");
  for (std::int64_t r = 0; r < rounds; ++r) {
    const std::string f = name("f", r), own = "local + " + u32_literal(r * z_.threads());
    scope.line("let " + f + " = " +
               (full ? own : "min(" + own + ", " + u32_literal(sums - 1) + ")") + ";");
    std::string total;
    for (std::int64_t k = 0; k < z_.subgroups(); ++k)
      total += (k == 0 ? "parts[" : " + parts[") + f + " + " + u32_literal(k * sums) + "]";
    scope.line("let " + name("total", r) + " = " + total + ";");
  }
  for (std::int64_t r = 0; r < rounds; ++r) {
    const std::string f = name("f", r), total = name("total", r);
    const std::string number = f + " % " + u32_literal(z_.bc());
    const std::string n = number + " % " + u32_literal(z_.padded());
    const std::string step = u32_literal(from) + " + " + f + " / " + u32_literal(z_.bc());
    const std::string place = all ? u32_literal(from * columns + r * z_.threads())
                                  : "(" + step + ") * " + u32_literal(columns) + " + " + number +
                                        " / " + u32_literal(z_.padded()) + " * " +
                                        u32_literal(s_.states) + " + " + n;
    std::string real;
    const auto also = [&](const std::string& more) { real += (real.empty() ? "" : " && ") + more; };
    if (!full) also("local + " + u32_literal(r * z_.threads()) + " < " + u32_literal(sums));
    if (!all) also(n + " < " + u32_literal(s_.states));
    if (!whole()) also("start + " + step + " < " + u32_literal(s_.length));
    const std::string store =
        module_.store(l_.stores.at(2).binding, DType::kF32, "sums_at + " + place, total);
    scope.line(real.empty() ? store : "if (" + real + ") { " + store + " }");
  }
  if (from > 0) scope.line("workgroupBarrier();");
}

void SelectiveLanes::write_chunks() {
  if (has(SelectiveInput::kEnds)) {
    read_own(scope_, "end", "end_at(p, segment * " + u32_literal(s_.states) + " + ");
    scope_.line("var e = end;");
  } else {
    scope_.line("var e = vec4<f32>();");
  }
  scope_.line("var drate = vec4<f32>();");
  if (s_.skip) {
    scope_.line("var dskip = vec2<f32>();");
    scope_.line("let skip = rate_at(0u, " + u32_literal(s_.states) + ", q0);");
  }
  bring_first("first + chunks - 1u");
  read_states(scope_, "begin", "var ");
  const std::string from = "begin * " + u32_literal(kChunk);
  scope_.line("var out_u = place0(p, " + from + " + out_step, q0);");
  if (gated()) scope_.line("var out_z = place5(p, " + from + " + row, in);");
  scope_.line("var sums_at = place2(p, block * " + u32_literal(s_.length) + " + " + from + ", 0u)" +
              (s_.states == z_.padded() ? " + local;" : ";"));
  Scope chunk(&scope_);
  chunk.line("let start = (first + left - 1u) * " + u32_literal(kChunk) + ";");
  unload(chunk);
  take_states(chunk);
  for (std::int64_t i = 0; i < kChunk; ++i) step_forward(chunk, i);
  for (std::int64_t i = kChunk; i-- > 0;) {
    if (i + 1 == kFetchAt) {
      Scope next(&chunk), none(&chunk);
      bring_next(next, "first + left - 2u");
      read_states(next, "coming", "");
      chunk.block("if (left > 1u)", next);
      bring_none(none);
      if (!by_pairs()) none.line("next_h = vec4<f32>();");
      chunk.block("else", none);
    }
    load_step(chunk, i, false);
    step_back(chunk, i);
    if (i % z_.sum_steps != 0) continue;
    while (!later_.empty()) run_later(chunk);
    sum_subgroups(chunk, i);
  }
  chunk.line("e = e0;");
  const std::string back = " -= " + u32_literal(kChunk * s_.channels) + ";";
  chunk.line("out_u" + back);
  if (gated()) chunk.line("out_z" + back);
  chunk.line("sums_at -= " + u32_literal(kChunk * 2 * s_.states) + ";");
  scope_.block("for (var left = chunks; left > 0u; left--)", chunk);
}

}  // namespace tensorgrad::wgsl
