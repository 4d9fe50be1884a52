// SPDX-License-Identifier: MIT
// The shader of a selective scan's backward pass where threads of a subgroup can give each other
// values. Private to codegen/wgsl/selective_scan.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/wgsl/selective_scan/chunks.h"

namespace tensorgrad::wgsl {

// A workgroup has the channels of a block of one batch, a thread two states of each of two
// neighbouring channels. Of a subgroup's threads `state_lanes` share a pair of channels, and
// `channel_lanes` a pair of states. All of these are powers of two.
struct LaneSizes {
  std::int64_t block = 1, fours = 1, subgroup = 1;
  std::int64_t sum_steps = 1;  // whose sums over subgroups are made at a time

  [[nodiscard]] std::int64_t threads() const { return block * fours; }
  [[nodiscard]] std::int64_t subgroups() const { return threads() / subgroup; }
  [[nodiscard]] std::int64_t pairs() const { return block / 2; }
  [[nodiscard]] std::int64_t state_lanes() const { return 2 * fours; }
  [[nodiscard]] std::int64_t channel_lanes() const { return subgroup / state_lanes(); }
  // States, with those that fill up the last thread's; those of B and of C.
  [[nodiscard]] std::int64_t padded() const { return 4 * fours; }
  [[nodiscard]] std::int64_t bc() const { return 2 * padded(); }
};

// None: subgroups have too few threads, or workgroups too little memory.
std::optional<LaneSizes> lane_sizes(const Launch& launch, const WgslOptions& options);

class SelectiveLanes : SelectiveChunks {
 public:
  SelectiveLanes(const Launch& launch, const WgslOptions& options, const LaneSizes& sizes);
  Shader write();

 private:
  // What is still to be done with values that other lanes give, a step later: they are on their way
  // meanwhile.
  using Later = std::function<void(Scope&)>;

  void list_brought();
  void write_exchanges();
  void share();
  void open_lanes();
  [[nodiscard]] std::string number_of(const std::vector<int>& bits) const;

  // What a chunk reads.
  [[nodiscard]] std::int64_t rows_at_once() const { return 2 * z_.threads() / z_.pairs(); }
  [[nodiscard]] std::int64_t own_row_pairs() const;
  [[nodiscard]] bool states_by_lanes() const { return z_.channel_lanes() > 1; }
  // Odd in number, states are read one by one.
  void read_states(Scope& scope, const std::string& chunk, const std::string& declared) const;
  void unload(Scope& scope) const;
  void store_dz(Scope& scope, std::int64_t behind, const std::string& n) const;
  void store_skip();
  void take_states(Scope& scope) const;
  void read_own(Scope& scope, const std::string& name, const std::string& call) const;
  void store_own(Scope& scope, const std::string& name, const std::string& call,
                 const std::string& condition) const;

  // The steps of a chunk; names end with the step's number.
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
  std::vector<int> channel_bits_, state_bits_;  // of a lane's number, least significant first
  std::vector<Later> later_;
};

}  // namespace tensorgrad::wgsl
