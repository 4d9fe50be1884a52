// SPDX-License-Identifier: MIT
// The parameters of a model: names, and places in the parameter arena.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/trace.h"
#include "tensorgrad/trainer.h"

namespace tensorgrad {

struct ParameterEntry {
  std::string name;
  const Parameter* parameter = nullptr;
  int group = -1;           // of the groups that the table was made with
  std::int64_t offset = 0;  // in elements; a multiple of 64
  [[nodiscard]] std::int64_t count() const { return numel(parameter->shape()); }
};

// The elements of one group, or of no group (-1), in the arena.
struct GroupRange {
  int group = -1;
  std::int64_t begin = 0, end = 0;
};

// In the arena the parameters of a group lie together: the groups in order, then those of no group,
// at last those that are frozen. Gradients and the optimizer's states are laid out like the front
// part, which is trained.
class ParameterTable {
 public:
  // Walks the model. A parameter that is reached twice counts once, under its first name. Within a
  // group those that `first` picks come first. Throws UserError where two tensors or groups have
  // one name, and where a group picks no parameter.
  explicit ParameterTable(const detail::ModelFunctions& model,
                          const std::vector<ParamGroup>& groups = {},
                          const ParamFilter& first = {});

  // In the order of the model.
  [[nodiscard]] const std::vector<ParameterEntry>& entries() const { return entries_; }
  // Those that are trained, in the order of the arena, and the ranges of their groups.
  [[nodiscard]] const std::vector<ParameterEntry>& trained() const { return trained_; }
  [[nodiscard]] const std::vector<GroupRange>& ranges() const { return ranges_; }
  [[nodiscard]] std::int64_t elements() const { return elements_; }
  [[nodiscard]] bool has_buffer(const std::string& name) const;
  [[nodiscard]] std::int64_t trained_elements() const {
    return ranges_.empty() ? 0 : ranges_.back().end;
  }
  // Throws UserError, naming `what` and the parameters there are, where the filter picks none.
  void check_filter(const std::string& what, const ParamFilter& filter) const;

  // Adds a leaf for each to the trace, and tells it the names of the buffers; with kEma, those that
  // are trained are parts of the state kEmaState.
  void declare(Trace& trace, Weights weights = Weights::kTrained) const;
  // The whole arena with initial values.
  [[nodiscard]] std::vector<float> initial(std::uint32_t seed) const;
  // A flat arena, or its front part, as tensors by name.
  [[nodiscard]] std::map<std::string, HostTensor> unpack(const std::vector<float>& flat) const;
  // Writes tensors into a flat arena or its front part. `what` names the values in errors. Throws
  // UserError, with nothing changed, on unknown names and wrong sizes, and on missing names unless
  // it is `partial`.
  void write(const std::map<std::string, HostTensor>& tensors, const std::string& what,
             bool partial, std::vector<float>& flat) const;
  // A whole arena of tensors.
  [[nodiscard]] std::vector<float> pack(const std::map<std::string, HostTensor>& tensors,
                                        const std::string& what) const;

 private:
  void lay_out(const std::vector<ParamGroup>& groups, const ParamFilter& first);

  std::vector<ParameterEntry> entries_, trained_;
  std::vector<GroupRange> ranges_;
  std::map<const Buffer*, std::string> buffers_;
  std::int64_t elements_ = 0;
};

// What a group is called.
const std::string& group_name(const ParamGroup& group);

// The averages of the parameters.
inline constexpr const char* kEmaState = "optim.ema";

}  // namespace tensorgrad
