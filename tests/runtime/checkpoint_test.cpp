// SPDX-License-Identifier: MIT
// Corrupt checkpoints, older checkpoints, and names that do not collide with internal ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "runtime/shared.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

struct OneLayer {
  nn::Linear fc{3, 2};
  TG_MODULE(fc)
};

Tensor plain_loss(const OneLayer& net, const Inputs& in) { return mse(net.fc(in["x"]), in["y"]); }

CompileOptions plain_options() {
  return {.inputs = {{"x", {4, 3}}, {"y", {4, 2}}},
          .optimizer = optim::Adam{},
          .device = {.kind = "cpu"}};
}

TEST(Checkpoint, truncated_anywhere_is_rejected_without_effect) {
  const std::string path = temporary("cut.safetensors");
  auto trainer = compile(OneLayer{}, plain_loss, plain_options());
  trainer.save(path);
  const std::vector<std::byte> bytes = read_file(path);
  const auto before = trainer.download_params();
  for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 200) {
    write_file_atomically(path, std::span(bytes).first(size));
    try {
      trainer.load(path);
      ADD_FAILURE() << "nothing was thrown for " << size << " bytes";
    } catch (const IoError& error) {
      EXPECT_EQ(std::string(error.what()).rfind(path, 0), 0U) << error.what();
    }
  }
  EXPECT_EQ(trainer.download_params().at("fc.weight").bytes, before.at("fc.weight").bytes);
  std::filesystem::remove(path);
}

// Older files have neither the optimizer's name nor the batch size.
TEST(Checkpoint, without_newer_fields_is_read) {
  const std::string path = temporary("older.safetensors");
  auto trainer = compile(OneLayer{}, plain_loss, plain_options());
  trainer.save(path);
  StoredFile file = read_safetensors(path);
  EXPECT_EQ(file.metadata.at("tensorgrad.optimizer"), "Adam");
  EXPECT_EQ(file.metadata.at("tensorgrad.batch"), "0");
  file.metadata.erase("tensorgrad.optimizer");
  file.metadata.erase("tensorgrad.batch");
  write_safetensors(path, file);
  const Bits saved = everything(trainer);
  trainer.step({{"x", std::vector<float>(12, 1)}, {"y", std::vector<float>(8, 1)}});
  EXPECT_NE(everything(trainer), saved);
  trainer.load(path);
  EXPECT_EQ(everything(trainer), saved);
  EXPECT_EQ(trainer.steps(), 0);
  // The missing name is not guessed: a leftover state shows that the file is from another
  // optimizer.
  CompileOptions other = plain_options();
  other.optimizer = optim::SGD{};
  EXPECT_THROW(compile(OneLayer{}, plain_loss, other).load(path), UserError);
  std::filesystem::remove(path);
}

// A user's optimizer has no name unless it defines one.
struct Descent {
  Schedule lr = 0.1;
  void operator()(optim::Update& update) const {
    update.set_param(update.param - update.lr * update.grad);
  }
};
struct NamedDescent : Descent {
  static constexpr const char* kName = "descent";
};

TEST(Checkpoint, names_an_optimizer_of_the_users_own_that_has_a_name) {
  const std::string path = temporary("own.safetensors");
  const auto made = [](const Optimizer& optimizer) {
    CompileOptions options = plain_options();
    options.optimizer = optimizer;
    return compile(OneLayer{}, plain_loss, options);
  };
  made(Descent{}).save(path);
  made(optim::SGD{}).load(path);
  made(NamedDescent{}).save(path);
  EXPECT_EQ(read_safetensors(path).metadata.at("tensorgrad.optimizer"), "descent");
  made(Descent{}).load(path);
  EXPECT_THROW(made(optim::SGD{}).load(path), UserError);
  std::filesystem::remove(path);
}

TEST(Checkpoint, carries_the_metadata_of_the_user) {
  auto trainer = compile(OneLayer{}, plain_loss, plain_options());
  const std::vector<std::byte> plain = trainer.save_bytes();
  EXPECT_EQ(read_metadata(plain), read_safetensors(plain).metadata);
  // Keys and values are any text in UTF-8.
  const SaveOptions options = {.metadata = {{"page", "Sine \xc3\xa9\xf0\x9f\x98\x80"},
                                            {"", "an empty key"},
                                            {"empty", ""},
                                            {"json", R"({"tensorgrad.checksum":"crc32 0"})"},
                                            {"tensorgrad", "line\n\ttab \"quoted\" \\"}}};
  const std::vector<std::byte> bytes = trainer.save_bytes(options);
  std::map<std::string, std::string> expected = read_metadata(plain);
  expected.insert(options.metadata.begin(), options.metadata.end());
  EXPECT_EQ(read_metadata(bytes), expected);
  EXPECT_EQ(read_metadata(bytes).at("tensorgrad.step"), "0");
  const std::string path = temporary("metadata.safetensors");
  trainer.save(path, options);
  EXPECT_EQ(read_file(path), bytes);
  EXPECT_EQ(read_metadata(path), expected);
  std::filesystem::remove(path);

  const Bits saved = everything(trainer);
  trainer.step({{"x", std::vector<float>(12, 1)}, {"y", std::vector<float>(8, 1)}});
  trainer.load(bytes);
  EXPECT_EQ(everything(trainer), saved);
  EXPECT_EQ(trainer.save_bytes(), plain);  // the metadata is not kept
  EXPECT_EQ(read_safetensors(bytes).tensors, read_safetensors(plain).tensors);
}

TEST(MemoryBudget, that_is_too_small_lists_the_largest_tensors) {
  CompileOptions little = plain_options();
  little.memory_budget = 1000;
  try {
    compile(OneLayer{}, plain_loss, little);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const UserError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("\n    48 bytes: input f32[4,3] at "), std::string::npos) << text;
    EXPECT_GE(std::count(text.begin(), text.end(), '\n'), 4) << text;
  }
}

// Users may use the names of the library's own buffers.
TEST(Names, inputs_may_have_names_of_internal_buffers) {
  CompileOptions strange = plain_options();
  strange.inputs = {{"params", {4, 3}}, {"loss", {4, 2}}, {"grads", {1}}, {"slot0", {1}}};
  auto trainer = compile(
      OneLayer{},
      [](const OneLayer& net, const Inputs& in) {
        return mse(net.fc(in["params"]), in["loss"]) + sum(in["grads"]) + sum(in["slot0"]);
      },
      strange);
  auto plain = compile(OneLayer{}, plain_loss, plain_options());
  const std::vector<float> x(12, 1), y(8, 1), one = {1}, two = {2};
  const float want = plain.step({{"x", x}, {"y", y}}).loss + 3;
  EXPECT_FLOAT_EQ(trainer.step({{"params", x}, {"loss", y}, {"grads", one}, {"slot0", two}}).loss,
                  want);
}

}  // namespace
}  // namespace tensorgrad::testing
