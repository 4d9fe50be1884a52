// SPDX-License-Identifier: MIT
// index_update: values written by hand, and states that are updated in place. What an update in
// place moves does not depend on the size of the state.
#include <algorithm>

#include "ops/registry.h"
#include "support/random_graph.h"

namespace tensorgrad::testing {
namespace {

struct Cache {
  Tensor state, updated;
};

// A state [2, 3, room, 4] whose places from `start` [2, 1, 1, 1] on are replaced.
Cache filled_cache(GraphBuilder& s, std::int64_t room, std::int64_t count, Tensor start,
                   const std::string& name = "cache") {
  const Shape shape = {2, 3, room, 4};
  const Tensor state =
      s.leaf(ops::state, name, shape, f32, s.draw.values(f32, numel(shape), -1, 1));
  const Tensor made = index_update(state, 2, start, tanh(s.input({2, 3, count, 4})));
  s.graph().updates.push_back({state.id(), made.id()});
  return {state, made};
}

Tensor two_starts(GraphBuilder& s, double first, double second) {
  return s.input({2, 1, 1, 1}, i32, {first, second});
}

std::int64_t bytes_moved(const Program& program) {
  std::int64_t bytes = 0;
  for (const Launch& launch : program.launches) bytes += launch.bytes_moved;
  return bytes;
}

bool has_slots(const Program& program) {
  return std::any_of(program.buffers.begin(), program.buffers.end(),
                     [](const BufferDecl& each) { return each.kind == BufferKind::kSlot; });
}

Values updated_values(GraphBuilder& s, Where where) {
  return run_graph(s.graph(), s.leaves, where).at("y");
}

// The same numbers as those of jax.lax.dynamic_update_slice, and of numpy's x[1:3] = update.
void check_numbers(Where where) {
  const Values x = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};  // [5, 2]
  const Values update = {10, 11, 12, 13};           // [2, 2]
  const auto at = [&](const Shape& starts, const Values& values, DType dtype) {
    GraphBuilder s;
    const Tensor start = s.input(starts, dtype, values);
    s.output("y", index_update(s.input({5, 2}, f32, x), 0, start, s.input({2, 2}, f32, update)));
    return updated_values(s, where);
  };
  EXPECT_EQ(at({}, {1}, i32), (Values{0, 1, 10, 11, 12, 13, 6, 7, 8, 9}));
  EXPECT_EQ(at({}, {3}, u32), (Values{0, 1, 2, 3, 4, 5, 10, 11, 12, 13}));
  // Beyond either end, elements are dropped.
  EXPECT_EQ(at({}, {4}, i32), (Values{0, 1, 2, 3, 4, 5, 6, 7, 10, 11}));
  EXPECT_EQ(at({}, {-1}, i32), (Values{12, 13, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(at({}, {4294967295.0}, u32), x);
  EXPECT_EQ(at({}, {2147483647}, i32), x);
  EXPECT_EQ(at({}, {-2147483648.0}, i32), x);
  // Each column has its own start.
  EXPECT_EQ(at({1, 2}, {0, 3}, i32), (Values{10, 1, 12, 3, 4, 5, 6, 11, 8, 13}));
}
TEST(IndexUpdate, replaces_a_slice_on_cpu) { check_numbers(Where::kCpu); }
TEST(IndexUpdate, replaces_a_slice_on_webgpu) { check_numbers(Where::kWebGpu); }

// f(x, u) = sum(w * index_update(x, start, u)): the gradients are parts of w.
TEST(IndexUpdate, has_gradients_that_are_parts_of_the_results) {
  GraphBuilder s;
  const Tensor x = s.input({4, 2}), u = s.input({3, 2});
  const Tensor w = s.input({4, 2}, f32, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor start = s.input({1, 2}, i32, {1, -1});
  const std::vector<Tensor> grads = grad(sum(w * index_update(x, 0, start, u)), {x, u});
  s.output("dx", grads[0]);
  s.output("du", grads[1]);
  const ValueMap got = run_graph(s.graph(), s.leaves, Where::kCpu);
  EXPECT_EQ(got.at("dx"), (Values{1, 0, 0, 0, 0, 6, 0, 8}));
  EXPECT_EQ(got.at("du"), (Values{3, 0, 5, 2, 7, 4}));
}

TEST(IndexUpdate, of_a_state_moves_what_is_new_whatever_the_size_of_the_state) {
  for (const std::int64_t count : {1, 5}) {
    std::vector<std::int64_t> moved;
    for (const std::int64_t room : {8, 64, 8192}) {
      GraphBuilder s;
      filled_cache(s, room, count, two_starts(s, 2, 3));
      const Program program = compile_for_test(s.graph(), 8).program;
      ASSERT_EQ(program.launches.size(), 1U) << print(program);
      EXPECT_EQ(program.launches[0].as<MapLaunch>().rows,
                2 * 3 * count * 4);  // elements that each device computes
      EXPECT_FALSE(has_slots(program));
      moved.push_back(bytes_moved(program));
      s.check(Where::kCpu);
    }
    // The new elements are read and written; two starts are read.
    EXPECT_EQ(moved, (std::vector<std::int64_t>(3, 2 * 4 * (2 * 3 * count * 4) + 2 * 4)));
  }
}

TEST(IndexUpdate, of_a_state_is_in_place_on_webgpu) {
  for (const std::int64_t count : {1, 5}) {
    GraphBuilder s;
    const Cache one = filled_cache(s, 40, count, two_starts(s, 38, -1));
    const Cache other = filled_cache(s, 40, count, two_starts(s, 0, 39), "other");
    s.output("y", sum(one.updated * other.updated, 2));
    s.check(Where::kWebGpu);
  }
}

// Attention reads a cache after it is filled, and the position before it moves on.
void check_late_reads_of_the_new_value(Where where) {
  GraphBuilder s;
  const Tensor position = s.leaf(ops::state, "position", {2}, i32, {4, 7});
  const Tensor start = reshape(position, {2, 1, 1, 1});
  const Cache k = filled_cache(s, 9, 1, start, "k"), v = filled_cache(s, 9, 1, start, "v");
  s.graph().updates.push_back({position.id(), (position + 1).id()});
  s.output("y", scaled_dot_product_attention(s.input({2, 3, 1, 4}), k.updated, v.updated));
  s.check(where);
  const Program program = compile_for_test(s.graph(), 8).program;
  EXPECT_FALSE(has_slots(program)) << print(program);
}

TEST(IndexUpdate, is_in_place_though_the_new_value_is_read_later) {
  check_late_reads_of_the_new_value(Where::kCpu);
}

TEST(IndexUpdate, is_in_place_though_the_new_value_is_read_later_on_webgpu) {
  check_late_reads_of_the_new_value(Where::kWebGpu);
}

// Copied where something else needs the old value afterwards, and right in any case.
void check_reads_of_the_old_value(Where where) {
  for (const int way : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
    SCOPED_TRACE(way);
    GraphBuilder s;
    const Shape shape = {2, 3, 6, 4};
    const Tensor start = two_starts(s, 1, 4);
    const Cache c = filled_cache(s, 6, 2, start);
    if (way == 0) s.output("before", sum(c.state, 2));            // in another launch
    if (way == 1) s.output("both", sum(c.state * c.updated, 2));  // with the new value
    if (way == 2) s.output("later", matmul(c.state, transpose(c.updated)));
    if (way == 3) s.output("new", c.updated);  // has a place of its own
    if (way == 4) s.output("views", flip(c.state, 2) - transpose(transpose(c.updated)));
    if (way == 5) {  // by what is read from the state itself
      const Tensor line = narrow(c.state, 2, 3, 2);
      s.graph().updates[0].value = index_update(c.state, 2, start, line * 2.0).id();
    }
    if (way == 6) s.graph().updates[0].value = flip(c.updated, 2).id();
    if (way == 7)
      s.graph().updates[0].value =
          index_update(flip(c.state, 2), 2, start, narrow(c.state, 2, 0, 2)).id();
    if (way == 8) {  // a second update of the same state, and one of its result
      const Tensor u = s.input({2, 3, 3, 4});
      s.output("other", index_update(c.state, 2, start + 1, u));
      s.graph().updates[0].value = index_update(c.updated, 2, start - 1, u).id();
    }
    if (way == 9) {  // two states become each other's updates
      const Tensor other =
          s.leaf(ops::state, "other", shape, f32, s.draw.values(f32, numel(shape), -1, 1));
      const Tensor u = s.input({2, 3, 2, 4});
      s.graph().updates = {{c.state.id(), index_update(other, 2, start, u).id()},
                           {other.id(), index_update(c.state, 2, start, u).id()}};
    }
    s.check(where);
  }
}

TEST(IndexUpdate, is_right_where_the_old_value_is_read_too) {
  check_reads_of_the_old_value(Where::kCpu);
}

TEST(IndexUpdate, is_right_where_the_old_value_is_read_too_on_webgpu) {
  check_reads_of_the_old_value(Where::kWebGpu);
}

void check_every_type(Where where) {
  for (const DType dtype : {f32, f16, i32, u32, boolean}) {
    GraphBuilder s;
    const double lo = dtype == u32 || dtype == boolean ? 0 : -9, hi = dtype == boolean ? 1 : 9;
    const Tensor state = s.leaf(ops::state, "x", {6, 5}, dtype, s.draw.values(dtype, 30, lo, hi));
    const Tensor update = s.input({2, 5}, dtype, s.draw.values(dtype, 10, lo, hi));
    const Tensor made = index_update(state, 0, s.input({1, 5}, i32, {0, 1, 5, -1, 3}), update);
    s.graph().updates = {{state.id(), made.id()}};
    s.check(where, 0);
    const Program program = compile_for_test(s.graph(), 8).program;
    EXPECT_EQ(program.launches.size(), 1U) << print(program);
  }
}

TEST(IndexUpdate, of_every_type_is_in_place_on_cpu) { check_every_type(Where::kCpu); }
TEST(IndexUpdate, of_every_type_is_in_place_on_webgpu) { check_every_type(Where::kWebGpu); }

// A device that binds less than the state: several launches share the lines.
TEST(IndexUpdate, fits_narrow_bindings_on_webgpu) {
  GraphBuilder s;
  const Tensor start = s.input({64, 1}, i32, s.draw.values(i32, 64, -3, 1000));
  const Tensor state = s.leaf(ops::state, "x", {64, 999}, f32, s.draw.values(f32, 64 * 999, -1, 1));
  const Tensor made = index_update(state, 1, start, s.input({64, 7}));
  s.graph().updates = {{state.id(), made.id()}};
  s.output("y", made * 2.0);
  constexpr std::int64_t kLimit = 64 << 10;
  const Program program = compile_for_test(s.graph(), 8, kLimit).program;
  for (const Launch& launch : program.launches) {
    for (const Binding& binding : launch.bindings) EXPECT_LE(binding.bytes, kLimit);
  }
  expect_close(s.graph(), run_graph(s.graph(), s.leaves, Where::kWebGpu, 8, kLimit),
               interpret_graph(s.graph(), s.leaves), 0, print(program));
}

}  // namespace
}  // namespace tensorgrad::testing
