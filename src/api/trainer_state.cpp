// SPDX-License-Identifier: MIT
// Saving and loading a trainer.
#include <cctype>
#include <cstdlib>
#include <cstring>

#include "api/trainer.h"
#include "api/update.h"

namespace tensorgrad::detail {
namespace {

constexpr int kVersion = 1;  // of the fields
constexpr std::string_view kLoaderPrefix = "loader.";

std::string hex(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

HostTensor from_floats(const Shape& shape, DType dtype, const std::vector<float>& values) {
  HostTensor tensor{dtype, shape, {}};
  tensor.bytes.resize(static_cast<size_t>(numel(shape)) * kElementBytes);
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

[[noreturn]] void refuse_field(const std::string& path, const std::string& name,
                               const std::string& what) {
  throw IoError(path + ": not a checkpoint of a trainer: the field '" + name + "' is " + what);
}

const std::string& field(const Checkpoint& checkpoint, const std::string& name,
                         const std::string& path) {
  const auto at = checkpoint.fields.find(name);
  if (at == checkpoint.fields.end()) refuse_field(path, name, "missing");
  return at->second;
}

std::int64_t integer_field(const Checkpoint& checkpoint, const std::string& name,
                           const std::string& path) {
  const std::string& text = field(checkpoint, name, path);
  if (text.empty() || text.size() > 18 ||
      text.find_first_not_of("0123456789") != std::string::npos) {
    refuse_field(path, name, "'" + text + "'");
  }
  return std::stoll(text);
}

// As hex() writes it.
double number_field(const Checkpoint& checkpoint, const std::string& name,
                    const std::string& path) {
  const std::string& text = field(checkpoint, name, path);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) != 0 ||
      end != text.c_str() + text.size()) {
    refuse_field(path, name, "'" + text + "', a number expected");
  }
  return value;
}

void check_version(const Checkpoint& checkpoint, const std::string& path) {
  const std::int64_t version = integer_field(checkpoint, "version", path);
  if (version == kVersion) return;
  throw IoError(path + ": the checkpoint is of version " + std::to_string(version) + "; version " +
                std::to_string(kVersion) + " expected");
}

Schedule parse_schedule(const std::string& text, const std::string& path) {
  try {
    return Schedule::parse(text);
  } catch (const IoError& error) {
    throw IoError(path + ": " + error.message());
  }
}

}  // namespace

void TrainerImpl::add_loader(const std::string& name, const std::shared_ptr<LoaderImpl>& loader) {
  const std::lock_guard lock(*mutex_);
  std::weak_ptr<LoaderImpl>& kept = loaders_[name];
  if (!kept.expired() && kept.lock() != loader)
    throw UserError("add_loader: the trainer has a loader '" + name + "' already");
  kept = loader;
}

std::shared_ptr<LoaderImpl> TrainerImpl::loader(const std::string& name) const {
  if (auto found = loaders_.at(name).lock()) return found;
  throw UserError("the data loader '" + name + "' of this trainer is gone");
}

TrainerImpl::LoaderStates TrainerImpl::loader_states(const Checkpoint& checkpoint,
                                                     const std::string& path) const {
  for (const auto& [name, value] : checkpoint.fields) {
    if (name.starts_with(kLoaderPrefix) && !loaders_.contains(name.substr(kLoaderPrefix.size()))) {
      throw UserError(path + ": the checkpoint has the place of a data loader '" +
                      name.substr(kLoaderPrefix.size()) + "'; call add_loader() before");
    }
  }
  LoaderStates states;
  for (const auto& [name, weak] : loaders_) {
    const std::string& text = field(checkpoint, std::string(kLoaderPrefix) + name, path);
    const std::shared_ptr<LoaderImpl> each = loader(name);
    try {
      states.emplace_back(each, each->parse(text));
    } catch (const UserError& error) {
      throw UserError(path + ": data loader '" + name + "': " + error.message());
    }
  }
  return states;
}

void TrainerImpl::save(const std::string& path) {
  const std::lock_guard lock(*mutex_);
  Checkpoint checkpoint;
  checkpoint.params = table_.unpack(engine_->download_floats("params"));
  for (const StateEntry& state : engine_->states()) {
    const std::vector<float> values = engine_->download_floats(state_buffer(state.name));
    if (!state.name.starts_with(kOptimPrefix)) {
      checkpoint.states[state.name] = from_floats(state.type.shape, state.type.dtype, values);
      continue;
    }
    for (auto& [name, tensor] : table_.unpack(values))
      checkpoint.states[state.name + "/" + name] = std::move(tensor);
  }
  checkpoint.fields = {{"version", std::to_string(kVersion)},
                       {"step", std::to_string(step_)},
                       {"epoch", std::to_string(epoch_)},
                       {"position", std::to_string(position_)},
                       {"seed", std::to_string(options_.seed)},
                       {"schedule", schedule_.text()},
                       {"schedule_start", std::to_string(schedule_start_)}};
  for (const auto& [name, value] : engine_->scalars())
    checkpoint.fields["scalar." + name] = hex(value);
  for (const auto& [name, weak] : loaders_)
    checkpoint.fields[std::string(kLoaderPrefix) + name] = loader(name)->text();
  write_checkpoint(path, checkpoint);
}

// Everything is read and checked before anything is changed.
void TrainerImpl::load(const std::string& path) {
  const std::lock_guard lock(*mutex_);
  Checkpoint checkpoint = read_checkpoint(path);
  check_version(checkpoint, path);
  const std::int64_t step = integer_field(checkpoint, "step", path);
  const std::int64_t epoch = integer_field(checkpoint, "epoch", path);
  const std::int64_t position = integer_field(checkpoint, "position", path);
  const std::int64_t seed = integer_field(checkpoint, "seed", path);
  const std::int64_t start = integer_field(checkpoint, "schedule_start", path);
  Schedule schedule = parse_schedule(checkpoint.fields["schedule"], path);
  if (position > batches_per_epoch() || start > step || seed > 0xffffffffLL) {
    throw IoError(path + ": the checkpoint is of another dataset, or damaged: position " +
                  std::to_string(position) + " of " + std::to_string(batches_per_epoch()) +
                  " batches");
  }
  const std::vector<float> params = table_.pack(checkpoint.params, path);
  std::map<std::string, std::vector<float>> states;
  for (const StateEntry& state : engine_->states()) {
    if (state.name.starts_with(kOptimPrefix)) {
      std::map<std::string, HostTensor> parts;
      const std::string prefix = state.name + "/";
      for (const auto& [name, tensor] : checkpoint.states) {
        if (name.starts_with(prefix)) parts[name.substr(prefix.size())] = tensor;
      }
      std::vector<float>& flat = states[state.name];
      flat.resize(static_cast<size_t>(table_.trained_elements()));
      table_.write(parts, path + ": state " + state.name, false, flat);
      continue;
    }
    const HostTensor& stored = find_state(checkpoint, state.name, state.type, path);
    std::vector<float>& values = states[state.name];
    values.resize(stored.bytes.size() / sizeof(float));
    std::memcpy(values.data(), stored.bytes.data(), stored.bytes.size());
  }
  std::map<std::string, double> scalars;
  for (const auto& [name, value] : engine_->scalars()) {
    scalars[name] = number_field(checkpoint, "scalar." + name, path);
  }
  const LoaderStates loaders = loader_states(checkpoint, path);
  engine_->upload_params(params);
  for (const auto& [each, state] : loaders) each->load_state(state);
  for (const auto& [name, values] : states) engine_->upload_state(name, values);
  engine_->scalars() = std::move(scalars);
  step_ = first_unread_ = step;
  kept_.clear();
  epoch_ = epoch;
  position_ = position;
  options_.seed = static_cast<std::uint32_t>(seed);
  schedule_ = std::move(schedule);
  schedule_start_ = start;
  order_sent_ = false;
}

}  // namespace tensorgrad::detail
