// SPDX-License-Identifier: MIT
#include "train/distributed.h"

#include <algorithm>

#include "base/check.h"
#include "train/training_graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

Communicator* others_of(const std::shared_ptr<Communicator>& communicator) {
  return communicator != nullptr && communicator->size() > 1 ? communicator.get() : nullptr;
}

void check_common(Communicator& ranks, const std::string& call, const std::vector<Common>& all) {
  std::vector<std::uint64_t> mine;
  mine.reserve(all.size());
  for (const Common& each : all) mine.push_back(each.hash);
  std::vector<std::uint64_t> of_ranks(mine.size() * static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(of_ranks)));
  for (std::size_t i = mine.size(); i < of_ranks.size(); ++i) {
    const std::size_t which = i % mine.size();
    if (of_ranks[i] == of_ranks[which]) continue;
    throw DistributedError(call + ": " + all[which].what + " of rank " +
                           std::to_string(i / mine.size()) + " differs from that of rank 0");
  }
}

void fail_together(Communicator& ranks, const std::string& call, const std::exception_ptr& error) {
  const auto mine = static_cast<std::byte>(error != nullptr);
  std::vector<std::byte> failed(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather({&mine, 1}, failed);
  if (error != nullptr) std::rethrow_exception(error);
  const auto first = std::find(failed.begin(), failed.end(), std::byte{1});
  if (first == failed.end()) return;
  throw DistributedError(call + ": failed on rank " + std::to_string(first - failed.begin()));
}

std::size_t launch_after_exchange(const Program& program) {
  const auto port = std::find_if(program.outputs.begin(), program.outputs.end(),
                                 [](const Port& each) { return each.name == kExchange; });
  CHECK(port != program.outputs.end(), "the program exchanges no gradients");
  const auto uses = [&](const Launch& launch, bool writes) {
    return std::any_of(launch.bindings.begin(), launch.bindings.end(), [&](const Binding& each) {
      return each.buffer == port->buffer && (each.mode != BindMode::kRead) == writes;
    });
  };
  const std::vector<Launch>& launches = program.launches;
  const auto reader = std::find_if(launches.begin(), launches.end(),
                                   [&](const Launch& launch) { return uses(launch, false); });
  auto first = reader;
  while (first != launches.begin() && first != launches.end() && first->concurrent) --first;
  CHECK(std::none_of(first, launches.end(),
                     [&](const Launch& launch) {
                       return uses(launch, true) || (launch.fused_sequence && &launch == &*first);
                     }),
        "gradients are computed after their exchange");
  return static_cast<std::size_t>(first - launches.begin());
}

void sum_over_ranks(Communicator& ranks, Instance& instance, const std::string& buffer,
                    std::vector<float>& scratch) {
  if (const std::span<std::byte> memory = instance.host_memory(buffer); !memory.empty()) {
    ranks.all_reduce_sum({reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float)});
    return;
  }
  scratch.resize(static_cast<std::size_t>(instance.buffer_bytes(buffer)) / sizeof(float));
  instance.download(buffer, 0, std::as_writable_bytes(std::span(scratch)));
  ranks.all_reduce_sum(scratch);
  instance.upload(buffer, 0, std::as_bytes(std::span(scratch)));
}

void mean_over_ranks(Communicator& ranks, std::span<float> values) {
  ranks.all_reduce_sum(values);
  for (float& each : values) each /= static_cast<float>(ranks.size());
}

void mean_of_states(Communicator& ranks, ProgramSession& session,
                    const std::vector<StateEntry>& states) {
  std::vector<float> all;
  for (const StateEntry& state : states) {
    if (state.type.dtype != DType::kF32) {
      take_from_first(ranks, session.instance(), state_buffer(state.name));
      continue;
    }
    const std::vector<float> one = session.download_floats(state_buffer(state.name));
    all.insert(all.end(), one.begin(), one.end());
  }
  if (all.empty()) return;
  mean_over_ranks(ranks, all);
  auto from = all.begin();
  for (const StateEntry& state : states) {
    if (state.type.dtype != DType::kF32) continue;
    const auto count = session.instance().buffer_bytes(state_buffer(state.name)) /
                       static_cast<std::int64_t>(sizeof(float));
    session.upload_state(state.name, {from, from + count});
    from += count;
  }
}

void take_from_first(Communicator& ranks, Instance& instance, const std::string& buffer) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(instance.buffer_bytes(buffer)));
  if (ranks.rank() == 0) instance.download(buffer, 0, bytes);
  ranks.broadcast(bytes);
  if (ranks.rank() != 0) instance.upload(buffer, 0, bytes);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
