// SPDX-License-Identifier: MIT
// The sums of the backward pass of a selective scan by blocks: over states, what u and delta get of
// a step; over the channels of a block, what its B and C get. All goes by way of workgroup memory,
// a few steps at a time, in a fixed order. What D gets is summed up over the steps beside it.
#include <algorithm>

#include "codegen/wgsl/selective_scan/block.h"

namespace tensorgrad::wgsl {
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
  const std::int64_t of_step = i % sums_.steps * 2 * fours_ * sums_.pitch;
  const std::string c_parts = u32_literal(of_step + fours_ * sums_.pitch);
  scope.line("parts[" + u32_literal(of_step) + " + own_part] = of_b;");
  scope.line("parts[" + c_parts + " + own_part] = of_c;");
  scope.line("parts_s[" + u32_literal(i % sums_.steps * threads_) +
             " + local] = vec2<f32>(of_u.x + of_u.y + of_u.z + of_u.w, of_delta.x + of_delta.y + "
             "of_delta.z + of_delta.w);");
}

// The sums of steps `from` and the next of the chunk.
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

// fn sum: the sums of the chunk's steps `origin` and the next, over states and over channels.
void SelectiveBlock::write_sums() {
  scope_.line("let own_part = row * " + u32_literal(sums_.pitch) + " + channel;");
  Scope all;
  if (s_.skip) all.line("var dskip = 0.0f;");
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
  const std::string place =
      "_of[(origin + i) * " + u32_literal(quads()) + " + channel / 4u][channel % 4u]";
  const bool hold = l_.zero_order_hold;
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
  // What the threads that shared a sum have.
  Scope rest, one(&rest);
  one.line("let vector = f / 4u * " + u32_literal(sums_.shares) + ";");
  one.line("var total = shared_sums[vector][f % 4u];");
  for (std::int64_t k = 1; k < sums_.shares; ++k)
    one.line("total += shared_sums[vector + " + u32_literal(k) + "][f % 4u];");
  store_bc(one, "(f / 4u)", "f % 4u", "total");
  share_out(rest, one, vectors() * 4);
  module_.function("add_shares", "fn add_shares(" + parameters + ") {\n" + rest.text() + "}\n");
}

// D's gradient, of which each thread has its share of a channel's steps.
void SelectiveBlock::store_skip() {
  scope_.line("parts_s[local] = vec2<f32>(dskip, 0.0f);");
  scope_.line("workgroupBarrier();");
  std::string total;
  for (std::int64_t k = 0; k < fours_; ++k) {
    total += (k == 0 ? "parts_s[" : " + parts_s[") + u32_literal(k * block_) + " + channel].x";
  }
  scope_.line(std::string("if (row == 0u") + (even() ? "" : " && real") +
              ") { store3(p, segment * " + u32_literal(s_.rates()) + " + " +
              u32_literal(s_.states) + ", q, " + total + "); }");
}

// The sum over channels of one component of vector number `vector` of `parts`.
void SelectiveBlock::store_bc(Scope& scope, const std::string& vector, const std::string& i,
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
