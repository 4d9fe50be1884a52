// SPDX-License-Identifier: MIT
// tg export: onnxruntime computes from the exported file what tg predict prints.
#include <cmath>
#include <filesystem>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/tool.h"
#include "support/onnxruntime.h"

namespace tensorgrad::test {
namespace {

// Returns the logarithms of the probabilities that tg predict --json prints, which the exported
// model must output.
HostTensor predicted(const TestFolder& folder, const std::string& file, std::int64_t classes) {
  const ToolResult result =
      folder.tg({"predict", "--run", "run", "--json", "--device", "cpu", file});
  EXPECT_EQ(result.code, 0) << result.err;
  std::vector<float> values;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json each = nlohmann::json::parse(line);
    for (const auto& p : each.at("probabilities")) values.push_back(std::log(p.get<float>()));
  }
  return HostTensor::from({static_cast<std::int64_t>(values.size()) / classes, classes}, values);
}

HostTensor first_row(const HostTensor& x) {
  std::vector<float> values = x.floats();
  values.resize(static_cast<std::size_t>(x.shape[1]));
  return HostTensor::from({1, x.shape[1]}, values);
}

// Encodes a StringStringEntryProto of at most 127 bytes: field 1 is the key, field 2 the value.
std::string metadata_entry(const std::string& key, const std::string& value) {
  const auto field = [](char tag, const std::string& text) {
    return std::string(1, tag) + static_cast<char>(text.size()) + text;
  };
  return field('\x0a', key) + field('\x12', value);
}

// Exports with a dynamic batch and with the batch size of x. The files must contain `metadata`.
void check_export(const TestFolder& folder, const std::string& file, std::int64_t classes,
                  const HostTensor& x, const std::string& inputs,
                  const std::map<std::string, std::string>& metadata) {
  testing::OnnxRuntime runtime("tg");
  const HostTensor y = predicted(folder, file, classes);
  const auto exported = [&](const std::string& model, std::vector<std::string> options,
                            const std::string& batch) {
    options.insert(options.begin(), {"export", "--run", "run", "--out", runtime.path(model)});
    const ToolResult result = folder.tg(options);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_NE(result.out.find("x f32[" + batch + "," + inputs), std::string::npos) << result.out;
    runtime.expect(model, {{"x", x}}, {{"log_probabilities", y}});
    const std::string bytes = read_text(runtime.path(model));
    for (const auto& [key, value] : metadata)
      EXPECT_NE(bytes.find(metadata_entry(key, value)), std::string::npos) << key;
  };
  const std::string batch = std::to_string(x.shape[0]);
  exported("fixed", {"--batch", batch}, batch);
  exported("open", {}, "batch");
  runtime.expect("open", {{"x", first_row(x)}}, {{"log_probabilities", first_row(y)}});
  runtime.check(1e-4);  // predict prints few digits
}

TEST(TgExport, of_images_takes_pixels) {
  const TestFolder folder;
  write_image_folder(folder.path() / "images");
  const ToolResult trained = folder.tg({"train", "--data", "images", "--out", "run", "--device",
                                        "cpu", "--epochs", "2", "--hidden", "16", "--batch", "8"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  std::vector<std::uint8_t> pixels;
  std::vector<float> x;
  for (int i = 0; i < 50; ++i) {
    pixels.push_back(static_cast<std::uint8_t>(i * 37));
    x.push_back(pixels.back());
  }
  write_idx(folder.path() / "two", {2, 5, 5}, pixels);
  check_export(folder, "two", 3, HostTensor::from({2, 25}, x), "25] (pixels from 0 to 255)",
               {{"class_names", R"(["0","1","2"])"}, {"image_shape", "[5,5]"}});
}

TEST(TgExport, of_a_table_takes_its_columns) {
  const TestFolder folder;
  write_text(folder.path() / "things.csv", table_text());
  const ToolResult trained = folder.tg({"train", "--data", "things.csv", "--out", "run", "--device",
                                        "cpu", "--epochs", "3", "--hidden", "8", "--batch", "8"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  write_text(folder.path() / "new.csv", "width,height\n1.5,2\n7,8.25\n4,0.5\n");
  const std::vector<float> x = {1.5F, 2, 7, 8.25F, 4, 0.5F};
  check_export(folder, "new.csv", 2, HostTensor::from({3, 2}, x), "2] (columns as in the table)",
               {{"class_names", R"(["large","small"])"},
                {"feature_names", R"(["width","height"])"},
                {"label_name", "kind"}});
}

// tests/web runs the exported folder.
TEST(TgExport, for_pages_writes_a_folder_of_some_batch_sizes) {
  const TestFolder folder;
  write_text(folder.path() / "things.csv", table_text());
  const ToolResult trained = folder.tg({"train", "--data", "things.csv", "--out", "run", "--device",
                                        "cpu", "--epochs", "1", "--hidden", "8", "--batch", "8"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto sizes = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"export", "--run", "run", "--web", "--out", "site/model"});
    const ToolResult result = folder.tg(options);
    EXPECT_EQ(result.code, 0) << result.err;
    std::vector<std::int64_t> found;
    const auto manifest = nlohmann::json::parse(read_text(folder.path() / "site/model/model.json"));
    for (const auto& program : manifest["programs"]) found.push_back(program["size"]);
    return found;
  };
  EXPECT_EQ(sizes({}), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(sizes({"--batch", "1,16"}), (std::vector<std::int64_t>{1, 16}));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "site/model/runner.js"));
  const ToolResult several =
      folder.tg({"export", "--run", "run", "--out", "m.onnx", "--batch", "1,16"});
  EXPECT_EQ(several.code, 1);
  EXPECT_NE(several.err.find("expected one batch size without --web, got several"),
            std::string::npos)
      << several.err;
}

TEST(TgExport, wants_a_run_and_a_file) {
  const TestFolder folder;
  EXPECT_EQ(folder.tg({"export", "--run", "run"}).code, 2);
  const ToolResult result = folder.tg({"export", "--run", "run", "--out", "m.onnx"});
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("run: not a run folder"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace tensorgrad::test
