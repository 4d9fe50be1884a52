// SPDX-License-Identifier: MIT
// The parameters of a model: names, and places in the parameter arena.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/trace.h"
#include "tensorgrad/train/trainer.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct ParameterEntry {
  std::string name;
  const Parameter* parameter = nullptr;
  std::int64_t offset = 0;  // in elements; a multiple of 64
  [[nodiscard]] std::int64_t count() const { return numel(parameter->shape()); }
  [[nodiscard]] std::int64_t end() const;  // where the next may begin
};

// How an objective of a trainer picks what it trains, and in which groups.
struct TrainingPick {
  std::string objective;    // its name; empty where it is the only one
  ParamFilter params = {};  // none: all
  std::vector<ParamGroup> groups = {};
  ParamFilter first = {};  // these come first within a group
  bool averaged = false;   // it keeps averages
};

// Elements of one group, or of no group (-1).
struct GroupRange {
  int group = -1;
  std::int64_t begin = 0, end = 0;
};

// What one objective trains: a stretch of the arena. Its gradients and the optimizer's states are
// laid out like it. Offsets and ranges count from `begin`.
struct TrainedPart {
  std::string objective;
  bool averaged = false;
  std::vector<ParameterEntry> entries = {};  // in the order of the arena
  std::vector<GroupRange> ranges = {};       // likewise; a group may have several
  std::int64_t begin = 0, elements = 0;
  bool alone = true;  // no parameter that it does not train lies between those that it does

  // What the state of that name of its optimizer is called: "optim.NAME", "optim.OBJECTIVE.NAME".
  [[nodiscard]] std::string state(const std::string& name) const;
  // As ParameterTable's, of its own parameters and a flat tensor laid out like it.
  [[nodiscard]] NamedTensors unpack(const std::vector<float>& flat) const;
  void write(const NamedTensors& tensors, const std::string& what, bool partial,
             std::vector<float>& flat) const;
};

// In the arena the parameters that one set of objectives trains lie together. The sets are in the
// order of the reflected Gray code, so that what one objective trains is one stretch wherever sets
// overlap as neighbours in a row do (always where they are disjoint or two); what none trains comes
// last. Within a set the groups follow one another, and at last those of no group.
class ParameterTable {
 public:
  // Walks the model. A parameter that is reached twice counts once, under its first name. Throws
  // UserError where two tensors or groups have one name, where an objective or a group picks no
  // parameter, and where two objectives keep averages of one.
  explicit ParameterTable(const detail::ModelFunctions& model,
                          const std::vector<TrainingPick>& picks = {});

  // In the order of the model.
  [[nodiscard]] const std::vector<ParameterEntry>& entries() const { return entries_; }
  // One for each pick.
  [[nodiscard]] const TrainedPart& part(std::size_t pick) const { return parts_[pick]; }
  [[nodiscard]] std::int64_t elements() const { return elements_; }
  [[nodiscard]] bool has_buffer(const std::string& name) const;
  [[nodiscard]] const std::map<const Buffer*, std::string>& buffers() const { return buffers_; }
  [[nodiscard]] std::set<std::string> buffer_names() const;
  // Throws UserError, naming `what` and the parameters there are, where the filter picks none.
  void check_filter(const std::string& what, const ParamFilter& filter) const;

  // Adds a leaf for each to the trace, and tells it the names of the buffers; with kEma, those that
  // have averages are parts of the states with these.
  void declare(Trace& trace, WeightSource weights = WeightSource::kTrained) const;
  // The whole arena with initial values, of which `function`, where there is one, has the first
  // word.
  [[nodiscard]] std::vector<float> initial(std::uint32_t seed,
                                           const InitFunction& function = {}) const;
  // The arena as tensors by name.
  [[nodiscard]] NamedTensors unpack(const std::vector<float>& flat) const;
  // The same, with averages where there are some; `read` gives a state's elements.
  [[nodiscard]] NamedTensors averages(
      const std::vector<float>& flat,
      const std::function<std::vector<float>(const std::string& state)>& read) const;
  // Writes tensors into the arena. `what` names the values in errors. Throws UserError, with
  // nothing changed, on unknown names and wrong sizes, and on missing names unless it is `partial`.
  void write(const NamedTensors& tensors, const std::string& what, bool partial,
             std::vector<float>& flat) const;
  // A whole arena of tensors.
  [[nodiscard]] std::vector<float> pack(const NamedTensors& tensors, const std::string& what) const;

 private:
  void check(const TrainingPick& pick) const;
  void lay_out(const std::vector<TrainingPick>& picks);
  void add_to(TrainedPart& part, const ParameterEntry& entry, int group) const;
  void check_averages() const;

  std::vector<ParameterEntry> entries_;
  std::vector<TrainedPart> parts_;
  std::map<const Buffer*, std::string> buffers_;
  std::int64_t elements_ = 0;
};

// What a group is called.
const std::string& group_name(const ParamGroup& group);

// What the names of the optimizers' states begin with, and the averages' own.
inline constexpr std::string_view kOptimPrefix = "optim.";
inline constexpr const char* kEmaName = "ema";

}  // namespace tensorgrad::inline TENSORGRAD_ABI
