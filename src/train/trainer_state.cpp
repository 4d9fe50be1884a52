// SPDX-License-Identifier: MIT
// Saving and loading of trainers.
#include <optional>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "base/numbers.h"
#include "train/trainer.h"
#include "train/update.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {
namespace {

constexpr int kVersion = 1;  // of the checkpoint fields

std::int64_t integer_field(const Checkpoint& checkpoint, const std::string& name,
                           const std::string& path) {
  const std::string& text = text_field(checkpoint, name, path);
  if (text.empty() || text.size() > 18 ||
      text.find_first_not_of("0123456789") != std::string::npos) {
    refuse_field(path, name, "'" + text + "'");
  }
  return std::stoll(text);
}

// Parses a number in the format of hex_float().
double number_field(const Checkpoint& checkpoint, const std::string& name,
                    const std::string& path) {
  const std::string& text = text_field(checkpoint, name, path);
  std::string_view rest = text;
  const std::optional<double> value = take_float(rest);
  if (!value || !rest.empty()) refuse_field(path, name, "'" + text + "', expected a number");
  return *value;
}

void check_version(const Checkpoint& checkpoint, const std::string& path) {
  const std::int64_t version = integer_field(checkpoint, "version", path);
  if (version == kVersion) return;
  throw IoError(path + ": unsupported checkpoint version " + std::to_string(version) +
                "; expected version " + std::to_string(kVersion));
}

// Returns the names as text, e.g. "d g".
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

void check_objectives(const Checkpoint& checkpoint, const std::vector<std::string>& names,
                      const std::string& path) {
  const auto at = checkpoint.fields.find(kObjectivesField);
  const std::string theirs = at == checkpoint.fields.end() ? "" : at->second;
  if (theirs == listed(names)) return;
  const auto text = [](const std::string& each) {
    return each.empty() ? "one unnamed objective" : "the objectives " + each;
  };
  throw UserError(path + ": the checkpoint is from a trainer with " + text(theirs) +
                  ", this one has " + text(listed(names)));
}

Schedule parse_schedule(const std::string& text, const std::string& path) {
  try {
    return Schedule::parse(text);
  } catch (const IoError& error) {
    throw IoError(path + ": " + error.message());
  }
}

}  // namespace

Progress ObjectiveImpl::progress() const {
  return {step_, epoch_, position_, schedule_start_, schedule_, session().scalars()};
}

std::string ObjectiveImpl::field(const std::string& name) const {
  return source_.name.empty() ? name : "objective." + source_.name + "." + name;
}

void ObjectiveImpl::write(std::map<std::string, std::string>& fields) const {
  fields[field("step")] = std::to_string(step_);
  fields[field("epoch")] = std::to_string(epoch_);
  fields[field("position")] = std::to_string(position_);
  fields[field("schedule")] = schedule_.text();
  fields[field("schedule_start")] = std::to_string(schedule_start_);
  fields[field("accumulate")] = std::to_string(options_.accumulate);
  fields[field("batch")] = std::to_string(whole_batch());
  const std::string& optimizer = options_.optimizer.name();
  if (!optimizer.empty()) fields[field("optimizer")] = optimizer;
  for (const auto& [name, value] : session().scalars())
    fields[field("scalar." + name)] = hex_float(value);
}

// Older checkpoints, and those of an optimizer without a name, have no such field.
void ObjectiveImpl::check_same_optimizer(const Checkpoint& checkpoint,
                                         const std::string& path) const {
  const auto theirs = checkpoint.fields.find(field("optimizer"));
  const std::string& ours = options_.optimizer.name();
  if (theirs == checkpoint.fields.end() || ours.empty() || theirs->second == ours) return;
  throw UserError(path + ": the checkpoint is from a trainer with the optimizer " + theirs->second +
                  ", this one has " + ours);
}

void ObjectiveImpl::check_same_batch(const Checkpoint& checkpoint, const std::string& path) const {
  if (!checkpoint.fields.contains(field("batch"))) return;
  const std::int64_t saved = integer_field(checkpoint, field("batch"), path);
  if (saved == whole_batch()) return;
  const auto text = [](std::int64_t batch) {
    return batch == 0 ? "no dataset" : "batches of " + std::to_string(batch) + " from a dataset";
  };
  throw UserError(path + ": the checkpoint is from a trainer with " + text(saved) +
                  ", this one has " + text(whole_batch()) +
                  "; the position in the data would differ");
}

// Throws UserError if an option that the saved counters depend on differs.
void ObjectiveImpl::check_same_options(const Checkpoint& checkpoint,
                                       const std::string& path) const {
  if (checkpoint.fields.contains(field("accumulate"))) {
    const std::int64_t saved = integer_field(checkpoint, field("accumulate"), path);
    if (saved != options_.accumulate) {
      throw UserError(path + ": the checkpoint is from a trainer with accumulate = " +
                      std::to_string(saved) + ", this one has " +
                      std::to_string(options_.accumulate) + "; the number of updates would differ");
    }
  }
  check_same_optimizer(checkpoint, path);
  check_same_batch(checkpoint, path);
  const auto differs = [&](const std::string& name, const char* theirs, const char* ours) {
    throw UserError(path + ": the checkpoint is from another optimizer or other options: it has " +
                    theirs + "value for '" + name + "', this trainer " + ours);
  };
  const auto& scalars = session().scalars();
  for (const auto& [name, value] : scalars) {
    if (!checkpoint.fields.contains(field("scalar." + name))) differs(name, "no ", "needs one");
  }
  const std::string prefix = field("scalar.");
  for (const auto& [name, value] : checkpoint.fields) {
    if (!name.starts_with(prefix)) continue;
    const std::string scalar = name.substr(prefix.size());
    if (!scalars.contains(scalar)) differs(scalar, "a ", "has none");
  }
}

void ObjectiveImpl::complete(Checkpoint& checkpoint, const Progress& progress) const {
  if (scales() || !skips()) return;
  const std::string name = scale_state(part_, false);
  if (checkpoint.states.contains(name)) return;
  checkpoint.states[name] = from_floats({kScaleNumbers}, DType::kF32,
                                        unscaled_state(progress.step / options_.accumulate));
}

Progress ObjectiveImpl::read(const Checkpoint& checkpoint, const std::string& path) const {
  check_same_options(checkpoint, path);
  Progress progress;
  progress.step = integer_field(checkpoint, field("step"), path);
  progress.epoch = integer_field(checkpoint, field("epoch"), path);
  progress.position = integer_field(checkpoint, field("position"), path);
  progress.schedule_start = integer_field(checkpoint, field("schedule_start"), path);
  progress.schedule = parse_schedule(text_field(checkpoint, field("schedule"), path), path);
  if (progress.position > batches_per_epoch() || progress.schedule_start > progress.step) {
    throw IoError(path + ": the checkpoint is from another dataset or corrupt: position " +
                  std::to_string(progress.position) + " of " + std::to_string(batches_per_epoch()) +
                  " batches");
  }
  for (const auto& [name, value] : session().scalars())
    progress.scalars[name] = number_field(checkpoint, field("scalar." + name), path);
  return progress;
}

void ObjectiveImpl::go_on_from(Progress progress, std::uint32_t seed) {
  session().scalars() = std::move(progress.scalars);
  step_ = first_unread_ = progress.step;
  kept_.clear();
  epoch_ = progress.epoch;
  position_ = progress.position;
  options_.seed = seed;
  schedule_ = std::move(progress.schedule);
  schedule_start_ = progress.schedule_start;
  order_sent_ = false;
}

std::map<std::string, std::string> TrainerImpl::fields() const {
  std::map<std::string, std::string> fields = {{"version", std::to_string(kVersion)},
                                               {"seed", std::to_string(options_.seed)}};
  if (const std::string all = listed(names()); !all.empty()) fields[kObjectivesField] = all;
  for (const auto& objective : objectives_) objective->write(fields);
  return fields;
}

void TrainerImpl::add_loader(const std::string& name, const std::shared_ptr<LoaderImpl>& loader) {
  const auto lock = call_lock_->lock();
  loaders_.add(name, loader);
  recoverer_->note_loaders();
}

void TrainerImpl::save(const FileSink& sink, const SaveOptions& options) {
  const auto lock = call_lock_->lock();
  std::map<std::string, std::string> metadata = checked_metadata(options);
  if (ranks() != nullptr && objectives_.front()->between_updates()) {
    throw UserError(
        "save: not supported within an accumulation of distributed training; call it after an "
        "update");
  }
  if (leaves_to_first(sink)) return gather_states();
  loaders_.check_alive();
  const bool stranded = recoverer_->stranded();
  Checkpoint checkpoint;
  try {
    checkpoint = recoverer_->guarded([&] {
      Checkpoint now;
      now.params = table_.unpack(arena());
      states_.write(now, [](const State& state) { return state.download(); });
      now.fields = fields();
      now.fields.merge(loaders_.fields());
      return now;
    });
  } catch (const DeviceLostError&) {
    if (!stranded) throw;  // the error says what save() will write
    checkpoint.params = table_.unpack(recoverer_->saved_floats("params"));
    states_.write(checkpoint,
                  [&](const State& state) { return recoverer_->saved_floats(state.buffer()); });
    checkpoint.fields = recoverer_->fields();
  }
  write_checkpoint(sink, std::move(checkpoint), std::move(metadata));
}

void TrainerImpl::gather_states() const {
  if (shards_params()) static_cast<void>(arena());
  for (const State& state : states_) {
    if (state.objective->is_sharded(state.entry.name)) static_cast<void>(state.download());
  }
}

void TrainerImpl::load_params(const FileSource& source, WeightSource weights) {
  const auto lock = call_lock_->lock();
  std::set<std::string> buffers = table_.buffer_names();
  for (const State& state : states_) {
    if (state.models()) buffers.insert(state.entry.name);
  }
  std::vector<std::pair<const State*, std::vector<float>>> written;
  const std::vector<float> params = together(ranks(), "load_params", [&] {
    Checkpoint checkpoint = read_checkpoint(source, buffers);
    if (weights == WeightSource::kEma) take_averages(checkpoint, source.name());
    for (const State& state : states_) {
      if (state.models() && !checkpoint.states.empty())  // otherwise the file has only parameters
        written.emplace_back(&state, state.read(checkpoint, source.name()));
    }
    return table_.pack(checkpoint.params, source.name());
  });
  recoverer_->guarded([&] {
    upload_arena(params);
    for (const auto& [state, values] : written)
      state->session().upload_state(state->entry.name, values);
    start_averages(params, false);
    take_from_first();
    recoverer_->take();
  });
}

void TrainerImpl::save_weights(const FileSink& sink, WeightSource weights) {
  const auto lock = call_lock_->lock();
  if (weights == WeightSource::kEma && !averages())
    throw UserError("save_weights: ema_decay is not set");
  if (leaves_to_first(sink)) {
    if (weights == WeightSource::kEma && objectives_.front()->part().shards > 1) {
      static_cast<void>(averaged());
    } else if (shards_params()) {
      static_cast<void>(arena());
    }
    return;
  }
  write_weights(sink, recoverer_->guarded([&] {
    NamedTensors all = weights == WeightSource::kEma ? averaged() : table_.unpack(arena());
    all.merge(states_.buffers());
    return all;
  }));
}

// Reads and checks everything before anything is changed.
TrainerImpl::Loaded TrainerImpl::read(const FileSource& source) const {
  const std::string& path = source.name();
  Checkpoint checkpoint = read_checkpoint(source);
  check_version(checkpoint, path);
  check_objectives(checkpoint, names(), path);
  const std::int64_t seed = integer_field(checkpoint, "seed", path);
  if (seed > 0xffffffffLL) refuse_field(path, "seed", std::to_string(seed));
  Loaded loaded{.seed = static_cast<std::uint32_t>(seed)};
  for (const auto& objective : objectives_) {
    loaded.progress.push_back(objective->read(checkpoint, path));
    objective->complete(checkpoint, loaded.progress.back());
  }
  loaded.params = table_.pack(checkpoint.params, path);
  states_.check_known(checkpoint, path);
  for (const State& state : states_) loaded.states.push_back(state.read(checkpoint, path));
  loaded.loaders = loaders_.read(checkpoint, path);
  for (const auto& [name, value] : checkpoint.fields) loaded.fields += name + "=" + value + "\n";
  return loaded;
}

void TrainerImpl::load(const FileSource& source) {
  const auto lock = call_lock_->lock();
  const Loaded loaded = together(ranks(), "load", [&] { return read(source); });
  if (ranks() != nullptr)
    check_common(*ranks(), "load", {{"the checkpoint", fnv1a(loaded.fields)}});
  recoverer_->guarded([&] {
    upload_arena(loaded.params);
    std::size_t i = 0;
    for (const State& state : states_) state.upload(loaded.states[i++]);
    for (const auto& [each, state] : loaded.loaders) each->load_state(state);
    options_.seed = loaded.seed;
    for (std::size_t k = 0; k < objectives_.size(); ++k)
      objectives_[k]->go_on_from(loaded.progress[k], objective_seed(options_.seed, k));
    take_from_first();
    recoverer_->take();
  });
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
