// SPDX-License-Identifier: MIT
// Damaged and inconsistent model files. They are rejected with a message, or read as a model that
// matches its configuration. No memory is allocated for sizes that a file claims without data.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/sanitized.h"
#include "support/small_mamba.h"
#include "support/source_path.h"
#include "tensorgrad/tensorgrad.h"
#include "unit/io/io_test_util.h"
#include "unit/lm/hostile_file.h"
#include "unit/lm/hostile_json.h"

namespace tensorgrad::testing {
namespace {

namespace fs = std::filesystem;
using test::damaged;
using test::header_size;
using test::most_memory;
using test::TestRandom;
using test::write_anew;

// Counts the files that are read and those that are rejected.
class Hostile {
 public:
  template <class Read>
  void expect_refused_or_whole(const Read& read, const std::string& what) {
    try {
      const lm::SavedModel model = read();
      lm::check_weights(model.config, model.weights, "it");
      ++taken_;
    } catch (const UserError& error) {
      EXPECT_FALSE(error.message().empty()) << what;
      ++refused_;
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ": " << error.what();
    }
  }
  void expect_some(int taken, int refused) const {
    EXPECT_GE(taken_, taken);
    EXPECT_GE(refused_, refused);
    if (!kSanitized) {
      EXPECT_LT(most_memory() - before_, std::int64_t{64} << 20) << "bytes";
    }
  }

 private:
  int taken_ = 0, refused_ = 0;
  std::int64_t before_ = most_memory();
};

lm::SavedModel new_model(const nn::LanguageModelConfig& config) {
  return {config,
          compile_function(
              nn::LanguageModel(config),
              [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
              {.inputs = {{"tokens", {1, 1}, i32}}, .device = {.kind = "cpu"}, .seed = 3})
              .download_params()};
}

lm::SavedModel model_of_all_kinds() {
  lm::SavedModel model = new_model(mixed_mamba(9, 24));
  model.tokenizer = Tokenizer::characters({"a", "b", " "}, {"<end>"});
  model.tokenizer->set_eos("<end>");
  return model;
}

TEST(LmCheckpointHostile, invalid_metadata_is_rejected) {
  using nlohmann::json;
  const test::TempDir folder;
  const std::string path = folder / "m.safetensors";
  lm::save_model(path, model_of_all_kinds());
  const std::string good = test::without_checksum(test::get_file(path));
  const json header = json::parse(good.substr(8, header_size(good)));
  TestRandom random(5);
  Hostile hostile;
  for (int round = 0; round < 3000; ++round) {
    const char* const keys[] = {lm::kTokenizerKey, lm::kTokenizerConfigKey, lm::kConfigKey};
    json bad = header;
    std::string text = bad["__metadata__"][keys[round % 3]];
    const std::size_t kind = random.below(8);
    text = kind == 0  ? test::with_a_huge_number(text, random)
           : kind < 3 ? test::mutated(text, random)
                      : test::with_another_value(text, random);
    bad["__metadata__"][keys[round % 3]] = text;
    write_anew(path, test::with_header(good, bad));
    hostile.expect_refused_or_whole([&] { return lm::load_model(path); }, text);
  }
  hostile.expect_some(100, 500);
}

TEST(LmCheckpointHostile, damaged_bytes_are_rejected_or_change_values) {
  const test::TempDir folder;
  const std::string path = folder / "m.safetensors";
  lm::save_model(path, model_of_all_kinds());
  const std::string good = test::without_checksum(test::get_file(path));
  // Most of the file is values, so every second round damages the header.
  const std::size_t values = 8 + header_size(good);
  TestRandom random(6);
  Hostile hostile;
  for (int round = 0; round < 3000; ++round) {
    write_anew(path, round % 2 == 0
                         ? damaged(good, random)
                         : damaged(good.substr(0, values), random) + good.substr(values));
    hostile.expect_refused_or_whole([&] { return lm::load_model(path); },
                                    "round " + std::to_string(round));
  }
  hostile.expect_some(100, 500);
}

TEST(LmCheckpointHostile, folders_of_other_libraries_are_rejected_or_read) {
  TestRandom random(7);
  Hostile hostile;
  for (const auto& fixture : fs::directory_iterator(test::source_path("tests/golden/pretrained"))) {
    const test::TempDir folder;
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(fixture.path())) {
      const std::string name = entry.path().filename();
      if (name == "expected.safetensors") continue;
      fs::copy_file(entry.path(), folder / name);
      names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    for (int round = 0; round < 400; ++round) {
      const std::string& name = names[random.below(names.size())];
      const std::string good = test::get_file(folder / name);
      const bool json = name.ends_with(".json") && random.below(4) > 0;
      const std::string bad = json ? test::with_another_value(good, random) : damaged(good, random);
      write_anew(folder / name, bad);
      hostile.expect_refused_or_whole(
          [&] { return lm::load_pretrained(folder.str()); },
          fixture.path().filename().string() + "/" + name + ", round " + std::to_string(round));
      write_anew(folder / name, good);
    }
  }
  hostile.expect_some(100, 500);
}

lm::SavedModel tiny_model() {
  nn::LanguageModelConfig config{.vocab_size = 7, .d_model = 6, .n_layer = 2};
  config.mamba = {.d_state = 3, .d_conv = 3, .expand = 2, .dt_rank = 2};
  return new_model(config);
}

TEST(LmCheckpointHostile, mbjs_files_are_rejected_or_read) {
  const test::TempDir folder;
  const std::string path = folder / "m.mbjs";
  const lm::SavedModel model = tiny_model();
  TestRandom random(8);
  Hostile hostile;
  for (const int version : {1, 2, 3}) {
    lm::save_mbjs(path, model, version);
    const std::string good = test::get_file(path);
    // The kinds of layers and sizes of tensors, a small part of the file.
    constexpr std::size_t kHead = 140;
    for (int round = 0; round < 800; ++round) {
      write_anew(path, round % 2 == 0
                           ? damaged(good, random)
                           : damaged(good.substr(0, kHead), random) + good.substr(kHead));
      hostile.expect_refused_or_whole(
          [&] { return lm::load_mbjs(path); },
          "version " + std::to_string(version) + ", round " + std::to_string(round));
    }
  }
  hostile.expect_some(100, 500);
}

// The content is well-formed, but its sizes do not match.
TEST(LmCheckpointHostile, mbjs_tensors_of_other_sizes_are_rejected_or_read) {
  const test::TempDir folder;
  const lm::SavedModel model = tiny_model();
  lm::save_mbjs(folder / "m", model);
  const MbjsFile good = read_mbjs(folder / "m");
  TestRandom random(9);
  Hostile hostile;
  for (int round = 0; round < 4000; ++round) {
    MbjsFile bad = good;
    for (std::size_t change = 1 + random.below(3); change > 0; --change) {
      if (bad.tensors.empty()) break;
      const std::size_t at = random.below(bad.tensors.size());
      std::vector<float>& tensor = bad.tensors[at];
      switch (random.below(8)) {
        case 0: tensor.clear(); break;
        case 1: tensor.resize(random.below(200)); break;
        case 2: tensor.resize(tensor.size() * (1 + random.below(4))); break;
        case 3: tensor.push_back(1); break;
        case 4: std::swap(tensor, bad.tensors[random.below(bad.tensors.size())]); break;
        case 5: bad.tensors.erase(bad.tensors.begin() + static_cast<std::ptrdiff_t>(at)); break;
        case 6: bad.layers.resize(random.below(5)); break;
        default:
          if (!bad.layers.empty())
            bad.layers[random.below(bad.layers.size())] = static_cast<MbjsLayer>(random.below(4));
      }
    }
    hostile.expect_refused_or_whole([&] { return lm::convert_mbjs(bad, "f"); },
                                    "round " + std::to_string(round));
  }
  hostile.expect_some(50, 500);
}

// If a changed configuration is accepted, its model can be run, or an error explains why not.
TEST(LmCheckpointHostile, models_with_changed_numbers_run_or_are_rejected) {
  const lm::SavedModel good = model_of_all_kinds();
  const std::string json = lm::to_json(good.config);
  TestRandom random(10);
  int ran = 0, refused = 0;
  for (int round = 0; round < 600 && ran < (kSanitized ? 5 : 60); ++round) {
    const std::string bad = test::with_another_value(json, random);
    try {
      const nn::LanguageModelConfig config = lm::config_from_json(bad);
      lm::check_weights(config, good.weights, "it");
      CompiledFunction forward = compile_function(
          nn::LanguageModel(config),
          [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
          {.inputs = {{"tokens", {1, 3}, i32}}, .device = {.kind = "cpu"}});
      forward.upload_params(good.weights);
      EXPECT_EQ(forward({{"tokens", std::vector<std::int32_t>{1, 2, 3}}}).floats().size(), 27U);
      ++ran;
    } catch (const UserError&) {
      ++refused;
    } catch (const std::exception& error) {
      ADD_FAILURE() << bad << ": " << error.what();
    }
  }
  EXPECT_GE(ran, kSanitized ? 5 : 20);
  EXPECT_GE(refused, kSanitized ? 1 : 5);
}

}  // namespace
}  // namespace tensorgrad::testing
