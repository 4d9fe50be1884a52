// SPDX-License-Identifier: MIT
// MBJS files: layout of the bytes, f16 values, malformed files, and conversion of models.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "tensorgrad/tensorgrad.h"
#include "unit/io/io_test_util.h"

namespace tensorgrad::testing {
namespace {

using test::as_bytes;
using test::io_error_of;

std::string little(std::initializer_list<std::uint32_t> words) {
  std::string out;
  for (const std::uint32_t word : words) {
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(word >> shift & 0xff);
  }
  return out;
}

const std::string kMagicBytes = "\x53\x4a\x42\x4d";

MbjsFile parsed(std::string_view text) { return read_mbjs({as_bytes(text), "f"}); }

TEST(Mbjs, has_the_bytes_of_its_three_versions) {
  const test::TempDir dir;
  const auto bytes_of = [&](const MbjsFile& file) {
    write_mbjs(dir / "m", file);
    const std::string text = test::get_file(dir / "m");
    EXPECT_EQ(parsed(text), file);
    EXPECT_EQ(read_mbjs(dir / "m"), file);
    return text;
  };
  const std::vector<std::vector<float>> tensors = {{1, -2.5F}, {}, {0.5F}};
  const std::string sizes = little({3, 2, 0, 1});
  const std::string values = little({0x3f800000, 0xc0200000, 0x3f000000});
  EXPECT_EQ(bytes_of({.version = 1, .tensors = tensors}),
            kMagicBytes + little({1}) + sizes + values);
  const std::vector<MbjsLayer> layers = {MbjsLayer::kMamba1, MbjsLayer::kAttention,
                                         MbjsLayer::kMamba3, MbjsLayer::kMamba2,
                                         MbjsLayer::kMamba1};
  const std::string kinds = little({5, 0x01020300, 0});
  EXPECT_EQ(bytes_of({.version = 2, .layers = layers, .tensors = tensors}),
            kMagicBytes + little({2}) + kinds + sizes + values);
  EXPECT_EQ(bytes_of({.version = 3, .layers = layers, .tensors = tensors}),
            kMagicBytes + little({3}) + kinds + sizes + std::string("\x00\x3c\x00\xc1\x00\x38", 6));
}

// mambacode.js decodes halves below 2^-14 as 16384 times their value, and truncates others.
TEST(Mbjs, halves_match_ieee_754) {
  const test::TempDir dir;
  std::string text = kMagicBytes + little({3, 0, 1, 65536});
  for (std::uint32_t i = 0; i < 65536; i += 2) text += little({i | (i + 1) << 16});
  const MbjsFile file = parsed(text);
  const std::vector<float>& got = file.tensors.at(0);
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const int exponent = static_cast<int>(i >> 10 & 31);
    const double fraction = i & 1023;
    const double size = exponent == 0    ? std::ldexp(fraction, -24)
                        : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                         : std::ldexp(1024 + fraction, exponent - 25);
    const double want = i < 32768 ? size : -size;
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got[i])) << i;
    } else {
      ASSERT_EQ(got[i], want) << i;
      ASSERT_EQ(std::signbit(got[i]), std::signbit(want)) << i;
    }
  }
  write_mbjs(dir / "m", file);
  const std::vector<float> again = read_mbjs(dir / "m").tensors.at(0);
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(again[i] == got[i] || std::isnan(got[i])) << i;
  }
  // Values are rounded to the nearest, ties to even.
  write_mbjs(dir / "m", {.version = 3,
                         .tensors = {{1 + 0x1p-11F, 1 + 0x3p-11F, 3e-5F, 0x1p-25F, 0x1.8p-25F}}});
  EXPECT_THAT(read_mbjs(dir / "m").tensors.at(0),
              ::testing::ElementsAre(1, 1 + 0x2p-10F, 503 * 0x1p-24F, 0, 0x1p-24F));
}

TEST(Mbjs, errors_name_the_wrong_byte) {
  const std::string head = kMagicBytes + little({2, 1, 0});
  const auto failure = [](const std::string& text) {
    return io_error_of([&] { (void)parsed(text); });
  };
  EXPECT_EQ(failure(""), "f: truncated at byte 0: expected 4 bytes of magic number from byte 0");
  EXPECT_EQ(failure("MBJS"), "f: not an MBJS file at byte 0: expected the bytes 53 4a 42 4d");
  EXPECT_EQ(failure(kMagicBytes + little({4})), "f: version 4 at byte 4: expected 1, 2 or 3");
  EXPECT_EQ(failure(kMagicBytes + little({0})), "f: version 0 at byte 4: expected 1, 2 or 3");
  EXPECT_EQ(failure(kMagicBytes + little({2, 0xffffffff})),
            "f: truncated at byte 12: expected 4294967296 bytes of kinds of 4294967295 layers from "
            "byte 12");
  EXPECT_EQ(failure(kMagicBytes + little({2, 2, 0x0400})),
            "f: unknown kind 4 of layer 1 at byte 13: expected 0 to 3");
  EXPECT_EQ(failure(kMagicBytes + little({2, 1, 0x010000})), "f: padding 1 at byte 14: expected 0");
  EXPECT_EQ(failure(head + little({0xffffffff, 1})),
            "f: truncated at byte 24: expected 17179869180 bytes of sizes of 4294967295 tensors "
            "from byte 20");
  EXPECT_EQ(failure(head + little({2, 1, 0xffffffff, 0})),
            "f: truncated at byte 32: expected 17179869180 bytes of tensor 1 from byte 32");
  EXPECT_EQ(failure(head + little({1, 1, 0}) + "x"),
            "f: 1 extra bytes at byte 28: expected the end of the file");
  EXPECT_EQ(io_error_of([] { (void)read_mbjs("/nowhere/m"); }).find("/nowhere/m"), 0U);
}

TEST(Mbjs, survives_random_damage) {
  const std::string whole = kMagicBytes + little({3, 5, 0x03020100, 0, 3, 2, 1, 3, 0, 0, 0});
  parsed(whole);
  test::TestRandom random(3);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = test::mutated(whole, random);
    try {
      const MbjsFile file = parsed(text);
      std::size_t bytes = 0;
      for (const auto& tensor : file.tensors) bytes += tensor.size() * 2;
      EXPECT_LE(bytes, text.size());
    } catch (const IoError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);
}

TEST(Mbjs, values_outside_the_format_are_not_written) {
  const test::TempDir dir;
  EXPECT_THROW(write_mbjs(dir / "m", {.version = 4}), UserError);
  EXPECT_THROW(write_mbjs(dir / "m", {.version = 1, .layers = {MbjsLayer::kMamba2}}), UserError);
  EXPECT_THROW(write_mbjs(dir / "m", {.version = 3, .tensors = {{1, 65520}}}), UserError);
  write_mbjs(dir / "m", {.version = 3, .tensors = {{1, 65519, INFINITY}}});
  EXPECT_EQ(read_mbjs(dir / "m").tensors.at(0), (std::vector<float>{1, 65504, INFINITY}));
}

nn::LanguageModelConfig for_mbjs(bool biases) {
  nn::LanguageModelConfig config{.vocab_size = 7, .d_model = 6, .n_layer = 2};
  config.layers = nn::mixer_schedule("mamba1", 2);
  config.norm_epsilon = 1e-6;
  config.mamba = {.d_state = 3,
                  .d_conv = 3,
                  .expand = 2,
                  .dt_rank = 2,
                  .bias = biases,
                  .conv_bias = biases,
                  .x_bias = biases,
                  .discretization = Discretization::kZeroOrderHold};
  return config;
}

CompiledFunction logits_of(const nn::LanguageModelConfig& config) {
  return compile_function(
      nn::LanguageModel(config),
      [](const nn::LanguageModel& net, const Inputs& in) { return net(in["tokens"]); },
      {.inputs = {{"tokens", {2, 9}, i32}}, .device = {.kind = "cpu"}, .seed = 3});
}

TEST(MbjsModel, round_trips) {
  const test::TempDir dir;
  std::vector<std::int32_t> tokens(18);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * 5 % 7);
  for (const bool biases : {false, true}) {
    CompiledFunction forward = logits_of(for_mbjs(biases));
    const lm::SavedModel model{for_mbjs(biases), forward.download_params(), {}};
    const std::vector<float> want = forward({{"tokens", tokens}}).floats();
    for (const int version : {1, 2, 3}) {
      lm::save_mbjs(dir / "m", model, version);
      std::vector<std::byte> bytes;
      lm::save_mbjs(bytes, model, version);
      EXPECT_EQ(bytes, read_file(dir / "m"));
      EXPECT_EQ(lm::load_mbjs(bytes).weights.at("backbone.embedding.weight").bytes,
                lm::load_mbjs(dir / "m").weights.at("backbone.embedding.weight").bytes);
      const lm::SavedModel read = lm::load_mbjs(dir / "m");
      EXPECT_EQ(lm::to_json(read.config), lm::to_json(model.config));
      forward.upload_params(read.weights);
      const std::vector<float> got = forward({{"tokens", tokens}}).floats();
      for (std::size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got[i], want[i], version == 3 ? 1e-3 : 0) << version << ' ' << i;
    }
  }
}

// With width 48, int4 quantizes only x_proj and out_proj. The embedding stays f32.
TEST(MbjsModel, of_quantized_weights_holds_their_values) {
  const test::TempDir dir;
  for (const std::int64_t width : {48, 32}) {
    nn::LanguageModelConfig config = for_mbjs(true);
    config.d_model = width;
    const lm::SavedModel model{config, logits_of(config).download_params(), {}};
    for (const nn::WeightFormat format : {nn::WeightFormat::kInt4, nn::WeightFormat::kF16}) {
      const lm::SavedModel packed = lm::quantize(model, format);
      lm::save_mbjs(dir / "m", packed);
      const lm::SavedModel read = lm::load_mbjs(dir / "m"),
                           want = lm::quantize(packed, nn::WeightFormat::kF32);
      EXPECT_EQ(lm::to_json(read.config), lm::to_json(want.config));
      ASSERT_EQ(read.weights.size(), want.weights.size());
      for (const auto& [name, tensor] : want.weights)
        EXPECT_EQ(read.weights.at(name).bytes, tensor.bytes) << width << ' ' << name;
    }
  }
}

// Sizes: V tokens, M channels, D inner channels, K taps, N states, R rank of dt.
constexpr std::int64_t kMbjsV = 7, kMbjsM = 6, kMbjsD = 12, kMbjsK = 3, kMbjsN = 5, kMbjsR = 2;

struct OfMbjs {
  std::string name;  // in tensorgrad
  Shape shape;
};
// Returns the tensors in the order of mambacode.js. The test states this order once more, because
// tensors of equal size, such as bConv, bDtProj and D_vec, differ only in their position.
std::vector<OfMbjs> mbjs_order(int layers) {
  std::vector<OfMbjs> all = {{"backbone.embedding.weight", {kMbjsV, kMbjsM}}};
  for (int i = 0; i < layers; ++i) {
    const std::string layer = "backbone.layers." + std::to_string(i) + ".";
    for (const OfMbjs& each :
         std::vector<OfMbjs>{{"mixer.in_proj.weight", {2 * kMbjsD, kMbjsM}},          // wInProj
                             {"mixer.in_proj.bias", {2 * kMbjsD}},                    // bInProj
                             {"mixer.conv1d.weight", {kMbjsD, 1, kMbjsK}},            // wConv
                             {"mixer.conv1d.bias", {kMbjsD}},                         // bConv
                             {"mixer.x_proj.weight", {kMbjsR + 2 * kMbjsN, kMbjsD}},  // wXProj
                             {"mixer.x_proj.bias", {kMbjsR + 2 * kMbjsN}},            // bXProj
                             {"mixer.dt_proj.weight", {kMbjsD, kMbjsR}},              // wDtProj
                             {"mixer.dt_proj.bias", {kMbjsD}},                        // bDtProj
                             {"mixer.A_log", {kMbjsD, kMbjsN}},                       // A_log
                             {"mixer.D", {kMbjsD}},                                   // D_vec
                             {"mixer.out_proj.weight", {kMbjsM, kMbjsD}},             // wOutProj
                             {"mixer.out_proj.bias", {kMbjsM}},                       // bOutProj
                             {"norm.weight", {kMbjsM}}}) {                            // normWeight
      all.push_back({layer + each.name, each.shape});
    }
  }
  all.push_back({"backbone.norm_f.weight", {kMbjsM}});
  return all;
}

// Returns a value for element j of tensor i that is exact in f16.
float mbjs_value(std::size_t i, std::size_t j) {
  return static_cast<float>(i + 1) + static_cast<float>(j % 32) / 32;
}

TEST(MbjsModel, maps_each_position_of_the_file_to_its_name) {
  const test::TempDir dir;
  const std::vector<OfMbjs> order = mbjs_order(2);
  ASSERT_EQ(order.size(), 28U);
  for (const int version : {1, 2, 3}) {
    MbjsFile file{.version = version, .layers = {}, .tensors = {}};
    if (version > 1) file.layers.assign(2, MbjsLayer::kMamba1);
    for (std::size_t i = 0; i < order.size(); ++i) {
      file.tensors.emplace_back(static_cast<std::size_t>(numel(order[i].shape)));
      for (std::size_t j = 0; j < file.tensors[i].size(); ++j)
        file.tensors[i][j] = mbjs_value(i, j);
    }
    const lm::SavedModel model = lm::convert_mbjs(file, "f");
    ASSERT_EQ(model.weights.size(), order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const HostTensor& tensor = model.weights.at(order[i].name);
      ASSERT_EQ(tensor.shape, order[i].shape) << order[i].name;
      const bool taps = order[i].name.ends_with("conv1d.weight");
      const std::vector<float> got = tensor.floats();
      for (std::size_t j = 0; j < got.size(); ++j) {
        const std::size_t there = taps ? j / kMbjsK * kMbjsK + kMbjsK - 1 - j % kMbjsK : j;
        ASSERT_EQ(got[j], mbjs_value(i, there)) << version << ", " << order[i].name << ' ' << j;
      }
    }
    // The other direction.
    lm::save_mbjs(dir / "m", model, version);
    EXPECT_EQ(read_mbjs(dir / "m"), file) << version;
  }
}

// The tap of the current step is the first in MBJS and the last in tensorgrad.
TEST(MbjsModel, reverses_the_taps_of_the_convolution) {
  const test::TempDir dir;
  CompiledFunction forward = logits_of(for_mbjs(false));
  lm::SavedModel model{for_mbjs(false), forward.download_params(), {}};
  lm::save_mbjs(dir / "m", model);
  const std::vector<float> there = read_mbjs(dir / "m").tensors.at(3);  // wConv of layer 0
  const std::vector<float> here =
      model.weights.at("backbone.layers.0.mixer.conv1d.weight").floats();
  ASSERT_EQ(there.size(), here.size());
  for (std::size_t i = 0; i < here.size(); ++i) EXPECT_EQ(there[i], here[i / 3 * 3 + 2 - i % 3]);
  EXPECT_EQ(lm::load_mbjs(dir / "m", {.discretization = Discretization::kEuler})
                .config.mamba.discretization,
            Discretization::kEuler);
}

TEST(MbjsModel, errors_name_what_does_not_fit) {
  const test::TempDir dir;
  CompiledFunction forward = logits_of(for_mbjs(true));
  const lm::SavedModel model{for_mbjs(true), forward.download_params(), {}};
  lm::save_mbjs(dir / "m", model);
  const MbjsFile good = read_mbjs(dir / "m");
  const auto failure = [&](const std::function<void(MbjsFile&)>& change) {
    MbjsFile file = good;
    change(file);
    return io_error_of([&] { (void)lm::convert_mbjs(file, "f"); });
  };
  EXPECT_EQ(failure([](MbjsFile& file) { file.layers[1] = MbjsLayer::kMamba2; }),
            "f: layer 1 is mamba2; only mamba1 can be converted");
  EXPECT_EQ(failure([](MbjsFile& file) { file.layers.pop_back(); }),
            "f: expected 15 tensors for 1 mamba1 layers, got 28");
  EXPECT_EQ(failure([](MbjsFile& file) { file.tensors[0].pop_back(); }),
            "f: tensor embedding: expected a multiple of final_norm's 6 values, got 41");
  EXPECT_EQ(failure([](MbjsFile& file) { file.tensors[3].pop_back(); }),
            "f: tensor layer0.wConv: expected a multiple of 12 values, got 35");
  EXPECT_EQ(failure([](MbjsFile& file) { file.tensors[19].push_back(1); }),
            "f: tensor layer1.bXProj: expected 8 values, got 9");
  EXPECT_EQ(failure([](MbjsFile& file) {
              file.tensors[3].resize(12);
              file.tensors[16].resize(12);
            }),
            "f: tensor layer0.wConv: expected at least two taps for each channel, got 1");
  EXPECT_EQ(failure([](MbjsFile& file) { file.tensors.clear(); }),
            "f: expected 28 tensors for 2 mamba1 layers, got 0");
  lm::SavedModel other = model;
  other.config.tie_embeddings = false;
  EXPECT_THROW(lm::save_mbjs(dir / "m", other), UserError);
  other = model;
  other.config.mamba.b_c_dt_norm = true;
  EXPECT_THROW(lm::save_mbjs(dir / "m", other), UserError);
  other = model;
  other.config.layers[0] = nn::MixerKind::kMamba2;
  EXPECT_THROW(lm::save_mbjs(dir / "m", other), UserError);
  for (const char* name : {"backbone.embedding.weight", "backbone.layers.1.mixer.x_proj.weight",
                           "backbone.layers.1.mixer.x_proj.bias"}) {
    other = model;
    other.weights.erase(name);
    EXPECT_THROW(lm::save_mbjs(dir / "m", other), UserError) << name;
  }
}

}  // namespace
}  // namespace tensorgrad::testing
