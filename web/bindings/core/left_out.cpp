// SPDX-License-Identifier: MIT
// What the core module leaves out of the library. The definitions here come before those of the
// library, which the linker then leaves out with all that they need (cmake/web.cmake:
// --allow-multiple-definition).
//
// Selective scans are for Mamba and other language models. JavaScript records a function that calls
// one of them again in the full module, and dumps programs there.
//
// A page has no file system and no environment, so that nothing calls the others.
#include "backend/cpu/step.h"
#include "codegen/wgsl/parts.h"
#include "compile/debug/dump.h"
#include "compile/debug/shadow.h"
#include "full_module.h"
#include "io/atomic_file.h"
#include "io/tuning_file.h"
#include "ops/registry.h"
#include "tensorgrad/functional/state_space.h"

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

namespace ops {
namespace {

Type infer(std::span<const Type>, const Attrs&) { web::needs_full_module("selective_scan", {}); }
constexpr OpDef missing(const char* name) {
  return with_decomposition(name, OpKind::kSelectiveScan, infer, nullptr, nullptr, nullptr);
}

}  // namespace

constinit const OpDef selective_scan = missing("selective_scan");
constinit const OpDef selective_scan_adjoint = missing("selective_scan_adjoint");
constinit const OpDef selective_scan_grad = missing("selective_scan_grad");

}  // namespace ops

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

// ---- TENSORGRAD_SHADOW ----

Shadow::Shadow(Device& device, const Program& program, std::span<const BufferHandle>,
               const Graph& fused, const PlanOptions& options)
    : device_(device), program_(program), graph_(fused), options_(options) {
  web::needs_full_module("TENSORGRAD_SHADOW", {});
}
void Shadow::run(const RuntimeScalars&) {}
void Shadow::rebind(std::span<const BufferHandle>, int) {}

// ---- files ----

namespace io {
namespace {

[[noreturn]] void no_files(const std::string& path) {
  throw IoError(path + ": this program has no file system");
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) { no_files(path); }
AtomicFile::~AtomicFile() = default;
void AtomicFile::write(std::span<const std::byte>) {}
void AtomicFile::commit() {}
int AtomicFile::commit_and_release() { return -1; }

TuningFile::TuningFile(std::string path) { no_files(path); }
const std::string* TuningFile::find(const std::string&, const std::string&,
                                    const std::string&) const {
  return nullptr;
}
void TuningFile::refuse(const std::string&, const std::string&, const std::string&) const {
  no_files(path_);
}
void TuningFile::reload() {}
void TuningFile::add(const TuningEntry&) {}
void TuningFile::save() {}

}  // namespace io

}  // namespace tensorgrad::inline TENSORGRAD_ABI

namespace tensorgrad::wgsl {

Shader write_selective_scan(const Launch&, const WgslOptions&) {
  web::needs_full_module("selective_scan", {});
}

}  // namespace tensorgrad::wgsl

namespace tensorgrad::cpu {

std::unique_ptr<Step> make_selective_scan(const Prepare&) {
  web::needs_full_module("selective_scan", {});
}

}  // namespace tensorgrad::cpu
