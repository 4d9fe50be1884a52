// SPDX-License-Identifier: MIT
// Damaged and inconsistent checkpoints of a LanguageTrainer. If one is rejected, there is a message
// and the trainer is unchanged. If one is loaded, the state is consistent, and training continues
// or an error explains why not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/sanitized.h"
#include "support/small_mamba.h"
#include "tensorgrad/tensorgrad.h"
#include "unit/io/io_test_util.h"
#include "unit/lm/hostile_file.h"
#include "unit/lm/hostile_json.h"

namespace tensorgrad::testing {
namespace {

using nlohmann::json;
using test::TestRandom;

class HostileCheckpoints {
 public:
  HostileCheckpoints()
      : trainer_(small_mamba(9, {nn::MixerKind::kMamba1, nn::MixerKind::kMlp}, 16),
                 TokenSequence(random_tokens(61, 9, 1)), TokenSequence(),
                 {.batch = 2,
                  .length = 8,
                  .steps = 20,
                  .accumulate = 3,
                  .lr = 1e-2,
                  .warmup = 3,
                  .seed = 4,
                  .device = {.kind = "cpu"}}) {
    for (int i = 0; i < 5; ++i) trainer_.step();
    trainer_.save(path_);
    good_ = test::without_checksum(test::get_file(path_));
    before_ = test::most_memory();
  }

  [[nodiscard]] const std::string& good() const { return good_; }

  // Set `goes_on` if the weights are unchanged. If the checkpoint is loaded, a step must then have
  // a finite loss.
  void load(const std::string& bytes, const std::string& what, bool goes_on = false) {
    test::write_anew(path_, bytes);
    const auto was = place();
    try {
      trainer_.load(path_);
    } catch (const UserError& error) {
      EXPECT_FALSE(error.message().empty()) << what;
      EXPECT_EQ(place(), was) << what << ": refused, but something has changed";
      ++refused_;
      EXPECT_TRUE(refused_ % 100 != 0 || saved() == good_) << what;
      return;
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ": " << error.what();
      return;
    }
    ++taken_;
    expect_fit(what, goes_on);
    load_good();
  }

  void expect_some(int taken, int refused) {
    EXPECT_GE(taken_, taken);
    EXPECT_GE(refused_, refused);
    EXPECT_EQ(saved(), good_);
    if (!kSanitized) {
      EXPECT_LT(test::most_memory() - before_, std::int64_t{64} << 20) << "bytes";
    }
  }

 private:
  void expect_fit(const std::string& what, bool goes_on) {
    EXPECT_GE(trainer_.steps(), 0) << what;
    EXPECT_TRUE(trainer_.epochs() >= 0 && std::isfinite(trainer_.lr())) << what;
    lm::check_weights(trainer_.config(), trainer_.model().weights, "it");
    try {
      EXPECT_TRUE(std::isfinite(trainer_.step())) << what;
    } catch (const UserError& error) {  // for example because of NaN weights
      EXPECT_FALSE(goes_on || error.message().empty()) << what << ": " << error.message();
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ", the step behind it: " << error.what();
    }
  }

  [[nodiscard]] std::tuple<std::int64_t, double, double, std::vector<std::byte>> place() const {
    std::vector<std::byte> bytes;
    for (const auto& [name, tensor] : trainer_.model().weights)
      bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
    return {trainer_.steps(), trainer_.epochs(), trainer_.lr(), bytes};
  }

  [[nodiscard]] std::string saved() const {
    trainer_.save(folder_ / "again");
    return test::without_checksum(test::get_file(folder_ / "again"));
  }

  void load_good() {
    test::write_anew(path_, good_);
    trainer_.load(path_);
  }

  const test::TempDir folder_;
  const std::string path_ = folder_ / "checkpoint.safetensors";
  lm::LanguageTrainer trainer_;
  std::string good_;
  int taken_ = 0, refused_ = 0;
  std::int64_t before_ = 0;
};

TEST(LmTrainerHostile, damaged_bytes_are_rejected_or_change_values) {
  HostileCheckpoints hostile;
  const std::string& good = hostile.good();
  // Most of the file is values, so every second round damages only the header.
  const std::size_t values = 8 + test::header_size(good);
  TestRandom random(16);
  for (int round = 0; round < 1500; ++round) {
    hostile.load(round % 2 == 0
                     ? test::damaged(good, random)
                     : test::damaged(good.substr(0, values), random) + good.substr(values),
                 "round " + std::to_string(round));
  }
  hostile.expect_some(50, 500);
}

// Values for metadata: counters, names, schedules, and positions in a text of eight windows.
const std::vector<std::string> kHostileTexts = {"",
                                                "-1",
                                                "0",
                                                "1",
                                                "999999999999999999",
                                                "9223372036854775807",
                                                "18446744073709551616",
                                                "1e3",
                                                "nan",
                                                "-inf",
                                                "0x1p+1000",
                                                "0x1p-1000",
                                                "AdamW",
                                                "Lion",
                                                "0 0x1p-7 0x0p+0 0 0",
                                                "1 0x1p-7 0x0p+0 0 0",
                                                "7 0x1p-7 0x0p+0 1 1 1",
                                                "0 nan 0x0p+0 0 0",
                                                "0 0 0 8 2",
                                                "0 4 4 8 2",
                                                "0 999999999999999999 4 8 2",
                                                "999999999999999999 3 4 8 2",
                                                "0 0 4294967296 8 2"};

TEST(LmTrainerHostile, invalid_metadata_is_rejected) {
  HostileCheckpoints hostile;
  const std::string& good = hostile.good();
  const json header = json::parse(good.substr(8, test::header_size(good)));
  std::vector<std::string> keys;
  for (const auto& [key, text] : header["__metadata__"].items()) keys.push_back(key);
  ASSERT_GT(keys.size(), 8U);
  const auto load_with = [&](const std::string& key, const std::string& text) {
    json bad = header;
    bad["__metadata__"][key] = text;
    hostile.load(test::with_header(good, bad), key + ": " + text, true);
  };
  TestRandom random(17);
  for (const std::string& key : keys) {
    const std::string text = header["__metadata__"][key];
    for (const std::string& bad : kHostileTexts) load_with(key, bad);
    for (int round = 0; round < 40; ++round) {
      load_with(key, round % 4 == 0 ? test::with_a_huge_number(text, random)
                                    : test::mutated(text, random));
    }
    json without = header;
    without["__metadata__"].erase(key);
    hostile.load(test::with_header(good, without), "without " + key, true);
  }
  hostile.expect_some(50, 500);
}

// The file is well-formed, but its tensors are not those of this trainer.
TEST(LmTrainerHostile, tensors_of_another_trainer_are_rejected) {
  HostileCheckpoints hostile;
  const std::string& good = hostile.good();
  const json header = json::parse(good.substr(8, test::header_size(good)));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : header.items()) {
    if (name != "__metadata__") names.push_back(name);
  }
  ASSERT_GT(names.size(), 30U) << "parameters, moments and gradients that are added up";
  TestRandom random(18);
  for (int round = 0; round < 1000; ++round) {
    json bad = header;
    const std::string& one = names[random.below(names.size())];
    const std::string& two = names[random.below(names.size())];
    switch (random.below(5)) {
      case 0: std::swap(bad[one], bad[two]); break;
      case 1: std::swap(bad[one]["shape"], bad[two]["shape"]); break;
      case 2:
        bad[one + "x"] = bad[one];
        bad.erase(one);
        break;
      case 3: bad[one]["dtype"] = random.below(2) == 0 ? "I32" : "F16"; break;
      default: bad = json::parse(test::with_another_value(header.dump(), random)); break;
    }
    hostile.load(test::with_header(good, bad), bad.dump());
  }
  hostile.expect_some(20, 500);
}

}  // namespace
}  // namespace tensorgrad::testing
