// SPDX-License-Identifier: MIT
// The writers of kernels written by hand. To add one: its declaration and its line in the table.
#pragma once

#include <string_view>

#include "codegen/wgsl/parts.h"

namespace tensorgrad::wgsl {

Shader write_attention(const Launch& launch, const WgslOptions& options);
Shader write_selective_scan(const Launch& launch, const WgslOptions& options);
Shader write_topk(const Launch& launch, const WgslOptions& options);
Shader write_sample_tokens(const Launch& launch, const WgslOptions& options);
Shader write_custom(const Launch& launch, const WgslOptions& options);

struct OpaqueWriter {
  std::string_view name;  // OpaqueKernel::name
  Shader (*write)(const Launch& launch, const WgslOptions& options);
  bool needs_barriers;  // there is no variant without them, see WgslOptions::barrier_free
};
inline constexpr OpaqueWriter kOpaqueWriters[] = {
    {"attention", write_attention, true}, {"selective_scan", write_selective_scan, false},
    {"topk", write_topk, true},           {"sample_tokens", write_sample_tokens, true},
    {"custom", write_custom, false},
};

}  // namespace tensorgrad::wgsl
