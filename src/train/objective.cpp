// SPDX-License-Identifier: MIT
#include "train/objective.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/numbers.h"
#include "compile/debug/interpret.h"
#include "compile/debug/profile.h"
#include "compile/runtime/element_codec.h"
#include "compile/runtime/host_random.h"
#include "ops/registry.h"
#include "trace/composite.h"
#include "train/graph_view.h"
#include "train/loss_scale.h"
#include "train/trainer.h"
#include "train/training_graph.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {
namespace {

constexpr int kMaxStepsAtOnce = 256;  // rows of scalars in one submission
constexpr int kMaxGathered = 16;      // steps with inputs from the host in one submission

}  // namespace

ObjectiveImpl::ObjectiveImpl(ObjectiveSource source, const ParameterTable& table,
                             std::size_t number, std::shared_ptr<Device> device,
                             const std::string& reason, std::shared_ptr<CallLock> call_lock,
                             Recoverer& recoverer, const SourceLocation& location)
    : call_lock_(std::move(call_lock)),
      recoverer_(recoverer),
      source_(std::move(source)),
      table_(table),
      part_(table.part(number)),
      location_(location),
      sizes_(options_.inputs, options_.dynamic_size, options_.max_cached_sizes, "CompileOptions",
             location),
      schedule_(options_.optimizer.lr()) {
  sizes_.first().session = build(options_.dynamic_size, false, std::move(device), reason);
  set_group_scalars();
  if (!options_.dataset.empty()) rows_ = options_.dataset[0].shape[0];
  if (ranks_ == nullptr) return;
  averaged_states_ = changed_states();
  if (rows_ > 0 && batches_per_epoch() == 0) {
    throw UserError("compile: " + std::to_string(ranks_->size()) + " ranks with batches of " +
                        std::to_string(options_.batch) + " need a dataset of at least " +
                        std::to_string(whole_batch()) + " rows, got " + std::to_string(rows_),
                    location);
  }
}

template <class Call>
void ObjectiveImpl::for_each_session(const Call& call) {
  const auto both = [&](const SizedSession& sized) {
    call(*sized.session);
    if (sized.capturing) call(*sized.capturing);
  };
  both(sizes_.first());
  for (const SizedSession& each : sizes_.others()) both(each);
}

void ObjectiveImpl::use(const std::shared_ptr<Device>& device) {
  for_each_session([&](ProgramSession& each) { each.use(device); });
}

void ObjectiveImpl::allocate(SharedMemory shared) {
  session().allocate(std::move(shared));
  for_each_session([&](ProgramSession& each) {
    if (&each == &session()) return;
    SharedMemory same;
    session().instance().share_with(each.compiled().program, Share::kProgram, same);
    each.allocate(std::move(same));
  });
}

std::unique_ptr<TracedFunction> ObjectiveImpl::traced(std::int64_t size, bool captures) const {
  const auto loss = [&](const Inputs& inputs) {
    auto outputs = source_.loss(inputs);
    for (auto& [name, tensor] : outputs) tensor = cast_if_autocast(tensor, DType::kF32, location_);
    return outputs;
  };
  return trace_function(
      table_, closed(options_.inputs, size), options_.dataset, options_.batch, loss,
      {.training = true, .autocast = options_.mixed_precision, .captures = captures}, location_);
}

GraphView ObjectiveImpl::graph(GraphStage stage) const {
  const auto lock = call_lock_->lock();
  if (stage == GraphStage::kSimplified) return make_graph_view(session().compiled().graph);
  const auto step = traced(options_.dynamic_size, false);
  return make_graph_view(
      differentiated(training_request(*step, table_, part_, options_, location_)));
}

std::unique_ptr<ProgramSession> ObjectiveImpl::build(std::int64_t size, bool captures,
                                                     std::shared_ptr<Device> device,
                                                     const std::string& reason) {
  auto traced = this->traced(size, captures);
  if (sizes_.first().session == nullptr) retrace_.keep(traced->trace.graph);
  CompileRequest request = training_request(*traced, table_, part_, options_, location_);
  auto session = std::make_unique<ProgramSession>(
      std::move(request), std::map<std::string, double>{}, closed(options_.inputs, size),
      options_.dataset, std::move(device), reason, options_.check_indices);
  session->set_initial(table_.buffers());
  // Compiling adds the optimizer's scalars to the trace.
  for (const auto& [name, value] : traced->trace.scalars) {
    if (name[0] != '_') session->scalars()[name] = value;
  }
  if (sizes_.first().session != nullptr) return session;
  per_update_ = std::move(traced->trace.per_update);
  counts_taken_ = traced->trace.counts_updates && skips();
  scalar_limits_ = std::move(traced->trace.scalar_limits);
  for (const auto& [name, id] : traced->trace.captures) captures_.push_back(name);
  printed_ = std::move(traced->trace.printed);
  return session;
}

void ObjectiveImpl::set_group_scalars() {
  for (const GroupRange& range : part_.ranges) {
    if (range.group < 0) continue;
    const ParamGroup& group = options_.groups[static_cast<size_t>(range.group)];
    if (!has_own_lr(group)) continue;
    const std::string factor = kLrFactorPrefix + group_name(group);
    session().scalars()[factor] = group.lr_factor;
    group_rates_.push_back({group, group_lr_scalar(range.group), factor});
  }
}

void ObjectiveImpl::set_scalars(std::int64_t step, std::int64_t cursor,
                                ScalarValues& values) const {
  session().set_scalars(values);
  const std::int64_t update = step / options_.accumulate;
  const double rate = schedule_.at(update - schedule_start_);
  values[kLrScalar] = float_bits(rate);
  for (const GroupRate& each : group_rates_) {
    const double own = each.group.lr ? each.group.lr->at(update) : rate;
    values[each.scalar] = float_bits(session().scalars().at(each.factor) * own);
  }
  const std::int64_t number = (counts_taken_ ? taken_ : update) + 1;
  for (const auto& [name, value] : per_update_)
    values[name] = float_bits(value(number, session().scalars()));
  values[kCountScalar] = float_bits(static_cast<double>(update + 1));
  if (options_.accumulate > 1)
    values[kDueScalar] = float_bits((step + 1) % options_.accumulate == 0 ? 1 : 0);
  values[kStepScalar] = static_cast<std::uint32_t>(step);
  const int rank = ranks_ == nullptr ? 0 : ranks_->rank();
  values[kSeedScalar] = objective_seed(options_.seed, static_cast<std::size_t>(rank));
  values[kRingScalar] = static_cast<std::uint32_t>(step % kLossRing);
  values[kCursorName] = static_cast<std::uint32_t>(cursor);
}

std::int64_t ObjectiveImpl::batches_per_epoch() const {
  return rows_ == 0 ? 0 : rows_ / whole_batch();
}

void ObjectiveImpl::begin_epoch() {
  order_.resize(static_cast<std::size_t>(rows_));
  if (options_.shuffle) {
    put_random_order(options_.seed, static_cast<std::uint32_t>(epoch_), order_);
  } else {
    std::iota(order_.begin(), order_.end(), 0);
  }
  session().instance().upload(data_buffer(kOrderName), 0, std::as_bytes(std::span(order_)));
  order_sent_ = true;
}

std::span<const ScalarValues> ObjectiveImpl::next_rows(int count) {
  if (counts_taken_) {
    count = std::min(count, 1);
    taken_ = static_cast<std::int64_t>(state_number(ScaleNumber::kTaken));
  }
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
  const std::int64_t own = ranks_ == nullptr ? 0 : ranks_->rank() * options_.batch;
  for (int i = 0; i < count; ++i) {
    set_scalars(step_ + i, (position_ + i) * whole_batch() + own,
                next_[static_cast<std::size_t>(i)]);
  }
  if (rows_ > 0) position_ += count;
  return {next_.data(), rows};
}

void ObjectiveImpl::check_ready() const {
  std::string missing;
  if (!session().all_data_given(missing)) {
    throw UserError("dataset entry '" + missing + "' has no data; call upload_data()");
  }
  retrace_.check("the loss", [&] { return traced(options_.dynamic_size, false)->trace.graph; });
}

std::unique_ptr<ProgramSession> ObjectiveImpl::build_sharing(const ProgramSession& owner,
                                                             std::int64_t size, bool captures) {
  auto session = build(size, captures, owner.device(), owner.reason());
  SharedMemory shared;
  owner.instance().share_with(session->compiled().program, Share::kProgram, shared);
  session->allocate(std::move(shared));
  return session;
}

SizedSession& ObjectiveImpl::of_checked(const FeedView& inputs) {
  return sizes_.of_checked(inputs, [this](std::int64_t size) {
    session().take_back_inputs();
    return build_sharing(session(), size, false);
  });
}

ProgramSession& ObjectiveImpl::capturing(SizedSession& sized,
                                         const std::vector<std::string>& names) {
  check_captures(names, captures_);
  if (!sized.capturing) {
    sized.session->take_back_inputs();
    sized.capturing = build_sharing(*sized.session, sized.size, true);
  }
  return *sized.capturing;
}

std::vector<std::int64_t> ObjectiveImpl::compiled_sizes() const {
  const auto lock = call_lock_->lock();
  return sizes_.sizes();
}

void ObjectiveImpl::bind(const std::string& buffer, const std::shared_ptr<Memory>& memory,
                         const WGPUBufferImpl* native) {
  recoverer_.finish();
  for_each_session([&](ProgramSession& each) { each.bind(buffer, memory, native); });
}

void ObjectiveImpl::bind_input(const std::string& name, WGPUBufferImpl* native) {
  const auto lock = call_lock_->lock();
  if (sizes_.dynamic()) {
    throw UserError(
        "bind_input: not supported for a dynamic size, as each size has its own buffers");
  }
  std::vector<std::string> known;
  for (const InputSpec& spec : options_.inputs) known.push_back(spec.name);
  check_known("bind_input: unknown input", name, known);
  const std::string buffer = input_buffer(name);
  bind(buffer, session().memory_for(buffer, native, "bind_input: '" + name + "'"), native);
}

StepResult ObjectiveImpl::step(const FeedView& inputs, const StepOptions& options) {
  const ScopedCall scoped_call(*call_lock_);
  sizes_.check(inputs);
  check_ready();
  if (!recoverer_.on()) return recoverer_.guarded([&] { return step_once(inputs, options); });
  KeptInputs kept(inputs);
  bool lost = false;  // device inputs are lost with the device
  StepResult result = recoverer_.guarded([&] {
    recoverer_.before_steps(*this, 1);
    return std::exchange(lost, true) ? step_once(kept.feed(), options) : step_once(inputs, options);
  });
  recoverer_.log_step(*this, std::move(kept), captures_are_read(options));
  return result;
}

StepResult ObjectiveImpl::step_once(const FeedView& inputs, const StepOptions& options) {
  if (options_.detect_nan) keep_for_nan();
  SizedSession& sized = of_checked(inputs);
  ProgramSession& session =
      captures_are_read(options) ? capturing(sized, options.captures) : *sized.session;
  session.upload_inputs(inputs);
  last_ = run_on_ranks(session, next_rows(1), step_);
  StepResult result = counted();
  if (options_.detect_nan && !std::isfinite(result.loss))
    explain_nan(*sized.session, inputs, result.step - 1, result.loss);
  for (const std::string& name : options.captures)
    result.captures[name] = session.download_output(capture_output(name));
  session.print(printed_);
  return result;
}

StepResult ObjectiveImpl::counted() {
  const std::int64_t done = step_++;
  if (first_unread_ == done) first_unread_ = step_;  // no earlier loss is unread
  float loss = read_loss(done);
  if (ranks_ != nullptr) mean_over_ranks(*ranks_, {&loss, 1});
  return {loss, step_, {}};
}

void ObjectiveImpl::repeat_step(const FeedView& inputs, bool captures) {
  SizedSession& sized = of_checked(inputs);
  ProgramSession& session = captures ? capturing(sized, {}) : *sized.session;
  session.upload_inputs(inputs);
  last_ = session.instance().run(next_rows(1));
  ++step_;
}

std::optional<StepResult> ObjectiveImpl::step_for(double seconds, const FeedView& inputs) {
  const ScopedCall scoped_call(*call_lock_);
  check_one_rank("step_for");
  if (!(seconds >= 0))
    throw UserError("step_for: expected at least 0 seconds, got " + number_text(seconds));
  check_not_step_by_step("step_for");
  if (finished_) return std::exchange(finished_, std::nullopt);
  if (!unfinished_) {
    recoverer_.finish();  // an unfinished step of another objective
    sizes_.check(inputs);
    check_ready();
    Unfinished fresh;
    if (recoverer_.on()) fresh.inputs = KeptInputs(inputs);
    unfinished_ = std::move(fresh);
    recoverer_.set_unfinished(
        [this] { finished_ = resume_step(std::numeric_limits<double>::infinity(), {}); });
    try {
      return resume_step(seconds, inputs);
    } catch (...) {
      if (!unfinished_->begun) {  // the inputs are not available for another attempt
        unfinished_.reset();
        recoverer_.set_unfinished(nullptr);
      }
      throw;
    }
  }
  return resume_step(seconds, {});
}

std::optional<StepResult> ObjectiveImpl::resume_step(double seconds, const FeedView& inputs) {
  bool lost = inputs.empty();
  const auto result = recoverer_.repeated([&]() -> std::optional<StepResult> {
    const bool again = std::exchange(lost, true);
    if (!unfinished_->begun) {
      recoverer_.before_steps(*this, 1);
      unfinished_->before = progress();
      const FeedView given = again ? unfinished_->inputs.feed() : inputs;
      unfinished_->session = of_checked(given).session.get();
      unfinished_->session->upload_inputs(given);
      unfinished_->row = next_rows(1).front();
      unfinished_->next = 0;
      unfinished_->begun = true;
    }
    unfinished_->next = unfinished_->session->instance().run_some(
        unfinished_->row, unfinished_->next, std::chrono::duration<double>(seconds));
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
  const ScopedCall scoped_call(*call_lock_);
  if (!unfinished_) return false;
  if (unfinished_->begun) {
    if (unfinished_->next > unfinished_->session->instance().first_lasting_launch()) return false;
    go_back(unfinished_->before);
  }
  unfinished_.reset();
  recoverer_.set_unfinished(nullptr);
  return true;
}

float ObjectiveImpl::read_loss(std::int64_t step) {
  float loss = 0;
  session().instance().download(output_buffer("loss"),
                                step % kLossRing * static_cast<std::int64_t>(sizeof loss),
                                std::as_writable_bytes(std::span(&loss, 1)));
  return loss;
}

void ObjectiveImpl::check_queued(const std::string& call, int count) const {
  if (count < 0)
    throw UserError(call + ": expected at least 0 steps, got " + std::to_string(count));
  if (!session().all_inputs_bound()) {
    throw UserError(
        call + ": the inputs are passed at each step; call step(), or declare them as a dataset");
  }
  check_ready();
}

void ObjectiveImpl::check_not_step_by_step(const std::string& call) const {
  const char* option = options_.detect_nan ? "detect_nan" : "print()";
  if (!can_queue()) throw UserError(call + ": not supported with " + option + "; call step()");
}

void ObjectiveImpl::submit(int count) {
  const ScopedCall scoped_call(*call_lock_);
  check_queued("submit", count);
  check_not_step_by_step("submit");
  queue(count, scoped_call);
}

void ObjectiveImpl::submit(const FeedView& inputs) {
  const ScopedCall scoped_call(*call_lock_);
  check_not_step_by_step("submit");
  sizes_.check(inputs);
  check_ready();
  const bool on_device = std::any_of(inputs.begin(), inputs.end(), [](const auto& input) {
    return input.second.on_device != nullptr;
  });
  // The scalars of a step must not depend on results of the steps before it, nor its data on what
  // is uploaded for a later one. Ranks exchange gradients in each step.
  const bool gathers =
      !sizes_.dynamic() && !on_device && !counts_taken_ && rows_ == 0 && ranks_ == nullptr;
  if (gathered_.count == 0 || !gathers) recoverer_.finish();
  KeptInputs kept;
  if (recoverer_.on()) kept = KeptInputs(inputs);
  bool lost = false;  // device inputs are lost with the device
  recoverer_.repeated([&] {
    const FeedView feed = std::exchange(lost, true) ? kept.feed() : inputs;
    if (gathered_.count == 0) {
      repeat_gathered();
      const int room = recoverer_.before_steps(*this, gathers ? kMaxGathered : 1);
      gathered_.session = of_checked(feed).session.get();
      gathered_.most = gathered_.session->make_input_sets(static_cast<std::size_t>(room));
      gathered_.rows.resize(std::max(gathered_.rows.size(), gathered_.most));
    }
    gathered_.session->upload_inputs(feed, gathered_.count);
    gathered_.rows[gathered_.count] = next_rows(1).front();
    ++step_;
    ++gathered_.count;
  });
  if (recoverer_.on()) gathered_.inputs.push_back(std::move(kept));
  recoverer_.set_unfinished([this] { submit_gathered(); });
  // Looks only after 1, 2, 4, ... steps whether the device is idle, since asking takes time.
  const bool full = gathered_.count == gathered_.most;
  const bool asks = std::has_single_bit(gathered_.count);
  if (full || (asks && gathered_.session->instance().done(last_))) recoverer_.finish();
}

void ObjectiveImpl::submit_gathered() {
  try {
    recoverer_.repeated([&] {
      if (gathered_.count == 0) return repeat_gathered();
      const std::size_t count = std::exchange(gathered_.count, 0);
      last_ = run_on_ranks(*gathered_.session, {gathered_.rows.data(), count},
                           step_ - static_cast<std::int64_t>(count));
    });
  } catch (const DeviceLostError&) {
    throw;  // `inputs` are still to be trained on
  } catch (...) {
    gathered_.inputs.clear();
    throw;
  }
  for (KeptInputs& inputs : gathered_.inputs) recoverer_.log_step(*this, std::move(inputs), false);
  gathered_.inputs.clear();
}

void ObjectiveImpl::repeat_gathered() {
  while (!gathered_.inputs.empty()) {
    repeat_step(gathered_.inputs.front().feed(), false);
    recoverer_.log_step(*this, std::move(gathered_.inputs.front()), false);
    gathered_.inputs.erase(gathered_.inputs.begin());
  }
}

void ObjectiveImpl::queue(int count, const ScopedCall& scoped_call) {
  while (count > 0) {
    scoped_call.check();
    const int done =
        recoverer_.guarded([&] { return run_rows(recoverer_.before_steps(*this, count)); });
    recoverer_.log_steps(*this, done);
    count -= done;
  }
}

int ObjectiveImpl::run_rows(int count) {
  const std::span<const ScalarValues> rows = next_rows(std::min(count, kMaxStepsAtOnce));
  last_ = run_on_ranks(session(), rows, step_);
  step_ += static_cast<std::int64_t>(rows.size());
  return static_cast<int>(rows.size());
}

std::vector<float> ObjectiveImpl::run(int count) {
  const ScopedCall scoped_call(*call_lock_);
  check_queued("run", count);
  std::vector<float> result;
  if (!can_queue()) {
    for (int i = 0; i < count; ++i) {
      scoped_call.check();
      result.push_back(step({}, {}).loss);
    }
    return result;
  }
  std::vector<float> before = losses();
  result.reserve(static_cast<std::size_t>(std::min<std::int64_t>(count, kLossRing)));
  try {
    while (count > 0) {
      const int part = static_cast<int>(std::min<std::int64_t>(count, kLossRing));
      queue(part, scoped_call);
      const std::vector<float> some = losses();
      result.insert(result.end(), some.begin(), some.end());
      count -= part;
    }
  } catch (const AbortedError&) {  // losses of completed steps stay unread
    before.insert(before.end(), result.begin(), result.end());
    kept_ = std::move(before);
    throw;
  }
  kept_ = std::move(before);
  return result;
}

std::vector<float> ObjectiveImpl::losses() {
  const auto lock = call_lock_->lock();
  const std::vector<float> ring = recoverer_.guarded([&] {
    wait();
    return session().download_floats(output_buffer("loss"));
  });
  const std::int64_t from = std::max(first_unread_, step_ - kLossRing);
  first_unread_ = step_;
  std::vector<float> result = std::move(kept_);
  kept_.clear();
  const std::size_t known = result.size();
  result.reserve(known + static_cast<std::size_t>(step_ - from));
  for (std::int64_t s = from; s < step_; ++s)
    result.push_back(ring[static_cast<size_t>(s % kLossRing)]);
  if (ranks_ != nullptr) mean_over_ranks(*ranks_, std::span(result).subspan(known));
  return result;
}

void ObjectiveImpl::set_lr(const Schedule& schedule) {
  const auto lock = call_lock_->lock();
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
  const auto lock = call_lock_->lock();
  const auto at = session().scalars().find(name);
  if (at == session().scalars().end()) {
    std::vector<std::string> known;
    for (const auto& [each, current] : session().scalars()) known.push_back(each);
    check_known("unknown runtime scalar", name, known);
  }
  check_scalar(name, value);
  const auto limit = scalar_limits_.find(name);
  if (limit != scalar_limits_.end() && !(value >= 0 && value < limit->second)) {
    throw UserError(name + ": expected at least 0 and less than " + number_text(limit->second) +
                    ", got " + number_text(value));
  }
  recoverer_.finish();
  at->second = value;
  recoverer_.log_scalar(*this, name, value);
}

Profile ObjectiveImpl::profile(const FeedView& inputs, const ProfileOptions& options) {
  const ScopedCall scoped_call(*call_lock_);
  check_one_rank("profile");
  sizes_.check(inputs);
  check_ready();
  KeptInputs kept;
  if (recoverer_.on()) kept = KeptInputs(inputs);
  bool lost = false;
  Profile profile = recoverer_.guarded([&] {
    recoverer_.before_steps(*this, options.steps);
    const FeedView given = std::exchange(lost, true) ? kept.feed() : inputs;
    ProgramSession& session = *of_checked(given).session;
    session.upload_inputs(given);
    return session.profile(options, [&] {
      ScalarValues next = next_rows(1).front();
      ++step_;
      return next;
    });
  });
  recoverer_.log_step(*this, std::move(kept), false, options.steps);
  return profile;
}

double ObjectiveImpl::scale_number(ScaleNumber which, const char* call) const {
  const auto lock = call_lock_->lock();
  const bool counts = which == ScaleNumber::kSkipped;
  if (counts && !skips()) {
    throw UserError(std::string(call) +
                    ": no update is skipped: enable skip_nonfinite, mixed_precision or loss_scale");
  }
  if (!counts && !scales()) {
    throw UserError(std::string(call) +
                    ": the loss is not scaled: neither mixed_precision nor loss_scale is enabled");
  }
  const float kept = recoverer_.guarded([&] { return state_number(which); });
  const bool first = which == ScaleNumber::kFactor && kept == 0;
  return first ? options_.loss_scale.value_or(LossScale{}).init_scale : kept;
}

float ObjectiveImpl::state_number(ScaleNumber which) const {
  const std::string buffer = state_buffer(scale_state(part_, scales()));
  return session().download_floats(buffer)[static_cast<std::size_t>(which)];
}

NamedTensors ObjectiveImpl::download_grads() const {
  const auto lock = call_lock_->lock();
  if (part_.shards_params)
    throw UserError("download_grads: not supported with shard_parameters: no rank has all of them");
  std::vector<float> grads = recoverer_.guarded([&] { return session().download_floats("grads"); });
  if (scales() && step_ > 0) {
    const auto unscale = static_cast<float>(scale_number(ScaleNumber::kUnscale, "download_grads"));
    for (float& each : grads) each *= unscale;
  }
  return part_.unpack(grads);
}

void ObjectiveImpl::start_averages(const std::vector<float>& params) {
  if (!part_.averaged) return;
  const auto from = params.begin() + part_.begin;
  upload_state(part_.state(kEmaName), {from, from + part_.elements});
}

void ObjectiveImpl::go_back(const Progress& progress) {
  session().scalars() = progress.scalars;
  step_ = progress.step;
  epoch_ = progress.epoch;
  position_ = progress.position;
  schedule_ = progress.schedule;
  schedule_start_ = progress.schedule_start;
  order_sent_ = false;
  last_ = 0;
  if (unfinished_) unfinished_->begun = false;
  gathered_.count = 0;
}

void ObjectiveImpl::reset() {
  schedule_ = options_.optimizer.lr();
  schedule_start_ = step_ = first_unread_ = epoch_ = position_ = 0;
  kept_.clear();
  order_sent_ = false;
}

void ObjectiveImpl::go_on_as(const ObjectiveImpl& other) {
  schedule_ = other.schedule_;
  for (auto& [name, value] : session().scalars()) {
    const auto theirs = other.session().scalars().find(name);
    if (theirs != other.session().scalars().end()) value = theirs->second;
  }
}

std::int64_t ObjectiveImpl::steps() const {
  const auto lock = call_lock_->lock();
  return step_;
}

std::int64_t ObjectiveImpl::updates() const {
  const auto lock = call_lock_->lock();
  return step_ / options_.accumulate;
}

double ObjectiveImpl::grad_norm() const {
  const auto lock = call_lock_->lock();
  const auto& outputs = session().compiled().program.outputs;
  if (std::none_of(outputs.begin(), outputs.end(),
                   [](const Port& port) { return port.name == kGradNorm; })) {
    throw UserError(
        "grad_norm: not computed: enable clip_grad_norm, skip_nonfinite or loss scaling");
  }
  return recoverer_.guarded([&] { return session().download_output(kGradNorm).floats()[0]; });
}

std::map<std::string, double> ObjectiveImpl::scalars() const {
  const auto lock = call_lock_->lock();
  return session().scalars();
}

std::int64_t ObjectiveImpl::epoch() const {
  const auto lock = call_lock_->lock();
  return rows_ > 0 && position_ == batches_per_epoch() ? epoch_ + 1 : epoch_;
}

double ObjectiveImpl::lr() const {
  const auto lock = call_lock_->lock();
  return schedule_.at(step_ / options_.accumulate - schedule_start_);
}

void ObjectiveImpl::keep_for_nan() {
  before_.clear();
  before_["params"] = session().download_words("params");
  for (const StateEntry& state : session().states()) {
    const std::string buffer = state_buffer(state.name);
    before_[buffer] = session().download_words(buffer);
  }
}

std::vector<double> ObjectiveImpl::leaf_values(const ProgramSession& session, const Node& leaf,
                                               const FeedView& inputs,
                                               const ScalarValues& values) const {
  const std::string& name = leaf.attrs.text("name");
  if (leaf.op == &ops::scalar) {
    const auto at = values.find(name);
    return {decode_element(at == values.end() ? 0 : at->second, leaf.type.dtype)};
  }
  const auto count = static_cast<size_t>(numel(leaf.type.shape));
  std::vector<std::uint32_t> words(count);
  const auto given = inputs.find(name);
  if (leaf.op == &ops::parameter || leaf.op == &ops::arena || leaf.op == &ops::state) {
    const auto& flat = before_.at(leaf.op == &ops::state ? state_buffer(name) : "params");
    const std::int64_t from = leaf.op == &ops::state ? 0 : leaf.attrs.integer("offset");
    std::copy_n(flat.begin() + from, count, words.begin());
  } else if (given != inputs.end() && given->second.on_device) {
    words = encode_elements(DeviceTensor(given->second.on_device).download());
  } else if (given != inputs.end()) {
    words = encode_elements(given->second);
  } else {
    words = session.download_data(name, leaf.type);
  }
  std::vector<double> result;
  result.reserve(count);
  for (const std::uint32_t word : words) result.push_back(decode_element(word, leaf.type.dtype));
  return result;
}

// Repeats the step op by op from the saved buffers to find the first non-finite value.
void ObjectiveImpl::explain_nan(const ProgramSession& session, const FeedView& inputs,
                                std::int64_t step, float loss) {
  ScalarValues values;
  set_scalars(step, (position_ - 1) * options_.batch, values);
  const NonFinite found = first_non_finite(session.compiled().graph, [&](const Node& leaf) {
    return leaf_values(session, leaf, inputs, values);
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
