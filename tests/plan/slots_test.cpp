// SPDX-License-Identifier: MIT
// Slots of plans: liveness is computed again from the launches, bindings are within the limit, and
// updates are in place.
#include <algorithm>
#include <map>
#include <set>

#include "ops/registry.h"
#include "plan/buffer_assignment.h"
#include "support/random_graph.h"

namespace tensorgrad::testing {
namespace {

// Returns the buffers that a program loads from. A bounds check has an access, too, but reads
// nothing.
std::set<int> accesses(const ScalarProgram& program, const Launch& launch) {
  std::set<int> buffers;
  for (const Instr& instr : program.instrs) {
    if (instr.kind != InstrKind::kLoad && instr.kind != InstrKind::kLoadAt) continue;
    const Access& access = program.accesses[static_cast<std::size_t>(instr.index)];
    buffers.insert(launch.bindings[static_cast<std::size_t>(access.binding)].buffer);
  }
  return buffers;
}

// The buffers that a launch reads and writes according to its programs and stores.
struct Touched {
  std::set<int> reads, writes;
};

Touched touched(const Launch& launch) {
  Touched result;
  for (const ScalarProgram* program : programs_of(launch)) {
    result.reads.merge(accesses(*program, launch));
  }
  for (const Store* store : stores_of(launch)) {
    result.writes.insert(launch.bindings[static_cast<std::size_t>(store->binding)].buffer);
  }
  return result;
}

// The range that a value occupies and the launches during which it is live; -1 is before the first
// launch. Concurrent launches share one number, and so do those of a fused sequence.
struct Life {
  ValueId value;
  std::int64_t begin, end;  // bytes
  int born, dead;
};

class Lives {
 public:
  Lives(const Graph& graph, const PlanOptions& options)
      : graph_(graph), placement_(place(graph, options)) {
    int stage = -1;
    for (const int group : placement_.order) {
      if (!placement_.concurrent.contains(group) && !placement_.fused_sequence.contains(group))
        ++stage;
      position_[group] = stage;
    }
    for (ValueId id = 0; id < graph.size(); ++id) {
      if (graph[id].group < 0) continue;
      for (const ValueId input : graph[id].inputs)
        use(input, position_.at(graph[id].group), graph[id].group);
    }
    const int end = stage + 1;
    for (const auto& [value, to] : placement_.copies) use(value, end, -1);
    for (const GraphOutput& output : graph.outputs) use(output.value, end, -1);
    for (const GraphUpdate& update : graph.updates) use(update.value, end, -1);
  }

  // Returns the values of each buffer.
  [[nodiscard]] std::map<int, std::vector<Life>> by_buffer() const {
    std::map<int, std::vector<Life>> lives;
    for (const auto& [id, at] : placement_.places) {
      const auto used = last_use_.find(id);
      const int born = graph_[id].group < 0 ? -1 : position_.at(graph_[id].group);
      lives[at.buffer].push_back({id, at.offset * 4, (at.offset + numel(graph_[id].type.shape)) * 4,
                                  born, used == last_use_.end() ? born : used->second});
    }
    return lives;
  }
  [[nodiscard]] bool is_slot(int buffer) const {
    return placement_.buffers[static_cast<std::size_t>(buffer)].kind == BufferKind::kSlot;
  }

 private:
  // Marks `id` as used by launch number `at` of `group`. If the value is not stored, marks the
  // values that it is computed from.
  void use(ValueId id, int at, int group) {
    if (group >= 0 && graph_[id].group == group) return;
    if (placement_.places.contains(id)) {
      auto [known, fresh] = last_use_.emplace(id, at);
      known->second = std::max(known->second, at);
      // A pack consists of its parts.
      if (graph_[id].op->kind != OpKind::kPack) return;
    }
    for (const ValueId input : graph_[id].inputs) use(input, at, group);
  }

  const Graph& graph_;
  Placement placement_;
  std::map<int, int> position_;
  std::map<ValueId, int> last_use_;
};

void check_lives(const Graph& fused, int join_bindings, const std::string& note) {
  PlanOptions options;
  options.join_bindings = join_bindings;
  options.fused_sequences = join_bindings > 0;
  const Lives lives(fused, options);
  for (const auto& [buffer, all] : lives.by_buffer()) {
    for (const Life& a : all) {
      for (const Life& b : all) {
        const bool pack =
            fused[a.value].op->kind == OpKind::kPack || fused[b.value].op->kind == OpKind::kPack;
        const bool views =
            fused[a.value].op->kind == OpKind::kLeaf && fused[b.value].op->kind == OpKind::kLeaf;
        if (a.value == b.value || pack || views || a.begin >= b.end || b.begin >= a.end) continue;
        // A launch may overwrite in place a value of which it is the last reader, except in a slot.
        const bool apart = lives.is_slot(buffer) ? a.dead < b.born || b.dead < a.born
                                                 : a.dead <= b.born || b.dead <= a.born;
        EXPECT_TRUE(apart) << "%" << a.value << " (" << a.born << " to " << a.dead << ") and %"
                           << b.value << " (" << b.born << " to " << b.dead << ") share buffer "
                           << buffer << "\n"
                           << note;
      }
    }
  }
}

void check_bindings(const Program& program, int limit, const std::string& note) {
  for (const Launch& launch : program.launches) {
    std::set<int> bound;
    for (const Binding& binding : launch.bindings) {
      EXPECT_TRUE(bound.insert(binding.buffer).second) << launch.name << " binds a buffer twice\n"
                                                       << note;
      const BufferDecl& buffer = program.buffers[static_cast<std::size_t>(binding.buffer)];
      EXPECT_LE(binding.offset + binding.bytes, buffer.bytes) << launch.name << "\n" << note;
      EXPECT_EQ(binding.offset % 256, 0) << launch.name << "\n" << note;
    }
    EXPECT_LE(static_cast<int>(bound.size()), limit) << launch.name << "\n" << note;
    // A buffer that is written must be bound for writing, and one that is also read, for both.
    const Touched touch = touched(launch);
    for (const Binding& binding : launch.bindings) {
      const bool reads = touch.reads.contains(binding.buffer),
                 writes = touch.writes.contains(binding.buffer);
      EXPECT_EQ(writes, binding.mode != BindMode::kRead) << launch.name << "\n" << note;
      EXPECT_TRUE(!(reads && writes) || binding.mode == BindMode::kReadWrite) << launch.name << "\n"
                                                                              << note;
    }
  }
}

TEST(Slots, live_values_do_not_overlap) {
  for (std::uint64_t seed = 0; seed < how_many(300) && !::testing::Test::HasFailure(); ++seed) {
    const RandomGraph made = random_graph(seed, {.ops = seed % 3 == 0 ? 50 : 14});
    for (const int limit : {8, 32}) {
      const Compiled compiled = compile_for_test(made.graph, limit);
      const std::string note = "seed " + std::to_string(seed) + "\n" + print(compiled.fused);
      check_lives(compiled.fused, 0, note);
      check_lives(compiled.fused, limit, note + "joined");
      check_bindings(compiled.program, limit, note);
    }
  }
}

TEST(Slots, are_reused_in_a_chain) {
  GraphBuilder s;
  Tensor x = s.input({16, 16});
  for (int i = 0; i < 20; ++i) x = softmax(matmul(x, s.input({16, 16})), 0);
  s.output("y", x);
  int slots = 0;
  for (const BufferDecl& buffer : compile_for_test(s.graph(), 8).program.buffers) {
    slots += buffer.kind == BufferKind::kSlot ? 1 : 0;
  }
  EXPECT_LE(slots, 4);
  EXPECT_GE(slots, 1);
}

// Small values that are read only at the end, computed while large ones come and go.
TEST(Slots, of_large_values_are_not_used_for_long_lived_small_ones) {
  GraphBuilder s;
  Tensor x = s.input({64, 64});
  std::vector<Tensor> small;
  for (int i = 0; i < 8; ++i) {
    x = softmax(matmul(x, s.input({64, 64})), 0);
    small.push_back(matmul(x, s.input({64, 2})));
  }
  for (std::size_t i = 0; i < small.size(); ++i)
    s.output("y" + std::to_string(i), matmul(x, small[i]));
  std::int64_t bytes = 0;
  for (const BufferDecl& buffer : compile_for_test(s.graph(), 8).program.buffers) {
    bytes += buffer.kind == BufferKind::kSlot ? buffer.bytes : 0;
  }
  EXPECT_LE(bytes, 3 * 64 * 64 * 4 + 10 * 64 * 2 * 4);
}

TEST(Bindings, of_a_wide_pointwise_chain_stay_within_the_limit) {
  GraphBuilder s;
  std::vector<Tensor> inputs;
  for (int i = 0; i < 24; ++i) inputs.push_back(s.input({40}));
  Tensor all = gelu(inputs[0]);
  for (int i = 1; i < 24; ++i)
    all = gelu(all * inputs[static_cast<std::size_t>(i)], GeluApproximation::kTanh);
  for (int i = 0; i < 12; ++i)
    s.output("o" + std::to_string(i), all * inputs[static_cast<std::size_t>(i)]);
  const std::vector<Tensor> grads = grad(sum(all), inputs);
  for (std::size_t i = 0; i < grads.size(); ++i) s.output("d" + std::to_string(i), grads[i]);
  for (const int limit : {4, 8, 9, 16}) {
    const Compiled compiled = compile_for_test(s.graph(), limit);
    check_bindings(compiled.program, limit, "limit " + std::to_string(limit));
    expect_close(s.graph(), run_graph(s.graph(), s.leaves, Where::kCpu, limit),
                 interpret_graph(s.graph(), s.leaves), 1e-4, "limit " + std::to_string(limit));
  }
}

TEST(Bindings, of_a_wide_concat_stay_within_the_limit) {
  GraphBuilder s;
  std::vector<Tensor> parts;
  for (int i = 0; i < 20; ++i) parts.push_back(s.input({3, 1 + i % 4}));
  const Tensor whole = concat(parts, 1);
  s.output("whole", whole);
  s.output("sum", softmax(whole));
  check_bindings(compile_for_test(s.graph(), 8).program, 8, "concat");
  expect_close(s.graph(), run_graph(s.graph(), s.leaves, Where::kCpu, 8),
               interpret_graph(s.graph(), s.leaves), 1e-5, "concat of 20");
}

// Two leaves that swap their values, and a chain that needs both the old and the new value.
TEST(Updates, see_the_old_values_of_one_another) {
  GraphBuilder s;
  const Tensor a = s.leaf(ops::state, "a", {4}, f32, {1, 2, 3, 4});
  const Tensor b = s.leaf(ops::state, "b", {4}, f32, {5, 6, 7, 8});
  const Tensor c = s.leaf(ops::state, "c", {4}, f32, {0, 0, 0, 1});
  s.graph().updates = {{a.id(), (b * 2.0).id()}, {b.id(), (a + c).id()}, {c.id(), flip(a, 0).id()}};
  s.output("old", a + b + c);
  s.check(Where::kCpu);
}

TEST(Updates, in_place_come_after_the_last_reader_of_the_old_value) {
  GraphBuilder s;
  const Tensor v = s.leaf(ops::state, "v", {6, 6}, f32, s.draw.values(f32, 36, -1, 1));
  const Tensor p = s.leaf(ops::state, "p", {6, 6}, f32, s.draw.values(f32, 36, -1, 1));
  const Tensor g = matmul(p, transpose(v));
  const Tensor fresh = v * 0.9 + g;
  s.graph().updates = {{v.id(), fresh.id()}, {p.id(), (p - fresh * 0.1).id()}};
  s.output("both", matmul(v, fresh) + sum(p, 0));
  s.output("fresh", fresh);
  s.check(Where::kCpu);
  check_lives(compile_for_test(s.graph(), 8).fused, 0, "momentum");
}

TEST(Updates, with_the_value_of_another_leaf_or_itself) {
  GraphBuilder s;
  const Tensor a = s.leaf(ops::state, "a", {3}, f32, {1, 2, 3});
  const Tensor b = s.leaf(ops::state, "b", {3}, f32, {4, 5, 6});
  const Tensor c = s.leaf(ops::state, "c", {3}, f32, {7, 8, 9});
  s.graph().updates = {{a.id(), b.id()}, {b.id(), a.id()}, {c.id(), c.id()}};
  s.check(Where::kCpu);
}

TEST(Updates, of_two_leaves_by_one_value) {
  GraphBuilder s;
  const Tensor a = s.leaf(ops::state, "a", {3}, f32, {1, 2, 3});
  const Tensor b = s.leaf(ops::state, "b", {3}, f32, {4, 5, 6});
  const Tensor both = a * b;
  s.graph().updates = {{a.id(), both.id()}, {b.id(), both.id()}};
  s.output("both", both);
  s.check(Where::kCpu);
}

// A cache is filled first and attended to afterwards.
TEST(Updates, are_in_place_even_if_the_new_value_is_read_later) {
  GraphBuilder s;
  const Tensor v = s.leaf(ops::state, "v", {6, 6}, f32, s.draw.values(f32, 36, -1, 1));
  const Tensor x = s.input({6, 6});
  const Tensor fresh = v * 0.5 + x;
  s.graph().updates = {{v.id(), fresh.id()}};
  s.output("y", matmul(fresh, x));
  s.check(Where::kCpu);
  const Program program = compile_for_test(s.graph(), 8).program;
  EXPECT_EQ(program.launches.size(), 2U);
  for (const BufferDecl& buffer : program.buffers) EXPECT_NE(buffer.kind, BufferKind::kSlot);
}

// Lines gathered into a cache are written in place, unless they are gathered from the cache itself.
TEST(Updates, of_gathered_elements_are_in_place_unless_gathered_from_there) {
  for (const bool own : {false, true}) {
    GraphBuilder s;
    const Tensor v = s.leaf(ops::state, "v", {6, 5}, f32, s.draw.values(f32, 30, -1, 1));
    const Tensor x = s.input({6, 5});
    const Tensor line = reshape(iota({6}, 0, i32), {6, 1});
    const Tensor from = broadcast_to(5 - line, {6, 5});  // the last line first
    const Tensor fresh = where(broadcast_to(line >= 2, {6, 5}), gather(own ? v : x, 0, from), v);
    s.graph().updates = {{v.id(), fresh.id()}};
    s.output("y", matmul(fresh, transpose(x)));
    s.check(Where::kCpu);
    const Program program = compile_for_test(s.graph(), 8).program;
    const bool copied =
        std::any_of(program.buffers.begin(), program.buffers.end(),
                    [](const BufferDecl& each) { return each.kind == BufferKind::kSlot; });
    EXPECT_EQ(copied, own);
  }
}

// The global norm is one launch. A second launch reads it and writes both new values in place.
void check_clipped(std::int64_t elements, Where where) {
  GraphBuilder s;
  const auto state = [&](const std::string& name) {
    return s.leaf(ops::state, name, {elements}, f32, s.draw.values(f32, elements, -1, 1));
  };
  const Tensor p = state("p"), m = state("m"), g = s.input({elements});
  const Tensor norm = sqrt(sum(square(g)));
  const Tensor fresh = m * 0.9 + g * minimum(0.5 / (norm + 1e-6), 1.0);
  s.graph().updates = {{m.id(), fresh.id()}, {p.id(), (p - fresh * 0.1).id()}};
  s.output("norm", norm);
  s.check(where);
  if (where != Where::kCpu) return;
  const Program program = compile_for_test(s.graph(), 8).program;
  std::vector<std::string> kinds;
  for (const Launch& launch : program.launches) kinds.push_back(kind_name(launch));
  EXPECT_EQ(kinds, (std::vector<std::string>{"row", "map"})) << print(program);
}

TEST(Updates, clipped_by_the_norm_of_all_are_in_place) {
  for (const std::int64_t elements : {2, 40, 5000}) check_clipped(elements, Where::kCpu);
}
TEST(Updates, clipped_by_the_norm_of_all_are_right_on_webgpu) {
  for (const std::int64_t elements : {2, 40, 5000}) check_clipped(elements, Where::kWebGpu);
}

// New values of rows that are summed as well.
Compiled check_row_updates(std::int64_t columns, bool waits, Where where) {
  GraphBuilder s;
  const Shape shape = {40, columns};
  const Tensor v = s.leaf(ops::state, "v", shape, f32, s.draw.values(f32, 40 * columns, -1, 1));
  const Tensor x = s.input({40, 1});
  const Tensor fresh = (waits ? v - mean(v, {1}, true) : v * 0.5) + x;
  s.graph().updates = {{v.id(), fresh.id()}};
  s.output("sums", sum(fresh * fresh, {1}));
  s.check(where);
  return compile_for_test(s.graph(), 8);
}

TEST(Updates, by_rows_are_in_place_unless_an_element_needs_a_sum) {
  for (const std::int64_t columns : {1, 16, 700}) {
    EXPECT_EQ(check_row_updates(columns, false, Where::kCpu).program.launches.size(), 1U);
    check_row_updates(columns, true, Where::kCpu);
  }
}
TEST(Updates, by_rows_are_right_on_webgpu) {
  for (const std::int64_t columns : {1, 16, 700}) {
    check_row_updates(columns, false, Where::kWebGpu);
    check_row_updates(columns, true, Where::kWebGpu);
  }
}

}  // namespace
}  // namespace tensorgrad::testing
