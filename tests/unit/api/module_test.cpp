// SPDX-License-Identifier: MIT
// Parameters are found and named by field, and transferred to trainers and back.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "support/dump.h"
#include "tensorgrad/tensorgrad.h"
#include "train/parameters.h"

namespace tensorgrad::testing {
namespace {

template <class Model>
std::vector<std::string> names(const Model& model) {
  std::vector<std::string> found;
  ParameterVisitor visitor(
      [&](const std::string& path, const Parameter&) { found.push_back(path); });
  model.visit_fields(visitor);
  return found;
}

using Names = std::vector<std::string>;

struct Inner {
  Parameter w{{1}};
  double factor = 2;
  TG_MODULE(w, factor)
};

struct Everything {
  Parameter first{{1}};
  Inner inner;
  std::vector<Inner> list = std::vector<Inner>(2);
  std::array<Parameter, 2> pair = {Parameter({1}), Parameter({1})};
  std::optional<Parameter> present = Parameter({1}), absent;
  std::unique_ptr<Inner> owned = std::make_unique<Inner>();
  std::shared_ptr<Inner> shared = std::make_shared<Inner>(), nothing;
  std::vector<std::vector<Inner>> nested = std::vector<std::vector<Inner>>(2, {Inner{}});
  std::string note = "not a parameter";
  bool flag = true;
  TG_MODULE(first, inner, list, pair, present, absent, owned, shared, nothing, nested, note, flag)
};

TEST(Module, names_are_paths_of_fields) {
  EXPECT_EQ(names(Everything{}),
            (Names{"first", "inner.w", "list.0.w", "list.1.w", "pair.0", "pair.1", "present",
                   "owned.w", "shared.w", "nested.0.0.w", "nested.1.0.w"}));
}

struct Spread {
  Parameter a{{1}}, b{{1}};
  // clang-format off
  TG_MODULE(  a  ,
              b )
  // clang-format on
};

TEST(Module, names_have_no_spaces) { EXPECT_EQ(names(Spread{}), (Names{"a", "b"})); }

struct Nothing {
  TG_MODULE()
};

TEST(Module, without_fields_has_no_names) { EXPECT_EQ(names(Nothing{}), Names{}); }

struct Line {
  nn::Linear fc{3, 2};
  TG_MODULE(fc)
};

Trainer<Line> trainer_of(std::uint32_t seed) {
  return compile(Line{}, [](const Line& net, const Inputs& in) { return mean(net.fc(in["x"])); },
                 {.inputs = {{"x", {1, 3}}},
                  .optimizer = optim::SGD{},
                  .seed = seed,
                  .device = {.kind = "cpu"}});
}

TEST(Parameters, are_copied_between_trainers_by_name) {
  auto a = trainer_of(1), b = trainer_of(2);
  EXPECT_NE(a.download_params().at("fc.weight").bytes, b.download_params().at("fc.weight").bytes);
  b.upload_params(a.download_params());
  for (const auto& [name, tensor] : a.download_params()) {
    EXPECT_EQ(b.download_params().at(name).bytes, tensor.bytes) << name;
    EXPECT_EQ(b.download_params().at(name).shape, tensor.shape) << name;
  }
}

TEST(Parameters, of_a_checkpoint_load_into_a_function) {
  const ScratchFolder folder("parameters");
  const std::string path = folder.path() / "model.safetensors";
  auto trainer = trainer_of(1);
  trainer.save(path);
  CompiledFunction forward =
      compile_function(Line{}, [](const Line& net, const Inputs& in) { return net.fc(in["x"]); },
                       {.inputs = {{"x", {1, 3}}}, .device = {.kind = "cpu"}, .seed = 9});
  EXPECT_NE(forward.download_params().at("fc.bias").bytes,
            trainer.download_params().at("fc.bias").bytes);
  forward.load_params(path);
  EXPECT_EQ(forward.download_params().at("fc.bias").bytes,
            trainer.download_params().at("fc.bias").bytes);
}

TEST(Parameters, of_a_model_without_any_are_empty) {
  CompiledFunction forward =
      compile_function(Nothing{}, [](const Nothing&, const Inputs& in) { return in["x"] * 2; },
                       {.inputs = {{"x", {1}}}, .device = {.kind = "cpu"}});
  EXPECT_TRUE(forward.download_params().empty());
  forward.upload_params({});
  EXPECT_EQ(forward({{"x", std::vector<float>{2}}}).floats(), std::vector<float>{4});
}

struct Table {
  Parameter a{{3}, init::literal({1, 2, 3})}, b{{65}, init::constant(0.5)}, c{{}, init::ones()};
  TG_MODULE(a, b, c)
};

detail::ModelFunctions functions_of(const Table& table) {
  return {.visit = [&](ParameterVisitor& visitor) { table.visit_fields(visitor); }, .owner = {}};
}

TEST(ParameterTable, places_each_at_a_multiple_of_64_with_zeros_between) {
  const Table model;
  const ParameterTable table(functions_of(model));
  ASSERT_EQ(table.entries().size(), 3U);
  EXPECT_EQ(table.entries()[0].offset, 0);
  EXPECT_EQ(table.entries()[1].offset, 64);
  EXPECT_EQ(table.entries()[2].offset, 192);
  EXPECT_EQ(table.elements(), 256);
  std::vector<float> want(256, 0);
  want[0] = 1, want[1] = 2, want[2] = 3, want[192] = 1;
  for (std::size_t i = 64; i < 129; ++i) want[i] = 0.5;
  EXPECT_EQ(table.initial(7), want);
  EXPECT_EQ(table.pack(table.unpack(want), "test"), want);
}

// Neighbouring objectives share parameters. The parameters of each objective are contiguous.
TEST(ParameterTable, lays_out_objectives_side_by_side) {
  const Table model;
  const auto trains = [](const std::string& names) {
    return [names](const std::string& name, const Shape&) {
      return names.find(name) != std::string::npos;
    };
  };
  const ParameterTable table(functions_of(model), {{.objective = "one", .params = trains("c")},
                                                   {.objective = "two", .params = trains("ac")},
                                                   {.objective = "three", .params = trains("a")}});
  EXPECT_EQ(table.entries()[2].offset, 0);    // c: one and two
  EXPECT_EQ(table.entries()[0].offset, 64);   // a: two and three
  EXPECT_EQ(table.entries()[1].offset, 128);  // b: none
  const ParameterRange& two = table.part(1);
  EXPECT_EQ(two.begin, 0);
  EXPECT_EQ(two.elements, 128);
  EXPECT_TRUE(two.exclusive);
  EXPECT_EQ(two.state("x"), "optim.two.x");
  const ParameterRange& three = table.part(2);
  EXPECT_EQ(three.begin, 64);
  EXPECT_EQ(three.elements, 64);
  ASSERT_EQ(three.entries.size(), 1U);
  EXPECT_EQ(three.entries[0].offset, 0);
}

TEST(ParameterTable, finds_parameters_of_others_in_between) {
  const Table model;
  const auto but = [](const std::string& but_name) {
    return [but_name](const std::string& name, const Shape&) { return name != but_name; };
  };
  const ParameterTable table(functions_of(model), {{.objective = "one", .params = but("a")},
                                                   {.objective = "two", .params = but("b")},
                                                   {.objective = "three", .params = but("c")}});
  int with_gaps = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    with_gaps += table.part(k).exclusive ? 0 : 1;
    EXPECT_EQ(table.part(k).entries.size(), 2U);
  }
  EXPECT_EQ(with_gaps, 1);
}

TEST(ParameterTable, values_that_do_not_fit_are_rejected) {
  const Table model;
  const ParameterTable table(functions_of(model));
  const auto good = table.unpack(table.initial(0));
  const auto refused = [&](const std::function<void(std::map<std::string, HostTensor>&)>& spoil) {
    auto tensors = good;
    spoil(tensors);
    EXPECT_THROW((void)table.pack(tensors, "test"), UserError);
  };
  refused([](auto& t) { t.erase("c"); });
  refused([](auto& t) { t["d"] = t["c"]; });
  refused([](auto& t) { t["a"].dtype = i32; });
  refused([](auto& t) { t["a"].shape = {1, 3}; });
  refused([](auto& t) { t["a"].bytes.pop_back(); });
}

}  // namespace
}  // namespace tensorgrad::testing
