// SPDX-License-Identifier: MIT
#include "train/trainer.h"

#include <algorithm>
#include <set>

#include "compile/debug/dump.h"
#include "train/compiled_function.h"
#include "train/import.h"
#include "train/training_graph.h"
#include "train/update.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {
namespace {

constexpr std::uint32_t kSeedStep = 0x9e3779b9U;

std::string in_marks(const std::string& name) { return "'" + name + "'"; }

// Adds the name of the objective to an error, if there are several.
template <class Call>
decltype(auto) in_objective(const std::string& name, Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (Error& error) {
    if (!name.empty()) error.add_context("in the objective " + in_marks(name));
    throw;
  }
}

void check_name(const std::string& name, std::set<std::string>& names) {
  constexpr const char* kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  if (name.empty() || name.find_first_not_of(kAllowed) != std::string::npos) {
    throw UserError("compile: objective names may only contain letters, digits, '_' and '-', got " +
                    in_marks(name));
  }
  if (!names.insert(name).second)
    throw UserError("compile: two objectives are named " + in_marks(name));
}

int shard_count(const CompileOptions& options) {
  const bool shards = options.shard_optimizer || options.shard_parameters;
  return shards && options.distributed != nullptr ? options.distributed->size() : 1;
}

std::vector<TrainingPick> picks_of(const std::vector<ObjectiveSource>& sources) {
  std::vector<TrainingPick> picks;
  for (const ObjectiveSource& source : sources) {
    const CompileOptions& options = source.options;
    const int shards = shard_count(options);
    const bool shards_params = options.shard_parameters && shards > 1;
    picks.push_back({source.name, source.params, options.groups, options.optimizer.first(),
                     options.ema_decay != 0, shards,
                     shards_params ? options.distributed->bucket_bytes() : 0});
  }
  return picks;
}

}  // namespace

std::vector<ObjectiveSource> with_common_options(std::vector<ObjectiveSource> sources, bool named,
                                                 const TrainerOptions& options) {
  if (sources.empty()) throw UserError("compile: expected at least one objective, got none");
  std::set<std::string> names;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    CompileOptions& own = sources[k].options;
    if (named) {
      check_name(sources[k].name, names);
      const bool open =
          own.seed == 0 && own.memory_budget == 0 && !own.initial && own.device == DeviceOptions{};
      if (!open) {
        throw UserError("objective " + in_marks(sources[k].name) +
                        ": seed, device, memory_budget and initial must be set in TrainerOptions");
      }
    }
    if (!sources[k].loss)
      throw UserError(sources[k].name.empty()
                          ? "compile: the loss is an empty function"
                          : "compile: the objective " + in_marks(sources[k].name) + " has no loss");
    if (named && own.distributed != nullptr) {
      throw UserError("objective " + in_marks(sources[k].name) +
                      ": distributed: not supported with several objectives");
    }
    if (own.distributed != nullptr && options.recovery.snapshot_steps > 0) {
      throw UserError("compile: recovery: expected snapshot_steps = 0 with distributed, got " +
                      std::to_string(options.recovery.snapshot_steps));
    }
    if (named && own.recovery.snapshot_steps != RecoveryOptions::kDefaultSteps) {
      throw UserError("objective " + in_marks(sources[k].name) +
                      ": recovery must be set in TrainerOptions");
    }
    own.seed = objective_seed(options.seed, k);
    own.device = options.device;
    own.memory_budget = options.memory_budget;
  }
  return sources;
}

std::uint32_t objective_seed(std::uint32_t seed, std::size_t number) {
  return seed + static_cast<std::uint32_t>(number) * kSeedStep;
}

TrainerImpl::TrainerImpl(ModelFunctions model, std::vector<ObjectiveSource> sources,
                         const TrainerOptions& options, const SourceLocation& location,
                         const ProgramSession* other)
    : model_(std::move(model)),
      options_(options),
      table_(model_, picks_of(sources)),
      recoverer_(std::make_shared<Recoverer>(*this, options.recovery)) {
  std::string reason = other != nullptr ? other->reason() : "";
  const std::shared_ptr<Device> device =
      other != nullptr ? other->device() : open_device(options.device, reason);
  for (std::size_t k = 0; k < sources.size(); ++k) {
    const std::string name = sources[k].name;
    in_objective(name, [&] {
      objectives_.push_back(std::make_unique<ObjectiveImpl>(
          std::move(sources[k]), table_, k, device, reason, call_lock_, *recoverer_, location));
    });
  }
  states_.collect(objectives_);
  check_datasets();
  if (ranks() != nullptr) objectives_.front()->agree();
  if (device->info().backend == "webgpu") recoverer_->turn_on();
  std::vector<float> params;
  if (device->info().computes) params = table_.initial(options_.seed, options_.initial);
  recoverer_->set_up([&] {
    allocate();
    if (!device->info().computes) return;
    upload_arena(params);
    for (const State& state : states_) state.session().reset_state(state.entry);
    start_averages(params, true);
    take_from_first();
    recoverer_->take();
  });
}

TrainerImpl::~TrainerImpl() {
  recoverer_->leave();
  if (recoverer_->functions().empty()) return;
  try {  // functions that outlive the trainer read its parameters
    for (const auto& objective : objectives_) objective->submit_gathered();
  } catch (const Error&) {  // they report a lost device themselves
  }
}

void TrainerImpl::take_from_first() {
  if (ranks() == nullptr || !session().device()->info().computes) return;
  if (!shards_params()) detail::take_from_first(*ranks(), session().instance(), "params");
  for (const State& state : states_) {
    if (state.objective->is_sharded(state.entry.name)) continue;
    detail::take_from_first(*ranks(), state.session().instance(), state.buffer());
  }
}

void TrainerImpl::use(const std::shared_ptr<Device>& device) {
  for (const auto& objective : objectives_) objective->use(device);
}

std::vector<const Instance*> TrainerImpl::instances() const {
  std::vector<const Instance*> all;
  for (const auto& objective : objectives_) all.push_back(&objective->session().instance());
  return all;
}

void TrainerImpl::move(CompiledFunctionImpl& function) {
  function.use(session().device(), instances());
}

void TrainerImpl::wait() {
  for (const auto& objective : objectives_) objective->wait();
}

std::vector<Recovery> TrainerImpl::recoveries() const {
  const auto lock = call_lock_->lock();
  return recoverer_->recoveries();
}

void TrainerImpl::check_datasets() const {
  // Maps the name of an entry to its declaration and objective.
  std::map<std::string, std::pair<const InputSpec*, std::string>> known;
  for (const auto& objective : objectives_) {
    for (const InputSpec& spec : objective->source().options.dataset) {
      const auto [at, fresh] = known.try_emplace(spec.name, &spec, objective->name());
      const auto& [first, who] = at->second;
      if (fresh || (first->shape == spec.shape && first->dtype == spec.dtype)) continue;
      const auto text = [](const InputSpec& each) {
        return std::string(to_string(each.dtype)) + to_string(each.shape);
      };
      throw UserError("dataset entry " + in_marks(spec.name) + ": types differ: " + text(*first) +
                      " in objective " + in_marks(who) + ", " + text(spec) + " in " +
                      in_marks(objective->name()));
    }
  }
}

void TrainerImpl::allocate() {
  std::vector<const Program*> programs;
  for (const auto& objective : objectives_)
    programs.push_back(&objective->session().compiled().program);
  const BufferPool pool = pool_buffers(programs, {data_buffer(kOrderName)});
  bytes_ = pool.bytes();
  if (options_.memory_budget > 0 && bytes_ > options_.memory_budget) {
    throw UserError("memory budget: the objectives need " + std::to_string(bytes_) +
                    " bytes in total, the budget is " + std::to_string(options_.memory_budget));
  }
  SharedMemory memory;
  for (const PooledBuffer& buffer : pool.buffers)
    memory.push_back(std::make_shared<Memory>(session().device(), buffer.bytes, buffer.name));
  for (std::size_t k = 0; k < objectives_.size(); ++k) {
    SharedMemory own;
    for (const std::size_t place : pool.places[k]) own.push_back(memory[place]);
    objectives_[k]->allocate(std::move(own));
  }
}

std::size_t TrainerImpl::find(const std::string& name) const {
  for (std::size_t k = 0; k < objectives_.size(); ++k) {
    if (objectives_[k]->name() == name && !name.empty()) return k;
  }
  throw UserError("unknown objective " + in_marks(name) + "; available: " + known_names());
}

std::vector<std::string> TrainerImpl::names() const {
  std::vector<std::string> names;
  for (const auto& objective : objectives_) {
    if (!objective->name().empty()) names.push_back(objective->name());
  }
  return names;
}

std::string TrainerImpl::known_names() const {
  std::string text;
  for (const std::string& name : names()) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "one unnamed objective" : text;
}

std::vector<std::string> TrainerImpl::dataset_names() const {
  std::vector<std::string> all;
  for (const auto& objective : objectives_) {
    for (const InputSpec& spec : objective->source().options.dataset) {
      if (std::find(all.begin(), all.end(), spec.name) == all.end()) all.push_back(spec.name);
    }
  }
  return all;
}

std::vector<ProgramSession*> TrainerImpl::users_of_data(const std::string& name,
                                                        const HostView& values) const {
  std::vector<ProgramSession*> users;
  for (const auto& objective : objectives_) {
    if (objective->session().check_data(name, values)) users.push_back(&objective->session());
  }
  if (users.empty()) check_known("unknown dataset entry", name, dataset_names());
  return users;
}

void TrainerImpl::upload_data(const std::string& name, const HostView& values) {
  const auto lock = call_lock_->lock();
  const std::vector<ProgramSession*> users = users_of_data(name, values);
  if (users.front()->bound(data_buffer(name))) {
    throw UserError("upload_data: '" + name + "' is bound to an application buffer");
  }
  // Steps that are repeated after a loss must not see the new data.
  recoverer_->guarded([&] { recoverer_->take_if_behind(); });
  recoverer_->keep_data(name, values);
  recoverer_->guarded([&] { users.front()->upload_data(name, values); });
  for (ProgramSession* user : users) user->mark_given(name, true);
}

void TrainerImpl::put_data(const std::string& name, const HostView& values) {
  users_of_data(name, values).front()->upload_data(name, values);
}

void TrainerImpl::bind_data(const std::string& name, WGPUBufferImpl* native) {
  const auto lock = call_lock_->lock();
  const std::string buffer = data_buffer(name);
  std::shared_ptr<Memory> memory;
  for (const auto& objective : objectives_) {
    for (const InputSpec& spec : objective->source().options.dataset) {
      if (spec.name != name) continue;
      if (!memory)
        memory = objective->session().memory_for(buffer, native, "bind_data: '" + name + "'");
      objective->bind(buffer, memory, native);
      if (memory) objective->session().mark_given(name, native != nullptr);
    }
  }
  check_known("bind_data: unknown dataset entry", name, dataset_names());
}

void TrainerImpl::start_averages(const std::vector<float>& params, bool always) {
  for (const auto& objective : objectives_) {
    if (always || objective->steps() == 0) objective->start_averages(params);
  }
}

void TrainerImpl::reset(const ResetOptions& options) {
  const auto lock = call_lock_->lock();
  recoverer_->guarded([&] {
    reset_now(options);
    take_from_first();
    recoverer_->take();
  });
}

void TrainerImpl::reset_now(const ResetOptions& options) {
  const bool computes = session().device()->info().computes;
  if (options.params && computes) upload_arena(table_.initial(options_.seed, options_.initial));
  for (const State& state : states_) {
    if (state.models() ? options.params : options.optimizer)
      state.session().reset_state(state.entry);
  }
  if (!options.optimizer) return;
  if (computes && averages()) start_averages(arena(), true);
  for (const auto& objective : objectives_) objective->reset();
  loaders_.reset();
}

NamedTensors TrainerImpl::download_params() {
  const auto lock = call_lock_->lock();
  return recoverer_->guarded([&] { return table_.unpack(arena()); });
}

NamedTensors TrainerImpl::download_ema() {
  const auto lock = call_lock_->lock();
  if (!averages()) throw UserError("download_ema: ema_decay is not set");
  return recoverer_->guarded([&] { return averaged(); });
}

NamedTensors TrainerImpl::averaged() const {
  return table_.averages(arena(),
                         [&](const std::string& name) { return states_.find(name)->download(); });
}

NamedTensors TrainerImpl::download_optimizer() {
  const auto lock = call_lock_->lock();
  return recoverer_->guarded([&] { return states_.optimizer(); });
}

NamedTensors TrainerImpl::download_buffers() {
  const auto lock = call_lock_->lock();
  return recoverer_->guarded([&] { return states_.buffers(); });
}

void TrainerImpl::upload_params(const NamedTensors& given, bool partial) {
  const auto lock = call_lock_->lock();
  NamedTensors params, buffers;
  for (const auto& [name, tensor] : given) {
    const State* const known = states_.find(name);
    const bool state = known != nullptr && known->models();
    (state || table_.has_buffer(name) ? buffers : params).emplace(name, tensor);
  }
  for (const auto& objective : objectives_)
    objective->session().check_states("upload_params", buffers);
  recoverer_->guarded([&] {
    std::vector<float> flat(static_cast<size_t>(table_.elements()));
    if (partial) flat = arena();
    table_.write(params, "upload_params", partial, flat);
    upload_arena(flat);
    for (const State& state : states_) {
      const auto value = buffers.find(state.entry.name);
      if (value != buffers.end()) state.session().upload_state(value->first, value->second);
    }
    start_averages(flat, false);
    take_from_first();
    recoverer_->take();
  });
}

void TrainerImpl::import_weights(const FileSource& source, const ImportOptions& options) {
  const auto lock = call_lock_->lock();
  std::vector<StateEntry> entries;
  for (const State& state : states_) entries.push_back(state.entry);
  recoverer_->guarded([&] {
    const std::vector<float> params = arena();
    const ImportedModel model = together(ranks(), "import_weights", [&] {
      return import_model(source, options, table_, entries, params);
    });
    upload_arena(model.params);
    for (const State& state : states_) {
      const auto given = model.states.find(state.entry.name);
      if (given == model.states.end()) continue;
      state.session().instance().upload(state.buffer(), 0, given->second.bytes);
    }
    start_averages(model.params, false);
    take_from_first();
    recoverer_->take();
  });
}

void TrainerImpl::upload_optimizer(const NamedTensors& states, bool partial) {
  const auto lock = call_lock_->lock();
  std::map<std::string, NamedTensors> parts;
  for (const auto& [name, tensor] : states) {
    const std::size_t slash = name.find('/');
    const std::string state = std::string(kOptimPrefix) + name.substr(0, slash);
    if (slash == std::string::npos || states_.find(state) == nullptr)
      throw UserError("upload_optimizer: unknown state '" + name + "'");
    parts[state][name.substr(slash + 1)] = tensor;
  }
  recoverer_->guarded([&] {
    std::vector<std::pair<const State*, std::vector<float>>> written;
    for (const State& state : states_) {
      if (!state.optimizers()) continue;
      const std::string& name = state.entry.name;
      auto& [to, flat] = written.emplace_back(&state, state.download());
      const std::string what = "upload_optimizer: state " + name.substr(kOptimPrefix.size());
      state.objective->part().write(parts[name], what, partial, flat);
    }
    for (const auto& [state, flat] : written) state->upload(flat);
    take_from_first();
    recoverer_->take();
  });
}

bool TrainerImpl::averages() const {
  return std::any_of(objectives_.begin(), objectives_.end(),
                     [](const auto& objective) { return objective->part().averaged; });
}

std::shared_ptr<CompiledFunctionImpl> TrainerImpl::attach(TraceFunction forward,
                                                          const FunctionOptions& options,
                                                          const SourceLocation& location) {
  const auto lock = call_lock_->lock();
  if (options.weights == WeightSource::kEma && !averages())
    throw UserError("attach: WeightSource::kEma requires ema_decay", location);
  if (options.weights == WeightSource::kEma && objectives_.front()->part().shards > 1) {
    throw UserError("attach: the averages are not supported with " +
                        std::string(shard_option(objectives_.front()->part())) +
                        ": each rank has only a part",
                    location);
  }
  FunctionOptions own = options;
  if (!own.seed) own.seed = objective_seed(options_.seed, attached_++);
  // Buffers keep their device alive.
  auto attached = recoverer_->guarded([&] {
    return std::make_shared<CompiledFunctionImpl>(
        model_, table_, forward, own, session().device(), "shared with the trainer",
        call_lock_->shared_lock(), instances(), location, recoverer_,
        objectives_.front()->source().options.distributed);
  });
  for (const StateEntry& theirs : attached->first().states()) {
    const State* const ours = states_.find(theirs.name);
    if (ours == nullptr || ours->entry.type == theirs.type) continue;
    throw UserError("attach: the state '" + theirs.name + "' is " + to_string(theirs.type) +
                        " here and " + to_string(ours->entry.type) + " in the trainer",
                    location);
  }
  recoverer_->add(attached);
  return attached;
}

void TrainerImpl::take_states(const TrainerImpl& old) {
  for (const State& state : states_) {
    if (!state.models()) continue;
    const State* const theirs = old.states_.find(state.entry.name);
    if (theirs == nullptr || theirs->entry.type != state.entry.type) continue;
    const std::vector<float> values = old.recoverer_->guarded(
        [&] { return theirs->session().download_floats(theirs->buffer()); });
    recoverer_->guarded([&] { state.session().upload_state(state.entry.name, values); });
  }
  recoverer_->guarded([&] { recoverer_->take(); });
}

std::shared_ptr<TrainerImpl> TrainerImpl::replaced(ModelFunctions model,
                                                   std::vector<TraceFunction> losses, bool keep,
                                                   const SourceLocation& location) {
  const auto lock = call_lock_->lock();
  std::vector<ObjectiveSource> sources;
  for (std::size_t k = 0; k < objectives_.size(); ++k) {
    ObjectiveSource& source = sources.emplace_back(objectives_[k]->source());
    source.loss = std::move(losses.at(k));
  }
  auto next = std::make_shared<TrainerImpl>(std::move(model), std::move(sources), options_,
                                            location, &session());
  for (std::size_t k = 0; k < objectives_.size(); ++k)
    next->objectives_[k]->go_on_as(*objectives_[k]);
  next->loaders_ = loaders_;
  if (!keep) return next;
  NamedTensors kept = download_params();
  const NamedTensors initial = next->download_params();
  std::erase_if(kept, [&](const auto& each) {
    const auto theirs = initial.find(each.first);
    return theirs == initial.end() || theirs->second.shape != each.second.shape;
  });
  next->upload_params(kept, true);
  next->take_states(*this);
  return next;
}

CompileReport TrainerImpl::report() const {
  constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));
  CompileReport all;
  for (const auto& objective : objectives_) {
    const CompileReport one = objective->session().report();
    all.milliseconds += one.milliseconds;
    all.launches += one.launches;
    all.exchange_bytes += one.exchange_bytes;
    all.passes.insert(all.passes.end(), one.passes.begin(), one.passes.end());
  }
  all.peak_bytes = bytes_;
  all.snapshot_bytes = recoverer_->host_bytes();
  for (const State& state : states_) {
    if (!state.optimizers()) continue;
    all.optimizer_bytes += numel(state.entry.type.shape) * kFloatBytes;
    all.unsharded_optimizer_bytes += state.objective->part().elements * kFloatBytes;
  }
  all.parameter_bytes = session().instance().buffer_bytes("params");
  all.unsharded_parameter_bytes = table_.elements() * kFloatBytes;
  return all;
}

std::string TrainerImpl::states_text() const {
  if (objectives_.front()->part().shards == 1) return "";
  const CompileReport all = report();
  const auto text = [](std::int64_t bytes) {
    return std::to_string(bytes) + " bytes (" + bytes_text(bytes) + ")";
  };
  const auto line = [&](const char* what, std::int64_t bytes, std::int64_t unsharded) {
    return what + text(bytes) + " on each of " + std::to_string(ranks()->size()) + " ranks, " +
           text(unsharded) + " without " + shard_option(objectives_.front()->part()) + "\n";
  };
  const std::string params =
      shards_params() ? line("parameters ", all.parameter_bytes, all.unsharded_parameter_bytes)
                      : "";
  return params + line("optimizer ", all.optimizer_bytes, all.unsharded_optimizer_bytes);
}

std::string TrainerImpl::explain() const {
  if (objectives_.size() == 1) return session().explain(states_text());
  std::string text = "objectives  " + known_names() + "\npeak        " + std::to_string(bytes_) +
                     " bytes in total\n";
  for (const auto& objective : objectives_)
    text += "\nobjective " + objective->name() + "\n" + objective->session().explain();
  return text;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
