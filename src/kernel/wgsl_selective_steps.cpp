// SPDX-License-Identifier: MIT
// The steps of a selective scan's backward pass by lanes (wgsl_selective_lanes.cpp), and how lanes
// add up what they give.
#include <utility>

#include "kernel/wgsl_selective_lanes.h"

namespace tensorgrad::wgsl {
namespace {

// When so many steps of a chunk are still to be gone back over, the next chunk is sent for: those
// behind have given up their registers.
constexpr std::int64_t kFetchAt = 10;

}  // namespace

// ---- the steps of a chunk ----------------------------------------------------------------------

// What step i reads, as vectors over a thread's channels and states; `again`: to make a chunk's
// states anew, for which names have an f before the step's number.
void SelectiveLanes::load_step(Scope& scope, std::int64_t i, bool again) const {
  const std::string n = (again ? "f" : "") + std::to_string(i);
  const auto channels = [&](const std::string& name) {
    scope.line("let " + name + n + " = " + name + "_of[own_channels + " +
               u32_literal(i * z_.pairs()) + "].xxyy;");
  };
  const auto gate = [&](const std::string& name) {
    scope.line("let " + name + "_" + n + " = gates_of[own_" + name + " + " +
               u32_literal(i * z_.padded()) + "].xyxy;");
  };
  channels("delta");
  channels(euler() ? "wu" : "u");
  gate("b");
  if (again) return;
  gate("c");
  channels("dy");
}

// Of step i, whose names end with n: how much is left of the states, and, by the zero-order hold,
// what B is multiplied by.
void SelectiveLanes::decay(Scope& scope, std::int64_t i, const std::string& n) const {
  std::string a = "exp2(delta" + n + " * rate2)";
  if (!whole()) {  // behind the last step; an infinite rate has made NaN of zero
    a = "select(" + a + ", vec4<f32>(1.0f), start + " + u32_literal(i) +
        " >= " + u32_literal(s_.length) + ")";
  }
  scope.line("let a" + n + " = " + a + ";");
  if (euler()) return;
  scope.line("let w" + n + " = delta" + n + " * hold_factor(delta" + n + " * rate);");
  scope.line("let wu" + n + " = w" + n + " * u" + n + ";");
}

void SelectiveLanes::step_forward(Scope& scope, std::int64_t i) const {
  const std::string n = "f" + std::to_string(i);
  load_step(scope, i, true);
  decay(scope, i, n);
  scope.line("let h" + std::to_string(i + 1) + " = a" + n + " * h" + std::to_string(i) + " + wu" +
             n + " * b_" + n + ";");
}

// Step i of what flows back; e is what flows out of it, into the step before.
void SelectiveLanes::step_back(Scope& scope, std::int64_t i) {
  const std::string n = std::to_string(i), above = std::to_string(i + 1);
  const auto let = [&](const std::string& name, const std::string& value) {
    scope.line("let " + name + n + " = " + value + ";");
  };
  decay(scope, i, n);
  let("g", "c_" + n + " * dy" + n + " + e" + (i + 1 == kChunk ? "" : above));
  let("e", "a" + n + " * g" + n);
  let("through", "e" + n + " * h" + n);
  let("of_b", "g" + n + " * wu" + n);
  let("of_c", "dy" + n + " * h" + above);
  if (euler()) {
    scope.line("drate += delta" + n + " * through" + n + ";");
    // The sums are still to be multiplied by delta, and by u.
    let("of_u", "g" + n + " * b_" + n);
    let("of_delta", "rate2 * through" + n);  // and by the logarithm of 2
  } else {
    let("gb", "g" + n + " * b_" + n);
    let("gbu", "gb" + n + " * u" + n);
    scope.line("drate += delta" + n + " * through" + n + " + gbu" + n + " * delta" + n +
               " * delta" + n + " * hold_slope(delta" + n + " * rate);");
    let("of_u", "gb" + n + " * w" + n);
    let("of_delta", "rate * through" + n + " + gbu" + n + " * a" + n);
  }
  let("sums_b", "of_b" + n + ".xy + of_b" + n + ".zw");
  let("sums_c", "of_c" + n + ".xy + of_c" + n + ".zw");
  let("sums_u", "of_u" + n + ".xz + of_u" + n + ".yw");
  let("sums_delta", "of_delta" + n + ".xz + of_delta" + n + ".yw");
  let("sums", "vec4<f32>(sums_u" + n + ".x, sums_delta" + n + ".x, sums_u" + n + ".y, sums_delta" +
                  n + ".y)");
  run_later(scope);
  exchange_gates(scope, i);
  if (i % 2 == 0) exchange_sums(scope, i);
}

void SelectiveLanes::run_later(Scope& scope) {
  for (const Later& each : std::exchange(later_, {})) each(scope);
}

// Of B and C: over lanes of different channels. A thread has two of each; first all give the second
// of both, then either B's or C's, and from then on all have the same.
void SelectiveLanes::exchange_gates(Scope& scope, std::int64_t i) {
  const std::string n = std::to_string(i);
  const auto mask = [&](std::size_t k) { return u32_literal(1 << channel_bits_[k]) + ")"; };
  if (channel_bits_.empty()) {
    const std::string b = "sums_b" + n, c = "sums_c" + n;
    return store_gates(scope, i, {b + ".x", b + ".y", c + ".x", c + ".y"});
  }
  const std::size_t rounds = channel_bits_.size();
  scope.line("let gates" + n + " = vec2<f32>(sums_b" + n + ".x, sums_c" + n + ".x);");
  scope.line("let given_gates" + n + " = exchange2(local, vec2<f32>(sums_b" + n + ".y, sums_c" + n +
             ".y), " + mask(rounds - 1) + ";");
  later_.emplace_back([=, this](Scope& at) {
    const std::string both = "both" + n;
    at.line("let " + both + " = gates" + n + " + given_gates" + n + ";");
    if (rounds == 1) return store_gates(at, i, {both + ".x", "", both + ".y", ""});
    at.line("let gate" + n + " = select(" + both + ".x, " + both + ".y, channel_up0);");
    at.line("let given_gate" + n + " = exchange1(local, select(" + both + ".y, " + both +
            ".x, channel_up0), " + mask(0) + ";");
    later_.emplace_back([=, this](Scope& last) {
      std::string sum = "gate" + n + " + given_gate" + n;
      for (std::size_t k = 1; k + 1 < rounds; ++k) {
        const std::string name = "gate" + n + "_" + std::to_string(k);
        last.line("let " + name + " = " + sum + ";");
        sum = name + " + exchange1(local, " + name + ", " + mask(k);
      }
      store_gates(last, i, {sum});
    });
  });
}

// One value, of which `own_part` knows the place; or those of B's states and C's, where there are.
void SelectiveLanes::store_gates(Scope& scope, std::int64_t i,
                                 const std::vector<std::string>& values) {
  const std::int64_t step = i % z_.sum_steps * z_.gates();
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

// Of u and delta: over lanes of different states, after every second step. First lanes take either
// of two steps, then of two pairs of steps, then either channel; from then on all have the same.
void SelectiveLanes::exchange_sums(Scope& scope, std::int64_t i) {
  const std::size_t rounds = state_bits_.size();
  const std::string n = std::to_string(i), pair = "pair" + n;
  const auto halve = [this](Scope& at, const std::string& name, const std::string& a,
                            const std::string& b, std::size_t k, int count) {
    const std::string up = "state_up" + std::to_string(k);
    at.line("let own_" + name + " = select(" + a + ", " + b + ", " + up + ");");
    at.line("let given_" + name + " = exchange" + std::to_string(count) + "(local, select(" + b +
            ", " + a + ", " + up + "), " + u32_literal(1 << state_bits_[k]) + ");");
  };
  halve(scope, pair, "sums" + n, "sums" + std::to_string(i + 1), 0, 4);
  later_.emplace_back([=, this](Scope& at) {
    at.line("let " + pair + " = own_" + pair + " + given_" + pair + ";");
    if (rounds == 1) return finish_sums(at, i, pair, false);
    if (i % 4 != 0) return;
    const std::string four = "four" + n;
    halve(at, four, pair, "pair" + std::to_string(i + 2), 1, 4);
    later_.emplace_back([=, this](Scope& next) {
      next.line("let " + four + " = own_" + four + " + given_" + four + ";");
      if (rounds == 2) return finish_sums(next, i, four, false);
      halve(next, "one" + n, four + ".xy", four + ".zw", 2, 2);
      later_.emplace_back([=, this](Scope& last) {
        std::string sum = "one" + n;
        last.line("let " + sum + " = own_" + sum + " + given_" + sum + ";");
        for (std::size_t k = 3; k < rounds; ++k) {
          const std::string name = "one" + n + "_" + std::to_string(k);
          last.line("let " + name + " = " + sum + " + exchange2(local, " + sum + ", " +
                    u32_literal(1 << state_bits_[k]) + ");");
          sum = name;
        }
        finish_sums(last, i, sum, true);
      });
    });
  });
}

// What u and delta get of step i + out_step: `sums` has both, of one channel or of two.
void SelectiveLanes::finish_sums(Scope& scope, std::int64_t i, const std::string& sums,
                                 bool one_channel) {
  std::string only;
  const auto also = [&](const std::string& more) { only += (only.empty() ? "" : " && ") + more; };
  if (!whole()) also("start + " + u32_literal(i) + " + out_step < " + u32_literal(s_.length));
  for (std::size_t k = 3; k < state_bits_.size(); ++k) also("!state_up" + std::to_string(k));
  for (std::int64_t c = 0; c < (one_channel ? 1 : 2); ++c) {
    std::string real = only;
    if (!even()) {
      real += (real.empty() ? "" : " && ") +
              (one_channel ? std::string("select(real_q0, real_q1, out_channel == 1u)")
                           : "real_q" + std::to_string(c));
    }
    Scope store(&scope);
    store_sums(store, i, sums, c, one_channel);
    scope.block(real.empty() ? "" : "if (" + real + ")", store);
  }
}

void SelectiveLanes::store_sums(Scope& scope, std::int64_t i, const std::string& sums,
                                std::int64_t channel, bool one_channel) const {
  const std::string u = sums + (channel == 0 ? ".x" : ".z");
  const std::string delta = sums + (channel == 0 ? ".y" : ".w");
  const std::string c = one_channel ? "out_channel" : u32_literal(channel);
  const std::string at = "_of[own_out + " + u32_literal(i * z_.pairs()) + "][" + c + "]";
  const std::int64_t more = i * s_.channels + (one_channel ? 0 : channel);
  scope.line(module_.store(l_.stores.at(0).binding, DType::kF32, "out_u + " + u32_literal(more),
                           euler() ? u + " * delta" + at : u));
  scope.line(module_.store(
      l_.stores.at(1).binding, DType::kF32,
      behind_ ? "out_u + " + u32_literal(more + *behind_) : "out_delta + " + u32_literal(more),
      euler() ? delta + " * 0.693147182f + " + u + " * u" + at : delta));
}

// What subgroups have of the B and C of steps `from` and the next.
void SelectiveLanes::sum_subgroups(Scope& scope, std::int64_t from) const {
  const std::int64_t sums = z_.sum_steps * z_.gates(), columns = 2 * s_.states;
  scope.line("workgroupBarrier();");
  for (std::int64_t r = 0; r < ceil_div(sums, z_.threads()); ++r) {
    Scope one(&scope), store(&one);
    one.line("let f = local + " + u32_literal(r * z_.threads()) + ";");
    one.line("let gate = f % " + u32_literal(z_.gates()) + ";");
    one.line("let n = gate % " + u32_literal(z_.padded()) + ";");
    std::string total;
    for (std::int64_t k = 0; k < z_.subgroups(); ++k)
      total += (k == 0 ? "" : " + ") + ("parts[f + " + u32_literal(k * sums) + "]");
    one.line("let total = " + total + ";");
    const std::string step = u32_literal(from) + " + f / " + u32_literal(z_.gates());
    const std::string place = s_.states == z_.padded()
                                  ? u32_literal(from * columns + r * z_.threads())
                                  : "(" + step + ") * " + u32_literal(columns) + " + gate / " +
                                        u32_literal(z_.padded()) + " * " + u32_literal(s_.states) +
                                        " + n";
    store.line(module_.store(l_.stores.at(2).binding, DType::kF32, "sums_at + " + place, "total"));
    std::string real;
    const auto also = [&](const std::string& more) { real += (real.empty() ? "" : " && ") + more; };
    if (s_.states != z_.padded()) also("n < " + u32_literal(s_.states));
    if (!whole()) also("start + " + step + " < " + u32_literal(s_.length));
    one.block(real.empty() ? "" : "if (" + real + ")", store);
    scope.block(sums % z_.threads() == 0 ? ""
                                         : "if (local + " + u32_literal(r * z_.threads()) + " < " +
                                               u32_literal(sums) + ")",
                one);
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
  bring_first();
  const std::string from = "last * " + u32_literal(kChunk);
  scope_.line("var out_u = place0(p, " + from + " + out_step, q0 + out_channel);");
  if (!behind_)
    scope_.line("var out_delta = place1(p, " + from + " + out_step, q0 + out_channel);");
  scope_.line("var sums_at = place2(p, block * " + u32_literal(s_.length) + " + " + from + ", 0u)" +
              (s_.states == z_.padded() ? " + local;" : ";"));
  Scope chunk(&scope_);
  chunk.line("let start = (first + left - 1u) * " + u32_literal(kChunk) + ";");
  unload(chunk);
  take_states(chunk);
  for (std::int64_t i = 0; i < kChunk; ++i) step_forward(chunk, i);
  load_step(chunk, kChunk - 1, false);
  for (std::int64_t i = kChunk; i-- > 0;) {
    if (i + 1 == kFetchAt) {
      Scope next(&chunk);
      bring_next(next);
      chunk.block("if (left > 1u)", next);
    }
    if (i > 0) load_step(chunk, i - 1, false);
    step_back(chunk, i);
    if (i % z_.sum_steps != 0) continue;
    while (!later_.empty()) run_later(chunk);
    sum_subgroups(chunk, i);
  }
  chunk.line("e = e0;");
  const std::string back = " -= " + u32_literal(kChunk * s_.channels) + ";";
  chunk.line("out_u" + back);
  if (!behind_) chunk.line("out_delta" + back);
  chunk.line("sums_at -= " + u32_literal(kChunk * 2 * s_.states) + ";");
  scope_.block("for (var left = chunks; left > 0u; left--)", chunk);
}

}  // namespace tensorgrad::wgsl
