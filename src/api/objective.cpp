// SPDX-License-Identifier: MIT
#include "api/objective.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "api/compose.h"
#include "api/graph_view.h"
#include "api/loss_scale.h"
#include "api/training_graph.h"
#include "base/numbers.h"
#include "compile/host_random.h"
#include "compile/interpret.h"
#include "compile/profile.h"
#include "compile/words.h"
#include "ops/registry.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {
namespace {

constexpr int kMostStepsAtOnce = 256;  // rows handed to the device in one go

}  // namespace

ObjectiveImpl::ObjectiveImpl(ObjectiveSource source, const ParameterTable& table,
                             std::size_t number, std::shared_ptr<Device> device,
                             const std::string& why, std::shared_ptr<Turns> turns,
                             Recoverer& recoverer, const SourceLocation& location)
    : turns_(std::move(turns)),
      recoverer_(recoverer),
      source_(std::move(source)),
      table_(table),
      part_(table.part(number)),
      location_(location),
      schedule_(options_.optimizer.lr()) {
  engine_ = build(false, std::move(device), why);
  set_group_scalars();
  if (!options_.dataset.empty()) rows_ = options_.dataset[0].shape[0];
}

void ObjectiveImpl::use(std::shared_ptr<Device> device) {
  if (capturing_) capturing_->use(device);
  engine_->use(std::move(device));
}

void ObjectiveImpl::allocate(SharedMemory shared) {
  engine_->allocate(std::move(shared));
  if (!capturing_) return;
  SharedMemory same;
  engine_->instance().share_with(capturing_->compiled().program, Share::kProgram, same);
  capturing_->allocate(std::move(same));
}

std::unique_ptr<TracedFunction> ObjectiveImpl::traced(bool captures) const {
  const auto loss = [&](const Inputs& inputs) {
    auto outputs = source_.loss(inputs);
    for (auto& [name, tensor] : outputs) tensor = of_type(tensor, DType::kF32, location_);
    return outputs;
  };
  return trace_function(
      table_, options_.inputs, options_.dataset, options_.batch, loss,
      {.training = true, .autocast = options_.mixed_precision, .captures = captures}, location_);
}

GraphView ObjectiveImpl::graph(GraphStage stage) const {
  const auto lock = turns_->lock();
  if (stage == GraphStage::kSimplified) return view_of(engine_->compiled().graph);
  const auto step = traced(false);
  return view_of(differentiated(training_request(*step, table_, part_, options_, location_)));
}

std::unique_ptr<Engine> ObjectiveImpl::build(bool captures, std::shared_ptr<Device> device,
                                             const std::string& why) {
  auto traced = this->traced(captures);
  CompileRequest request = training_request(*traced, table_, part_, options_, location_);
  auto engine =
      std::make_unique<Engine>(std::move(request), std::map<std::string, double>{}, options_.inputs,
                               options_.dataset, std::move(device), why, options_.check_indices);
  // The scalars of the optimizer come to be while it compiles.
  for (const auto& [name, value] : traced->trace.scalars) {
    if (name[0] != '_') engine->scalars()[name] = value;
  }
  if (captures) return engine;
  per_update_ = std::move(traced->trace.per_update);
  hyper_limits_ = std::move(traced->trace.hyper_limits);
  for (const auto& [name, id] : traced->trace.captures) captures_.push_back(name);
  return engine;
}

void ObjectiveImpl::set_group_scalars() {
  for (const GroupRange& range : part_.ranges) {
    if (range.group < 0) continue;
    const ParamGroup& group = options_.groups[static_cast<size_t>(range.group)];
    if (!has_own_lr(group)) continue;
    const std::string factor = kLrFactorPrefix + group_name(group);
    engine_->scalars()[factor] = group.lr_factor;
    group_rates_.push_back({group, group_lr_scalar(range.group), factor});
  }
}

void ObjectiveImpl::put_hypers(std::int64_t step, std::int64_t cursor, HyperValues& values) const {
  engine_->put_hypers(values);
  const std::int64_t update = step / options_.accumulate;
  const double rate = schedule_.at(update - schedule_start_);
  values[kLrScalar] = float_bits(rate);
  for (const GroupRate& each : group_rates_) {
    const double own = each.group.lr ? each.group.lr->at(update) : rate;
    values[each.scalar] = float_bits(engine_->scalars().at(each.factor) * own);
  }
  for (const auto& [name, value] : per_update_)
    values[name] = float_bits(value(update + 1, engine_->scalars()));
  values[kCountScalar] = float_bits(static_cast<double>(update + 1));
  if (options_.accumulate > 1)
    values[kDueScalar] = float_bits((step + 1) % options_.accumulate == 0 ? 1 : 0);
  values[kStepScalar] = static_cast<std::uint32_t>(step);
  values[kSeedScalar] = options_.seed;
  values[kRingScalar] = static_cast<std::uint32_t>(step % kLossRing);
  values[kCursorName] = static_cast<std::uint32_t>(cursor);
}

std::int64_t ObjectiveImpl::batches_per_epoch() const {
  return rows_ == 0 ? 0 : rows_ / options_.batch;
}

void ObjectiveImpl::begin_epoch() {
  order_.resize(static_cast<std::size_t>(rows_));
  if (options_.shuffle) {
    put_random_order(options_.seed, static_cast<std::uint32_t>(epoch_), order_);
  } else {
    std::iota(order_.begin(), order_.end(), 0);
  }
  engine_->instance().upload(data_buffer(kOrderName), 0, std::as_bytes(std::span(order_)));
  order_sent_ = true;
}

std::span<const HyperValues> ObjectiveImpl::next_rows(int count) {
  if (rows_ > 0) {
    if (position_ == batches_per_epoch()) {
      position_ = 0;
      ++epoch_;
      order_sent_ = false;
    }
    if (!order_sent_) begin_epoch();
    count = static_cast<int>(std::min<std::int64_t>(count, batches_per_epoch() - position_));
  }
  const auto rows = static_cast<std::size_t>(count);
  if (next_.size() < rows) next_.resize(rows);
  for (int i = 0; i < count; ++i)
    put_hypers(step_ + i, (position_ + i) * options_.batch, next_[static_cast<std::size_t>(i)]);
  if (rows_ > 0) position_ += count;
  return {next_.data(), rows};
}

void ObjectiveImpl::check_data() const {
  std::string missing;
  if (!engine_->all_data_given(missing)) {
    throw UserError("dataset entry '" + missing + "' has no data; call upload_data()");
  }
}

Engine& ObjectiveImpl::capturing(const std::vector<std::string>& names) {
  check_captures(names, captures_);
  if (capturing_) return *capturing_;
  auto engine = build(true, engine_->device(), engine_->why());
  SharedMemory shared;
  engine_->take_back_inputs();
  engine_->instance().share_with(engine->compiled().program, Share::kProgram, shared);
  engine->allocate(std::move(shared));
  capturing_ = std::move(engine);
  return *capturing_;
}

void ObjectiveImpl::bind(const std::string& buffer, const std::shared_ptr<Memory>& memory,
                         const WGPUBufferImpl* native) {
  engine_->bind(buffer, memory, native);
  if (capturing_) capturing_->bind(buffer, memory, native);
}

void ObjectiveImpl::bind_input(const std::string& name, WGPUBufferImpl* native) {
  const auto lock = turns_->lock();
  std::vector<std::string> known;
  for (const InputSpec& spec : options_.inputs) known.push_back(spec.name);
  check_known("bind_input: unknown input", name, known);
  const std::string buffer = input_buffer(name);
  bind(buffer, engine_->memory_for(buffer, native, "bind_input: '" + name + "'"), native);
}

StepResult ObjectiveImpl::step(const Feed& inputs, const StepOptions& options) {
  const Turn turn(*turns_);
  engine_->check(inputs);
  check_data();
  if (!recoverer_.on()) return recoverer_.guarded([&] { return step_once(inputs, options); });
  KeptInputs kept(inputs);
  bool lost = false;  // and with the device what lay on it
  StepResult result = recoverer_.guarded([&] {
    recoverer_.before_steps(*this, 1);
    return std::exchange(lost, true) ? step_once(kept.feed(), options) : step_once(inputs, options);
  });
  recoverer_.log_step(*this, std::move(kept), !options.captures.empty());
  return result;
}

StepResult ObjectiveImpl::step_once(const Feed& inputs, const StepOptions& options) {
  if (options_.detect_nan) keep_for_nan();
  Engine& engine = options.captures.empty() ? *engine_ : capturing(options.captures);
  engine.upload_inputs(inputs);
  last_ = engine.instance().run(next_rows(1));
  StepResult result = counted();
  if (options_.detect_nan && !std::isfinite(result.loss))
    explain_nan(inputs, result.step - 1, result.loss);
  for (const std::string& name : options.captures)
    result.captures[name] = engine.download_output(capture_output(name));
  return result;
}

StepResult ObjectiveImpl::counted() {
  const std::int64_t done = step_++;
  if (first_unread_ == done) first_unread_ = step_;  // nothing queued before waits to be read
  return {read_loss(done), step_, {}};
}

void ObjectiveImpl::repeat_step(const Feed& inputs, bool captures) {
  Engine& engine = captures ? capturing({}) : *engine_;
  engine.upload_inputs(inputs);
  last_ = engine.instance().run(next_rows(1));
  ++step_;
}

std::optional<StepResult> ObjectiveImpl::step_for(double seconds, const Feed& inputs) {
  const Turn turn(*turns_);
  if (!(seconds >= 0))
    throw UserError("step_for: expected at least 0 seconds, got " + number_text(seconds));
  if (options_.detect_nan) throw UserError("step_for: not supported with detect_nan; call step()");
  if (finished_) return std::exchange(finished_, std::nullopt);
  if (!unfinished_) {
    recoverer_.finish();  // of another objective
    engine_->check(inputs);
    check_data();
    Unfinished fresh;
    if (recoverer_.on()) fresh.inputs = KeptInputs(inputs);
    unfinished_ = std::move(fresh);
    recoverer_.set_unfinished(
        [this] { finished_ = resume_step(std::numeric_limits<double>::infinity(), {}); });
    try {
      return resume_step(seconds, inputs);
    } catch (...) {
      if (!unfinished_->begun) {  // the inputs are not to be had again
        unfinished_.reset();
        recoverer_.set_unfinished(nullptr);
      }
      throw;
    }
  }
  return resume_step(seconds, {});
}

std::optional<StepResult> ObjectiveImpl::resume_step(double seconds, const Feed& inputs) {
  bool lost = inputs.empty();
  const auto result = recoverer_.repeated([&]() -> std::optional<StepResult> {
    const bool again = std::exchange(lost, true);
    if (!unfinished_->begun) {
      recoverer_.before_steps(*this, 1);
      unfinished_->before = progress();
      engine_->upload_inputs(again ? unfinished_->inputs.feed() : inputs);
      unfinished_->row = next_rows(1).front();
      unfinished_->next = 0;
      unfinished_->begun = true;
    }
    unfinished_->next = engine_->instance().run_some(unfinished_->row, unfinished_->next,
                                                     std::chrono::duration<double>(seconds));
    if (unfinished_->next != 0) return std::nullopt;
    return counted();
  });
  if (!result) return result;
  recoverer_.set_unfinished(nullptr);
  recoverer_.log_step(*this, std::move(unfinished_->inputs), false);
  unfinished_.reset();
  return result;
}

bool ObjectiveImpl::cancel_step() {
  const Turn turn(*turns_);
  if (!unfinished_) return false;
  if (unfinished_->begun) {
    if (unfinished_->next > engine_->instance().first_lasting_launch()) return false;
    go_back(unfinished_->before);
  }
  unfinished_.reset();
  recoverer_.set_unfinished(nullptr);
  return true;
}

float ObjectiveImpl::read_loss(std::int64_t step) {
  float loss = 0;
  engine_->instance().download(output_buffer("loss"),
                               step % kLossRing * static_cast<std::int64_t>(sizeof loss),
                               std::as_writable_bytes(std::span(&loss, 1)));
  return loss;
}

void ObjectiveImpl::check_queued(const std::string& call, int count) const {
  if (count < 0)
    throw UserError(call + ": expected at least 0 steps, got " + std::to_string(count));
  if (!engine_->all_inputs_bound()) {
    throw UserError(
        call + ": the inputs are passed at each step; call step(), or declare them as a dataset");
  }
  check_data();
}

void ObjectiveImpl::submit(int count) {
  const Turn turn(*turns_);
  check_queued("submit", count);
  if (options_.detect_nan) throw UserError("submit: not supported with detect_nan; call step()");
  queue(count, turn);
}

void ObjectiveImpl::queue(int count, const Turn& turn) {
  while (count > 0) {
    turn.check();
    const int done =
        recoverer_.guarded([&] { return run_rows(recoverer_.before_steps(*this, count)); });
    recoverer_.log_steps(*this, done);
    count -= done;
  }
}

int ObjectiveImpl::run_rows(int count) {
  const std::span<const HyperValues> rows = next_rows(std::min(count, kMostStepsAtOnce));
  last_ = engine_->instance().run(rows);
  step_ += static_cast<std::int64_t>(rows.size());
  return static_cast<int>(rows.size());
}

std::vector<float> ObjectiveImpl::run(int count) {
  const Turn turn(*turns_);
  check_queued("run", count);
  std::vector<float> result;
  if (options_.detect_nan) {  // looks at each
    for (int i = 0; i < count; ++i) {
      turn.check();
      result.push_back(step({}, {}).loss);
    }
    return result;
  }
  std::vector<float> before = losses();
  result.reserve(static_cast<std::size_t>(std::min<std::int64_t>(count, kLossRing)));
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

std::vector<float> ObjectiveImpl::losses() {
  const auto lock = turns_->lock();
  const std::vector<float> ring = recoverer_.guarded([&] {
    wait();
    return engine_->download_floats(output_buffer("loss"));
  });
  const std::int64_t from = std::max(first_unread_, step_ - kLossRing);
  first_unread_ = step_;
  std::vector<float> result = std::move(kept_);
  kept_.clear();
  result.reserve(result.size() + static_cast<std::size_t>(step_ - from));
  for (std::int64_t s = from; s < step_; ++s)
    result.push_back(ring[static_cast<size_t>(s % kLossRing)]);
  return result;
}

void ObjectiveImpl::set_lr(const Schedule& schedule) {
  const auto lock = turns_->lock();
  check_rate("set_lr", schedule);
  recoverer_.finish();
  put_schedule(schedule);
  recoverer_.log_schedule(*this, schedule);
}

void ObjectiveImpl::put_schedule(const Schedule& schedule) {
  schedule_ = schedule;
  schedule_start_ = step_ / options_.accumulate;
}

void ObjectiveImpl::set(const std::string& name, double value) {
  const auto lock = turns_->lock();
  const auto at = engine_->scalars().find(name);
  if (at == engine_->scalars().end()) {
    std::vector<std::string> known;
    for (const auto& [each, current] : engine_->scalars()) known.push_back(each);
    check_known("unknown run-time scalar", name, known);
  }
  check_scalar(name, value);
  const auto limit = hyper_limits_.find(name);
  if (limit != hyper_limits_.end() && !(value >= 0 && value < limit->second)) {
    throw UserError(name + ": expected at least 0 and less than " + number_text(limit->second) +
                    ", got " + number_text(value));
  }
  recoverer_.finish();
  at->second = value;
  recoverer_.log_scalar(*this, name, value);
}

Profile ObjectiveImpl::profile(const Feed& inputs, const ProfileOptions& options) {
  const Turn turn(*turns_);
  engine_->check(inputs);
  check_data();
  KeptInputs kept;
  if (recoverer_.on()) kept = KeptInputs(inputs);
  bool lost = false;
  Profile profile = recoverer_.guarded([&] {
    recoverer_.before_steps(*this, options.steps);
    engine_->upload_inputs(std::exchange(lost, true) ? kept.feed() : inputs);
    return engine_->profile(options, [&] {
      HyperValues next = next_rows(1).front();
      ++step_;
      return next;
    });
  });
  recoverer_.log_step(*this, std::move(kept), false, options.steps);
  return profile;
}

double ObjectiveImpl::scale_number(ScaleNumber which, const char* call) const {
  const auto lock = turns_->lock();
  if (!scales()) {
    throw UserError(std::string(call) +
                    ": the loss is not scaled: neither mixed_precision nor loss_scale is enabled");
  }
  const std::vector<float> state = recoverer_.guarded(
      [&] { return engine_->download_floats(state_buffer(scale_state(part_))); });
  const float kept = state[static_cast<std::size_t>(which)];
  const bool first = which == ScaleNumber::kFactor && kept == 0;
  return first ? options_.loss_scale.value_or(LossScale{}).init_scale : kept;
}

NamedTensors ObjectiveImpl::download_grads() const {
  const auto lock = turns_->lock();
  std::vector<float> grads = recoverer_.guarded([&] { return engine_->download_floats("grads"); });
  if (scales() && step_ > 0) {
    const auto unscale = static_cast<float>(scale_number(ScaleNumber::kUnscale, "download_grads"));
    for (float& each : grads) each *= unscale;
  }
  return part_.unpack(grads);
}

void ObjectiveImpl::start_averages(const std::vector<float>& params) {
  if (!part_.averaged) return;
  const auto from = params.begin() + part_.begin;
  engine_->upload_state(part_.state(kEmaName), {from, from + part_.elements});
}

void ObjectiveImpl::go_back(const Progress& progress) {
  engine_->scalars() = progress.scalars;
  step_ = progress.step;
  epoch_ = progress.epoch;
  position_ = progress.position;
  schedule_ = progress.schedule;
  schedule_start_ = progress.schedule_start;
  order_sent_ = false;
  last_ = 0;
  if (unfinished_) unfinished_->begun = false;
}

void ObjectiveImpl::reset() {
  schedule_ = options_.optimizer.lr();
  schedule_start_ = step_ = first_unread_ = epoch_ = position_ = 0;
  kept_.clear();
  order_sent_ = false;
}

void ObjectiveImpl::go_on_as(const ObjectiveImpl& other) {
  schedule_ = other.schedule_;
  for (auto& [name, value] : engine_->scalars()) {
    const auto theirs = other.engine_->scalars().find(name);
    if (theirs != other.engine_->scalars().end()) value = theirs->second;
  }
}

std::int64_t ObjectiveImpl::steps() const {
  const auto lock = turns_->lock();
  return step_;
}

std::int64_t ObjectiveImpl::updates() const {
  const auto lock = turns_->lock();
  return step_ / options_.accumulate;
}

double ObjectiveImpl::grad_norm() const {
  const auto lock = turns_->lock();
  const auto& outputs = engine_->compiled().program.outputs;
  if (std::none_of(outputs.begin(), outputs.end(),
                   [](const Port& port) { return port.name == kGradNorm; })) {
    throw UserError(
        "grad_norm: not computed: enable clip_grad_norm, skip_nonfinite or loss scaling");
  }
  return recoverer_.guarded([&] { return engine_->download_output(kGradNorm).floats()[0]; });
}

std::map<std::string, double> ObjectiveImpl::scalars() const {
  const auto lock = turns_->lock();
  return engine_->scalars();
}

std::int64_t ObjectiveImpl::epoch() const {
  const auto lock = turns_->lock();
  return rows_ > 0 && position_ == batches_per_epoch() ? epoch_ + 1 : epoch_;
}

double ObjectiveImpl::lr() const {
  const auto lock = turns_->lock();
  return schedule_.at(step_ / options_.accumulate - schedule_start_);
}

void ObjectiveImpl::keep_for_nan() {
  before_.clear();
  before_["params"] = engine_->download_words("params");
  for (const StateEntry& state : engine_->states()) {
    const std::string buffer = state_buffer(state.name);
    before_[buffer] = engine_->download_words(buffer);
  }
}

std::vector<double> ObjectiveImpl::leaf_values(const Node& leaf, const Feed& inputs,
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
    const std::int64_t from = leaf.op == &ops::state ? 0 : leaf.attrs.integer("offset");
    std::copy_n(flat.begin() + from, count, words.begin());
  } else if (given != inputs.end() && given->second.on_device) {
    words = words_of(DeviceTensor(given->second.on_device).download());
  } else if (given != inputs.end()) {
    words = words_of(given->second);
  } else {
    words = engine_->download_data(name, leaf.type);
  }
  std::vector<double> result;
  result.reserve(count);
  for (const std::uint32_t word : words) result.push_back(from_word(word, leaf.type.dtype));
  return result;
}

// Goes through the step once more, op by op, from what it began with.
void ObjectiveImpl::explain_nan(const Feed& inputs, std::int64_t step, float loss) {
  HyperValues values;
  put_hypers(step, (position_ - 1) * options_.batch, values);
  const NonFinite found = first_non_finite(engine_->compiled().graph, [&](const Node& leaf) {
    return leaf_values(leaf, inputs, values);
  });
  const std::string what =
      "step " + std::to_string(step + 1) + ": the loss is " + number_text(loss);
  if (found.op.empty())
    throw UserError(what + "; in double precision no op produces NaN or infinity");
  throw UserError(what + "; the first op to produce NaN or infinity is " + found.op + " (element " +
                      std::to_string(found.element) + " of " + found.type + " is " +
                      number_text(found.value) + ")",
                  found.location);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
