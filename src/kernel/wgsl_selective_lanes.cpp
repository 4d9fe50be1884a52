// SPDX-License-Identifier: MIT
// A selective scan's backward pass by lanes. A workgroup goes over the steps a chunk at a time:
// what a chunk reads lies in workgroup memory, and the next one is on its way; the states of the
// chunk are computed anew from the one before it and stay in registers.
//
// Sums over states (what u and delta get) and over channels (what B and C get) are added up by
// halves: in each round a lane keeps half of its sums, gives its partner the other half, and adds
// what it is given. Which of its two states comes first differs between the lanes of the first
// round over channels, so that all give the second: they read B and C from a copy that has
// neighbours swapped. Of u and delta four steps are added up together; only then are their sums
// multiplied by what all states have in common.
//
// Measured on an NVIDIA GPU: two numbers of four bytes are read at the price of one where lanes
// that differ in the lowest bit of their number, or in the next, read the same: so the first stands
// for a channel and the second for a state. Branches between steps keep compilers from filling the
// time that exchanges take, and three workgroups fit a multiprocessor where each has up to 16 KiB.
#include "kernel/wgsl_selective_lanes.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace tensorgrad::wgsl {
namespace {

constexpr std::int64_t kQuadBytes = 16, kPairBytes = 8, kNumberBytes = 4;
// As many steps' sums are made at a time as, of up to 16 states, leave room for three workgroups.
constexpr std::int64_t kMostSumSteps = 8;

std::int64_t bytes_of(const LaneSizes& z, bool zero_order_hold, bool in_memory) {
  const std::int64_t chunk = SelectiveSizes::kChunk;
  const std::int64_t steps = (zero_order_hold ? 3 : 4) * chunk * z.block * kNumberBytes;
  const std::int64_t gates = chunk * z.gates() * kNumberBytes * (z.channel_lanes() > 1 ? 2 : 1);
  const std::int64_t parts = z.sum_steps * z.subgroups() * z.gates() * kNumberBytes;
  return steps + gates + parts + (in_memory ? z.threads() * kQuadBytes : 0);
}

// How far behind a's results b's lie, if always as far.
std::optional<std::int64_t> distance(const Store& a, const Store& b) {
  if (a.binding != b.binding || a.map.views.size() != 1 || b.map.views.size() != 1)
    return std::nullopt;
  View from = a.map.views[0], to = b.map.views[0];
  const std::int64_t between = to.offset - from.offset;
  to.offset = from.offset;
  if (from != to) return std::nullopt;
  return between;
}

std::string bit(const std::string& number, int mask) {
  return "(" + number + " & " + u32_literal(mask) + ") != 0u";
}

}  // namespace

std::optional<LaneSizes> lane_sizes(const Launch& launch, const WgslOptions& options) {
  if (launch.selective != SelectivePart::kBackward) return std::nullopt;
  const SelectiveSizes s = selective_sizes(launch);
  LaneSizes z = {s.block(), s.fours()};
  z.subgroup = std::min<std::int64_t>(options.subgroups.size, z.threads());
  if (z.block < 4 || z.threads() > options.max_threads || z.state_lanes() > z.subgroup)
    return std::nullopt;
  for (z.sum_steps = kMostSumSteps; z.sum_steps > 1; z.sum_steps /= 2) {
    if (bytes_of(z, launch.zero_order_hold, options.subgroups.in_memory) <=
        options.max_workgroup_bytes)
      return z;
  }
  return std::nullopt;
}

SelectiveLanes::SelectiveLanes(const Launch& launch, const WgslOptions& options,
                               const LaneSizes& sizes)
    : SelectiveWriter(launch, options), z_(sizes) {
  const int bits = std::countr_zero(static_cast<std::uint64_t>(z_.subgroup));
  const int of_channels = std::countr_zero(static_cast<std::uint64_t>(z_.channel_lanes()));
  for (int b = 0; b < bits; ++b) {
    const bool channel = of_channels > 0 && b != 1 && b <= of_channels;
    (channel ? channel_bits_ : state_bits_).push_back(b);
  }
}

Shader SelectiveLanes::write() {
  list_quads();
  write_inputs_in_quads();
  write_exchanges();
  write_place(0, s_.length, s_.channels);
  behind_ = distance(l_.stores.at(0), l_.stores.at(1));
  if (!behind_) write_place(1, s_.length, s_.channels);
  write_place(2, s_.blocks() * s_.length, 2 * s_.states);
  write_result(3, s_.segments() * s_.states, s_.channels);
  write_result(4, s_.states, s_.channels);
  share();
  open_unit(z_.threads(), s_.segments());
  open_lanes();
  read_own(scope_, "rate", "rate_at(0u, ");
  scope_.line("let rate2 = rate * 1.44269504f;");  // for powers of two
  write_chunks();
  store_own(scope_, "drate", "store3(p, segment * " + u32_literal(s_.states) + " + ", "");
  store_own(scope_, "e", "store4(p, ", "segment == 0u");
  if (!options_.subgroups.in_memory) module_.use_subgroups(options_.subgroups.enabled);
  return make_shader(module_, scope_, static_cast<int>(z_.threads()),
                     window_.count * s_.segments() * s_.blocks());
}

// ---- functions and workgroup memory ------------------------------------------------------------

void SelectiveLanes::list_quads() {
  const auto of_steps = [&](SelectiveInput which, const char* name) {
    quads_.push_back({which, name, s_.length, s_.channels, kChunk, own_rows(), fetched_rows(),
                      "row", "in", even() ? "" : "real_in"});
  };
  of_steps(SelectiveInput::kU, "u");
  of_steps(SelectiveInput::kDelta, "delta");
  of_steps(SelectiveInput::kDy, "dy");
  const bool all = s_.states == z_.padded();
  quads_.push_back({SelectiveInput::kBC, "gates", s_.length, 2 * s_.states, kChunk, own_gates(),
                    z_.threads() / (2 * z_.fours), "gate_row", "gate_column",
                    all ? "" : "real_gates"});
  if (!states_by_lanes()) return;
  quads_.push_back({SelectiveInput::kStates, "state", s_.chunks() * s_.states, s_.channels,
                    s_.states, 1, 0, "kept_row", "kept", even() && all ? "" : "real_kept"});
}

void SelectiveLanes::write_inputs_in_quads() {
  if (!states_by_lanes()) {
    write_input(SelectiveInput::kStates, "state_at", s_.batch, s_.chunks() * s_.states,
                s_.channels);
  }
  write_input(SelectiveInput::kA, "rate_at", 1, s_.states, s_.channels);
  write_input(SelectiveInput::kEnds, "end_at", s_.batch, s_.segments() * s_.states, s_.channels);
  std::vector<InFours> rest;  // what is read number by number, and what is written
  for (const ScalarProgram* program : programs_of(l_))
    rest.push_back({program, {}, 0, false, false, l_.stores});
  std::vector<InFours*> all;
  for (Quads& each : quads_) {
    const ScalarProgram& program = l_.input(each.which);
    std::erase_if(rest, [&](const InFours& other) { return other.program == &program; });
    // B and C lie side by side: both begin at a multiple of four, or neither is read so.
    const bool fours = each.columns % (each.which == SelectiveInput::kBC ? 8 : 4) == 0;
    each.fours = {
        &program, {{"p", s_.batch}, {"i", each.rows}, {"q", each.columns}}, 2, true, fours};
    all.push_back(&each.fours);
  }
  for (InFours& each : rest) all.push_back(&each);
  const std::set<int> vectors = choose_fours(l_, all, options_);
  for (Quads& each : quads_) write_quad(each, vectors);
}

// Columns beyond the last are as the last: nobody uses them.
void SelectiveLanes::write_quad(Quads& quads, const std::set<int>& vectors) {
  const ScalarProgram& program = *quads.fours.program;
  const auto function = [&](const std::string& name, const std::string& type, const Scope& body) {
    module_.function(
        name, "fn " + name + "(p: u32, i: u32, q: u32) -> " + type + " {\n" + body.text() + "}\n");
  };
  Scope scope;
  std::string value;
  if (quads.fours.chosen) {
    FourWriter writer(module_, quads.fours, vectors);
    const int last = static_cast<int>(program.instrs.size()) - 1;
    writer.write(scope, {last});
    value = writer.value(last);
  } else {
    write_input(quads.which, quads.name + "_at", s_.batch, quads.rows, quads.columns);
    for (int c = 0; c < 4; ++c) {
      value += (c == 0 ? "vec4<f32>(" : ", ") + quads.name + "_at(p, i, min(q + " + u32_literal(c) +
               ", " + u32_literal(quads.columns - 1) + "))";
    }
    value += ')';
  }
  scope.line("return " + value + ";");
  function(quads.name + "_four", "vec4<f32>", scope);
  if (!quads.fours.chosen || program.instrs.size() != 1) return;
  const Access& access = program.accesses.at(static_cast<std::size_t>(program.instrs[0].index));
  const std::optional<std::int64_t> step = even_step(quads.fours.domain, access.map, 1);
  if (!step || *step % 4 != 0 || !vectors.contains(access.binding)) return;
  quads.step = *step / 4;
  Scope at;
  at.line("return (" + place_of(at, quads.fours.domain, access.map).index + ") / 4u;");
  function(quads.name + "_place", "u32", at);
  quads.place = at.text();
}

// fn exchangeN: what the lane whose number differs by `mask` gives; fn taken: what lane `from`
// does.
void SelectiveLanes::write_exchanges() {
  const bool memory = options_.subgroups.in_memory;
  const auto traded = [](const std::string& put, const std::string& from, const char* part) {
    return "  traded[local] = " + put + ";\n  workgroupBarrier();\n  let given = traded[" + from +
           "]" + part + ";\n  workgroupBarrier();\n  return given;\n";
  };
  const char* const types[] = {"f32", "vec2<f32>", "vec4<f32>"};
  const char* const padding[] = {", 0.0f, 0.0f, 0.0f", ", 0.0f, 0.0f", ""};
  const char* const parts[] = {".x", ".xy", ""};
  for (int k = 0; k < 3; ++k) {
    const std::string type = types[k], name = "exchange" + std::to_string(1 << k);
    const std::string body =
        memory ? traded(std::string("vec4<f32>(x") + padding[k] + ")", "local ^ mask", parts[k])
               : "  return subgroupShuffleXor(x, mask);\n";
    module_.function(name, "fn " + name + "(local: u32, x: " + type + ", mask: u32) -> " + type +
                               " {\n" + body + "}\n");
  }
  if (!states_by_lanes()) return;
  const std::string place =
      "local / " + u32_literal(z_.subgroup) + " * " + u32_literal(z_.subgroup) + " + from_lane";
  module_.function("taken",
                   "fn taken(local: u32, x: vec4<f32>, from_lane: u32) -> vec4<f32> {\n" +
                       (memory ? traded("x", place, "")
                               : std::string("  return subgroupShuffle(x, from_lane);\n")) +
                       "}\n");
}

// fn placeN(p, i, q): where a result lies. Rows are as long as there are columns.
void SelectiveLanes::write_place(std::size_t which, std::int64_t rows, std::int64_t columns) {
  const Store& store = l_.stores.at(which);
  const Domain domain = {{"p", l_.batch}, {"i", rows}, {"q", columns}};
  CHECK(rows == 1 || even_step(domain, store.map, 1) == columns, l_.name);
  Scope scope;
  scope.line("return " + place_of(scope, domain, store.map).index + ";");
  const std::string name = "place" + std::to_string(which);
  module_.function(name,
                   "fn " + name + "(p: u32, i: u32, q: u32) -> u32 {\n" + scope.text() + "}\n");
}

void SelectiveLanes::share() {
  const std::int64_t steps = kChunk * z_.pairs();
  for (const char* name : {"delta_of", "u_of", "dy_of"})
    module_.shared(name, "vec2<f32>", steps, kPairBytes);
  if (euler()) module_.shared("wu_of", "vec2<f32>", steps, kPairBytes);
  module_.shared("gates_of", "vec2<f32>", kChunk * z_.padded() * (states_by_lanes() ? 2 : 1),
                 kPairBytes);
  module_.shared("parts", "f32", z_.sum_steps * z_.subgroups() * z_.gates(), kNumberBytes);
  if (options_.subgroups.in_memory) module_.shared("traded", "vec4<f32>", z_.threads(), kQuadBytes);
}

// ---- who does what -----------------------------------------------------------------------------

std::string SelectiveLanes::number_of(const std::vector<int>& bits) const {
  std::string sum;
  for (std::size_t k = 0; k < bits.size(); ++k) {
    sum += (k == 0 ? "((sub_lane >> " : " + ((sub_lane >> ") + u32_literal(bits[k]) + ") & 1u) * " +
           u32_literal(1 << k);
  }
  return sum.empty() ? "0u" : sum;
}

// Which channels and states a thread works on: s0 and s1, q0 and q1, in the order in which it gives
// its states away; own_pair numbers the channels within the subgroup. And what it brings: row and
// quad number the step and the channels.
void SelectiveLanes::open_lanes() {
  const auto let = [&](const std::string& name, const std::string& value) {
    scope_.line("let " + name + " = " + value + ";");
  };
  let("sub_lane", "local % " + u32_literal(z_.subgroup));
  let("sub", "local / " + u32_literal(z_.subgroup));
  let("own_pair", number_of(channel_bits_));
  let("own_states", number_of(state_bits_));
  let("own_channels", "sub * " + u32_literal(z_.channel_lanes()) + " + own_pair");
  for (std::size_t k = 0; k < channel_bits_.size(); ++k)
    let("channel_up" + std::to_string(k), bit("sub_lane", 1 << channel_bits_[k]));
  for (std::size_t k = 0; k < state_bits_.size(); ++k)
    let("state_up" + std::to_string(k), bit("sub_lane", 1 << state_bits_[k]));
  let("swapped", states_by_lanes()
                     ? "select(0u, 1u, channel_up" + std::to_string(channel_bits_.size() - 1) + ")"
                     : "0u");
  let("s0", "own_states * 2u + swapped");
  let("s1", "own_states * 2u + 1u - swapped");
  const std::string most = u32_literal(s_.channels - 1);
  for (const std::string c : {"0", "1"}) {
    const std::string q = "block * " + u32_literal(z_.block) + " + own_channels * 2u + " + c + "u";
    let("real_q" + c, even() ? "true" : q + " <= " + most);
    let("q" + c, even() ? q : "min(" + q + ", " + most + ")");
  }
  // The first channel of the quads that a thread brings, of steps and of states, and which of them
  // are real.
  const std::string origin = "block * " + u32_literal(z_.block) + " + ";
  const std::string steps = "vec4<u32>(0u, 1u, 2u, 3u)";
  const auto quad = [&](const std::string& name, const std::string& first,
                        const std::string& more) {
    const std::int64_t last_quad = (s_.channels - 1) / 4 * 4;
    let(name, even() ? first : "min(" + first + ", " + u32_literal(last_quad) + ")");
    std::string real = more;
    if (!even() && s_.channels % 4 == 0) {
      real = first + " < " + u32_literal(s_.channels) + (more.empty() ? "" : " && " + more);
    } else if (!even()) {
      real =
          "vec4<u32>(" + first + ") + " + steps + " < vec4<u32>(" + u32_literal(s_.channels) + ")";
      if (!more.empty()) real = "select(vec4<bool>(), " + real + ", " + more + ")";
    }
    if (!real.empty()) let("real_" + name, real);
  };
  let("row", "local / " + u32_literal(z_.quads()) +
                 (fetched_rows() > kChunk ? " % " + u32_literal(kChunk) : ""));
  quad("in", origin + "local % " + u32_literal(z_.quads()) + " * 4u", "");
  const bool all = s_.states == z_.padded();
  let("gate_row", "local / " + u32_literal(2 * z_.fours));
  let("gate_state", "local % " + u32_literal(z_.fours) + " * 4u");
  let("gate_column",
      "local / " + u32_literal(z_.fours) + " % 2u * " + u32_literal(s_.states) + " + " +
          (!all && s_.states % 4 == 0 ? "min(gate_state, " + u32_literal(s_.states - 4) + ")"
                                      : "gate_state"));
  if (!all) {
    let("real_gates", s_.states % 4 == 0 ? "gate_state < " + u32_literal(s_.states)
                                         : "vec4<u32>(gate_state) + " + steps + " < vec4<u32>(" +
                                               u32_literal(s_.states) + ")");
  }
  let("own_b",
      states_by_lanes()
          ? "swapped * " + u32_literal(kChunk * z_.padded() + z_.padded() / 2) + " + own_states"
          : "own_states");
  let("own_c", states_by_lanes() ? "swapped * " + u32_literal(kChunk * z_.padded()) + " + " +
                                       u32_literal(z_.padded() / 2) + " - swapped * " +
                                       u32_literal(z_.padded() / 2) + " + own_states"
                                 : u32_literal(z_.padded() / 2) + " + own_states");
  if (states_by_lanes()) {
    const std::int64_t quads = z_.channel_lanes() / 2;  // of a state, in a subgroup
    const std::string state = "sub_lane / " + u32_literal(quads);
    const std::string first = origin + "sub * " + u32_literal(2 * z_.channel_lanes()) +
                              " + sub_lane % " + u32_literal(quads) + " * 4u";
    quad("kept", first, all ? "" : state + " < " + u32_literal(s_.states));
    let("kept_row", all ? state : "min(" + state + ", " + u32_literal(s_.states - 1) + ")");
    let("from0", "s0 * " + u32_literal(quads) + " + own_pair / 2u");
    let("from1", "s1 * " + u32_literal(quads) + " + own_pair / 2u");
  }
  // Where sums go: of B and C, and of u and delta.
  const std::size_t rounds = state_bits_.size();
  let("own_part",
      "sub * " + u32_literal(z_.sum_steps * z_.gates()) + " + s0" +
          (channel_bits_.size() > 1 ? " + select(0u, " + u32_literal(z_.padded()) + ", channel_up0)"
                                    : ""));
  let("out_step", rounds > 1 ? "select(0u, 1u, state_up0) + select(0u, 2u, state_up1)"
                             : "select(0u, 1u, state_up0)");
  let("out_channel", rounds > 2 ? "select(0u, 1u, state_up2)" : "0u");
  let("own_out", "out_step * " + u32_literal(z_.pairs()) + " + own_channels");
}

// ---- what a chunk reads ------------------------------------------------------------------------

std::int64_t SelectiveLanes::own_rows() const {
  return std::max<std::int64_t>(1, kChunk / fetched_rows());
}
std::int64_t SelectiveLanes::own_gates() const { return kChunk * 2 * z_.fours / z_.threads(); }

// Reads the last chunk; zeros behind the last step, where then nothing changes. And where what the
// chunks before it read lies.
void SelectiveLanes::bring_first() {
  scope_.line("let last = first + chunks - 1u;");
  for (Quads& each : quads_) {
    const std::string row = "last * " + u32_literal(each.chunk_rows) + " + " + each.row;
    const bool ragged = !whole() && each.which != SelectiveInput::kStates;
    for (std::int64_t e = 0; e < each.units; ++e) {
      const std::string name = each.name + std::to_string(e);
      const std::string of_row = row + " + " + u32_literal(e * each.unit_rows);
      const std::string last = u32_literal(s_.length - 1);
      std::string value = each.name + "_four(p, " +
                          (ragged ? "min(" + of_row + ", " + last + ")" : of_row) + ", " +
                          each.column + ")";
      if (!each.real.empty()) value = "select(vec4<f32>(), " + value + ", " + each.real + ")";
      if (ragged) value = "select(vec4<f32>(), " + value + ", " + of_row + " <= " + last + ")";
      scope_.line("var next_" + name + " = " + value + ";");
    }
    if (!each.step) continue;
    const auto alike = std::find_if(quads_.begin(), quads_.end(), [&](const Quads& other) {
      return !other.at.empty() && other.place == each.place && other.row == each.row;
    });
    each.at = alike != quads_.end() ? alike->at : each.name + "_from";
    if (alike == quads_.end()) {
      scope_.line("var " + each.at + " = " + each.name + "_place(p, " + row + ", " + each.column +
                  ");");
    }
  }
  if (states_by_lanes()) return;
  read_own(scope_, "before", "state_at(p, last * " + u32_literal(s_.states) + " + ");
  scope_.line("var next_h = before;");
}

// Reads the chunk before this one, of which all steps are real. Without branches, and all by all
// threads: who copies a value that has not come yet waits for it.
void SelectiveLanes::bring_next(Scope& scope) const {
  scope.line("let coming = first + left - 2u;");
  std::set<std::string> moved;
  for (const Quads& each : quads_) {
    if (each.step && moved.insert(each.at).second)
      scope.line(each.at + " -= " + u32_literal(each.chunk_rows * *each.step) + ";");
    for (std::int64_t e = 0; e < each.units; ++e) {
      std::string value;
      if (each.step) {
        const Access& access = each.fours.program->accesses.front();
        value = "b" + std::to_string(access.binding) + "[" + each.at + " + " +
                u32_literal(e * each.unit_rows * *each.step) + "]";
        if (access.dtype == DType::kF16) value = "vec4<f32>(" + value + ")";
      } else {
        value = each.name + "_four(p, coming * " + u32_literal(each.chunk_rows) + " + " + each.row +
                " + " + u32_literal(e * each.unit_rows) + ", " + each.column + ")";
      }
      if (!each.real.empty()) value = "select(vec4<f32>(), " + value + ", " + each.real + ")";
      scope.line("next_" + each.name + std::to_string(e) + " = " + value + ";");
    }
  }
  if (states_by_lanes()) return;
  read_own(scope, "before", "state_at(p, coming * " + u32_literal(s_.states) + " + ");
  scope.line("next_h = before;");
}

// Puts what has come to where all threads see it. Nobody reads the chunk before any more: after its
// last step there is a barrier.
void SelectiveLanes::unload(Scope& scope) const {
  Scope steps(&scope);
  for (std::int64_t e = 0; e < own_rows(); ++e) {
    const std::string n = std::to_string(e);
    if (euler()) steps.line("let next_wu" + n + " = next_delta" + n + " * next_u" + n + ";");
    for (const std::string name : {"delta", "u", "dy", "wu"}) {
      if (name == "wu" && !euler()) continue;
      const std::string at = name + "_of[local * 2u + " + u32_literal(e * z_.threads() * 2);
      steps.line(at + "] = next_" + name + n + ".xy;");
      steps.line(at + " + 1u] = next_" + name + n + ".zw;");
    }
  }
  scope.block(
      fetched_rows() > kChunk ? "if (local < " + u32_literal(kChunk * z_.quads()) + ")" : "",
      steps);
  for (std::int64_t e = 0; e < own_gates(); ++e) {
    const std::string next = "next_gates" + std::to_string(e);
    const std::string at = "local * 2u + " + u32_literal(e * z_.threads() * 2);
    scope.line("gates_of[" + at + "] = " + next + ".xy;");
    scope.line("gates_of[" + at + " + 1u] = " + next + ".zw;");
    if (!states_by_lanes()) continue;
    // The copy has C before B, so that both are in different banks.
    const std::string copy = u32_literal(kChunk * z_.padded()) + " + ((" + at + ") ^ " +
                             u32_literal(z_.padded() / 2) + ")";
    scope.line("gates_of[" + copy + "] = " + next + ".yx;");
    scope.line("gates_of[" + copy + " + 1u] = " + next + ".wz;");
  }
  scope.line("workgroupBarrier();");
}

// h0, the states before the chunk.
void SelectiveLanes::take_states(Scope& scope) const {
  if (!states_by_lanes()) {
    scope.line("let h0 = next_h;");
    return;
  }
  scope.line("let kept0 = taken(local, next_state0, from0);");
  scope.line("let kept1 = taken(local, next_state0, from1);");
  scope.line(
      "let h0 = select(vec4<f32>(kept0.x, kept1.x, kept0.y, kept1.y), "
      "vec4<f32>(kept0.z, kept1.z, kept0.w, kept1.w), channel_up0);");
}

// `name`: numbers that are read by a call with its state and its channel behind `call`; zero where
// there are none.
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

}  // namespace tensorgrad::wgsl
