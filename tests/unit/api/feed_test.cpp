// SPDX-License-Identifier: MIT
// Inputs from the host: containers, data sets whose sizes are not multiples of the batch, and
// outputs of all types.
#include <gmock/gmock.h>
#include <array>
#include <sstream>

#include <cmath>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

struct One {
  Parameter w{{1}};
  TG_MODULE(w)
};

// Returns a trainer whose loss is the mean of the batch.
Trainer<One> over_data(std::int64_t rows, std::int64_t batch) {
  auto trainer =
      compile(One{}, [](const One& m, const Inputs& in) { return mean(in["x"]) + sum(m.w) * 0; },
              {.dataset = {{"x", {rows}}},
               .batch = batch,
               .shuffle = false,
               .optimizer = optim::SGD{.lr = 0},
               .device = {.kind = "cpu"}});
  std::vector<float> x;
  for (std::int64_t i = 0; i < rows; ++i) x.push_back(static_cast<float>(i));
  trainer.upload_data("x", x);
  return trainer;
}

TEST(Dataset, rows_that_fill_no_batch_are_left_out_of_the_epoch) {
  auto trainer = over_data(7, 3);
  EXPECT_EQ(trainer.batches_per_epoch(), 2);
  EXPECT_EQ(trainer.run(5), (std::vector<float>{1, 4, 1, 4, 1}));
  EXPECT_EQ(trainer.epoch(), 2);
}

TEST(Dataset, works_with_one_row) {
  auto trainer = over_data(1, 1);
  EXPECT_EQ(trainer.batches_per_epoch(), 1);
  EXPECT_EQ(trainer.run(3), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(trainer.epoch(), 3);
}

TEST(Dataset, works_with_one_batch) {
  auto trainer = over_data(4, 4);
  EXPECT_EQ(trainer.run(2), (std::vector<float>{1.5, 1.5}));
}

TEST(Dataset, can_be_replaced_between_steps) {
  auto trainer = over_data(2, 1);
  trainer.run(1);
  trainer.upload_data("x", std::vector<float>{10, 20});
  EXPECT_EQ(trainer.run(3), (std::vector<float>{20, 10, 20}));
}

TEST(Trainer, run_of_zero_steps_does_nothing) {
  auto trainer = over_data(4, 2);
  EXPECT_TRUE(trainer.run(0).empty());
  EXPECT_EQ(trainer.steps(), 0);
}

TEST(Trainer, results_are_in_the_order_of_the_calls) {
  auto trainer = over_data(6, 1);
  trainer.submit(2);
  const StepResult third = trainer.step();
  EXPECT_EQ(third.step, 3);
  EXPECT_EQ(third.loss, 2);
  trainer.submit(1);
  EXPECT_EQ(trainer.losses(), (std::vector<float>{0, 1, 2, 3})) << "none is lost by step()";
  EXPECT_EQ(trainer.step().loss, 4);
  EXPECT_TRUE(trainer.losses().empty()) << "nothing was queued";
  trainer.submit(1);
  EXPECT_EQ(trainer.run(2), (std::vector<float>{0, 1}));
  EXPECT_EQ(trainer.losses(), std::vector<float>{5}) << "none is lost by run()";
}

TEST(Trainer, run_checks_each_step_with_detect_nan) {
  auto loss = [](const One& m, const Inputs& in) { return mean(log(in["x"])) + sum(m.w) * 0; };
  auto trainer = compile(One{}, loss,
                         {.dataset = {{"x", {3}}},
                          .batch = 1,
                          .shuffle = false,
                          .optimizer = optim::SGD{.lr = 0},
                          .device = {.kind = "cpu"},
                          .detect_nan = true});
  trainer.upload_data("x", std::vector<float>{1, 1, -1});
  EXPECT_EQ(trainer.run(2).size(), 2U);
  try {
    trainer.run(1);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_TRUE(error.message().starts_with("step 3: the loss is nan")) << error.message();
  }
}

TEST(Trainer, run_returns_all_losses) {
  auto trainer = over_data(6, 1);
  const std::vector<float> losses = trainer.run(9000);
  ASSERT_EQ(losses.size(), 9000U);
  for (std::size_t i = 0; i < losses.size(); ++i) ASSERT_EQ(losses[i], static_cast<float>(i % 6));
}

// One column of the pairs indexes a table of 1000 rows, the other a table of 50 rows.
TEST(Feed, checks_each_column_of_an_index_against_its_own_table) {
  auto loss = [](const One& m, const Inputs& in) {
    const Tensor pairs = in["pairs"];
    const Tensor far = embedding(narrow(pairs, 1, 0, 1), zeros({1000, 2}));
    const Tensor near = embedding(narrow(pairs, 1, 1, 1), zeros({50, 2}));
    return sum(far) + sum(near) + sum(m.w);
  };
  const std::vector<std::int32_t> good = {700, 3, 999, 49}, bad = {700, 3, 999, 50};
  auto given = compile(
      One{}, loss,
      {.inputs = {{"pairs", {2, 2}, i32}}, .optimizer = optim::SGD{}, .device = {.kind = "cpu"}});
  EXPECT_NO_THROW(given.step({{"pairs", good}}));
  auto kept = compile(One{}, loss,
                      {.dataset = {{"pairs", {2, 2}, i32}},
                       .batch = 2,
                       .optimizer = optim::SGD{},
                       .device = {.kind = "cpu"}});
  EXPECT_NO_THROW(kept.upload_data("pairs", good));
  for (const bool step : {true, false}) {
    try {
      if (step) given.step({{"pairs", bad}});
      if (!step) kept.upload_data("pairs", bad);
      ADD_FAILURE() << "accepted";
    } catch (const UserError& error) {
      EXPECT_EQ(error.message(),
                "input 'pairs': element 3 is 50, which embedding uses as an index in [0, 50)");
    }
  }
}

CompiledFunction doubled(const Shape& shape, DType dtype) {
  return compile_function(One{}, [](const One&, const Inputs& in) { return in["x"] * 2; },
                          {.inputs = {{"x", shape, dtype}}, .device = {.kind = "cpu"}});
}

TEST(Feed, takes_vectors_and_spans_of_each_type) {
  const std::vector<float> f = {1, 2};
  EXPECT_EQ(doubled({2}, f32)({{"x", std::span<const float>(f)}}).floats(),
            (std::vector<float>{2, 4}));
  const std::vector<std::int32_t> i = {-1, 2};
  EXPECT_EQ(doubled({2}, i32)({{"x", i}}).ints(), (std::vector<std::int32_t>{-2, 4}));
  const std::vector<std::uint32_t> u = {3000000000U, 1};
  const HostTensor out = doubled({2}, u32)({{"x", u}});
  EXPECT_EQ(out.dtype, u32);
  EXPECT_EQ(out.ints()[0], static_cast<std::int32_t>(3000000000U * 2U));
}

TEST(Feed, takes_scalars_and_one_sample) {
  EXPECT_EQ(doubled({}, f32)({{"x", std::vector<float>{3}}}).floats(), std::vector<float>{6});
  EXPECT_EQ(doubled({1, 1}, f32)({{"x", std::vector<float>{3}}}).shape, (Shape{1, 1}));
}

// Returns a function that sums the elements of x and y.
CompiledFunction summed() {
  return compile_function([](const Inputs& in) { return sum(in["x"]) + sum(in["y"]); },
                          {.inputs = {{"x", {12}}, {"y", {6}}}, .device = {.kind = "cpu"}});
}
Feed feed_of_locals() {
  const std::vector<float> x(12, 1);
  HostTensor y{f32, {6}, std::vector<std::byte>(24)};
  return {{"x", x}, {"y", y}};
}

TEST(Feed, owns_temporaries_and_copies_variables) {
  CompiledFunction f = summed();
  const auto overwrite = [] {
    return std::vector<std::vector<float>>(8, std::vector<float>(12, 9));
  };
  std::vector<float> x(12, 1), y(6, 2);
  Feed feed{{"x", std::vector<float>(12, 1)}, {"y", y}};
  FeedView view{{"x", std::vector<float>(12, 1)}, {"y", y}};
  const Feed kept(view);
  const auto others = overwrite();
  EXPECT_EQ(f(feed).floats()[0], 24);
  y.assign(6, 3);
  EXPECT_EQ(f(feed).floats()[0], 24);
  EXPECT_EQ(f(kept).floats()[0], 24);
  EXPECT_EQ(f(view).floats()[0], 30);  // the view sees the change
  EXPECT_EQ(f(feed_of_locals()).floats()[0], 12);
  Feed added;
  added.add("x", x);
  added.add("y", std::vector<float>(6, 1));
  x.assign(12, 7);
  EXPECT_EQ(f(added).floats()[0], 18);
}

TEST(Feed, takes_arrays_and_maps_of_tensors) {
  const std::array<float, 2> a = {1, 2};
  const float c[] = {3, 4};
  EXPECT_EQ(doubled({2}, f32)({{"x", a}}).floats(), (std::vector<float>{2, 4}));
  EXPECT_EQ(doubled({2}, f32)({{"x", c}}).floats(), (std::vector<float>{6, 8}));
  const NamedTensors named = {{"x", HostTensor::from({2}, a)}};
  EXPECT_EQ(doubled({2}, f32)(named).floats(), (std::vector<float>{2, 4}));
}

TEST(Feed, takes_booleans) {
  CompiledFunction pick = compile_function(
      [](const Inputs& in) {
        return std::map<std::string, Tensor>{{"x", where(in["mask"], in["x"], 0)},
                                             {"not", !in["mask"]}};
      },
      {.inputs = {{"x", {3}}, {"mask", {3}, boolean}}, .device = {.kind = "cpu"}});
  const std::vector<float> x = {1, 2, 3};
  const std::vector<bool> mask = {true, false, true};
  for (const Feed& feed :
       {Feed{{"x", x}, {"mask", mask}}, Feed{{"x", x}, {"mask", HostTensor::from({3}, mask)}}}) {
    const NamedTensors out = pick.run(feed);
    EXPECT_EQ(out.at("x").floats(), (std::vector<float>{1, 0, 3}));
    EXPECT_EQ(out.at("not").bools(), (std::vector<bool>{false, true, false}));
  }
}

TEST(HostTensor, is_written_as_text) {
  std::ostringstream text;
  text << HostTensor::from({2, 1}, std::vector<float>{1, -0.5F}) << '\n'
       << HostTensor::from({2}, std::vector<bool>{true, false}) << '\n'
       << HostTensor::from({40}, std::vector<std::uint32_t>(40, 4000000000U)).uints()[39];
  EXPECT_EQ(text.str(), "f32[2,1] {1, -0.5}\nbool[2] {1, 0}\n4000000000");
}

TEST(Forward, returns_every_output_by_name_with_its_type) {
  CompiledFunction forward = compile_function(
      One{},
      [](const One&, const Inputs& in) {
        const Tensor x = in["x"];
        return std::map<std::string, Tensor>{
            {"same", x}, {"count", iota({3}, 0)}, {"class scores", x * 2}, {"large", x > 1}};
      },
      {.inputs = {{"x", {2}}}, .device = {.kind = "cpu"}});
  NamedTensors out = forward.run({{"x", std::vector<float>{1, 2}}});
  EXPECT_EQ(out.size(), 4U);
  EXPECT_EQ(out.at("same").floats(), (std::vector<float>{1, 2}));
  EXPECT_EQ(out.at("count").ints(), (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(out.at("class scores").floats(), (std::vector<float>{2, 4}));
  EXPECT_THAT(out.at("class scores").float_span(), ::testing::ElementsAre(2, 4));
  EXPECT_EQ(out.at("class scores").float_span().data(),
            reinterpret_cast<const float*>(out.at("class scores").bytes.data()));
  EXPECT_EQ(out.at("large").dtype, boolean);
  EXPECT_EQ(out.at("large").ints(), (std::vector<std::int32_t>{0, 1}));
}

// If indices are not checked, an out-of-range index reads zero.
TEST(CheckIndices, off_lets_indices_out_of_range_read_zero) {
  const auto loss = [](const One&, const Inputs& in) { return gather(in["x"], 0, in["i"]); };
  CompiledFunction forward = compile_function(
      One{}, loss,
      {.inputs = {{"x", {2}}, {"i", {3}, i32}}, .device = {.kind = "cpu"}, .check_indices = false});
  const std::vector<float> x = {5, 6};
  const std::vector<std::int32_t> i = {1, -1, 2};
  EXPECT_EQ(forward({{"x", x}, {"i", i}}).floats(), (std::vector<float>{6, 0, 0}));
}

TEST(Null, plans_and_runs_nothing) {
  auto trainer =
      compile(One{}, [](const One& m, const Inputs& in) { return mean(in["x"] * m.w); },
              {.inputs = {{"x", {4}}}, .optimizer = optim::Adam{}, .device = {.kind = "null"}});
  trainer.step({{"x", std::vector<float>(4)}});
  EXPECT_EQ(trainer.steps(), 1);
  EXPECT_GT(trainer.report().launches, 0);
  EXPECT_GT(trainer.report().peak_bytes, 0);
}

// A field that is smoothed repeatedly: each call starts with the results that the previous one left
// on the device.
struct Field {
  Buffer cells{{8}};
  Parameter rate{{1}, init::constant(0.5)};
  TG_MODULE(cells, rate)
};

void expect_feedback(const char* kind) {
  const auto advance = [](const Field& field, const Inputs& in) {
    const Tensor next =
        lerp(field.cells.tensor(), roll(field.cells.tensor(), {1}, {0}), field.rate);
    field.cells.set(next + in["drop"]);
    return std::map<std::string, Tensor>{{"total", sum(next)}, {"last", narrow(next, 0, 7, 1)}};
  };
  CompiledFunction forward = compile_function(
      Field{}, advance,
      {.inputs = {{"drop", {8}}}, .device = {.kind = kind, .allow_software = true}});
  std::vector<float> drop(8, 0), cells(8, 0);
  drop[0] = 64;
  for (int call = 0; call < 9; ++call) {
    std::vector<float> next(8);
    float total = 0;
    for (std::size_t i = 0; i < 8; ++i)
      total += next[i] = 0.5F * cells[i] + 0.5F * cells[(i + 7) % 8];
    const NamedTensors out = forward.run({{"drop", drop}});
    EXPECT_EQ(out.at("total").floats()[0], total) << kind << " call " << call;
    EXPECT_EQ(out.at("last").floats()[0], next[7]) << kind << " call " << call;
    cells = next;
    cells[0] += drop[0];
    drop[0] = 0;
  }
}
TEST(Feedback, of_a_result_needs_no_copy_to_the_host_on_cpu) { expect_feedback("cpu"); }
TEST(Feedback, of_a_result_needs_no_copy_to_the_host_on_webgpu) { expect_feedback("webgpu"); }

TEST(HostTensor, unbind_splits_along_an_axis) {
  std::vector<std::int32_t> values(24);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i);
  const HostTensor all = HostTensor::from({1, 4, 3, 2}, values);
  const std::vector<HostTensor> heads = all.unbind(1);
  ASSERT_EQ(heads.size(), 4U);
  EXPECT_EQ(heads[2].shape, (Shape{1, 3, 2}));
  EXPECT_EQ(heads[2].ints(), (std::vector<std::int32_t>{12, 13, 14, 15, 16, 17}));
  const std::vector<HostTensor> last = all.unbind(-1);
  EXPECT_EQ(last.at(1).shape, (Shape{1, 4, 3}));
  EXPECT_EQ(last[1].ints()[5], 11);
  EXPECT_EQ(all.unbind().at(0).ints(), values);
  EXPECT_THROW(static_cast<void>(all.unbind(4)), ShapeError);
}

// An odd number of two-byte elements, on devices with and without f16.
void expect_halves_through(const char* kind) {
  for (const bool default_limits : {false, true}) {
    CompiledFunction forward = compile_function(
        One{},
        [](const One& m, const Inputs& in) {
          const Tensor x = in["x"];
          return std::map<std::string, Tensor>{
              {"same", x}, {"doubled", x * 2.0}, {"wide", cast(x, f32) + sum(m.w) * 0}};
        },
        {.inputs = {{"x", {3}, f16}},
         .device = {.kind = kind, .allow_software = true, .default_limits = default_limits}});
    const std::vector<float> given = {1 + 0x1p-12F, -2, 70000}, rounded = {1, -2, INFINITY};
    NamedTensors out = forward.run({{"x", given}});
    EXPECT_EQ(out.at("same").dtype, f16);
    EXPECT_EQ(out.at("same").bytes.size(), 6U);
    EXPECT_EQ(out.at("same").floats(), rounded);
    EXPECT_EQ(out.at("wide").floats(), rounded);
    EXPECT_EQ(out.at("doubled").floats(), (std::vector<float>{2, -4, INFINITY}));
    out = forward.run({{"x", out.at("doubled")}});  // unconverted
    EXPECT_EQ(out.at("doubled").floats(), (std::vector<float>{4, -8, INFINITY}));
  }
}
TEST(Half, round_trips_through_a_function_on_cpu) { expect_halves_through("cpu"); }
TEST(Half, round_trips_through_a_function_on_webgpu) { expect_halves_through("webgpu"); }

void expect_halves_kept(const char* kind) {
  auto trainer = compile(
      One{}, [](const One& m, const Inputs& in) { return mean(cast(in["x"], f32)) + sum(m.w) * 0; },
      {.dataset = {{"x", {5, 3}, f16}},
       .batch = 2,
       .shuffle = false,
       .optimizer = optim::SGD{.lr = 0},
       .device = {.kind = kind, .allow_software = true}});
  std::vector<float> x;
  for (int i = 0; i < 15; ++i) x.push_back(static_cast<float>(i));
  trainer.upload_data("x", x);
  EXPECT_EQ(trainer.run(2), (std::vector<float>{2.5, 8.5})) << kind;
}
TEST(Half, data_stay_on_the_device_on_cpu) { expect_halves_kept("cpu"); }
TEST(Half, data_stay_on_the_device_on_webgpu) { expect_halves_kept("webgpu"); }

}  // namespace
}  // namespace tensorgrad::testing
