// SPDX-License-Identifier: MIT
#include "train/distributed.h"

#include <algorithm>

#include "base/hash.h"
#include "train/training_graph.h"
#include "train/update.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {
namespace {

constexpr const char* kParamsBuffer = "params";
constexpr const char* kGradsBuffer = "grads";
constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));
constexpr std::int64_t kMinPiece = 256;  // bytes of a shard, which has at least 64 elements

}  // namespace

Communicator* communicator_if_several(const std::shared_ptr<Communicator>& communicator) {
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

std::vector<ElementRange> common_ranges(Communicator& ranks, const Program& program) {
  std::vector<ElementRange> ranges = exchange_ranges(program, kExchange);
  std::string text;
  for (const ElementRange& each : ranges)
    text += std::to_string(each.first) + " " + std::to_string(each.count) + ",";
  const std::uint64_t mine = fnv1a(text);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  if (std::any_of(all.begin(), all.end(), [&](std::uint64_t each) { return each != all[0]; })) {
    std::int64_t count = 0;
    for (const ElementRange& each : ranges) count += each.count;
    return {{0, count}};
  }
  return ranges;
}

Ticket run_and_exchange(Communicator& ranks, Instance& instance, const ScalarValues& row,
                        const std::vector<ElementRange>& ranges) {
  const ExchangeStops stops = exchange_stops(instance.program(), kExchange, ranges);
  std::vector<HostRange> host;
  for (std::size_t i = 0; i < ranges.size(); ++i)
    host.push_back({ranges[i].first * kFloatBytes, ranges[i].count * kFloatBytes, stops.ready[i]});
  return instance.run_replacing(
      row, output_buffer(kExchange), host, stops.resume,
      [&](std::size_t, std::span<const std::byte> old, std::span<std::byte> fresh) {
        ranks.all_reduce_sum_into(
            {reinterpret_cast<const float*>(old.data()), old.size() / sizeof(float)},
            {reinterpret_cast<float*>(fresh.data()), fresh.size() / sizeof(float)});
      });
}

// The ranks exchange pieces of bounded size, so that the copies on the host stay small.
void gather_params(Communicator& ranks, Instance& instance, const ParameterRange& trained) {
  const std::int64_t shard = trained.shard_elements() * kFloatBytes;
  const std::int64_t piece = std::clamp<std::int64_t>(
      ranks.bucket_bytes() / trained.shards / kFloatBytes * kFloatBytes, kMinPiece, shard);
  std::vector<std::byte> mine(static_cast<std::size_t>(piece));
  std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(trained.shards));
  for (std::int64_t at = 0; at < shard; at += piece) {
    const auto bytes = static_cast<std::size_t>(std::min(piece, shard - at));
    const auto place = [&](int rank) { return trained.begin * kFloatBytes + rank * shard + at; };
    const std::span<std::byte> own = std::span(mine).first(bytes);
    instance.download(kParamsBuffer, place(ranks.rank()), own);
    ranks.all_gather(own, std::span(all).first(bytes * static_cast<std::size_t>(trained.shards)));
    for (int rank = 0; rank < trained.shards; ++rank) {
      if (rank == ranks.rank()) continue;
      instance.upload(kParamsBuffer, place(rank),
                      std::span(all).subspan(bytes * static_cast<std::size_t>(rank), bytes));
    }
  }
}

std::vector<float> gathered(Communicator& ranks, const ParameterRange& trained,
                            const std::vector<float>& mine) {
  std::vector<float> all(mine.size() * static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  std::vector<float> whole(all.size());
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const std::size_t begin = mine.size() * static_cast<std::size_t>(rank);
    trained.put_shard(std::span(all).subspan(begin, mine.size()), rank, whole);
  }
  return whole;
}

std::vector<float> scattered(Communicator& ranks, const ParameterRange& trained,
                             std::vector<float> all) {
  ranks.broadcast(std::as_writable_bytes(std::span(all)));
  std::vector<float> mine(static_cast<std::size_t>(trained.shard_elements()));
  trained.take_shard(all, ranks.rank(), mine);
  return mine;
}

std::vector<float> download_sharded(Communicator& ranks, const ProgramSession& session,
                                    const ParameterRange& trained) {
  std::vector<float> local = session.download_floats(kParamsBuffer);
  const auto shard = local.begin() + trained.shard_elements();
  std::vector<float> whole = gathered(ranks, trained, {local.begin(), shard});
  whole.insert(whole.end(), shard, local.end());
  return whole;
}

void upload_sharded(Communicator& ranks, ProgramSession& session, const ParameterRange& trained,
                    std::vector<float> whole) {
  ranks.broadcast(std::as_writable_bytes(std::span(whole)));
  std::vector<float> local(static_cast<std::size_t>(trained.shard_elements()));
  trained.take_shard(whole, ranks.rank(), local);
  local.insert(local.end(), whole.begin() + trained.elements, whole.end());
  session.upload_params(local);
}

namespace {

// Carries out the steps of the host in one run.
class HostSteps {
 public:
  HostSteps(Communicator& ranks, Instance& instance, const ParameterRange& trained,
            ShardCopies& copies)
      : ranks_(ranks),
        instance_(instance),
        trained_(trained),
        shard_(copies.shard),
        values_(copies.bucket) {
    std::int64_t largest = 0;
    for (const ParameterBucket& bucket : trained.buckets)
      largest = std::max(largest, bucket.elements);
    shard_.resize(static_cast<std::size_t>(trained.shard_elements()));
    values_.resize(static_cast<std::size_t>(largest));
    // A copy on the host, so that a device does not have to be waited for at each bucket.
    instance_.download(kParamsBuffer, 0, std::as_writable_bytes(std::span(shard_)));
  }

  void run(const HostStep& step) {
    switch (step.kind) {
      case HostStep::Kind::kGather: return gather(step);
      case HostStep::Kind::kReduce: return reduce(step);
      case HostStep::Kind::kSum: return sum(step);
    }
  }

 private:
  [[nodiscard]] const ParameterBucket& bucket_of(const HostStep& step) const {
    return trained_.buckets[static_cast<std::size_t>(step.bucket)];
  }
  [[nodiscard]] const std::string& buffer_of(const HostStep& step) const {
    return instance_.program().buffers[static_cast<std::size_t>(step.buffer)].name;
  }
  [[nodiscard]] std::span<float> values_of(const ParameterBucket& bucket) {
    return std::span(values_).first(static_cast<std::size_t>(bucket.elements));
  }

  void gather(const HostStep& step) {
    const ParameterBucket& bucket = bucket_of(step);
    const auto begin = static_cast<std::size_t>(bucket.begin / trained_.shards);
    const auto count = static_cast<std::size_t>(bucket.elements / trained_.shards);
    const std::span<float> all = values_of(bucket);
    ranks_.all_gather(std::as_bytes(std::span(shard_).subspan(begin, count)),
                      std::as_writable_bytes(all));
    instance_.upload(buffer_of(step), 0, std::as_bytes(all));
  }

  void reduce(const HostStep& step) {
    const ParameterBucket& bucket = bucket_of(step);
    const std::span<float> all = values_of(bucket);
    instance_.download(buffer_of(step), 0, std::as_writable_bytes(all));
    clear_padding(bucket, all);
    for (float& each : all) each /= static_cast<float>(ranks_.size());
    ranks_.all_reduce_sum(all);
    const std::int64_t count = bucket.elements / trained_.shards;
    instance_.upload(kGradsBuffer, bucket.begin / trained_.shards * kFloatBytes,
                     std::as_bytes(all.subspan(static_cast<std::size_t>(ranks_.rank() * count),
                                               static_cast<std::size_t>(count))));
  }

  // Nothing writes the elements between parameters. Those of a window are of other values.
  void clear_padding(const ParameterBucket& bucket, std::span<float> values) const {
    std::int64_t at = bucket.begin;
    const auto clear = [&](std::int64_t end) {
      std::fill(values.begin() + (at - bucket.begin), values.begin() + (end - bucket.begin), 0.0F);
    };
    for (const ParameterEntry& entry : trained_.entries) {
      if (entry.offset < bucket.begin || entry.offset >= bucket.end()) continue;
      clear(entry.offset);
      at = entry.offset + entry.count();
    }
    clear(bucket.end());
  }

  void sum(const HostStep& step) {
    float value = 0;
    instance_.download(buffer_of(step), 0, std::as_writable_bytes(std::span(&value, 1)));
    ranks_.all_reduce_sum({&value, 1});
    instance_.upload(buffer_of(step), 0, std::as_bytes(std::span(&value, 1)));
  }

  Communicator& ranks_;
  Instance& instance_;
  const ParameterRange& trained_;
  std::vector<float>& shard_;
  std::vector<float>& values_;
};

}  // namespace

// Ranks that differ would wait for each other, or exchange different parameters.
Ticket run_sharded(Communicator& ranks, Instance& instance, const ScalarValues& row,
                   const ParameterRange& trained, ShardCopies& copies) {
  const Program& program = instance.program();
  std::string text;
  for (const HostStep& step : program.host_steps)
    text += std::to_string(static_cast<int>(step.kind)) + " " + std::to_string(step.bucket) + ",";
  check_common(ranks, shard_option(trained),
               {{"the program, or the order of its launches,", fnv1a(text)}});
  HostSteps steps(ranks, instance, trained, copies);
  std::size_t at = 0;
  Ticket before = 0, last = 0;
  for (const HostStep& step : program.host_steps) {
    before = std::exchange(last, instance.run_part(row, at, step.before));
    at = step.before;
    // Uploads wait on the host for the device, so their number is bounded.
    instance.wait(before);
    steps.run(step);
  }
  return instance.run_part(row, at, program.launches.size());
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
