// SPDX-License-Identifier: MIT
// Files and texts are the same in a locale with a decimal comma.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/numbers.h"
#include "ir/graph.h"
#include "support/decimal_comma.h"
#include "support/graph_builder.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

struct Wide {
  nn::Linear fc{3, 2000};
  TG_MODULE(fc)
};

Trainer<Wide> wide() {
  return compile(Wide{},
                 [](const Wide& net, const Inputs& in) { return mean(net.fc(in["x"]) * 0.1); },
                 {.inputs = {{"x", {4, 3}}},
                  .optimizer = optim::Adam{.lr = Schedule::cosine(0.37, 0.01, 10)},
                  .device = {.kind = "cpu"}});
}

TEST(DecimalComma, is_set_by_the_test) {
  const test::DecimalComma comma;
  char text[16];
  std::snprintf(text, sizeof text, "%.1f", 2.5);
  EXPECT_STREQ(text, "2,5");
  std::ostringstream out;
  out << 12345;
  EXPECT_EQ(out.str(), "12.345");
}

TEST(DecimalComma, is_not_in_texts_of_numbers) {
  const test::DecimalComma comma;
  EXPECT_EQ(number_text(0.5), "0.5");
  EXPECT_EQ(hex_float(1.28), "0x1.47ae147ae147bp+0");
  EXPECT_EQ(format_text("%.2f, %d%s", 1.5, 1000, std::string(300, 'x').c_str()),
            "1.50, 1000" + std::string(300, 'x'));
  std::string_view text = "0x1.8p+1,2";
  EXPECT_EQ(take_float(text), 3.0);
  EXPECT_EQ(text, ",2");
  EXPECT_EQ(take_float(text), std::nullopt);
  for (const AttrValue& value : {AttrValue(0.1), AttrValue(-2.5e-300)}) {
    EXPECT_EQ(attr_text(value), "f:" + hex_float(std::get<double>(value)));
  }
}

TEST(DecimalComma, is_not_in_checkpoints_and_explanations) {
  const test::TempDir dir;
  auto point = wide();
  const std::vector<float> x(12, 1);
  point.step({{"x", x}});
  point.save(dir / "point.safetensors");
  // Omits the compile times.
  const auto explain = [](auto& trainer) {
    const std::string text = trainer.explain();
    return text.substr(0, text.find("\ncompile "));
  };
  const std::string explained = explain(point);
  const test::DecimalComma comma;
  auto other = wide();
  EXPECT_EQ(explain(other), explained);
  other.step({{"x", x}});
  other.save(dir / "comma.safetensors");
  EXPECT_EQ(read_file(dir / "comma.safetensors"), read_file(dir / "point.safetensors"));
  other.load(dir / "point.safetensors");
  EXPECT_EQ(other.lr(), point.lr());
}

TEST(DecimalComma, is_not_in_profiles_and_their_pages) {
  auto trainer = wide();
  const Profile profile = trainer.profile({{"x", std::vector<float>(12, 1)}});
  const std::string table = profile.table(), page = profile.html(), trace = profile.trace_events();
  EXPECT_NE(page.find("<html"), std::string::npos);
  const test::DecimalComma comma;
  EXPECT_EQ(profile.table(), table);
  EXPECT_EQ(profile.html(), page);
  EXPECT_EQ(profile.trace_events(), trace);
}

// graph.html, memory.svg, kernels and programs. timeline.json contains times.
TEST(DecimalComma, is_not_in_dumps) {
  const auto dump = [](const test::TempDir& dir) {
    const ScopedEnv env("TENSORGRAD_DUMP", dir.str());
    wide();
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir.str())) {
      if (entry.is_regular_file() && entry.path().filename() != "timeline.json") {
        files[std::filesystem::relative(entry.path(), dir.str()).string()] =
            read_text_file(entry.path().string());
      }
    }
    return files;
  };
  const test::TempDir plain, with_comma;
  const std::map<std::string, std::string> files = dump(plain);
  EXPECT_TRUE(files.contains("0_train/graph.html") && files.contains("0_train/memory.svg"));
  const test::DecimalComma comma;
  EXPECT_EQ(dump(with_comma), files);
}

TEST(DecimalComma, is_not_in_messages) {
  const test::DecimalComma comma;
  try {
    Schedule::cosine(-1.5, 0, 10);
    FAIL() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_NE(error.message().find("got -1.5"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace tensorgrad::testing
