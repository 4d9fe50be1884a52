// SPDX-License-Identifier: MIT
// Stubs for parts of the library that the core module omits. The linker takes these definitions
// instead of those of the library, and also drops everything that only the latter need
// (cmake/web.cmake: --allow-multiple-definition).
//
// Selective scans and sampled tokens are for language models. If a function calls one of them,
// JavaScript records it again in the full module. It also dumps programs there. ../left_out.cpp has
// the stubs of both modules.
#include "backend/cpu/opaque.h"
#include "codegen/wgsl/opaque.h"
#include "compile/debug/dump.h"
#include "compile/debug/profile.h"
#include "full_module.h"
#include "ops/registry.h"
#include "tensorgrad/functional/state_space.h"
#include "tensorgrad/ops/random.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

SelectiveScan selective_scan(Tensor, Tensor, Tensor, Tensor, Tensor, const SelectiveScanOptions&,
                             Loc loc) {
  web::needs_full_module("selectiveScan", loc);
}
Ssd ssd(Tensor, Tensor, Tensor, Tensor, Tensor, const SsdOptions&, Loc loc) {
  web::needs_full_module("ssd", loc);
}
RotaryScan rotary_scan(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor,
                       const RotaryScanOptions&, Loc loc) {
  web::needs_full_module("rotaryScan", loc);
}
Tensor sample_tokens(Tensor, Tensor, Tensor, Loc loc) {
  web::needs_full_module("sampleTokens", loc);
}

namespace ops {
namespace {

Type infer(std::span<const Type>, const Attrs&) {
  web::needs_full_module("an op of language models", {});
}
constexpr OpDef missing(const char* name) {
  return make_opaque_op(name, -1, nullptr, infer, nullptr, nullptr, nullptr);
}

}  // namespace

constinit const OpDef selective_scan = missing("selective_scan");
constinit const OpDef selective_scan_adjoint = missing("selective_scan_adjoint");
constinit const OpDef selective_scan_grad = missing("selective_scan_grad");
constinit const OpDef sample_tokens = missing("sample_tokens");

}  // namespace ops

}  // namespace tensorgrad::inline TENSORGRAD_ABI

// ---- profiles with `roofline` ----

namespace tensorgrad::inline TENSORGRAD_ABI {

DevicePeaks measure_peaks(const std::shared_ptr<Device>&) {
  web::needs_full_module("profile() with roofline", {});
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI

// ---- dumps: TENSORGRAD_DUMP and trainer.dump() ----

namespace tensorgrad::inline TENSORGRAD_ABI {

DumpToMemory::DumpToMemory() { web::needs_full_module("dump", {}); }
DumpToMemory::~DumpToMemory() = default;
std::shared_ptr<DumpFolder> DumpFolder::open(const std::string&) { return nullptr; }
void DumpFolder::graph(const std::string&, const Graph&) {}
void DumpFolder::program(const Graph&, const PlanOptions&, const Program&,
                         const std::vector<PassProfile>&) {}
void DumpFolder::timings(const Profile&) {}

}  // namespace tensorgrad::inline TENSORGRAD_ABI

namespace tensorgrad::wgsl {

Shader write_selective_scan(const Launch&, const WgslOptions&) {
  web::needs_full_module("selective_scan", {});
}
Shader write_sample_tokens(const Launch&, const WgslOptions&) {
  web::needs_full_module("sample_tokens", {});
}

}  // namespace tensorgrad::wgsl

namespace tensorgrad::cpu {

std::unique_ptr<LaunchRunner> make_selective_scan(const Prepare&) {
  web::needs_full_module("selective_scan", {});
}
std::unique_ptr<LaunchRunner> make_sample_tokens(const Prepare&) {
  web::needs_full_module("sample_tokens", {});
}

}  // namespace tensorgrad::cpu
