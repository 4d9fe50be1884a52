// SPDX-License-Identifier: MIT
// Compares the selective scan and SSD with loops over the steps in double precision: results, last
// states, and gradients of all operands. Operands and layouts are those of mamba-ssm's
// selective_scan_fn and mamba_chunk_scan_combined (make_pretrained_fixtures.py).
#include "golden/fixture.h"

namespace tensorgrad::testing {
namespace {

struct NoModel {
  TG_MODULE()
};
using TracedTensors = std::map<std::string, Tensor>;

// Returns y and the last state.
using GoldenScan = std::pair<Tensor, Tensor> (*)(const TracedTensors& in);

std::pair<Tensor, Tensor> selective_as_there(const TracedTensors& in) {
  const auto steps = [&](const char* name) { return transpose(in.at(name), 1, 2); };
  const SelectiveScan scan =
      selective_scan(steps("u"), steps("delta"), in.at("a"), steps("b"), steps("c"),
                     {.D = in.at("d"),
                      .z = steps("z"),
                      .delta_bias = in.at("delta_bias"),
                      .delta_softplus = true});
  return {transpose(scan.y, 1, 2), scan.state};
}

std::pair<Tensor, Tensor> ssd_as_there(const TracedTensors& in) {
  const Ssd scan = ssd(in.at("x"), in.at("dt"), in.at("a"), in.at("b"), in.at("c"),
                       {.chunk = 8,
                        .D = in.at("d"),
                        .dt_bias = in.at("dt_bias"),
                        .dt_softplus = true,
                        .initial_state = in.at("state")});
  return {scan.y * silu(in.at("z")), scan.state};
}

void check_scan(const std::string& name, GoldenScan scan, const std::string& device) {
  const Fixture fixture("mamba_functions.safetensors");
  std::vector<InputSpec> specs;
  std::map<std::string, std::vector<float>> given;
  FeedView feed;
  for (const std::string& full : fixture.names()) {
    if (!full.starts_with(name + "/in/") && !full.starts_with(name + "/weight/")) continue;
    specs.push_back({full, fixture.shape(full)});
    given[full] = fixture.values<float>(full);
    feed.add(full, given[full]);
  }
  auto forward = compile_function(
      NoModel{},
      [&](const NoModel&, const Inputs& in) {
        TracedTensors operands;
        std::vector<std::string> names;
        std::vector<Tensor> of;
        for (const InputSpec& spec : specs) {
          const std::string prefix = name + "/in/";
          if (!spec.name.starts_with(prefix)) continue;
          names.push_back(spec.name.substr(prefix.size()));
          of.push_back(in[spec.name]);
          operands.emplace(names.back(), of.back());
        }
        const auto [y, state] = scan(operands);
        const std::vector<Tensor> grads =
            grad(sum(y * in[name + "/weight/y"]) + sum(state * in[name + "/weight/state"]), of);
        std::map<std::string, Tensor> out = {{"y", y}, {"state", state}};
        for (std::size_t i = 0; i < of.size(); ++i) out.emplace("grad/" + names[i], grads[i]);
        return out;
      },
      {.inputs = specs, .device = {.kind = device, .allow_software = true}});
  for (const auto& [output, got] : forward.run(feed)) {
    const std::string full = name + "/" + output;
    const std::vector<float> want = fixture.values<float>(full), values = got.floats();
    ASSERT_EQ(got.shape, fixture.shape(full)) << full;
    double largest = 0;
    for (const double each : want) largest = std::max(largest, std::abs(each));
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(values[i], want[i], 1e-5 * largest) << full << ' ' << i;
  }
}

TEST(MambaGolden, selective_scan_matches_a_loop_on_cpu) {
  check_scan("selective_scan", selective_as_there, "cpu");
}
TEST(MambaGolden, selective_scan_matches_a_loop_on_webgpu) {
  check_scan("selective_scan", selective_as_there, "webgpu");
}
TEST(MambaGolden, ssd_matches_a_loop_on_cpu) { check_scan("ssd", ssd_as_there, "cpu"); }
TEST(MambaGolden, ssd_matches_a_loop_on_webgpu) { check_scan("ssd", ssd_as_there, "webgpu"); }

}  // namespace
}  // namespace tensorgrad::testing
