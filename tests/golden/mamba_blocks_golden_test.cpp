// SPDX-License-Identifier: MIT
// Compares Mamba-3, attention with rotary positions, gated MLPs and a model of them with loops over
// the steps in double precision, written from the papers (make_mamba_block_fixtures.py).
#include "golden/fixture.h"
#include "support/small_mamba.h"

namespace tensorgrad::testing {
namespace {

const Fixture& blocks_fixture() {
  static const Fixture file("mamba_blocks.safetensors");
  return file;
}

// Parameter names are those of the fixture.
template <class Net>
void check_block(const std::string& name, const Net& net, const std::string& device) {
  const bool of_tokens = blocks_fixture().has(name + "/in/tokens");
  const std::string input = of_tokens ? "tokens" : "x", given = name + "/in/" + input;
  auto forward =
      compile_function(net, [&](const Net& of, const Inputs& in) { return of(in[input]); },
                       {.inputs = {{input, blocks_fixture().shape(given), of_tokens ? i32 : f32}},
                        .device = {.kind = device, .allow_software = true}});
  const auto begins = forward.download_params();
  for (const auto& [key, want] : blocks_fixture().all_of(name + "/initial/"))
    EXPECT_EQ(begins.at(key).floats(), want.floats()) << name << ": initial " << key;
  const auto params = blocks_fixture().all_of(name + "/param/");
  ASSERT_EQ(params.size(), begins.size());
  forward.upload_params(params);
  const HostTensor y = of_tokens ? forward({{input, blocks_fixture().values<std::int32_t>(given)}})
                                 : forward({{input, blocks_fixture().values<float>(given)}});
  ASSERT_EQ(y.shape, blocks_fixture().shape(name + "/y"));
  expect_close(y.floats(), blocks_fixture().values<float>(name + "/y"), 1e-5, name);
}

void check_mamba3(const std::string& device) {
  const nn::Mamba3Options options{.d_state = 6, .head_dim = 8, .chunk = 4};
  nn::Mamba3Options of_ranks = options;
  of_ranks.ranks = 2;
  check_block("mamba3", nn::Mamba3(16, options), device);
  check_block("mamba3_of_ranks", nn::Mamba3(16, of_ranks), device);
  nn::Mamba3Options heavy = options;
  heavy.decay = nn::DecayActivation::kHeavyTail;
  heavy.a_floor = 0.7;  // above some of the rates
  check_block("mamba3_of_heavy_tails", nn::Mamba3(16, heavy), device);
}
TEST(MambaBlocks, mamba3_matches_a_loop_on_cpu) { check_mamba3("cpu"); }
TEST(MambaBlocks, mamba3_matches_a_loop_on_webgpu) { check_mamba3("webgpu"); }

void check_causal_attention(const std::string& device) {
  check_block("attention", nn::CausalAttention(16, 2, {}), device);
  check_block("attention_of_groups", nn::CausalAttention(16, 4, {.kv_heads = 2, .rope_base = 50}),
              device);
}
TEST(MambaBlocks, attention_matches_a_loop_on_cpu) { check_causal_attention("cpu"); }
TEST(MambaBlocks, attention_matches_a_loop_on_webgpu) { check_causal_attention("webgpu"); }

TEST(MambaBlocks, gated_mlp_matches_its_formula_on_cpu) {
  check_block("gated_mlp", nn::GatedMlp(16, 16), "cpu");
}
TEST(MambaBlocks, gated_mlp_matches_its_formula_on_webgpu) {
  check_block("gated_mlp", nn::GatedMlp(16, 16), "webgpu");
}

void check_model(const std::string& device) {
  using nn::MixerKind;
  nn::LanguageModelConfig config =
      small_mamba(17,
                  {MixerKind::kMamba1, MixerKind::kMlp, MixerKind::kAttention, MixerKind::kMlp,
                   MixerKind::kMamba3},
                  24);
  config.d_model = 16;
  config.mlp_width = 16;
  check_block("model", nn::LanguageModel(config), device);
}
TEST(MambaBlocks, logits_of_a_hybrid_match_loops_on_cpu) { check_model("cpu"); }
TEST(MambaBlocks, logits_of_a_hybrid_match_loops_on_webgpu) { check_model("webgpu"); }

}  // namespace
}  // namespace tensorgrad::testing
