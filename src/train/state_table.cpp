// SPDX-License-Identifier: MIT
#include "train/state_table.h"

#include <algorithm>
#include <cstring>

#include "train/update.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {
namespace {

std::string quoted(const std::string& name) { return "'" + name + "'"; }

}  // namespace

HostTensor from_floats(const Shape& shape, DType dtype, const std::vector<float>& values) {
  HostTensor tensor{dtype, shape, {}};
  tensor.bytes.resize(static_cast<size_t>(numel(shape)) * element_bytes(dtype));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

std::vector<float> TrainerState::download() const {
  return optimizers() ? objective->download_state(entry.name) : session().download_floats(buffer());
}

void TrainerState::upload(const std::vector<float>& values) const {
  if (optimizers()) return objective->upload_state(entry.name, values);
  session().upload_state(entry.name, values);
}

std::vector<float> TrainerState::read(const Checkpoint& checkpoint, const std::string& path) const {
  const auto& [name, type, initial, start] = entry;
  const ParameterRange& part = objective->part();
  std::vector<float> values(static_cast<size_t>(optimizers() ? part.elements : numel(type.shape)));
  if (!optimizers()) {
    const HostTensor& stored = find_state(checkpoint, name, type, path);
    std::memcpy(values.data(), stored.bytes.data(), stored.bytes.size());
    return values;
  }
  NamedTensors parts;
  const std::string prefix = name + "/";
  for (const auto& [each, tensor] : checkpoint.states) {
    if (each.starts_with(prefix)) parts[each.substr(prefix.size())] = tensor;
  }
  part.write(parts, path + ": state " + name, false, values);
  return values;
}

void StateTable::collect(const std::vector<std::unique_ptr<ObjectiveImpl>>& objectives) {
  for (const auto& objective : objectives) {
    for (const StateEntry& entry : objective->session().states()) {
      const TrainerState* const known = find(entry.name);
      if (known == nullptr) {
        states_.push_back({entry, objective.get()});
      } else if (known->entry.type != entry.type || known->entry.initial != entry.initial ||
                 known->entry.values != entry.values) {
        throw UserError("state " + quoted(entry.name) + ": objectives " +
                        quoted(known->objective->name()) + " and " + quoted(objective->name()) +
                        " disagree on its type or initial value");
      }
    }
  }
}

const TrainerState* StateTable::find(const std::string& name) const {
  const auto at = std::find_if(states_.begin(), states_.end(),
                               [&](const TrainerState& each) { return each.entry.name == name; });
  return at == states_.end() ? nullptr : &*at;
}

NamedTensors StateTable::buffers() const {
  NamedTensors result;
  for (const TrainerState& state : states_) {
    if (!state.models()) continue;
    const auto& type = state.entry.type;
    result[state.entry.name] =
        from_floats(type.shape, type.dtype, state.session().download_floats(state.buffer()));
  }
  return result;
}

NamedTensors StateTable::optimizer() const {
  NamedTensors result;
  for (const TrainerState& state : states_) {
    if (!state.optimizers()) continue;
    const std::string prefix = state.entry.name.substr(kOptimPrefix.size()) + "/";
    for (auto& [name, tensor] : state.objective->part().unpack(state.download()))
      result[prefix + name] = std::move(tensor);
  }
  return result;
}

void StateTable::write(Checkpoint& checkpoint,
                       const std::function<std::vector<float>(const TrainerState&)>& read) const {
  for (const TrainerState& state : states_) {
    const auto& [name, type, initial, start] = state.entry;
    const std::vector<float> values = read(state);
    if (!state.optimizers()) {
      checkpoint.states[name] = from_floats(type.shape, type.dtype, values);
      continue;
    }
    for (auto& [parameter, tensor] : state.objective->part().unpack(values))
      checkpoint.states[name + "/" + parameter] = std::move(tensor);
  }
}

void StateTable::check_known(const Checkpoint& checkpoint, const std::string& path) const {
  for (const auto& [name, tensor] : checkpoint.states) {
    // The file has one state for each parameter of an optimizer state.
    const std::string known =
        name.starts_with(kOptimPrefix) ? name.substr(0, name.find('/')) : name;
    if (find(known) == nullptr)
      throw UserError(path + ": the checkpoint has a state '" + name + "', this trainer does not");
  }
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
