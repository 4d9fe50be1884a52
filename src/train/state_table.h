// SPDX-License-Identifier: MIT
// The states of a trainer: those of the model, and those of its objectives' optimizers and loss
// scales.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/checkpoint.h"
#include "train/objective.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

struct TrainerState {
  StateEntry entry;
  const ObjectiveImpl* objective;  // one of the objectives that use it

  [[nodiscard]] bool optimizers() const { return entry.name.starts_with(kOptimPrefix); }
  [[nodiscard]] bool models() const { return !optimizers() && !is_scale_state(entry.name); }
  [[nodiscard]] std::string buffer() const { return state_buffer(entry.name); }
  [[nodiscard]] ProgramSession& session() const { return objective->session(); }

  // Returns all elements. All ranks must make the call if the state is sharded.
  [[nodiscard]] std::vector<float> download() const;
  void upload(const std::vector<float>& values) const;
  // Returns the elements in a checkpoint, in the device's layout. Throws if they are missing.
  [[nodiscard]] std::vector<float> read(const Checkpoint& checkpoint,
                                        const std::string& path) const;
};

class StateTable {
 public:
  // Throws UserError if two objectives disagree on a state.
  void collect(const std::vector<std::unique_ptr<ObjectiveImpl>>& objectives);

  [[nodiscard]] auto begin() const { return states_.begin(); }
  [[nodiscard]] auto end() const { return states_.end(); }
  // Returns null if there is no state of this name.
  [[nodiscard]] const TrainerState* find(const std::string& name) const;

  [[nodiscard]] NamedTensors buffers() const;    // of the model
  [[nodiscard]] NamedTensors optimizer() const;  // "moment/parameter"
  // Writes the states to a checkpoint. `read` returns all elements of a state.
  void write(Checkpoint& checkpoint,
             const std::function<std::vector<float>(const TrainerState&)>& read) const;
  // Throws UserError if the checkpoint has a state that this trainer does not have.
  void check_known(const Checkpoint& checkpoint, const std::string& path) const;

 private:
  std::vector<TrainerState> states_;  // without duplicates
};

HostTensor from_floats(const Shape& shape, DType dtype, const std::vector<float>& values);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
