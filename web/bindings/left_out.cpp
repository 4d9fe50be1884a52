// SPDX-License-Identifier: MIT
// Stubs for parts of the library that both modules omit, since a page has no file system, no
// environment and no other ranks. Nothing calls them. core/left_out.cpp has those of the core
// module only.
#include "compile/debug/shadow.h"
#include "io/atomic_file.h"
#include "io/tuning_file.h"
#include "plan/bucket_placement.h"
#include "tensorgrad/error.h"
#include "train/distributed.h"
#include "train/trainer.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// ---- TENSORGRAD_SHADOW ----

Shadow::Shadow(Device& device, const Program& program, std::span<const BufferHandle>,
               const Graph& fused, const PlanOptions& options)
    : device_(device), program_(program), graph_(fused), options_(options) {
  throw UserError("TENSORGRAD_SHADOW: a page has no environment");
}
void Shadow::run(const RuntimeScalars&) {}
void Shadow::rebind(std::span<const BufferHandle>, int) {}

// ---- training on several ranks ----

void split_exchange(Program&, const std::string&, std::int64_t) {}
std::vector<ElementRange> exchange_ranges(const Program&, const std::string&) { return {}; }
ExchangeStops exchange_stops(const Program&, const std::string&, const std::vector<ElementRange>&) {
  return {};
}
std::optional<std::size_t> bucket_at(const std::vector<ParameterBucket>&, std::int64_t) {
  return std::nullopt;
}
void place_buckets(const Graph&, const std::vector<ParameterBucket>&, Placement&,
                   const std::vector<std::vector<Source>>&, const AddBuffer&) {}
void set_host_steps(Program&, const Placement&, const std::string&) {}
Ticket Device::run_replacing(Executable&, const RuntimeScalars&, BufferHandle,
                             std::span<const HostRange>, std::size_t, const HostReplace&) {
  return 0;
}

namespace detail {

void check_common(Communicator&, const std::string&, const std::vector<Common>&) {}
void fail_together(Communicator&, const std::string&, const std::exception_ptr&) {}
std::vector<ElementRange> common_ranges(Communicator&, const Program&) { return {}; }
Ticket run_and_exchange(Communicator&, Instance&, const ScalarValues&,
                        const std::vector<ElementRange>&) {
  return 0;
}
std::vector<float> download_sharded(Communicator&, const ProgramSession&, const ParameterRange&) {
  return {};
}
void upload_sharded(Communicator&, ProgramSession&, const ParameterRange&, std::vector<float>) {}
Ticket run_sharded(Communicator&, Instance&, const ScalarValues&, const ParameterRange&,
                   ShardCopies&) {
  return 0;
}
void mean_over_ranks(Communicator&, std::span<float>) {}
void mean_of_states(Communicator&, ProgramSession&, const std::vector<StateEntry>&) {}
void take_from_first(Communicator&, Instance&, const std::string&) {}
void ObjectiveImpl::agree() {}
std::vector<StateEntry> ObjectiveImpl::changed_states() const { return {}; }
void TrainerImpl::take_from_first() {}

}  // namespace detail

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
