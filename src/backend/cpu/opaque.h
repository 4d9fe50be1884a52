// SPDX-License-Identifier: MIT
// The runners of kernels written by hand. To add one: its declaration and its line in the table.
#pragma once

#include <memory>
#include <string_view>

#include "backend/cpu/launch_runner.h"

namespace tensorgrad::cpu {

std::unique_ptr<LaunchRunner> make_attention(const Prepare& prepare);
std::unique_ptr<LaunchRunner> make_selective_scan(const Prepare& prepare);
std::unique_ptr<LaunchRunner> make_topk(const Prepare& prepare);
std::unique_ptr<LaunchRunner> make_sample_tokens(const Prepare& prepare);
std::unique_ptr<LaunchRunner> make_custom(const Prepare& prepare);

struct OpaqueRunner {
  std::string_view name;  // OpaqueKernel::name
  std::unique_ptr<LaunchRunner> (*make)(const Prepare& prepare);
};
inline constexpr OpaqueRunner kOpaqueRunners[] = {
    {"attention", make_attention}, {"selective_scan", make_selective_scan},
    {"topk", make_topk},           {"sample_tokens", make_sample_tokens},
    {"custom", make_custom},
};

}  // namespace tensorgrad::cpu
