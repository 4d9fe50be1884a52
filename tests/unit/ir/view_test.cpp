// SPDX-License-Identifier: MIT
// The algebra of views, compared with offset_at() element by element.
#include "ir/view.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/graph_builder.h"

namespace tensorgrad::testing {
namespace {

std::vector<std::int64_t> offsets(const IndexMap& map) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < map.domain_size(); ++i) all.push_back(offset_at(map, i));
  return all;
}

Shape random_shape(Draw& draw, std::int64_t most) {
  Shape shape;
  for (std::int64_t d = draw.whole(0, 3); d > 0; --d) {
    const std::int64_t size = draw.whole(1, 4);
    if (numel(shape) * size <= most) shape.push_back(size);
  }
  return shape;
}

// Returns a random view of `size` elements, with strides of any sign and masks that keep loads in
// bounds.
View random_view(Draw& draw, std::int64_t size) {
  View view;
  view.shape = random_shape(draw, 48);
  const bool masked = draw.chance(0.4);
  std::int64_t lowest = 0, highest = 0;
  for (const std::int64_t n : view.shape) {
    const std::int64_t stride = draw.whole(-3, 3);
    const std::int64_t lo = masked ? draw.whole(0, n - 1) : 0,
                       hi = masked ? draw.whole(lo + 1, n) : n;
    view.strides.push_back(stride);
    if (masked) {
      view.lo.push_back(lo);
      view.hi.push_back(hi);
    }
    lowest += std::min(lo * stride, (hi - 1) * stride);
    highest += std::max(lo * stride, (hi - 1) * stride);
  }
  if (highest - lowest >= size) {  // if it does not fit, use strides that always do
    view.strides.assign(view.shape.size(), 0);
    lowest = highest = 0;
  }
  view.offset = -lowest + draw.whole(0, size - 1 - (highest - lowest));
  return view;
}

TEST(View, simplified_view_is_equivalent) {
  Draw draw(1);
  for (int i = 0; i < 3000; ++i) {
    const View view = random_view(draw, 60);
    EXPECT_EQ(offsets({{view.simplified()}}), offsets({{view}})) << to_string(view);
  }
}

TEST(View, compose_applies_both_views) {
  Draw draw(2);
  int merged = 0;
  for (int i = 0; i < 5000; ++i) {
    const View inner = random_view(draw, 60);
    IndexMap outer{{random_view(draw, numel(inner.shape))}};
    if (draw.chance(0.3))
      outer = compose(IndexMap{{random_view(draw, outer.domain_size())}}, outer);
    const IndexMap both = compose(outer, inner);
    ASSERT_EQ(both.domain_size(), outer.domain_size())
        << to_string(outer) << " then " << to_string(inner);
    for (std::int64_t k = 0; k < outer.domain_size(); ++k) {
      const std::int64_t middle = offset_at(outer, k);
      const std::int64_t want = middle < 0 ? -1 : offset_at({{inner}}, middle);
      ASSERT_EQ(offset_at(both, k), want) << to_string(outer) << " then " << to_string(inner)
                                          << " gave " << to_string(both) << " at " << k;
    }
    merged += both.views.size() < outer.views.size() + 1 ? 1 : 0;
  }
  EXPECT_GT(merged, 1000);
}

TEST(View, compose_applies_both_maps) {
  Draw draw(3);
  for (int i = 0; i < 2000; ++i) {
    const View last = random_view(draw, 60), middle = random_view(draw, numel(last.shape));
    const IndexMap inner = compose(IndexMap{{middle}}, last);
    const IndexMap outer{{random_view(draw, inner.domain_size())}};
    const IndexMap both = compose(outer, inner);
    ASSERT_EQ(both.domain_size(), outer.domain_size())
        << to_string(outer) << " then " << to_string(inner);
    for (std::int64_t k = 0; k < outer.domain_size(); ++k) {
      const std::int64_t at = offset_at(outer, k);
      ASSERT_EQ(offset_at(both, k), at < 0 ? -1 : offset_at(inner, at)) << to_string(both);
    }
  }
}

// Splits axes of a shape at random.
Shape finer(Draw& draw, const Shape& shape) {
  Shape cut;
  for (const std::int64_t size : shape) {
    if (size == 4 && draw.chance(0.5)) {
      cut.insert(cut.end(), {2, 2});
    } else {
      cut.push_back(size);
    }
    if (draw.chance(0.2)) cut.push_back(1);
  }
  return cut;
}

// Windows along both axes of a flipped, sliced image. Two axes of the composed view step through
// each axis of the image.
TEST(View, overlapping_windows_of_views_are_one_view) {
  const View image = View::contiguous({3, 7, 9});
  const View sliced{{3, 6, 8}, {63, -9, 1}, 9 * 5 + 1, {}, {}};
  const View rows{{3, 2, 8, 2}, {48, 16, 1, 24}, 0, {}, {}};  // size 2, step 2, dilation 3
  const IndexMap below = compose(IndexMap{{sliced}}, image);
  const IndexMap tall = compose(IndexMap{{rows}}, below);
  ASSERT_EQ(tall.views.size(), 1U) << to_string(tall);
  const View wide{{3, 2, 6, 2, 3}, {32, 16, 2, 1, 2}, 0, {}, {}};  // size 3, step 1
  const IndexMap windows = compose(IndexMap{{wide}}, tall);
  ASSERT_EQ(windows.views.size(), 1U) << to_string(windows);
  for (std::int64_t i = 0; i < windows.domain_size(); ++i) {
    const std::int64_t want = offset_at(below, offset_at({{rows}}, offset_at({{wide}}, i)));
    ASSERT_EQ(offset_at(windows, i), want) << i;
  }
  EXPECT_EQ(offset_span(windows, 0, windows.domain_size()).low, 1);
}

TEST(View, recut_view_is_equivalent) {
  Draw draw(4);
  int done = 0;
  for (int i = 0; i < 3000; ++i) {
    const View view = random_view(draw, 60);
    View out;
    const Shape cut = finer(draw, view.shape);
    if (!recut(view, cut, out)) continue;
    ++done;
    EXPECT_EQ(out.shape, cut);
    EXPECT_EQ(offsets({{out}}), offsets({{view}}))
        << to_string(view) << " as " << tensorgrad::to_string(cut);
  }
  EXPECT_GT(done, 1000);
}

TEST(View, recut_fails_if_sizes_do_not_divide) {
  View out;
  EXPECT_FALSE(recut(View::contiguous({6}), {4}, out));
  EXPECT_FALSE(recut(View{{2, 3}, {1, 2}, 0, {}, {}}, {3, 2}, out));
  EXPECT_TRUE(out.shape.empty());
}

TEST(View, common_cut_fits_all_views) {
  Draw draw(5);
  int done = 0;
  for (int i = 0; i < 3000; ++i) {
    const View a = random_view(draw, 60);
    View b = View::contiguous(finer(draw, a.shape));
    if (draw.chance(0.3)) b = View::contiguous({numel(a.shape)});
    Shape cut;
    if (!common_cut({&a, &b}, cut)) continue;
    ++done;
    for (const View* view : std::vector<const View*>{&a, &b}) {
      View out;
      ASSERT_TRUE(recut(*view, cut, out))
          << to_string(*view) << " as " << tensorgrad::to_string(cut);
      EXPECT_EQ(offsets({{out}}), offsets({{*view}}));
    }
  }
  EXPECT_GT(done, 1000);
}

TEST(View, identity_text_and_offsets_match) {
  EXPECT_TRUE(View::contiguous({2, 3}).is_identity());
  EXPECT_FALSE((View{{2, 3}, {1, 2}, 0, {}, {}}).is_identity());
  EXPECT_EQ(to_string(View{{256, 64}, {64, 1}, 0, {}, {}}), "[256,64]:(64,1)+0");
  EXPECT_EQ(offset_at({{View{{3}, {1}, -1, {1}, {3}}}}, 0), -1);
  EXPECT_EQ(offset_at({{View{{3}, {1}, -1, {1}, {3}}}}, 1), 0);
}

TEST(View, offset_span_holds_the_offsets_of_a_stretch) {
  Draw draw(7);
  int narrower = 0;
  for (int i = 0; i < 3000; ++i) {
    const View inner = random_view(draw, 60);
    IndexMap map{{random_view(draw, numel(inner.shape))}};
    if (draw.chance(0.5)) map.views.push_back(inner);
    const std::int64_t n = map.domain_size(), first = draw.whole(0, n - 1);
    const std::int64_t count = draw.whole(1, n - first);
    const OffsetSpan span = offset_span(map, first, count), whole = offset_span(map, 0, n);
    for (std::int64_t at = first; at < first + count; ++at) {
      const std::int64_t offset = offset_at(map, at);
      if (offset < 0) continue;
      EXPECT_TRUE(span.low <= offset && offset <= span.high) << to_string(map) << " at " << at;
    }
    if (span.low > span.high) continue;
    EXPECT_TRUE(whole.low <= span.low && span.high <= whole.high) << to_string(map);
    narrower += span.low > whole.low || span.high < whole.high ? 1 : 0;
  }
  EXPECT_GT(narrower, 200);
}

// Compares with a check of every index, for windows, permutations and padding of blocks of rows.
TEST(View, stays_in_blocks_has_no_false_positives) {
  const auto by_hand = [](const IndexMap& map, std::int64_t range, std::int64_t blocks) {
    const std::int64_t domain = map.domain_size();
    for (std::int64_t i = 0; i < domain; ++i) {
      const std::int64_t at = offset_at(map, i);
      if (at >= 0 && at * blocks / range != i * blocks / domain) return false;
    }
    return true;
  };
  const View heads{{4, 3, 6, 2}, {36, 2, 6, 1}, 0, {}, {}};  // [4,6,3,2] as [4,3,6,2]
  const View turned{{24, 6}, {1, 24}, 0, {}, {}};            // [6,24] as [24,6]
  const View shifted{{8, 6}, {6, 1}, -6, {1, 0}, {8, 6}};    // one row down, padded
  const View halves{{8, 2, 3}, {6, 0, 1}, 3, {}, {}};        // the second half, twice
  const View backwards{{8, 6}, {6, -1}, 5, {}, {}};          // each row from its end
  const View repeated{{8, 5}, {1, 0}, 0, {}, {}};            // one element per row
  for (const auto& [view, range] :
       std::vector<std::pair<View, std::int64_t>>{{View::contiguous({8, 6}), 48},
                                                  {heads, 144},
                                                  {turned, 144},
                                                  {shifted, 48},
                                                  {halves, 48},
                                                  {backwards, 48},
                                                  {repeated, 8}}) {
    for (const std::int64_t blocks : {1, 2, 4, 8}) {
      const IndexMap map{{view}};
      const bool divides = map.domain_size() % blocks == 0 && range % blocks == 0;
      EXPECT_EQ(stays_in_blocks(map, range, blocks), divides && by_hand(map, range, blocks))
          << tensorgrad::to_string(view) << " in " << blocks;
    }
  }
  EXPECT_FALSE(stays_in_blocks(IndexMap{{View::contiguous({9, 2})}}, 18, 4));
}

TEST(View, offset_span_of_rows_is_exact) {
  const IndexMap rows{{View{{10, 4}, {8, 1}, 3, {}, {}}}};
  EXPECT_EQ(offset_span(rows, 8, 4).low, 19);
  EXPECT_EQ(offset_span(rows, 8, 4).high, 22);
  const IndexMap padded{{View{{10, 4}, {4, 1}, -8, {2, 0}, {10, 4}}}};
  EXPECT_GT(offset_span(padded, 0, 8).low, offset_span(padded, 0, 8).high);
}

}  // namespace
}  // namespace tensorgrad::testing
