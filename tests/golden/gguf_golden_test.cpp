// SPDX-License-Identifier: MIT
// GGUF files written by the package gguf (make_gguf_fixtures.py): compares logits and token ids
// with llama.cpp, elements of each tensor type, and the content after the file is written again.
#include <gmock/gmock.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "golden/fixture.h"
#include "support/source_path.h"
#include "support/temp_dir.h"

namespace tensorgrad::testing {
namespace {

std::string gguf_path(const std::string& name) {
  return test::source_path("tests/golden/gguf/" + name);
}

void expect_logits(const lm::SavedModel& model, const std::string& name, float tolerance) {
  const Fixture want("gguf/" + name + ".safetensors");
  const auto tokens = want.values<std::int32_t>("tokens");
  auto forward = compile_function(
      nn::LanguageModel(model.config),
      [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
      {.inputs = {{"tokens", {1, static_cast<std::int64_t>(tokens.size())}, i32}},
       .device = {.kind = "cpu"}});
  forward.upload_params(model.weights);
  EXPECT_THAT(forward({{"tokens", tokens}}).floats(),
              ::testing::Pointwise(::testing::FloatNear(tolerance), want.values<float>("logits")));
}

// Expects written tensors to equal those that were read, except for rounding by exp() and log().
void expect_same_tensors(const GgufFile& written, const GgufFile& read) {
  ASSERT_EQ(written.tensors.size(), read.tensors.size());
  for (const auto& [name, tensor] : read.tensors) {
    ASSERT_TRUE(written.tensors.contains(name)) << name;
    const StoredTensor& again = written.tensors.at(name);
    EXPECT_EQ(again.shape, tensor.shape) << name;
    if (!name.ends_with("ssm_a")) {
      EXPECT_TRUE(again == tensor) << name;
      continue;
    }
    const std::vector<float> want = gguf_floats("f", name, tensor);
    const std::vector<float> got = gguf_floats("f", name, again);
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], 1e-6F * std::abs(want[i])) << name;
  }
}

void check_gguf(const std::string& name, float tolerance) {
  SCOPED_TRACE(name);
  const lm::SavedModel model = lm::load_gguf(gguf_path(name + ".gguf"));
  expect_logits(model, name, tolerance);
  const test::TempDir folder;
  lm::save_gguf(folder / "again.gguf", model);
  const GgufFile written = read_gguf(folder / "again.gguf");
  const GgufFile read = read_gguf(gguf_path(name + ".gguf"));
  expect_same_tensors(written, read);
  for (const auto& [key, value] : read.metadata) {
    if (key.starts_with("general.") || key == "tokenizer.ggml.scores") continue;
    ASSERT_TRUE(written.metadata.contains(key)) << key;
    EXPECT_TRUE(written.metadata.at(key) == value) << key;
  }
  expect_logits(lm::load_pretrained(folder / "again.gguf"), name, tolerance);
}

void check_ids(const std::string& name) {
  SCOPED_TRACE(name);
  std::ifstream in(gguf_path("ids.json"));
  const nlohmann::json all = nlohmann::json::parse(in);
  const lm::SavedModel model = lm::load_gguf(gguf_path(name + ".gguf"));
  ASSERT_TRUE(model.tokenizer);
  const test::TempDir folder;
  lm::save_gguf(folder / "again.gguf", model);
  const lm::SavedModel again = lm::load_gguf(folder / "again.gguf");
  ASSERT_TRUE(again.tokenizer);
  for (const auto& [text, ids] : all.at(name).items()) {
    EXPECT_EQ(model.tokenizer->encode(text), ids.get<std::vector<std::int32_t>>()) << text;
    EXPECT_EQ(again.tokenizer->encode(text), ids.get<std::vector<std::int32_t>>()) << text;
  }
}

TEST(GgufGolden, logits_match_llama_cpp) {
  check_gguf("llama", 1e-4F);
  check_gguf("mamba", 1e-4F);
  check_gguf("mamba2", 1e-4F);
  check_gguf("gpt2", 1e-2F);  // llama.cpp reads gelu() from an f16 table
}

TEST(GgufGolden, token_ids_match_llama_cpp) {
  check_ids("llama");
  check_ids("gpt2");
}

TEST(GgufGolden, special_tokens_match_the_file) {
  const lm::SavedModel pieces = lm::load_gguf(gguf_path("llama.gguf"));
  EXPECT_THAT(pieces.eos_ids, ::testing::ElementsAre(2));
  EXPECT_EQ(pieces.tokenizer->bos_id(), 1);
  EXPECT_EQ(pieces.tokenizer->eos_id(), 2);
  EXPECT_EQ(pieces.tokenizer->unk_id(), 0);
  EXPECT_EQ(pieces.tokenizer->vocab_size(), pieces.config.vocab_size - 2);  // padded
  const lm::SavedModel bare =
      lm::load_gguf(gguf_path("llama.gguf"), {.tokenizer = false, .context = 5});
  EXPECT_FALSE(bare.tokenizer);
  EXPECT_EQ(bare.config.attention.max_length, 5);
  EXPECT_FALSE(lm::load_gguf(gguf_path("mamba.gguf")).tokenizer);
}

TEST(GgufGolden, elements_match_the_gguf_package) {
  const GgufFile file = read_gguf(gguf_path("types.gguf"));
  const Fixture want("gguf/types.safetensors");
  ASSERT_EQ(file.tensors.size(), want.names().size());
  for (const auto& [name, tensor] : file.tensors) {
    SCOPED_TRACE(name);
    EXPECT_EQ(tensor.dtype, name);
    EXPECT_EQ(tensor.shape, want.shape(name));
    EXPECT_THAT(gguf_floats("types.gguf", name, tensor),
                ::testing::Pointwise(::testing::FloatNear(1e-6F), want.values<float>(name)));
  }
  std::vector<std::byte> bytes;
  write_gguf(bytes, file);
  EXPECT_TRUE(read_gguf(bytes) == file);
}

}  // namespace
}  // namespace tensorgrad::testing
