// SPDX-License-Identifier: MIT
// The sums of a selective scan's backward pass: over states, what u and delta get of a step; over
// the channels of a block, what its B and C get. Where the threads of a subgroup can exchange
// values, they add up by halves: in each round a lane keeps half of its sums, gives its partner the
// other half, and adds what it is given, until it has one; what subgroups have of B and C is added
// up once a chunk, by way of workgroup memory. Elsewhere all goes by way of workgroup memory, a few
// steps at a time. Both are in a fixed order.
#include <algorithm>

#include "kernel/wgsl_selective_block.h"

namespace tensorgrad::wgsl {
namespace {

constexpr std::int64_t kVectorBytes = 16;

std::string type_of(std::int64_t count) {
  return count == 1 ? "f32" : "vec" + std::to_string(count) + "<f32>";
}

}  // namespace

void SelectiveBlock::choose_sums() {
  if (subgroup_ > 0) {
    for (sums_.steps = kChunk; sums_.steps > 2; sums_.steps /= 2) {
      if (shared_bytes() <= options_.max_workgroup_bytes) return;
    }
    return;
  }
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
  if (subgroup_ > 0) {
    const std::int64_t traded = options_.subgroups.in_memory ? threads_ * kVectorBytes : 0;
    return sums_.steps * (threads_ / subgroup_) * 2 * padded() * 4 + traded;
  }
  const std::int64_t shared = sums_.shares > 1 ? vectors() * sums_.shares : 0;
  return (vectors() * sums_.pitch + shared) * kVectorBytes + sums_.steps * threads_ * 8;
}

void SelectiveBlock::share_sums() {
  if (subgroup_ > 0) {
    module_.shared("parts", "f32", sums_.steps * (threads_ / subgroup_) * 2 * padded(), 4);
    if (options_.subgroups.in_memory) module_.shared("traded", "vec4<f32>", threads_, kVectorBytes);
    return;
  }
  module_.shared("parts", "vec4<f32>", vectors() * sums_.pitch, kVectorBytes);
  module_.shared("parts_s", "vec2<f32>", sums_.steps * threads_, 8);
  if (sums_.shares > 1)
    module_.shared("shared_sums", "vec4<f32>", vectors() * sums_.shares, kVectorBytes);
}

void SelectiveBlock::write_sums() {
  if (subgroup_ > 0) {
    write_sum_of_subgroups();
  } else {
    write_sum_of_memory();
  }
}

void SelectiveBlock::give_to_sums(Scope& scope, std::int64_t i) const {
  if (subgroup_ > 0) {
    give_to_lanes(scope, i);
  } else {
    give_to_memory(scope, i);
  }
}

// The sums of steps `from` and the next of the chunk.
void SelectiveBlock::sum_steps(Scope& scope, std::int64_t from) const {
  scope.line("workgroupBarrier();");
  const std::string which = "start, " + u32_literal(from) + ", local";
  if (subgroup_ > 0) {
    scope.line("sum(p, block, " + which + ");");
    if (from > 0) scope.line("workgroupBarrier();");
    return;
  }
  scope.line("sum(p, block, " + which + ", q0, real_q0);");
  scope.line("workgroupBarrier();");
  if (sums_.shares > 1) scope.line("add_shares(p, block, " + which + ");");
}

// ---- by subgroups -----------------------------------------------------------------------------

// fn exchangeN, and the names that rounds use; fn sum, over subgroups.
void SelectiveBlock::write_sum_of_subgroups() {
  for (const std::int64_t width : {1, 2, 4}) {
    const std::string type = type_of(width), name = "exchange" + std::to_string(width);
    std::string body = "  return subgroupShuffleXor(x, mask);\n";
    if (options_.subgroups.in_memory) {
      const char* const padding[] = {", 0.0f, 0.0f, 0.0f", ", 0.0f, 0.0f", "", ""};
      const char* const part[] = {".x", ".xy", "", ""};
      body = std::string("  traded[local] = vec4<f32>(x") + padding[width - 1] +
             ");\n  workgroupBarrier();\n  let given = traded[local ^ mask]" + part[width - 1] +
             ";\n  workgroupBarrier();\n  return given;\n";
    }
    module_.function(name, "fn " + name + "(local: u32, x: " + type + ", mask: u32) -> " + type +
                               " {\n" + body + "}\n");
  }
  for (std::int64_t mask = 1; mask < subgroup_; mask *= 2) {
    scope_.line("let up" + std::to_string(mask) + " = (sub_lane & " + u32_literal(mask) +
                ") != 0u;");
  }
  scope_.line("var late_sums = vec4<f32>();");

  Scope all, one(&all), store(&one);
  const std::int64_t subgroups = threads_ / subgroup_, gates = 2 * padded();
  one.line("let i = f / " + u32_literal(gates) + ";");
  one.line("let gate = f % " + u32_literal(gates) + ";");
  one.line("let part = i * " + u32_literal(subgroups * gates) + " + gate;");
  one.line("var total = parts[part];");
  for (std::int64_t k = 1; k < subgroups; ++k)
    one.line("total += parts[part + " + u32_literal(k * gates) + "];");
  one.line("let t = start + origin + i;");
  one.line("let n = gate % " + u32_literal(padded()) + ";");
  store.line("store2(p, block * " + u32_literal(s_.length) + " + t, gate / " +
             u32_literal(padded()) + " * " + u32_literal(s_.states) + " + n, total);");
  one.block("if (n < " + u32_literal(s_.states) + " && t < " + u32_literal(s_.length) + ")", store);
  share_out(all, one, sums_.steps * gates);
  module_.function("sum", "fn sum(p: u32, block: u32, start: u32, origin: u32, local: u32) {\n" +
                              all.text() + "}\n");
}

SelectiveBlock::Folded SelectiveBlock::fold(Scope& scope, const std::string& low,
                                            const std::string& high, std::int64_t count,
                                            std::int64_t from, std::int64_t to) const {
  Folded kept;
  std::string a = low, b = high;
  for (std::int64_t mask = from; mask < to; mask *= 2) {
    const std::string up = "up" + std::to_string(mask);
    std::string mine = a, given = a;
    if (count > 1) {
      count /= 2;
      mine = "select(" + a + ", " + b + ", " + up + ")";
      given = "select(" + b + ", " + a + ", " + up + ")";
      kept.first += " + select(0u, " + u32_literal(count) + ", " + up + ")";
    } else {
      kept.only += (kept.only.empty() ? "!" : " && !") + up;
    }
    const std::string name = "round" + std::to_string(mask);  // masks of the two folds differ
    scope.line("let " + name + " = " + mine + " + exchange" + std::to_string(count) + "(local, " +
               given + ", " + u32_literal(mask) + ");");
    a = count == 1 ? name : name + (count == 4 ? ".xy" : ".x");
    b = name + (count == 4 ? ".zw" : ".y");
    kept.name = name;
  }
  kept.count = count;
  return kept;
}

void SelectiveBlock::give_to_lanes(Scope& scope, std::int64_t i) const {
  // Of B and C: over lanes of different channels.
  scope.line("let gates = vec4<f32>(of_b.xy + of_b.zw, of_c.xy + of_c.zw);");
  Folded gates = fold(scope, "gates.xy", "gates.zw", 4, state_lanes(), subgroup_);
  if (gates.name.empty()) gates.name = "gates";
  Scope give(&scope);
  const std::int64_t of_subgroup = 2 * padded();
  give.line("let kept = " + gates.first + ";");
  give.line("let place = " + u32_literal(i % sums_.steps * (threads_ / subgroup_) * of_subgroup) +
            " + sub * " + u32_literal(of_subgroup) + " + kept / 2u * " + u32_literal(padded()) +
            " + own_states * 2u + kept % 2u;");
  for (std::int64_t r = 0; r < gates.count; ++r) {
    give.line("parts[place + " + u32_literal(r / 2 * padded() + r % 2) + "] = " + gates.name +
              (gates.count > 1 ? "." + component(r) : "") + ";");
  }
  scope.block(gates.only.empty() ? "" : "if (" + gates.only + ")", give);
  // Of u and delta: over lanes of different states, two steps at a time.
  scope.line("let sum_u = of_u.xz + of_u.yw;");
  scope.line("let sum_delta = of_delta.xz + of_delta.yw;");
  scope.line(l_.zero_order_hold
                 ? "let sums = vec4<f32>(sum_u, sum_delta);"
                 : "let sums = vec4<f32>(sum_u * delta.xz, sum_delta + sum_u * u.xz);");
  if (i % 2 == 1) {
    scope.line("late_sums = sums;");
  } else {
    store_of_states(scope, i);
  }
}

// Steps i and i + 1.
void SelectiveBlock::store_of_states(Scope& scope, std::int64_t i) const {
  const Folded sums = fold(scope, "sums", "late_sums", 8, 1, state_lanes());
  for (std::int64_t r = 0; r < sums.count; ++r) {
    Scope store(&scope);
    const std::string value = sums.name + (sums.count > 1 ? "." + component(r) : "");
    store.line("let kept = " + sums.first + " + " + u32_literal(r) + ";");
    store.line("let t = start + " + u32_literal(i) + " + kept / 4u;");
    store.line("let own = block * " + u32_literal(block_) + " + own_channels * 2u + kept % 2u;");
    store.line("let is_u = kept / 2u % 2u == 0u;");
    std::string real = sums.only;
    const auto also = [&](const std::string& condition) {
      real += (real.empty() ? "" : " && ") + condition;
    };
    if (s_.channels % block_ != 0) also("own < " + u32_literal(s_.channels));
    if (s_.length % kChunk != 0) also("t < " + u32_literal(s_.length));
    Scope both(&store);
    both.line("if (is_u) { store0(p, t, own, " + value + "); } else { store1(p, t, own, " + value +
              "); }");
    store.block(real.empty() ? "" : "if (" + real + ")", both);
    scope.block("", store);
  }
}

// ---- by memory --------------------------------------------------------------------------------

void SelectiveBlock::give_to_memory(Scope& scope, std::int64_t i) const {
  const std::int64_t of_step = i % sums_.steps * 2 * fours_ * sums_.pitch;
  const std::string c_parts = u32_literal(of_step + fours_ * sums_.pitch);
  scope.line("parts[" + u32_literal(of_step) + " + own_part] = of_b;");
  scope.line("parts[" + c_parts + " + own_part] = of_c;");
  scope.line("parts_s[" + u32_literal(i % sums_.steps * threads_) +
             " + local] = vec2<f32>(of_u.x + of_u.y + of_u.z + of_u.w, of_delta.x + of_delta.y + "
             "of_delta.z + of_delta.w);");
}

// fn sum: the sums of the chunk's steps `origin` and the next, over states and over channels.
void SelectiveBlock::write_sum_of_memory() {
  scope_.line("let own_part = row * " + u32_literal(sums_.pitch) + " + channel;");
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
void SelectiveBlock::store_gate(Scope& scope, const std::string& vector, const std::string& i,
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

}  // namespace tensorgrad::wgsl
