// SPDX-License-Identifier: MIT
#include "api/trainer.h"

#include <algorithm>
#include <cmath>

#include "api/forward.h"
#include "api/import.h"
#include "api/training_graph.h"
#include "base/numbers.h"
#include "compile/host_random.h"
#include "compile/interpret.h"
#include "compile/words.h"
#include "ops/registry.h"

namespace tensorgrad::detail {
namespace {

constexpr int kMostStepsAtOnce = 256;  // rows handed to the device in one go

}  // namespace

TrainerImpl::TrainerImpl(ModelFunctions model, TraceFunction loss, const CompileOptions& options,
                         const Site& site, const Engine* other)
    : model_(std::move(model)),
      loss_(std::move(loss)),
      options_(options),
      table_(model_, options_.groups, options_.optimizer.first()),
      site_(site),
      schedule_(options.optimizer.lr()) {
  engine_ = build(other, false, site);
  set_group_scalars();
  if (!options.dataset.empty()) rows_ = options.dataset[0].shape[0];
  const std::vector<float> params = table_.initial(options_.seed);
  engine_->upload_params(params);
  start_averages(params);
}

std::unique_ptr<Engine> TrainerImpl::build(const Engine* other, bool captures, const Site& site) {
  auto traced = trace_function(table_, options_.inputs, options_.dataset, options_.batch, loss_,
                               {.training = true, .captures = captures}, site);
  CompileRequest request = training_request(*traced, table_, options_, site);
  std::string why = other != nullptr ? other->why() : "";
  std::shared_ptr<Device> device = other != nullptr ? other->shared_instance()->shared_device()
                                                    : open_device(options_.device, why);
  auto engine = std::make_unique<Engine>(
      std::move(request), std::map<std::string, double>{}, options_.inputs, options_.dataset,
      std::move(device), std::move(why), options_.check_indices,
      captures ? engine_->shared_instance() : nullptr, Share::kProgram);
  // The scalars of the optimizer come to be while it compiles.
  for (const auto& [name, value] : traced->trace.scalars) {
    if (name[0] != '_') engine->scalars()[name] = value;
  }
  if (captures) return engine;
  per_update_ = std::move(traced->trace.per_update);
  for (const auto& [name, id] : traced->trace.captures) captures_.push_back(name);
  return engine;
}

void TrainerImpl::set_group_scalars() {
  for (const GroupRange& range : table_.ranges()) {
    if (range.group < 0) continue;
    const ParamGroup& group = options_.groups[static_cast<size_t>(range.group)];
    if (has_own_lr(group))
      engine_->scalars()[kLrFactorPrefix + group_name(group)] = group.lr_factor;
  }
}

HyperValues TrainerImpl::hypers(std::int64_t step, std::int64_t cursor) const {
  HyperValues values = engine_->hypers();
  const std::int64_t update = step / options_.accumulate;
  const double rate = schedule_.at(update - schedule_start_);
  values[kLrScalar] = float_bits(rate);
  for (const GroupRange& range : table_.ranges()) {
    if (range.group < 0) continue;
    const ParamGroup& group = options_.groups[static_cast<size_t>(range.group)];
    if (!has_own_lr(group)) continue;
    const double factor = engine_->scalars().at(kLrFactorPrefix + group_name(group));
    values[group_lr_scalar(range.group)] =
        float_bits(factor * (group.lr ? group.lr->at(update) : rate));
  }
  for (const auto& [name, value] : per_update_) values[name] = float_bits(value(update + 1));
  values[kCountScalar] = float_bits(static_cast<double>(update + 1));
  if (options_.accumulate > 1)
    values[kDueScalar] = float_bits((step + 1) % options_.accumulate == 0 ? 1 : 0);
  values["_step"] = static_cast<std::uint32_t>(step);
  values["_seed"] = options_.seed;
  values[kRingScalar] = static_cast<std::uint32_t>(step % kLossRing);
  values[kCursorName] = static_cast<std::uint32_t>(cursor);
  return values;
}

std::int64_t TrainerImpl::batches_per_epoch() const {
  return rows_ == 0 ? 0 : rows_ / options_.batch;
}

void TrainerImpl::begin_epoch() {
  std::vector<std::int32_t> order;
  if (options_.shuffle) {
    order = random_order(rows_, options_.seed, static_cast<std::uint32_t>(epoch_));
  } else {
    for (std::int64_t i = 0; i < rows_; ++i) order.push_back(static_cast<std::int32_t>(i));
  }
  engine_->instance().upload(data_buffer(kOrderName), 0, std::as_bytes(std::span(order)));
  order_sent_ = true;
}

std::vector<HyperValues> TrainerImpl::next_rows(int count) {
  if (rows_ > 0) {
    if (position_ == batches_per_epoch()) {
      position_ = 0;
      ++epoch_;
      order_sent_ = false;
    }
    if (!order_sent_) begin_epoch();
    count = static_cast<int>(std::min<std::int64_t>(count, batches_per_epoch() - position_));
  }
  std::vector<HyperValues> values;
  for (int i = 0; i < count; ++i)
    values.push_back(hypers(step_ + i, (position_ + i) * options_.batch));
  if (rows_ > 0) position_ += count;
  return values;
}

void TrainerImpl::check_data() const {
  std::string missing;
  if (!engine_->all_data_given(missing)) {
    throw UserError("dataset entry '" + missing + "' has not been given; call upload_data()");
  }
}

Engine& TrainerImpl::capturing(const std::vector<std::string>& names) {
  check_captures(names, captures_);
  if (!capturing_) capturing_ = build(engine_.get(), true, site_);
  return *capturing_;
}

StepResult TrainerImpl::step(const Feed& inputs, const StepOptions& options) {
  const Turn turn(*this);
  engine_->check(inputs);
  check_data();
  if (options_.detect_nan) {
    before_.clear();
    before_["params"] = engine_->download_words("params");
    for (const StateEntry& state : engine_->states()) {
      const std::string buffer = state_buffer(state.name);
      before_[buffer] = engine_->download_words(buffer);
    }
  }
  Engine& engine = options.captures.empty() ? *engine_ : capturing(options.captures);
  engine.upload_inputs(inputs);
  last_ = engine.instance().run(next_rows(1));
  const std::int64_t done = step_++;
  if (first_unread_ == done) first_unread_ = step_;  // nothing queued before waits to be read
  const float loss = read_loss(done);
  if (options_.detect_nan && !std::isfinite(loss)) explain_nan(inputs, done, loss);
  StepResult result{loss, step_, {}};
  for (const std::string& name : options.captures)
    result.captures[name] = engine.download_output(capture_output(name));
  return result;
}

float TrainerImpl::read_loss(std::int64_t step) {
  float loss = 0;
  engine_->instance().download(output_buffer("loss"),
                               step % kLossRing * static_cast<std::int64_t>(sizeof loss),
                               std::as_writable_bytes(std::span(&loss, 1)));
  return loss;
}

void TrainerImpl::check_queued(int count) const {
  if (count < 0) throw UserError("submit: " + std::to_string(count) + " steps cannot be queued");
  if (!options_.inputs.empty()) {
    throw UserError(
        "submit: the inputs of this program are given step by step; call step(), or declare them "
        "as "
        "dataset");
  }
  check_data();
}

void TrainerImpl::submit(int count) {
  const Turn turn(*this);
  check_queued(count);
  if (options_.detect_nan) throw UserError("submit: with detect_nan, call step()");
  queue(count, turn);
}

void TrainerImpl::queue(int count, const Turn& turn) {
  while (count > 0) {
    turn.check();
    const std::vector<HyperValues> rows = next_rows(std::min(count, kMostStepsAtOnce));
    last_ = engine_->instance().run(rows);
    step_ += static_cast<std::int64_t>(rows.size());
    count -= static_cast<int>(rows.size());
  }
}

std::vector<float> TrainerImpl::run(int count) {
  const Turn turn(*this);
  check_queued(count);
  std::vector<float> result;
  if (options_.detect_nan) {  // looks at each
    for (int i = 0; i < count; ++i) {
      turn.check();
      result.push_back(step({}, {}).loss);
    }
    return result;
  }
  std::vector<float> before = losses();
  try {
    while (count > 0) {
      const int part = static_cast<int>(std::min<std::int64_t>(count, kLossRing));
      queue(part, turn);
      const std::vector<float> some = losses();
      result.insert(result.end(), some.begin(), some.end());
      count -= part;
    }
  } catch (const AbortedError&) {  // what is done waits to be read
    before.insert(before.end(), result.begin(), result.end());
    kept_ = std::move(before);
    throw;
  }
  kept_ = std::move(before);
  return result;
}

std::vector<float> TrainerImpl::losses() {
  const std::lock_guard lock(*mutex_);
  engine_->instance().wait(last_);
  const std::int64_t from = std::max(first_unread_, step_ - kLossRing);
  first_unread_ = step_;
  std::vector<float> ring = engine_->download_floats(output_buffer("loss"));
  std::vector<float> result = std::move(kept_);
  kept_.clear();
  for (std::int64_t s = from; s < step_; ++s)
    result.push_back(ring[static_cast<size_t>(s % kLossRing)]);
  return result;
}

void TrainerImpl::upload_data(const std::string& name, const HostView& values) {
  const std::lock_guard lock(*mutex_);
  engine_->upload_data(name, values);
}

void TrainerImpl::set_lr(Schedule schedule) {
  const std::lock_guard lock(*mutex_);
  check_rate("set_lr", schedule);
  schedule_ = std::move(schedule);
  schedule_start_ = step_ / options_.accumulate;
}

void TrainerImpl::set(const std::string& name, double value) {
  const std::lock_guard lock(*mutex_);
  const auto at = engine_->scalars().find(name);
  if (at == engine_->scalars().end()) {
    std::string known;
    for (const auto& [each, current] : engine_->scalars())
      known += (known.empty() ? "" : ", ") + each;
    throw UserError("there is no run-time scalar '" + name + "'; there is " +
                    (known.empty() ? "none" : known));
  }
  check_scalar(name, value);
  at->second = value;
}

bool TrainerImpl::has_state(const std::string& name) const {
  const auto& states = engine_->states();
  return std::any_of(states.begin(), states.end(),
                     [&](const StateEntry& state) { return state.name == name; });
}

void TrainerImpl::start_averages(const std::vector<float>& params) {
  if (!has_state(kEmaState)) return;
  const auto trained = static_cast<std::ptrdiff_t>(table_.trained_elements());
  engine_->upload_state(kEmaState, {params.begin(), params.begin() + trained});
}

void TrainerImpl::reset(const ResetOptions& options) {
  const std::lock_guard lock(*mutex_);
  if (options.params) engine_->upload_params(table_.initial(options_.seed));
  for (const StateEntry& state : engine_->states()) {
    const bool optimizers = state.name.starts_with(kOptimPrefix);
    if (optimizers ? options.optimizer : options.params) engine_->reset_state(state);
  }
  if (!options.optimizer) return;
  for (const auto& [name, weak] : loaders_) {
    if (const auto each = weak.lock()) each->reset();
  }
  start_averages(engine_->download_floats("params"));
  schedule_ = options_.optimizer.lr();
  schedule_start_ = step_ = first_unread_ = epoch_ = position_ = 0;
  kept_.clear();
  order_sent_ = false;
}

std::map<std::string, HostTensor> TrainerImpl::download_params() {
  const std::lock_guard lock(*mutex_);
  return table_.unpack(engine_->download_floats("params"));
}

std::map<std::string, HostTensor> TrainerImpl::download_grads() {
  const std::lock_guard lock(*mutex_);
  return table_.unpack(engine_->download_floats("grads"));
}

std::map<std::string, HostTensor> TrainerImpl::download_ema() {
  const std::lock_guard lock(*mutex_);
  if (!has_state(kEmaState)) throw UserError("download_ema: ema_decay is not set");
  std::vector<float> flat = engine_->download_floats("params");
  const std::vector<float> averages = engine_->download_floats(state_buffer(kEmaState));
  std::copy(averages.begin(), averages.end(), flat.begin());
  return table_.unpack(flat);
}

std::map<std::string, HostTensor> TrainerImpl::download_optimizer() {
  const std::lock_guard lock(*mutex_);
  std::map<std::string, HostTensor> result;
  for (const StateEntry& state : engine_->states()) {
    if (!state.name.starts_with(kOptimPrefix)) continue;
    for (auto& [name, tensor] : table_.unpack(engine_->download_floats(state_buffer(state.name)))) {
      result[state.name.substr(kOptimPrefix.size()) + "/" + name] = std::move(tensor);
    }
  }
  return result;
}

void TrainerImpl::upload_params(const std::map<std::string, HostTensor>& params, bool partial) {
  const std::lock_guard lock(*mutex_);
  std::vector<float> flat(static_cast<size_t>(table_.elements()));
  if (partial) flat = engine_->download_floats("params");
  table_.write(params, "upload_params", partial, flat);
  engine_->upload_params(flat);
  if (step_ == 0) start_averages(flat);
}

void TrainerImpl::import_weights(const std::string& path, const ImportOptions& options) {
  const std::lock_guard lock(*mutex_);
  const ImportedModel model =
      import_model(path, options, table_, engine_->states(), engine_->download_floats("params"));
  engine_->upload_params(model.params);
  for (const auto& [name, tensor] : model.states)
    engine_->instance().upload(state_buffer(name), 0, tensor.bytes);
  if (step_ == 0) start_averages(model.params);
}

void TrainerImpl::upload_optimizer(const std::map<std::string, HostTensor>& states, bool partial) {
  const std::lock_guard lock(*mutex_);
  std::map<std::string, std::map<std::string, HostTensor>> parts;
  for (const auto& [name, tensor] : states) {
    const std::size_t slash = name.find('/');
    const std::string state = kOptimPrefix + name.substr(0, slash);
    if (slash == std::string::npos || !has_state(state))
      throw UserError("upload_optimizer: the optimizer has no state '" + name + "'");
    parts[state][name.substr(slash + 1)] = tensor;
  }
  std::map<std::string, std::vector<float>> written;
  for (const StateEntry& state : engine_->states()) {
    if (!state.name.starts_with(kOptimPrefix)) continue;
    std::vector<float>& flat = written[state.name];
    flat = engine_->download_floats(state_buffer(state.name));
    const std::string what = "upload_optimizer: state " + state.name.substr(kOptimPrefix.size());
    table_.write(parts[state.name], what, partial, flat);
  }
  for (const auto& [name, flat] : written) engine_->upload_state(name, flat);
}

std::vector<std::pair<std::string, double>> TrainerImpl::profile(const Feed& inputs) {
  const Turn turn(*this);
  engine_->check(inputs);
  check_data();
  engine_->upload_inputs(inputs);
  const std::vector<LaunchTiming> timings = engine_->instance().profile(next_rows(1).front());
  ++step_;
  std::vector<std::pair<std::string, double>> result;
  for (std::size_t i = 0; i < timings.size(); ++i) {
    result.emplace_back(engine_->compiled().program.launches[i].name, timings[i].microseconds);
  }
  return result;
}

std::shared_ptr<ForwardImpl> TrainerImpl::attach(TraceFunction forward,
                                                 const ForwardOptions& options, const Site& site) {
  const std::lock_guard lock(*mutex_);
  if (options.weights == Weights::kEma && !has_state(kEmaState))
    throw UserError("attach: the trainer keeps no averages: ema_decay is not set", site);
  const std::shared_ptr<Instance>& owner = engine_->shared_instance();
  // The device lives as long as any instance on it.
  auto attached =
      std::make_shared<ForwardImpl>(model_, table_, std::move(forward), options,
                                    owner->shared_device(), "the trainer's", mutex_, owner, site);
  for (const StateEntry& theirs : attached->engine().states()) {
    for (const StateEntry& ours : engine_->states()) {
      if (ours.name != theirs.name || ours.type == theirs.type) continue;
      throw UserError("attach: the state '" + theirs.name + "' is " + to_string(theirs.type) +
                          " here and " + to_string(ours.type) + " in the trainer",
                      site);
    }
  }
  return attached;
}

std::int64_t TrainerImpl::steps() {
  const std::lock_guard lock(*mutex_);
  return step_;
}

std::shared_ptr<TrainerImpl> TrainerImpl::replaced(ModelFunctions model, TraceFunction loss,
                                                   bool keep, const Site& site) {
  const std::lock_guard lock(*mutex_);
  auto next = std::make_shared<TrainerImpl>(std::move(model), std::move(loss), options_, site,
                                            engine_.get());
  next->schedule_ = schedule_;
  next->loaders_ = loaders_;
  for (auto& [name, value] : next->engine_->scalars()) {
    const auto ours = engine_->scalars().find(name);
    if (ours != engine_->scalars().end()) value = ours->second;
  }
  if (!keep) return next;
  std::map<std::string, HostTensor> kept = download_params();
  const std::map<std::string, HostTensor> initial = next->download_params();
  std::erase_if(kept, [&](const auto& each) {
    const auto theirs = initial.find(each.first);
    return theirs == initial.end() || theirs->second.shape != each.second.shape;
  });
  next->upload_params(kept, true);
  return next;
}

std::int64_t TrainerImpl::updates() {
  const std::lock_guard lock(*mutex_);
  return step_ / options_.accumulate;
}

double TrainerImpl::grad_norm() {
  const std::lock_guard lock(*mutex_);
  const auto& outputs = engine_->compiled().program.outputs;
  if (std::none_of(outputs.begin(), outputs.end(),
                   [](const Port& port) { return port.name == kGradNorm; })) {
    throw UserError("grad_norm: neither clip_grad_norm nor skip_nonfinite is on");
  }
  return engine_->download_output(kGradNorm).floats()[0];
}

std::map<std::string, double> TrainerImpl::scalars() {
  const std::lock_guard lock(*mutex_);
  return engine_->scalars();
}

std::int64_t TrainerImpl::epoch() {
  const std::lock_guard lock(*mutex_);
  return rows_ > 0 && position_ == batches_per_epoch() ? epoch_ + 1 : epoch_;
}

double TrainerImpl::lr() {
  const std::lock_guard lock(*mutex_);
  return schedule_.at(step_ / options_.accumulate - schedule_start_);
}

std::vector<double> TrainerImpl::leaf_values(const Node& leaf, const Feed& inputs,
                                             const HyperValues& values) const {
  const std::string& name = leaf.attrs.text("name");
  if (leaf.op == &ops::scalar) {
    const auto at = values.find(name);
    return {from_word(at == values.end() ? 0 : at->second, leaf.type.dtype)};
  }
  const auto count = static_cast<size_t>(numel(leaf.type.shape));
  std::vector<std::uint32_t> words(count);
  const auto given = inputs.find(name);
  if (leaf.op == &ops::parameter || leaf.op == &ops::arena || leaf.op == &ops::state) {
    const auto& flat = before_.at(leaf.op == &ops::state ? state_buffer(name) : "params");
    const std::int64_t from = leaf.op == &ops::parameter ? leaf.attrs.integer("offset") : 0;
    std::copy_n(flat.begin() + from, count, words.begin());
  } else if (given != inputs.end()) {
    std::copy_n(static_cast<const std::uint32_t*>(given->second.data), count, words.begin());
  } else {
    engine_->instance().download(data_buffer(name), 0, std::as_writable_bytes(std::span(words)));
  }
  std::vector<double> result;
  result.reserve(count);
  for (const std::uint32_t word : words) result.push_back(from_word(word, leaf.type.dtype));
  return result;
}

// Goes through the step once more, op by op, from what it began with.
void TrainerImpl::explain_nan(const Feed& inputs, std::int64_t step, float loss) {
  const HyperValues values = hypers(step, (position_ - 1) * options_.batch);
  const NonFinite found = first_non_finite(engine_->compiled().graph, [&](const Node& leaf) {
    return leaf_values(leaf, inputs, values);
  });
  const std::string what =
      "step " + std::to_string(step + 1) + ": the loss is " + number_text(loss);
  if (found.op.empty()) throw UserError(what + "; in double precision no op gives NaN or infinity");
  throw UserError(what + "; the first op that gives NaN or infinity is " + found.op + " (element " +
                      std::to_string(found.element) + " of " + found.type + " is " +
                      number_text(found.value) + ")",
                  found.site);
}

}  // namespace tensorgrad::detail
