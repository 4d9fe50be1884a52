// SPDX-License-Identifier: MIT
// Stubs for parts of the library that both modules omit, since a page has no file system and no
// environment. Nothing calls them. core/left_out.cpp has those of the core module only.
#include "compile/debug/shadow.h"
#include "io/atomic_file.h"
#include "io/tuning_file.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// ---- TENSORGRAD_SHADOW ----

Shadow::Shadow(Device& device, const Program& program, std::span<const BufferHandle>,
               const Graph& fused, const PlanOptions& options)
    : device_(device), program_(program), graph_(fused), options_(options) {
  throw UserError("TENSORGRAD_SHADOW: a page has no environment");
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
