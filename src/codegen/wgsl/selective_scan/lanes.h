// SPDX-License-Identifier: MIT
// The shader of a selective scan's backward pass for devices whose subgroups exchange values.
// Private to codegen/wgsl/selective_scan.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/wgsl/selective_scan/chunks.h"

namespace tensorgrad::wgsl {

// A workgroup processes a block of channels of one batch. A thread has two states of each of two
// neighboring channels. In a subgroup, `state_lanes` threads share a pair of channels, and
// `channel_lanes` threads share a pair of states. All sizes are powers of two.
struct LaneSizes {
  std::int64_t block = 1, threads_per_channel = 1, subgroup = 1;
  std::int64_t sum_steps = 1;  // steps summed over subgroups at a time

  [[nodiscard]] std::int64_t threads() const { return block * threads_per_channel; }
  [[nodiscard]] std::int64_t subgroups() const { return threads() / subgroup; }
  [[nodiscard]] std::int64_t pairs() const { return block / 2; }
  [[nodiscard]] std::int64_t state_lanes() const { return 2 * threads_per_channel; }
  [[nodiscard]] std::int64_t channel_lanes() const { return subgroup / state_lanes(); }
  // padded(): number of states, rounded up to the threads that share a channel. bc(): padded states
  // of B and C together.
  [[nodiscard]] std::int64_t padded() const { return 4 * threads_per_channel; }
  [[nodiscard]] std::int64_t bc() const { return 2 * padded(); }
};

// Returns nullopt if the launch is not a backward pass, or if subgroups or workgroup memory are too
// small.
std::optional<LaneSizes> lane_sizes(const Launch& launch, const WgslOptions& options);

class SelectiveLanes : SelectiveChunks {
 public:
  SelectiveLanes(const Launch& launch, const WgslOptions& options, const LaneSizes& sizes);
  Shader write();

 private:
  // Code that uses values exchanged with other lanes. It is written one step later, to hide the
  // latency of the exchange.
  using Later = std::function<void(Scope&)>;

  void list_staged();
  void write_exchanges();
  void share();
  void open_lanes();
  [[nodiscard]] std::string number_of(const std::vector<int>& bits) const;

  // Inputs of a chunk.
  [[nodiscard]] std::int64_t rows_at_once() const { return 2 * z_.threads() / z_.pairs(); }
  [[nodiscard]] std::int64_t own_row_pairs() const;
  [[nodiscard]] bool states_by_lanes() const { return z_.channel_lanes() > 1; }
  // Reads the saved states one by one, if they are not paired.
  void read_states(Scope& scope, const std::string& chunk, const std::string& declared) const;
  void unload(Scope& scope) const;
  void store_dz(Scope& scope, std::int64_t behind, const std::string& n) const;
  void store_skip();
  void take_states(Scope& scope) const;
  void read_own(Scope& scope, const std::string& name, const std::string& call) const;
  void store_own(Scope& scope, const std::string& name, const std::string& call,
                 const std::string& condition) const;

  // Steps of a chunk. The step number is appended to names.
  void load_step(Scope& scope, std::int64_t i, bool again) const;
  [[nodiscard]] std::string unless_reset(const std::string& state, const std::string& n) const;
  void decay(Scope& scope, std::int64_t i, bool again) const;
  void step_forward(Scope& scope, std::int64_t i) const;
  void step_back(Scope& scope, std::int64_t i);
  void exchange_bc(Scope& scope, std::int64_t i);
  void store_bc(Scope& scope, std::int64_t i, const std::vector<std::string>& values);
  void exchange_sums(Scope& scope, std::int64_t i);
  void finish_sums(Scope& scope, std::int64_t i, const std::string& sums) const;
  void run_later(Scope& scope);
  void sum_subgroups(Scope& scope, std::int64_t from) const;
  void write_chunks();

  [[nodiscard]] bool even() const { return s_.channels % z_.block == 0; }

  LaneSizes z_;
  std::vector<int> channel_bits_, state_bits_;  // bits of a lane's number, least significant first
  std::vector<Later> later_;
};

}  // namespace tensorgrad::wgsl
