// SPDX-License-Identifier: MIT
// The shader of a selective scan's backward pass where threads of a subgroup can give each other
// values. Private to kernel/wgsl_selective*.cpp.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernel/wgsl_fours.h"
#include "kernel/wgsl_selective.h"

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
  [[nodiscard]] std::int64_t quads() const { return block / 4; }
  [[nodiscard]] std::int64_t state_lanes() const { return 2 * fours; }
  [[nodiscard]] std::int64_t channel_lanes() const { return subgroup / state_lanes(); }
  // States, with those that fill up the last thread's; those of B and of C.
  [[nodiscard]] std::int64_t padded() const { return 4 * fours; }
  [[nodiscard]] std::int64_t gates() const { return 2 * padded(); }
};

// None: subgroups have too few threads, or workgroups too little memory.
std::optional<LaneSizes> lane_sizes(const Launch& launch, const WgslOptions& options);

class SelectiveLanes : SelectiveWriter {
 public:
  SelectiveLanes(const Launch& launch, const WgslOptions& options, const LaneSizes& sizes);
  Shader write();

 private:
  // Numbers that are read four at a time along the last axis, by `fn NAME_four(p, i, q)`. A thread
  // brings `units` of them for each chunk.
  struct Quads {
    SelectiveInput which;
    std::string name;
    std::int64_t rows, columns;
    std::int64_t chunk_rows, units, unit_rows;  // rows of a chunk; from unit to unit
    std::string row, column, real;              // of a chunk, the first unit's; empty: always
    InFours fours = {};
    // Where nothing but a vector is read, and rows lie evenly apart: how far, and the variable that
    // has the place of the first unit, in vectors.
    std::optional<std::int64_t> step = {};
    std::string place = {}, at = {};
  };
  // What is still to be done with values that other lanes give, a step later: they are on their way
  // meanwhile.
  using Later = std::function<void(Scope&)>;

  void list_quads();
  void write_inputs_in_quads();
  void write_quad(Quads& quads, const std::set<int>& vectors);
  void write_exchanges();
  void write_place(std::size_t which, std::int64_t rows, std::int64_t columns);
  void share();
  void open_lanes();
  [[nodiscard]] std::string number_of(const std::vector<int>& bits) const;

  // What a chunk reads.
  [[nodiscard]] std::int64_t fetched_rows() const { return z_.threads() / z_.quads(); }
  [[nodiscard]] std::int64_t own_rows() const;
  [[nodiscard]] std::int64_t own_gates() const;
  [[nodiscard]] bool states_by_lanes() const { return z_.channel_lanes() > 1; }
  void bring_first();
  void bring_next(Scope& scope) const;
  void unload(Scope& scope) const;
  void take_states(Scope& scope) const;
  void read_own(Scope& scope, const std::string& name, const std::string& call) const;
  void store_own(Scope& scope, const std::string& name, const std::string& call,
                 const std::string& condition) const;

  // The steps of a chunk; names end with the step's number.
  void load_step(Scope& scope, std::int64_t i, bool again) const;
  void decay(Scope& scope, std::int64_t i, const std::string& n) const;
  void step_forward(Scope& scope, std::int64_t i) const;
  void step_back(Scope& scope, std::int64_t i);
  void exchange_gates(Scope& scope, std::int64_t i);
  void store_gates(Scope& scope, std::int64_t i, const std::vector<std::string>& values);
  void exchange_sums(Scope& scope, std::int64_t i);
  void finish_sums(Scope& scope, std::int64_t i, const std::string& sums, bool one_channel);
  void store_sums(Scope& scope, std::int64_t i, const std::string& sums, std::int64_t channel,
                  bool one_channel) const;
  void run_later(Scope& scope);
  void sum_subgroups(Scope& scope, std::int64_t from) const;
  void write_chunks();

  [[nodiscard]] bool even() const { return s_.channels % z_.block == 0; }
  [[nodiscard]] bool whole() const { return s_.length % kChunk == 0; }
  [[nodiscard]] bool euler() const { return !l_.zero_order_hold; }

  LaneSizes z_;
  std::vector<int> channel_bits_, state_bits_;  // of a lane's number, least significant first
  std::vector<Quads> quads_;
  std::optional<std::int64_t> behind_;  // how far delta's results lie behind those of u
  std::vector<Later> later_;
};

}  // namespace tensorgrad::wgsl
