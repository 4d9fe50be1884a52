// SPDX-License-Identifier: MIT
// The steps of a selective scan's backward pass by lanes (lanes.cpp), and how lanes
// add up what they give.
#include <utility>

#include "codegen/wgsl/selective_scan/lanes.h"

namespace tensorgrad::wgsl {
namespace {

// When so many steps of a chunk are still to be gone back over, the next chunk is sent for: those
// behind have given up their registers.
constexpr std::int64_t kFetchAt = 10;

// From this step of a chunk on, powers are kept for the way back; with those of more steps three
// workgroups would not lie on a multiprocessor, and by the zero-order hold they do not anyway.
constexpr std::int64_t kKeptFrom = 8;

// Of two vectors that component.
std::string both_of(const std::string& first, const std::string& second, const char* component) {
  return "vec2<f32>(" + first + "." + component + ", " + second + "." + component + ")";
}

}  // namespace

// ---- the steps of a chunk ----------------------------------------------------------------------

// What step i reads, as vectors over a thread's channels and states; of a channel, with the first
// of two steps that lie side by side. `again`: to make a chunk's states anew, for which names have
// an f before the step's number.
void SelectiveLanes::load_step(Scope& scope, std::int64_t i, bool again) const {
  const std::string f = again ? "f" : "", n = f + std::to_string(i);
  const std::string place = u32_literal(i / 2 * z_.block);
  const auto channels = [&](const std::string& name) {
    const std::string both = name + "_both" + f + std::to_string(i / 2);
    if ((i % 2 == 0) == again) {
      scope.line("let " + both + " = vec4<f32>(" + name + "_of[c0 + " + place + "], " + name +
                 "_of[c1 + " + place + "]);");
    }
    const bool given = l_.resets && name == "delta";
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

// The state before a step, or what flows back into it; `n` is behind the names of what it reads.
std::string SelectiveLanes::unless_reset(const std::string& state, const std::string& n) const {
  if (!l_.resets) return state;
  return "select(" + state + ", vec4<f32>(), given" + n + " < vec4<f32>())";
}

// Of step i, named as what it reads: how much is left of the states, and, by the zero-order hold,
// what B is multiplied by.
void SelectiveLanes::decay(Scope& scope, std::int64_t i, bool again) const {
  const std::string n = (again ? "f" : "") + std::to_string(i);
  const bool kept = euler() && !again && i >= kKeptFrom;
  std::string a = kept ? "af" + n : "exp2(delta" + n + " * rate2)";
  if (!kept && !whole()) {  // behind the last step; an infinite rate has made NaN of zero
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

// Step i of what flows back; e is what flows out of it, into the step before.
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
    // The sums are still to be multiplied by delta, and by u.
    let("of_u", "g" + n + " * b_" + n);
    let("of_delta", "rate2 * through" + n);  // and by the logarithm of 2
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

// Of B and C: over lanes of different channels. A thread has two of each; first all give the second
// of both, then either B's or C's, and from then on all have the same. What is kept is added to
// what comes, product by product: compilers make each a multiplication and an addition in one.
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

// One value, of which `own_part` knows the place; or those of B's states and C's, where there are.
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

// Of u and delta: over lanes of different states. First all give those of the second channel; then
// lanes take either of two steps, then of two pairs of steps; from then on all have the same.
void SelectiveLanes::exchange_sums(Scope& scope, std::int64_t i) {
  const std::size_t rounds = state_bits_.size() - 1;  // after the first
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

// What u and delta get of step i + out_step and of the first channel: `sums` has both.
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

// What subgroups have of the B and C of steps `from` and the next. All is read before anything is
// stored: who does not store would be sent past what is read for that, too.
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
