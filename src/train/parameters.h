// SPDX-License-Identifier: MIT
// Parameters of a model: names and positions in the parameter arena.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compile/compile.h"
#include "tensorgrad/train/trainer.h"
#include "trace/trace.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct ParameterEntry {
  std::string name;
  const Parameter* parameter = nullptr;
  std::int64_t offset = 0;  // in elements; a multiple of 64
  [[nodiscard]] std::int64_t count() const { return numel(parameter->shape()); }
  [[nodiscard]] std::int64_t end() const;  // offset of the next parameter
};

// The parameters that an objective trains, and their groups.
struct TrainingPick {
  std::string objective;    // its name; empty if it is the only one
  ParamFilter params = {};  // empty: all
  std::vector<ParamGroup> groups = {};
  ParamFilter first = {};  // parameters to place first within a group
  bool averaged = false;   // it keeps averages
  int shards = 1;          // number of ranks that divide its range
  // Maximum bytes of a bucket, if the parameters are sharded as well. 0: only the states are.
  std::int64_t bucket_bytes = 0;
};

// Elements of one group, or of no group (-1).
struct GroupRange {
  int group = -1;
  std::int64_t begin = 0, end = 0;
};

// What one objective trains: a contiguous range of the arena. Gradients and optimizer states have
// the same layout. Offsets and ranges are relative to `begin`.
struct ParameterRange {
  std::string objective;
  bool averaged = false;
  std::vector<ParameterEntry> entries = {};  // in arena order
  std::vector<GroupRange> ranges = {};       // in arena order; a group may have several
  std::int64_t begin = 0, elements = 0;
  bool exclusive = true;  // true if the range contains only parameters that it trains
  // If there are several shards, each rank of distributed training keeps the optimizer states of
  // one. Shard k has the k-th of `shards` equal parts of each bucket. Buckets are padded to a
  // multiple of 64 times `shards`, and are empty if there is one shard.
  int shards = 1;
  std::vector<ParameterBucket> buckets = {};
  // True if each rank keeps only the parameters of its shard. There is one bucket otherwise.
  bool shards_params = false;

  // Returns the number of elements of a shard, a multiple of 64.
  [[nodiscard]] std::int64_t shard_elements() const { return elements / shards; }
  // Returns how many elements of a shard are before `element` of the range.
  [[nodiscard]] std::int64_t elements_before(std::int64_t element, int shard) const;
  // Copies the elements of a shard out of a tensor with the layout of the range, or into it.
  void take_shard(std::span<const float> whole, int shard, std::span<float> out) const;
  void put_shard(std::span<const float> part, int shard, std::span<float> whole) const;
  // Returns the name of an optimizer state: "optim.NAME" or "optim.OBJECTIVE.NAME".
  [[nodiscard]] std::string state(const std::string& name) const;
  // As the members of ParameterTable, for its own parameters and a flat tensor of its layout.
  [[nodiscard]] NamedTensors unpack(const std::vector<float>& flat) const;
  void write(const NamedTensors& tensors, const std::string& what, bool partial,
             std::vector<float>& flat) const;
};

// Parameters trained by the same set of objectives are contiguous in the arena. The sets are in the
// order of the reflected Gray code. Each objective then trains one contiguous range if only
// neighboring sets overlap, which includes two objectives and disjoint sets. Parameters that no
// objective trains come last. Within a set, groups come one after another, followed by the
// parameters without a group. Only a single objective may have several shards.
class ParameterTable {
 public:
  // Collects the parameters of the model. A parameter reached twice counts once, under its first
  // name. Throws UserError if two tensors or groups have the same name, an objective or a group
  // selects no parameter, or two objectives average the same parameter.
  explicit ParameterTable(const detail::ModelFunctions& model,
                          const std::vector<TrainingPick>& picks = {});

  // In model order.
  [[nodiscard]] const std::vector<ParameterEntry>& entries() const { return entries_; }
  // Returns the part of an element of `picks`.
  [[nodiscard]] const ParameterRange& part(std::size_t pick) const { return parts_[pick]; }
  [[nodiscard]] std::int64_t elements() const { return elements_; }
  // Returns null unless parameters are sharded.
  [[nodiscard]] const ParameterRange* sharded_params() const;
  // Sets what the plan of a program needs to know about the arena.
  void describe(PlanOptions& plan) const;
  [[nodiscard]] bool has_buffer(const std::string& name) const;
  [[nodiscard]] const std::map<const Buffer*, std::string>& buffers() const { return buffers_; }
  [[nodiscard]] std::set<std::string> buffer_names() const;
  // Throws UserError, naming `what` and the known parameters, if the filter matches none.
  void check_filter(const std::string& what, const ParamFilter& filter) const;

  // Adds a leaf for each parameter to the trace, and registers the names of the buffers. With kEma,
  // parameters that have averages become views of the states with these.
  void declare(Trace& trace, WeightSource weights = WeightSource::kTrained) const;
  // Returns the whole arena with initial values. A value of `function`, if present, takes
  // precedence.
  [[nodiscard]] std::vector<float> initial(std::uint32_t seed,
                                           const InitFunction& function = {}) const;
  // Converts an arena to tensors by name.
  [[nodiscard]] NamedTensors unpack(const std::vector<float>& flat) const;
  // Like unpack(), but with averages in place of the parameters that have one. `read` returns the
  // elements of a state.
  [[nodiscard]] NamedTensors averages(
      const std::vector<float>& flat,
      const std::function<std::vector<float>(const std::string& state)>& read) const;
  // Writes tensors into the arena. `what` names the values in errors. Throws UserError if a name is
  // unknown, a size is wrong, or a name is missing and `partial` is not set. Nothing is changed if
  // it throws.
  void write(const NamedTensors& tensors, const std::string& what, bool partial,
             std::vector<float>& flat) const;
  // Converts tensors by name to an arena.
  [[nodiscard]] std::vector<float> pack(const NamedTensors& tensors, const std::string& what) const;

 private:
  void check(const TrainingPick& pick) const;
  void lay_out(const std::vector<TrainingPick>& picks);
  void add_to(ParameterRange& part, const ParameterEntry& entry, int group) const;
  // Ends the bucket of the parts that have several shards. Call it after their last parameters, and
  // before one with which the bucket would exceed its size.
  void end_bucket();
  [[nodiscard]] bool exceeds_bucket(const ParameterEntry& entry,
                                    const std::vector<TrainingPick>& picks,
                                    std::int64_t trained) const;
  void check_averages() const;

  std::vector<ParameterEntry> entries_;
  std::vector<ParameterRange> parts_;
  std::map<const Buffer*, std::string> buffers_;
  std::int64_t elements_ = 0;
};

// Returns the name of a group, or the text of its filter if it has no name.
const std::string& group_name(const ParamGroup& group);

// Prefix of the names of optimizer states, and the name of the averages.
inline constexpr std::string_view kOptimPrefix = "optim.";
inline constexpr const char* kEmaName = "ema";

}  // namespace tensorgrad::inline TENSORGRAD_ABI
