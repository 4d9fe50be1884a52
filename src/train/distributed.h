// SPDX-License-Identifier: MIT
// What the ranks of distributed training do together.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compile/runtime/instance.h"
#include "tensorgrad/distributed/communicator.h"
#include "train/program_session.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

// Returns the communicator, or null if there is nobody to communicate with.
Communicator* communicator_if_several(const std::shared_ptr<Communicator>& communicator);

// Something that all ranks must have in common.
struct Common {
  std::string what;  // for errors, such as "the loss"
  std::uint64_t hash = 0;
};
// Throws DistributedError on every rank if a rank differs from rank 0. `call` begins the message.
// All ranks must pass as many elements.
void check_common(Communicator& ranks, const std::string& call, const std::vector<Common>& all);

// Throws `error` if it is not null. Otherwise throws DistributedError if another rank passed an
// error.
void fail_together(Communicator& ranks, const std::string& call, const std::exception_ptr& error);
// Makes a call that may fail on some ranks only: it then fails on all. `ranks` may be null.
template <class Work>
auto together(Communicator* ranks, const std::string& call, const Work& work) {
  if (ranks == nullptr) return work();
  std::exception_ptr error;
  std::optional<decltype(work())> result;
  try {
    result = work();
  } catch (...) {
    error = std::current_exception();
  }
  fail_together(*ranks, call, error);
  return std::move(*result);
}

// Returns the ranges of the gradients that are exchanged one after the other by all ranks. These
// are those of the program, unless the programs of other ranks, on other devices, have different
// ones. Then all gradients are one range. All ranks must call it.
std::vector<ElementRange> common_ranges(Communicator& ranks, const Program& program);
// Runs a step that replaces gradients by their sum over all ranks (kExchange). `ranges` are
// exchanged as soon as they are computed.
Ticket run_and_exchange(Communicator& ranks, Instance& instance, const ScalarValues& row,
                        const std::vector<ElementRange>& ranges);
// Replaces the parameters of each shard by those of its rank.
void gather_params(Communicator& ranks, Instance& instance, const ParameterRange& trained);
// Returns the elements of all shards in the order of the parameters. `mine` has those of this
// rank's shard.
std::vector<float> gathered(Communicator& ranks, const ParameterRange& trained,
                            const std::vector<float>& mine);
// Returns the elements of this rank's shard. `all` has those of all shards; the ranks take those of
// rank 0.
std::vector<float> scattered(Communicator& ranks, const ParameterRange& trained,
                             std::vector<float> all);

// The following are for sharded parameters (ParameterRange::shards_params).

// Return and set the whole arena. The ranks take the values of rank 0.
std::vector<float> download_sharded(Communicator& ranks, const ProgramSession& session,
                                    const ParameterRange& trained);
void upload_sharded(Communicator& ranks, ProgramSession& session, const ParameterRange& trained,
                    std::vector<float> whole);
// Memory of run_sharded() for parameters on the host: this rank's shard, and a bucket. Keeping it
// between steps saves the time to allocate it.
struct ShardCopies {
  std::vector<float> shard, bucket;
};
// Runs a program and carries out Program::host_steps. The host is at most one bucket ahead of the
// device. Throws DistributedError if the steps of another rank differ.
Ticket run_sharded(Communicator& ranks, Instance& instance, const ScalarValues& row,
                   const ParameterRange& trained, ShardCopies& copies);
// Replaces the numbers by their means over all ranks.
void mean_over_ranks(Communicator& ranks, std::span<float> values);
// Replaces the states by their means over all ranks, and those that are not f32 by those of rank 0.
void mean_of_states(Communicator& ranks, ProgramSession& session,
                    const std::vector<StateEntry>& states);
// Replaces a buffer by that of rank 0.
void take_from_first(Communicator& ranks, Instance& instance, const std::string& buffer);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
