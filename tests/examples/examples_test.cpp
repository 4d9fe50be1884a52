// SPDX-License-Identifier: MIT
// Every example reaches its result, in a short run if the full run takes long. Its image shows the
// result, and the dumps of its compilation can be parsed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <regex>
#include <span>
#include <sstream>

#include "pictures.h"
#include "support/dump.h"
#include "support/pictures.h"
#include "support/sanitized.h"
#include "tensorgrad/data/safetensors.h"

namespace tensorgrad::testing {
namespace {

std::vector<std::string> examples() {
  std::vector<std::string> programs;
  std::istringstream list(TENSORGRAD_EXAMPLES);
  for (std::string program; std::getline(list, program, ':');) programs.push_back(program);
  return programs;
}

class Example : public ::testing::TestWithParam<std::string> {};

// These take seconds, so they run fully, to the bound that docs/samples.md states.
constexpr const char* kWhole[] = {"mlp_sin", "kan", "cartpole", "tic_tac_toe"};

// With a sanitizer, runs take ten times as long, so only a few steps are made.
std::string length_of(const std::string& program) {
  if (kSanitized) return "--smoke";
  const std::string name = std::filesystem::path(program).filename().string();
  return std::find(std::begin(kWhole), std::end(kWhole), name) == std::end(kWhole) ? "--quick" : "";
}

struct Output {
  int status = 0;
  std::string text;
};

// Runs the example in `folder`.
Output run(const std::string& program, const std::string& options,
           const std::filesystem::path& folder) {
  const std::string output = folder / "output.txt";
  const std::string command = "'" + program + "' " + options + " --device cpu --out '" +
                              folder.string() + "/made/by it' > '" + output + "' 2>&1";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): a path of our own
  std::ostringstream text;
  text << std::ifstream(output).rdbuf();
  return {status, text.str()};
}

// Returns a seven in black on white, drawn with a thick pen, larger than the network's input.
std::string drawing_of_seven() {
  constexpr int kWidth = 150, kHeight = 200;
  std::string pixels;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const bool top = y >= 30 && y < 48 && x >= 30 && x < 120;
      const double slanted = 115 - 0.45 * (y - 30);
      const bool down = y >= 30 && y < 170 && std::abs(x - slanted) < 9;
      pixels += top || down ? '\x10' : '\xf0';
    }
  }
  return png_of_pixels(kWidth, kHeight, 1, pixels);
}

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Parameter counts that samples print. Other samples print none.
const std::map<std::string, std::string> kParameters = {
    {"pokeformer", "\n100992 parameters\n"},
    {"digit_canvas", "105866 parameters\n"},
    {"image_classifier", "5526346 parameters\n"}};

void expect_result(const std::string& program, std::string options) {
  const ScratchFolder folder("example");
  const ScopedEnv env("TENSORGRAD_DUMP", folder.path() / "dump");
  const std::string name = std::filesystem::path(program).filename().string();
  if (name == "digit_canvas") {
    write(folder.path() / "seven.png", drawing_of_seven());
    options += " --image '" + (folder.path() / "seven.png").string() + "'";
  }
  const auto [status, text] = run(program, options, folder.path());
  EXPECT_EQ(status, 0) << text;
  EXPECT_NE(text.find("\nresult: "), std::string::npos) << text;
  EXPECT_FALSE(std::regex_search(text, std::regex("\\bnan\\b"))) << text;
  if (const auto said = kParameters.find(name); said != kParameters.end()) {
    EXPECT_NE(text.find(said->second), std::string::npos) << text;
  }
  expect_round_trips(folder.path());
  expect_picture(folder.path() / "made" / "by it", name, options.find("--smoke") == options.npos);
}

std::string example(const std::string& name) {
  for (const std::string& program : examples()) {
    if (program.ends_with("/" + name)) return program;
  }
  ADD_FAILURE() << "there is no example " << name;
  return "";
}

TEST_P(Example, trains_on_the_cpu_to_the_promised_result) {
  expect_result(GetParam(), length_of(GetParam()));
}

TEST(DigitCanvas, empty_image_is_rejected) {
  const ScratchFolder folder("example");
  write(folder.path() / "blank.png", plain_png(20, 20, 1));
  const auto [status, text] =
      run(example("digit_canvas"),
          "--smoke --image '" + (folder.path() / "blank.png").string() + "'", folder.path());
  EXPECT_NE(status, 0);
  EXPECT_NE(text.find("blank.png: expected a drawing, got an empty image"), std::string::npos)
      << text;
}

#ifndef TENSORGRAD_SANITIZED  // these take half a minute and cover nothing else
TEST(LargeExample, makemore_takes_a_few_steps) {
  expect_result(example("makemore"), "--smoke --size large");
}

// Returns the tensors of timm's vit_tiny_patch16_224, all zero except the scale of norms.
StoredFile weights_of_timm() {
  constexpr std::int64_t kWidth = 192;
  StoredFile file;
  const auto add = [&](const std::string& name, const Shape& shape) {
    const auto count = static_cast<std::size_t>(
        std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
    std::vector<float> values(count, name.find("norm") != name.npos ? 1.0F : 0.0F);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    file.tensors[name] = {"F32", shape, {bytes.begin(), bytes.end()}};
  };
  const auto add_layer = [&](const std::string& name, const Shape& weight) {
    add(name + ".weight", weight);
    add(name + ".bias", {weight[0]});
  };
  add("cls_token", {1, 1, kWidth});
  add("pos_embed", {1, 197, kWidth});
  add_layer("patch_embed.proj", {kWidth, 3, 16, 16});
  for (int i = 0; i < 12; ++i) {
    const std::string block = "blocks." + std::to_string(i) + ".";
    for (const char* norm : {"norm1", "norm2"}) add_layer(block + norm, {kWidth});
    add_layer(block + "attn.qkv", {3 * kWidth, kWidth});
    add_layer(block + "attn.proj", {kWidth, kWidth});
    add_layer(block + "mlp.fc1", {4 * kWidth, kWidth});
    add_layer(block + "mlp.fc2", {kWidth, 4 * kWidth});
  }
  add_layer("norm", {kWidth});
  add_layer("head", {1000, kWidth});
  return file;
}

TEST(ImageClassifier, imports_the_weights_of_timm) {
  const ScratchFolder folder("example");
  const std::string path = folder.path() / "vit.safetensors";
  const std::string options = "--smoke --weights '" + path + "'";
  StoredFile file = weights_of_timm();
  write_safetensors(path, file);
  const Output good = run(example("image_classifier"), options, folder.path());
  EXPECT_EQ(good.status, 0) << good.text;
  EXPECT_NE(good.text.find("150 tensors imported from " + path), std::string::npos) << good.text;
  file.tensors.erase("blocks.7.attn.proj.bias");
  write_safetensors(path, file);
  const Output bad = run(example("image_classifier"), options, folder.path());
  EXPECT_NE(bad.status, 0);
  EXPECT_NE(bad.text.find("blocks.7.self_attn.out_proj.bias"), std::string::npos) << bad.text;
}
#endif

INSTANTIATE_TEST_SUITE_P(Examples, Example, ::testing::ValuesIn(examples()), [](const auto& each) {
  return std::filesystem::path(each.param).filename().string();
});

}  // namespace
}  // namespace tensorgrad::testing
