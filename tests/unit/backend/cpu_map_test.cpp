// SPDX-License-Identifier: MIT
// Map launches on the CPU, compared with the oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "program_harness.h"

namespace tensorgrad::testing {
namespace {

IndexMap view(const Shape& shape, std::vector<std::int64_t> strides, std::int64_t offset = 0,
              std::vector<std::int64_t> lo = {}, std::vector<std::int64_t> hi = {}) {
  return {{View{shape, std::move(strides), offset, std::move(lo), std::move(hi)}}};
}

TEST(CpuMap, adds_two_arrays_of_any_length) {
  for (const std::int64_t n : {1, 3, 15, 16, 17, 1000, 1024, 1025, 5000, 200003}) {
    LaunchBuilder b(MapLaunch{n});
    const int x = b.input(n), y = b.input(n), out = b.output(n);
    Scalar s(b.launch().body);
    const auto id = IndexMap::identity({n});
    const int sum = s.op(op_add(), {s.load(x, id), s.load(y, id)});
    b.launch().stores = {store_to(out, id, sum)};
    expect_as_oracle(b);
  }
}

TEST(CpuMap, reads_through_every_kind_of_view) {
  const std::int64_t m = 37, n = 53, all = m * n;
  const std::vector<IndexMap> maps = {
      view({m, n}, {n, 1}),
      view({m, n}, {n, 1}, 5),                           // unaligned
      view({m, n}, {1, m}),                              // transposed
      view({m, n}, {0, 1}),                              // the same row
      view({m, n}, {1, 0}),                              // the same column
      view({m, n}, {0, 0}, 3),                           // one element
      view({m, n}, {-n, -1}, all - 1),                   // flipped
      view({m, n}, {n, 1}, -2 * n - 3, {2, 3}, {m, n}),  // padded in front
      view({m, n}, {n, 2}, 0, {0, 0}, {m, n / 2}),       // padded behind
      view({m, n}, {n, 1}, 0, {5, 7}, {5, 20}),          // valid nowhere
      {{View{{m, n}, {n, 1}, -n, {1, 0}, {m, n}}, View{{n, m}, {1, n}, 0, {}, {}}}},
      {{View{{all}, {1}, 0, {}, {}}, View{{n, m}, {m, 1}, -1, {0, 1}, {n, m}}}},
      {{View{{m, n}, {1, m}, 0, {}, {}}, View{{n, m}, {1, n}, 0, {}, {}}}},
      {{View{{m, n}, {0, 1}, 4, {}, {}}, View{{all}, {-1}, all - 1, {}, {}}}},
      {{View{{m, n}, {n, 0}, 0, {}, {}}, View{{all}, {1}, -9, {9}, {all}}}},
  };
  for (const IndexMap& map : maps) {
    LaunchBuilder b(MapLaunch{all}, to_string(map));
    const int x = b.input(all + 64), y = b.input(all), out = b.output(all), where = b.output(all);
    Scalar s(b.launch().body);
    const auto id = IndexMap::identity({all});
    const int product = s.op(op_mul(), {s.load(x, map), s.load(y, id)});
    const int inside = s.in_bounds(map, x);
    b.launch().stores = {store_to(out, id, product), store_to(where, id, inside, DType::kBool)};
    expect_as_oracle(b);
  }
}

// A stretch that every block repeats, such as a bias, is read in place, or copied once if it is not
// aligned. Ops must not write over either. Stretches whose length is not a power of two are
// expanded.
TEST(CpuMap, rereads_repeated_blocks) {
  for (const std::int64_t n : {8, 16, 48, 64, 512, 1024, 4096}) {
    for (const std::int64_t offset : {0, 3, 16}) {
      const std::int64_t rows = 70000 / n + 3, all = rows * n;
      LaunchBuilder b(MapLaunch{all}, std::to_string(n) + " from " + std::to_string(offset));
      const int x = b.input(all), bias = b.input(n + 64), out = b.output(all), less = b.output(all);
      Scalar s(b.launch().body);
      const auto id = IndexMap::identity({all});
      const int repeated = s.load(bias, view({rows, n}, {0, 1}, offset)), each = s.load(x, id);
      const int sum = s.op(op_add(), {repeated, each});
      const int product = s.op(op_mul(), {each, repeated});  // the last use
      const int result = s.op(op_add(), {product, each});
      b.launch().stores = {store_to(out, id, result), store_to(less, id, sum)};
      expect_as_oracle(b);
    }
  }
}

// Access patterns of pooling and its gradient: rows of a few elements, strided, repeated or padded.
// A table of row offsets holds only a part of the rows.
TEST(CpuMap, reads_and_writes_windows_of_images) {
  const std::int64_t images = 13, h = 42, w = 36, all = images * h * w;
  const std::vector<IndexMap> maps = {
      view({images * h / 2, 2, w / 2, 2}, {w / 2, 0, 1, 0}),  // each element four times
      view({images * h / 2, w / 2, 2, 2}, {2 * w, 2, w, 1}),  // window by window
      view({images, h * w / 4, 4}, {h * w / 2, 2, 0}, 1),     // every second element, four times
      view({images, w, h}, {h * w, 1, w}),                    // transposed
      view({images, h, w}, {h * w, -w, 3}, h * w),            // upside down, strided
      view({images, h, w}, {h * w, w, 1}, -w - 1, {0, 1, 1}, {images, h, w - 1}),
      view({images, h, w}, {h * w, w, 1}, 0, {2, 0, 0}, {images - 1, h - 3, w}),
      view({images, h, w}, {w, 0, 1}, -4, {0, 5, 4}, {images, 9, 30}),
      view({images * h, w}, {1, 0}),
      view({images * h / 3, 3, w}, {5, 1, 0}, 2, {0, 1, 3}, {images * h / 3, 3, w}),
  };
  for (const IndexMap& map : maps) {
    LaunchBuilder b(MapLaunch{all}, to_string(map));
    const int x = b.input(2 * all), out = b.output(all), where = b.output(all);
    Scalar s(b.launch().body);
    const auto id = IndexMap::identity({all});
    // The position in a window of 2 x 2, plus a product that wraps in 32 bits.
    const int row = s.op(op_cast(), {s.coord(w, 2)}, DType::kI32);
    const int column = s.op(op_cast(), {s.coord(1, 2)}, DType::kI32);
    const int two = s.constant_u32(2, DType::kI32);
    const int place = s.op(op_add(), {s.op(op_mul(), {row, two}), column});
    const int large = s.op(op_mul(), {s.index(), s.constant_u32(1U << 20)});
    const int both = s.op(op_add(), {s.op(op_cast(), {place}, DType::kU32), large});
    b.launch().stores = {store_to(out, id, s.op(op_add(), {s.load(x, map), s.constant(1)})),
                         store_to(where, id, both, DType::kU32)};
    expect_as_oracle(b, oracle_scalars(), {}, {3});
    if (map.views[0].masked() ||
        std::count(map.views[0].strides.begin(), map.views[0].strides.end(), 0) > 0) {
      continue;
    }
    LaunchBuilder other(MapLaunch{all}, "to " + to_string(map));
    const int from = other.input(all), to = other.output(4 * all);
    Scalar t(other.launch().body);
    other.launch().stores = {store_to(to, map, t.op(op_add(), {t.load(from, id), t.constant(1)}))};
    expect_as_oracle(other, oracle_scalars(), {}, {3});
  }
}

TEST(CpuMap, stores_through_strides) {
  const std::int64_t m = 40, n = 48;
  for (const IndexMap& map : {view({m, n}, {1, m}), view({m, n}, {2 * n, 2}, 1),
                              view({m, n}, {n, -1}, n - 1), view({m, n}, {n, 1}, 7)}) {
    LaunchBuilder b(MapLaunch{m * n});
    const int x = b.input(m * n), out = b.output(2 * m * n + 16);
    Scalar s(b.launch().body);
    const int v = s.op(op_add(), {s.load(x, IndexMap::identity({m * n})), s.constant(1)});
    b.launch().stores = {store_to(out, map, v)};
    expect_as_oracle(b);
  }
}

TEST(CpuMap, updates_in_place_even_if_later_steps_read_the_old_value) {
  for (const std::int64_t n : {1000, 4096, 50001}) {
    LaunchBuilder b(MapLaunch{n});
    const int p = b.in_place(n), m = b.in_place(n), g = b.input(n);
    const auto id = IndexMap::identity({n});
    Scalar s(b.launch().body);
    const int old_m = s.load(m, id), grad = s.load(g, id);
    const int new_m = s.op(op_add(), {s.op(op_mul(), {old_m, s.constant(0.9f)}), grad});
    const int old_p = s.load(p, id);
    const int new_p = s.op(op_add(), {old_p, s.op(op_mul(), {new_m, old_m})});
    const int most = s.load(m, view({n}, {1}, 0, {1}, {n}));
    const int again = s.op(op_mul(), {most, s.load(p, id)});
    const int copy = s.op(op_add(), {s.op(op_mul(), {old_p, s.runtime_scalars(3)}), again});
    const int out = b.output(n);
    b.launch().stores = {store_to(m, id, new_m), store_to(p, id, new_p), store_to(out, id, copy)};
    RuntimeScalars runtime_scalars = oracle_scalars();
    runtime_scalars.words[3] = oracle_encode(0.25, DType::kF32);
    expect_as_oracle(b, runtime_scalars);
  }
}

TEST(CpuMap, a_store_in_place_waits_for_a_later_load) {
  const std::int64_t n = 2048;
  LaunchBuilder b(MapLaunch{n});
  const int x = b.in_place(n), out = b.output(n);
  const auto id = IndexMap::identity({n});
  Scalar s(b.launch().body);
  const int next = s.op(op_add(), {s.load(x, id), s.constant(1)});
  const int most = s.load(x, view({n}, {1}, 0, {1}, {n}));
  b.launch().stores = {store_to(x, id, next),
                       store_to(out, id, s.op(op_mul(), {most, s.constant(2)}))};
  expect_as_oracle(b);
}

// A condition selects the elements to overwrite, as when a cache is filled.
TEST(CpuMap, writes_in_place_under_a_condition) {
  const std::int64_t n = 50001;
  const auto id = IndexMap::identity({n});
  for (const bool two : {false, true}) {  // conditions
    for (const std::int64_t first : {0, 1, 1023, 1024, 20000, 50000}) {
      LaunchBuilder b(MapLaunch{n});
      const int x = b.in_place(n), y = b.in_place(n), fresh = b.input(n);
      Scalar s(b.launch().body);
      const int at = s.index(), edge = s.constant_u32(static_cast<std::uint32_t>(first));
      const int inside = s.op(op_less(), {at, edge}, DType::kBool);
      const int behind = s.op(op_less(), {edge, at}, DType::kBool);
      const int value = s.op(op_add(), {s.load(fresh, id), s.constant(1)});
      const int new_x = s.op(op_where(), {inside, value, s.load(x, id)});
      const int new_y = s.op(op_where(), {two ? behind : inside, s.load(x, id), s.load(y, id)});
      b.launch().stores = {store_to(y, id, new_y), store_to(x, id, new_x)};
      expect_as_oracle(b);
    }
  }
}

// A cache of `heads` x `places` x `width`. The lines up to `place` are filled, or those from
// `place` on if `swapped`. If `keep` is 0, the other lines are cleared.
struct CacheLine {
  std::int64_t heads = 3, places = 700, width = 24;
  float place = 5, keep = 1;
  bool finer = false;    // the condition depends on the column, too
  bool swapped = false;  // where(before the place, old, new)
};

LaunchBuilder cache_line(const CacheLine& given) {
  const std::int64_t n = given.heads * given.places * given.width;
  LaunchBuilder b(MapLaunch{n});
  const int cache = b.in_place(n), fresh = b.input(n), place = b.input(given.places),
            keep = b.input(1);
  std::vector<float> distance;
  for (std::int64_t i = 0; i < given.places; ++i)
    distance.push_back(static_cast<float>(i) - given.place);
  b.set(place, distance);
  b.set(keep, {given.keep});
  const Shape shape = {given.heads, given.places, given.width};
  Scalar s(b.launch().body);
  const int at = s.load(place, view(shape, {0, 1, 0})), zero = s.constant(0);
  const int before = s.op(op_less(), {at, zero}, DType::kBool);
  const int limit =
      given.finer ? s.op(op_cast(), {s.coord(1, given.width)}, DType::kF32) : s.constant(1);
  const int inside = s.op(op_less(), {at, limit}, DType::kBool);
  const int kept = s.op(op_less(), {zero, s.load(keep, view(shape, {0, 0, 0}))}, DType::kBool);
  const auto id = IndexMap::identity({n});
  const int old = s.op(op_where(), {kept, s.load(cache, id), zero});
  const int line = s.load(fresh, id);
  // If swapped, the lines before the place keep their values.
  const int filled =
      given.swapped ? s.op(op_where(), {before, old, line}) : s.op(op_where(), {inside, line, old});
  b.launch().stores = {store_to(cache, id, filled)};
  return b;
}

TEST(CpuMap, fills_the_lines_that_a_condition_selects) {
  for (const float place : {0, 1, 5, 342, 699, 5000}) {
    for (const float keep : {0, 1}) {
      for (const bool swapped : {false, true}) {
        LaunchBuilder b = cache_line({.place = place, .keep = keep, .swapped = swapped});
        expect_as_oracle(b);
      }
    }
  }
  // Many stretches, and tasks that begin within a line.
  for (const std::int64_t width : {9, 64}) {
    LaunchBuilder b = cache_line({.heads = 2, .places = 8009, .width = width, .place = 7990});
    expect_as_oracle(b);
  }
}

// One condition for all elements of several stores, as for an update that is not due.
TEST(CpuMap, stores_where_one_condition_for_all_holds) {
  const std::int64_t n = 5003;
  for (const bool alike : {true, false}) {
    for (const float due : {0, 1}) {
      LaunchBuilder b(MapLaunch{n});
      const int x = b.in_place(n), y = b.in_place(n), flag = b.input(1);
      b.set(flag, {due});
      Scalar s(b.launch().body);
      const auto id = IndexMap::identity({n});
      const int zero = s.constant(0), is_due = s.load(flag, view({n}, {0}));
      const int first = s.op(op_less(), {zero, is_due}, DType::kBool);
      const int second = alike ? first : s.op(op_less(), {is_due, zero}, DType::kBool);
      const int old_x = s.load(x, id), old_y = s.load(y, id);
      const int sum = s.op(op_add(), {old_x, old_y});
      b.launch().stores = {store_to(x, id, s.op(op_where(), {first, sum, old_x})),
                           store_to(y, id, s.op(op_where(), {second, sum, old_y}))};
      expect_as_oracle(b);
    }
  }
}

TEST(CpuMap, stores_where_conditions_differ_within_lines) {
  for (const bool keep : {false, true}) {
    LaunchBuilder b = cache_line({.keep = keep ? 1.0f : 0.0f, .finer = true});
    expect_as_oracle(b);
  }
  LaunchBuilder narrow = cache_line({.width = 4});
  expect_as_oracle(narrow);
}

// Lines of `post` elements are stored `count` at a time, from a place on that each sequence has.
LaunchBuilder placed_lines(std::int64_t count, std::int64_t post,
                           const std::vector<std::uint32_t>& starts) {
  constexpr std::int64_t kPlaces = 40;
  const auto batch = static_cast<std::int64_t>(starts.size()), rows = batch * count * post;
  LaunchBuilder b(MapLaunch{rows});
  const int kept = b.in_place(batch * kPlaces * post), fresh = b.input(rows);
  const int start = b.input(batch, DType::kI32), copy = b.output(rows);
  b.set_words(start, starts);
  const Shape shape = {batch, count, post};
  const auto id = IndexMap::identity({rows});
  Scalar s(b.launch().body);
  const int line = s.op(op_cast(), {s.coord(post, count)}, DType::kI32);
  const int at = s.op(op_add(), {s.load(start, view(shape, {1, 0, 0}), DType::kI32), line});
  const int value = s.op(op_mul(), {s.load(fresh, id), s.constant(2)});
  Store store = store_to(kept, view(shape, {kPlaces * post, 0, 1}), value);
  store.at = at;
  store.at_stride = post;
  store.at_size = kPlaces;
  b.launch().stores = {store, store_to(copy, id, value)};
  return b;
}

TEST(CpuMap, stores_lines_from_a_place_on) {
  const auto negative = static_cast<std::uint32_t>(-2);
  for (const std::int64_t post : {1, 3, 64, 1000}) {
    expect_as_oracle(placed_lines(1, post, {7}));
    expect_as_oracle(placed_lines(4, post, {0, 38, negative, 40, 2147483647, 17}));
  }
}

TEST(CpuMap, stores_loaded_values_and_constants) {
  const std::int64_t n = 3001;
  LaunchBuilder b(MapLaunch{n});
  const int x = b.input(n), copy = b.output(n), twice = b.output(2 * n), fill = b.output(n);
  const auto id = IndexMap::identity({n});
  Scalar s(b.launch().body);
  const int v = s.load(x, id), c = s.constant(7), h = s.runtime_scalars(kScalarInf);
  b.launch().stores = {store_to(copy, id, v), store_to(twice, view({n}, {2}), v),
                       store_to(twice, view({n}, {2}, 1), c), store_to(fill, id, h)};
  expect_as_oracle(b);
}

TEST(CpuMap, gathers_with_a_guard) {
  const std::int64_t rows = 200, width = 24, table = 10;
  LaunchBuilder b(MapLaunch{rows * width});
  const int x = b.input(table * width), i = b.input(rows, DType::kI32, 14),
            out = b.output(rows * width);
  b.contents[1][3] = static_cast<std::uint32_t>(-1);
  Scalar s(b.launch().body);
  const int index = s.load(i, view({rows, width}, {1, 0}), DType::kI32);
  const int v = s.load_at(x, view({rows, width}, {0, 1}), index, width, table);
  b.launch().stores = {store_to(out, IndexMap::identity({rows * width}), v)};
  expect_as_oracle(b);
}

TEST(CpuMap, knows_indices_and_coordinates) {
  const std::int64_t a = 7, c = 11, d = 13, n = a * c * d;
  LaunchBuilder b(MapLaunch{n});
  const int out = b.output(n), other = b.output(n);
  Scalar s(b.launch().body);
  const int sum =
      s.op(op_add(), {s.op(op_mul(), {s.coord(d, c), s.constant_u32(100)}), s.coord(1, d)});
  const auto id = IndexMap::identity({n});
  b.launch().stores = {store_to(out, id, s.op(op_add(), {sum, s.coord(c * d, a)}), DType::kU32),
                       store_to(other, id, s.index(), DType::kU32)};
  expect_as_oracle(b);
}

TEST(CpuMap, adds_the_ring_word_and_rejects_one_outside) {
  LaunchBuilder b(MapLaunch{1}, "ring_writer");
  const int x = b.input(1), out = b.output(8);
  Scalar s(b.launch().body);
  Store store = store_to(out, IndexMap::identity({1}), s.load(x, IndexMap::identity({1})));
  store.ring_word = 5;
  b.launch().stores = {store};
  RuntimeScalars runtime_scalars = oracle_scalars();
  runtime_scalars.words[5] = 6;
  expect_as_oracle(b, runtime_scalars);
  runtime_scalars.words[5] = 64;
  const auto device = make_cpu_device({.threads = 1});
  EXPECT_THROW(run_on(*device, b, runtime_scalars), InternalError);
}

// Returns a random view of a [60, 64] buffer over a domain of 24 x 20 elements.
IndexMap random_map(std::mt19937& random) {
  const auto pick = [&](int n) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
  };
  const Shape shape = pick(2) == 0 ? Shape{24, 20} : Shape{4, 6, 5, 4};
  View v{shape, {}, pick(64), {}, {}};
  const std::int64_t strides[] = {0, 1, 2, 20, 24, 64};
  for (const std::int64_t size : shape) {
    std::int64_t stride = strides[pick(6)];
    while (stride * (size - 1) > 900) stride /= 2;
    v.strides.push_back(stride);
    if (pick(3) == 0) {
      v.strides.back() = -stride;
      v.offset += stride * (size - 1);
    }
  }
  if (pick(3) == 0) {
    for (const std::int64_t size : shape) {
      v.lo.push_back(pick(2));
      v.hi.push_back(size - pick(2));
    }
  }
  IndexMap map{{v}};
  if (pick(3) == 0) map.views.push_back(View{{60, 64}, {1, 60}, -60, {0, 1}, {60, 64}});
  return map;
}

TEST(CpuMap, random_programs_agree_with_the_oracle) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    LaunchBuilder b(MapLaunch{480}, "seed " + std::to_string(seed));
    const int in[] = {b.input(64 * 64), b.input(64 * 64)};
    const int out[] = {b.output(480), b.output(480)};
    Scalar s(b.launch().body);
    std::vector<int> values = {s.constant(0.5f), s.runtime_scalars(7)};
    for (int i = 0; i < 4; ++i) values.push_back(s.load(in[random() % 2], random_map(random)));
    for (int i = 0; i < 12; ++i) {
      const int x = values[random() % values.size()], y = values[random() % values.size()];
      const auto n = random() % 4;
      if (n == 3) {
        values.push_back(s.op(op_where(), {s.op(op_less(), {x, y}, DType::kBool), y, x}));
      } else {
        values.push_back(s.op(n == 0 ? op_add() : n == 1 ? op_mul() : op_max(), {x, y}));
      }
    }
    const auto id = IndexMap::identity({480});
    const IndexMap across = view({20, 24}, {1, 20});
    b.launch().stores = {store_to(out[0], id, values.back()),
                         store_to(out[1], across, values[values.size() - 3])};
    RuntimeScalars runtime_scalars = oracle_scalars();
    runtime_scalars.words[7] = oracle_encode(-0.75, DType::kF32);
    expect_as_oracle(b, runtime_scalars, {1e-3, 1e-3});
  }
}

}  // namespace
}  // namespace tensorgrad::testing
