// SPDX-License-Identifier: MIT
// trace(): programs of any size, planned without a device.
#include <gtest/gtest.h>

#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

// Two layers of `width`^2 parameters each.
struct Wide {
  nn::Linear in, out;
  explicit Wide(std::int64_t width) : in(width, width, false), out(width, width, false) {}
  TG_MODULE(in, out)
  Tensor operator()(const Tensor& x) const { return out(relu(in(x))); }
};

Tensor wide_loss(const Wide& net, const Inputs& in) { return mean(square(net(in["x"]))); }

CompileOptions wide_options(std::int64_t width) {
  return {.inputs = {{"x", {2, width}}}, .optimizer = optim::Adam{}};
}

TEST(Trace, takes_parameters_beyond_a_buffer_and_a_binding) {
  constexpr std::int64_t kWidth = 8192;  // 512 MiB
  const auto trainer = trace(Wide(kWidth), wide_loss, wide_options(kWidth));
  // Parameters, gradients and two moments.
  EXPECT_GE(trainer.report().peak_bytes, 4 * 2 * kWidth * kWidth * 4);
  EXPECT_GT(trainer.report().launches, 8) << "the update is cut to bindings of 128 MiB";
}

TEST(Trace, takes_more_parameters_than_a_device_can_index) {
  constexpr std::int64_t kWidth = 40000;  // 3.2e9 parameters
  const auto trainer = trace(Wide(kWidth), wide_loss, wide_options(kWidth));
  EXPECT_GE(trainer.report().peak_bytes, 4 * 2 * kWidth * kWidth * 4);
  const auto forward =
      compile_function(Wide(kWidth), [](const Wide& net, const Inputs& in) { return net(in["x"]); },
                       {.inputs = {{"x", {2, kWidth}}}, .device = {.kind = "null"}});
  EXPECT_GE(forward.report().peak_bytes, 2 * kWidth * kWidth * 4);
}

TEST(Trace, takes_a_table_beyond_a_binding) {
  struct Table {
    nn::Embedding table{100000, 1024};  // 390 MiB
    TG_MODULE(table)
  };
  const auto trainer = trace(
      Table{}, [](const Table& net, const Inputs& in) { return mean(square(net.table(in["x"]))); },
      {.inputs = {{"x", {8}, i32}}, .optimizer = optim::SGD{}});
  EXPECT_GT(trainer.report().launches, 0);
}

TEST(Trace, draws_no_initial_values) {
  CompileOptions options = wide_options(4);
  int asked = 0;
  options.initial = [&](const std::string&, const Shape&) -> std::optional<Init> {
    ++asked;
    return std::nullopt;
  };
  auto trainer = trace(Wide(4), wide_loss, options);
  trainer.reset();
  EXPECT_EQ(asked, 0);
  options.device.kind = "cpu";
  static_cast<void>(compile(Wide(4), wide_loss, options));
  EXPECT_EQ(asked, 2) << "compile() asks for each parameter";
}

TEST(Trace, compiling_more_parameters_than_a_device_can_index_is_rejected) {
  constexpr std::int64_t kWidth = 40000;
  CompileOptions options = wide_options(kWidth);
  options.device.kind = "cpu";
  try {
    static_cast<void>(compile(Wide(kWidth), wide_loss, options));
    FAIL() << "compiled";
  } catch (const UserError& error) {
    EXPECT_EQ(
        error.message(),
        "compile: the model has 3200000000 parameters, a device takes at most 2147483647; use "
        "a smaller model, or trace() to inspect this one");
  }
}

}  // namespace
}  // namespace tensorgrad::testing
