// SPDX-License-Identifier: MIT
// Files of a function exported for web pages. tests/web tests the results in a page.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

#include <nlohmann/json.hpp>

#include "pages/model.h"
#include "support/models.h"
#include "support/source_path.h"
#include "support/temp_dir.h"

namespace tensorgrad::testing {
namespace {

using Json = nlohmann::json;
using Outputs = std::map<std::string, Tensor>;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Exported {
  Json manifest;
  std::string weights;

  // Returns the buffers of that name.
  [[nodiscard]] std::vector<Json> named(const std::string& name) const {
    std::vector<Json> found;
    for (const Json& buffer : manifest["buffers"]) {
      if (buffer["name"] == name) found.push_back(buffer);
    }
    return found;
  }
  // Returns the initial contents of a buffer as floats.
  [[nodiscard]] std::vector<float> floats(const std::string& name) const {
    const Json buffer = named(name).at(0);
    std::vector<float> values(buffer["bytes"].get<std::size_t>() / sizeof(float));
    if (buffer.contains("data"))
      std::memcpy(values.data(), &weights.at(buffer["data"][0]), buffer["data"][1]);
    return values;
  }
};

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Exported exported(const CompiledFunction& function, const WebOptions& options = {}) {
  const auto files = function.web_files(options);
  const auto text = [&](const std::string& name) {
    const std::vector<std::byte>& bytes = files.at(name);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  return {Json::parse(text("model.json")), text("weights.bin")};
}

Outputs scores(const Mlp& net, const Inputs& in) {
  return {{"scores", softmax(net.out(relu(net.hidden(in["x"]))))}};
}

CompiledFunction classifier(std::int64_t batch) {
  return compile_function(Mlp{}, scores,
                          {.inputs = {{"x", {batch, 64}}}, .device = {.kind = "cpu"}});
}

CompiledFunction language_model() {
  return compile_function(LanguageModel{},
                          [](const LanguageModel& net, const Inputs& in) {
                            return Outputs{{"logits", net(in["text"])}};
                          },
                          {.inputs = {{"text", {4, 8}, i32}}, .device = {.kind = "cpu"}});
}

// Checks everything that the runner relies on.
void check_programs(const Exported& model) {
  const Json& buffers = model.manifest["buffers"];
  for (const Json& buffer : buffers) {
    if (!buffer.contains("data")) continue;
    const std::size_t offset = buffer["data"][0], bytes = buffer["data"][1];
    EXPECT_EQ(offset % 4 + bytes % 4, 0U) << buffer;
    EXPECT_LE(bytes, buffer["bytes"].get<std::size_t>()) << buffer;
    EXPECT_LE(offset + bytes, model.weights.size()) << buffer;
  }
  for (const Json& program : model.manifest["programs"]) {
    EXPECT_THAT(program["launches"], Not(IsEmpty()));
    for (const Json& launch : program["launches"]) {
      const Json& kernel = model.manifest["kernels"].at(launch["kernel"].get<std::size_t>());
      const std::string modes = kernel["modes"];
      ASSERT_EQ(modes.size(), launch["bindings"].size());
      for (std::size_t i = 0; i < modes.size(); ++i) {
        const Json& binding = launch["bindings"][i];
        const std::size_t offset = binding[1], bytes = binding[2];
        EXPECT_EQ(offset % 256 + bytes % 4, 0U) << launch;
        EXPECT_LE(offset + bytes, buffers.at(binding[0].get<std::size_t>())["bytes"]) << launch;
        for (std::size_t j = 0; j < i; ++j) {
          EXPECT_TRUE(launch["bindings"][j][0] != binding[0] ||
                      (modes[i] == 'r' && modes[j] == 'r'))
              << launch;
        }
      }
    }
    std::size_t end = 0;
    for (const Json& output : program["outputs"]) {
      EXPECT_EQ(output["at"], end);
      end += output["bytes"].get<std::size_t>();
      EXPECT_LE(output["offset"].get<std::size_t>() + output["bytes"].get<std::size_t>(),
                buffers.at(output["buffer"].get<std::size_t>())["bytes"]);
    }
    EXPECT_EQ(program["bytes"], end);
  }
}

TEST(WebModel, programs_stay_within_their_buffers) {
  check_programs(exported(classifier(16)));
  check_programs(exported(classifier(kDynamic), {.sizes = {1, 7, 32}}));
  check_programs(exported(language_model()));
}

TEST(WebModel, needs_no_more_than_default_limits) {
  for (const Exported& model : {exported(classifier(512)), exported(language_model())}) {
    EXPECT_THAT(model.manifest["features"], IsEmpty());
    const Json& limits = model.manifest["limits"];
    EXPECT_LE(limits["maxStorageBuffersPerShaderStage"], 8);
    EXPECT_LE(limits["maxComputeInvocationsPerWorkgroup"], 256);
    EXPECT_LE(limits["maxComputeWorkgroupStorageSize"], 16 << 10);
    EXPECT_LE(limits["maxComputeWorkgroupsPerDimension"], 65535);
    for (const Json& kernel : model.manifest["kernels"])
      EXPECT_THAT(kernel["code"].get<std::string>(), Not(HasSubstr("enable "))) << kernel["name"];
  }
}

TEST(WebModel, metadata_names_the_format_and_the_function) {
  const Exported model = exported(classifier(3), {.name = "digits", .doc = "Classes: 0, 1"});
  EXPECT_EQ(model.manifest["format"], "tensorgrad-web");
  EXPECT_EQ(model.manifest["version"], 1);
  EXPECT_EQ(model.manifest["name"], "digits");
  EXPECT_EQ(model.manifest["doc"], "Classes: 0, 1");
  EXPECT_EQ(model.manifest["weights"]["file"], "weights.bin");
  EXPECT_EQ(model.manifest["weights"]["bytes"], model.weights.size());
  const Json& program = model.manifest["programs"].at(0);
  EXPECT_FALSE(program.contains("size"));
  EXPECT_EQ(program["inputs"].at(0)["name"], "x");
  EXPECT_EQ(program["inputs"].at(0)["dtype"], "f32");
  EXPECT_EQ(program["inputs"].at(0)["shape"], (Shape{3, 64}));
  EXPECT_EQ(program["outputs"].at(0)["name"], "scores");
  EXPECT_EQ(program["outputs"].at(0)["shape"], (Shape{3, 10}));
}

// Published files contain nothing about the machine that exported them.
TEST(WebModel, has_no_source_lines) {
  EXPECT_THAT(exported(classifier(3)).manifest.dump(), Not(HasSubstr(".cpp")));
  EXPECT_THAT(exported(classifier(3)).manifest.dump(), Not(HasSubstr("model_test")));
}

TEST(WebModel, weights_are_the_current_ones) {
  CompiledFunction function = classifier(1);
  std::map<std::string, HostTensor> params = function.download_params();
  std::vector<float> bias(10);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = 100 + static_cast<float>(i);
  params["out.bias"] = HostTensor::from({10}, bias);
  function.upload_params(params);
  const std::vector<float> arena = exported(function).floats("params");
  EXPECT_NE(std::search(arena.begin(), arena.end(), bias.begin(), bias.end()), arena.end());
  const std::vector<float> weight = params["hidden.weight"].floats();
  EXPECT_NE(std::search(arena.begin(), arena.end(), weight.begin(), weight.end()), arena.end());
}

TEST(WebModel, averages_replace_parameters) {
  auto trainer = compile(Mlp{}, mlp_loss,
                         {.inputs = mlp_inputs(),
                          .optimizer = optim::SGD{.lr = 0.01},
                          .ema_decay = 0.5,
                          .device = {.kind = "cpu"}});
  const std::vector<float> x(16 * 64, 1);
  const std::vector<std::int32_t> t(16, 3);
  for (int step = 0; step < 3; ++step) trainer.step({{"x", x}, {"t", t}});
  CompiledFunction averaged =
      trainer.attach(scores, {.inputs = {{"x", {1, 64}}}, .weights = WeightSource::kEma});
  const std::vector<float> bias = averaged.download_params().at("out.bias").floats();
  ASSERT_NE(bias, trainer.download_params().at("out.bias").floats());
  const Exported model = exported(averaged);
  const std::vector<float> arena = model.floats("params");
  EXPECT_NE(std::search(arena.begin(), arena.end(), bias.begin(), bias.end()), arena.end());
  for (const Json& buffer : model.manifest["buffers"])
    EXPECT_FALSE(buffer.contains("state")) << buffer;
}

TEST(WebModel, sizes_share_buffers) {
  const Exported model = exported(classifier(kDynamic), {.sizes = {1, 64}});
  ASSERT_EQ(model.manifest["programs"].size(), 2U);
  EXPECT_EQ(model.manifest["programs"][1]["size"], 64);
  EXPECT_EQ(model.named("params").size(), 1U);
  ASSERT_EQ(model.named("input x").size(), 1U);
  EXPECT_EQ(model.named("input x")[0]["bytes"], 64 * 64 * 4);
  EXPECT_EQ(model.named("output scores")[0]["bytes"], 64 * 10 * 4);
  EXPECT_EQ(model.manifest["limits"]["maxBufferSize"], 64 * 64 * 4);
}

TEST(WebModel, equal_kernels_are_stored_once) {
  const auto twice = compile_function(
      Mlp{},
      [](const Mlp&, const Inputs& in) { return Outputs{{"y", cumsum(cumsum(in["x"], 0), 0)}}; },
      {.inputs = {{"x", {8, 64}}}, .device = {.kind = "cpu"}});
  const Exported model = exported(twice);
  EXPECT_EQ(model.manifest["programs"][0]["launches"].size(), 2U);
  EXPECT_EQ(model.manifest["kernels"].size(), 1U);
}

TEST(WebModel, states_start_with_their_current_values) {
  auto counting =
      compile_function(Mlp{},
                       [](const Mlp&, const Inputs& in) {
                         const Tensor sum = state("sum", {2}, 1.5);
                         set_state("sum", sum + in["x"]);
                         return Outputs{{"y", sum + cast(state("still", {2}, 0, i32), f32)}};
                       },
                       {.inputs = {{"x", {2}}}, .device = {.kind = "cpu"}});
  counting.run({{"x", std::vector<float>{1, 2}}});
  const Exported model = exported(counting);
  EXPECT_EQ(model.named("state sum").at(0)["state"], true);
  const std::vector<float> sum = model.floats("state sum");
  EXPECT_THAT(std::vector(sum.begin(), sum.begin() + 2), ::testing::ElementsAre(2.5F, 3.5F));
  EXPECT_FALSE(model.named("input x").at(0).contains("state"));
}

TEST(WebModel, zeros_take_no_space_in_the_file) {
  const auto padded = compile_function(
      Mlp{},
      [](const Mlp&, const Inputs& in) { return Outputs{{"y", in["x"] + state("zeros", {1000})}}; },
      {.inputs = {{"x", {1000}}}, .device = {.kind = "cpu"}});
  EXPECT_LT(exported(padded).named("state zeros").at(0).count("data"), 1U);
}

TEST(WebModel, random_ops_read_the_seed_and_the_run) {
  const auto noisy = compile_function(
      Mlp{}, [](const Mlp&, const Inputs& in) { return Outputs{{"y", in["x"] + rand({4})}}; },
      {.inputs = {{"x", {4}}}, .device = {.kind = "cpu"}, .seed = 9});
  const Json program = exported(noisy).manifest["programs"][0];
  EXPECT_EQ(program["row"].at(program["seed"].get<std::size_t>()), 9);
  EXPECT_EQ(program["row"].at(program["step"].get<std::size_t>()), 0);
  EXPECT_EQ(program["row"][0], 0x7f800000);  // infinity, which kernels read
  const Json plain = exported(classifier(1)).manifest["programs"][0];
  EXPECT_FALSE(plain.contains("seed") || plain.contains("step"));
}

TEST(WebModel, scalars_keep_their_values) {
  const auto scaled = compile_function(
      Mlp{},
      [](const Mlp&, const Inputs& in) { return Outputs{{"y", in["x"] * scalar("by", 0.5)}}; },
      {.inputs = {{"x", {4}}}, .device = {.kind = "cpu"}});
  EXPECT_EQ(exported(scaled).manifest["programs"][0]["row"].at(2), 0x3f000000);
}

TEST(WebModel, bounds_of_indices_are_the_functions) {
  const auto input = [](bool checked) {
    const auto picked = compile_function(
        Mlp{},
        [](const Mlp& net, const Inputs& in) {
          return Outputs{{"y", embedding(in["rows"], net.hidden.weight)}};
        },
        {.inputs = {{"rows", {5}, i32}}, .device = {.kind = "cpu"}, .check_indices = checked});
    return exported(picked).manifest["programs"][0]["inputs"].at(0);
  };
  EXPECT_EQ(input(true)["indices"].at(0)["size"], 32);
  EXPECT_EQ(input(true)["indices"].at(0)["op"], "embedding");
  EXPECT_FALSE(input(false).contains("indices"));
}

TEST(WebModel, f16_is_stored_in_two_bytes_on_request) {
  const auto half = compile_function(
      Mlp{}, [](const Mlp&, const Inputs& in) { return Outputs{{"y", cast(in["x"], f16)}}; },
      {.inputs = {{"x", {6}}}, .device = {.kind = "cpu"}});
  const Exported wide = exported(half), narrow = exported(half, {.f16 = true});
  EXPECT_EQ(wide.manifest["f16"], false);
  EXPECT_EQ(wide.manifest["programs"][0]["bytes"], 24);
  EXPECT_EQ(narrow.manifest["features"], Json::array({"shader-f16"}));
  EXPECT_EQ(narrow.manifest["programs"][0]["bytes"], 12);
  EXPECT_EQ(narrow.manifest["programs"][0]["outputs"][0]["dtype"], "f16");
  EXPECT_THAT(narrow.manifest["kernels"][0]["code"].get<std::string>(), HasSubstr("enable f16;"));
}

TEST(WebModel, files_in_memory_match_the_folder) {
  const test::TempDir folder;
  const CompiledFunction function = classifier(1);
  function.export_web(folder / "model");
  const auto files = function.web_files();
  EXPECT_EQ(files.size(), 4U);
  for (const auto& [name, bytes] : files) {
    const std::string text = text_of(folder / ("model/" + name));
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(text)), bytes)) << name;
  }
}

TEST(WebModel, runner_is_written_beside_it) {
  const test::TempDir folder;
  classifier(1).export_web(folder / "a/model");
  const std::filesystem::path sources(test::source_path("web/runner"));
  EXPECT_EQ(text_of(folder / "a/model/runner.js"), text_of(sources / "runner.js"));
  EXPECT_EQ(text_of(folder / "a/model/runner.d.ts"), text_of(sources / "runner.d.ts"));
}

TEST(WebModel, exporting_again_changes_the_checksum_with_the_weights) {
  CompiledFunction function = classifier(1);
  const Exported first = exported(function), again = exported(function);
  EXPECT_EQ(first.manifest, again.manifest);
  std::map<std::string, HostTensor> params = function.download_params();
  params["out.bias"] = HostTensor::from({10}, std::vector<float>(10, 5));
  function.upload_params(params);
  EXPECT_NE(exported(function).manifest["weights"]["checksum"],
            first.manifest["weights"]["checksum"]);
}

TEST(WebModel, does_not_change_the_function) {
  auto noisy = compile_function(
      Mlp{}, [](const Mlp&, const Inputs& in) { return Outputs{{"y", in["x"] + rand({4})}}; },
      {.inputs = {{"x", {4}}}, .device = {.kind = "cpu"}});
  auto same = compile_function(
      Mlp{}, [](const Mlp&, const Inputs& in) { return Outputs{{"y", in["x"] + rand({4})}}; },
      {.inputs = {{"x", {4}}}, .device = {.kind = "cpu"}});
  const std::vector<float> x(4, 1);
  exported(noisy);
  EXPECT_EQ(noisy({{"x", x}}).floats(), same({{"x", x}}).floats());
}

}  // namespace
}  // namespace tensorgrad::testing
