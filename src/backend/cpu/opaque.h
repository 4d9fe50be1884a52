// SPDX-License-Identifier: MIT
// The steps of kernels written by hand. To add one: its declaration and its line in the table.
#pragma once

#include <memory>
#include <string_view>

#include "backend/cpu/step.h"

namespace tensorgrad::cpu {

std::unique_ptr<Step> make_attention(const Prepare& prepare);
std::unique_ptr<Step> make_selective_scan(const Prepare& prepare);
std::unique_ptr<Step> make_topk(const Prepare& prepare);
std::unique_ptr<Step> make_custom(const Prepare& prepare);

struct OpaqueStep {
  std::string_view name;  // OpaqueKernel::name
  std::unique_ptr<Step> (*make)(const Prepare& prepare);
};
inline constexpr OpaqueStep kOpaqueSteps[] = {
    {"attention", make_attention},
    {"selective_scan", make_selective_scan},
    {"topk", make_topk},
    {"custom", make_custom},
};

}  // namespace tensorgrad::cpu
