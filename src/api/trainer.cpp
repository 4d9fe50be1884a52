// SPDX-License-Identifier: MIT
#include "api/trainer.h"

#include <algorithm>
#include <cmath>

#include "api/forward.h"
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
                         const Site& site)
    : model_(std::move(model)),
      table_(model_),
      options_(options),
      schedule_(options.optimizer.lr()) {
  auto traced =
      trace_function(table_, options.inputs, options.dataset, options.batch, loss, true, site);
  CompileRequest request = training_request(*traced, table_, options_, site);
  std::string why;
  std::shared_ptr<Device> device = open_device(options.device, why);
  // The scalars of the optimizer come to be while it compiles.
  engine_ = std::make_unique<Engine>(std::move(request), std::map<std::string, double>{},
                                     options.inputs, options.dataset, std::move(device),
                                     std::move(why), options.check_indices);
  for (const auto& [name, value] : traced->trace.scalars) {
    if (name[0] != '_') engine_->scalars()[name] = value;
  }
  if (!options.dataset.empty()) rows_ = options.dataset[0].shape[0];
  engine_->upload_params(table_.initial(options_.seed));
}

HyperValues TrainerImpl::hypers(std::int64_t step, std::int64_t cursor) const {
  HyperValues values = engine_->hypers();
  values[kLrScalar] = float_bits(schedule_.at(step - schedule_start_));
  values[kCountScalar] = float_bits(static_cast<double>(step + 1));
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

StepResult TrainerImpl::step(const Feed& inputs) {
  const std::lock_guard lock(*mutex_);
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
  engine_->upload_inputs(inputs);
  last_ = engine_->instance().run(next_rows(1));
  const std::int64_t done = step_++;
  if (first_unread_ == done) first_unread_ = step_;  // nothing queued before waits to be read
  const float loss = read_loss(done);
  if (options_.detect_nan && !std::isfinite(loss)) explain_nan(inputs, done, loss);
  return {loss, step_};
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
  const std::lock_guard lock(*mutex_);
  check_queued(count);
  if (options_.detect_nan) throw UserError("submit: with detect_nan, call step()");
  while (count > 0) {
    const std::vector<HyperValues> rows = next_rows(std::min(count, kMostStepsAtOnce));
    last_ = engine_->instance().run(rows);
    step_ += static_cast<std::int64_t>(rows.size());
    count -= static_cast<int>(rows.size());
  }
}

std::vector<float> TrainerImpl::run(int count) {
  const std::lock_guard lock(*mutex_);
  check_queued(count);
  std::vector<float> result;
  if (options_.detect_nan) {  // looks at each
    for (int i = 0; i < count; ++i) result.push_back(step({}).loss);
    return result;
  }
  std::vector<float> before = losses();
  while (count > 0) {
    const int part = static_cast<int>(std::min<std::int64_t>(count, kLossRing));
    submit(part);
    const std::vector<float> some = losses();
    result.insert(result.end(), some.begin(), some.end());
    count -= part;
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
  schedule_ = std::move(schedule);
  schedule_start_ = step_;
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
  if (name == kClipScalar) check_clip_norm(value);
  at->second = value;
}

void TrainerImpl::reset() {
  const std::lock_guard lock(*mutex_);
  engine_->upload_params(table_.initial(options_.seed));
  engine_->reset_states();
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

void TrainerImpl::upload_params(const std::map<std::string, HostTensor>& params) {
  const std::lock_guard lock(*mutex_);
  engine_->upload_params(table_.pack(params, "upload_params"));
}

std::vector<std::pair<std::string, double>> TrainerImpl::profile(const Feed& inputs) {
  const std::lock_guard lock(*mutex_);
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
  const std::shared_ptr<Instance>& owner = engine_->shared_instance();
  // The device lives as long as any instance on it.
  auto attached =
      std::make_shared<ForwardImpl>(model_, std::move(forward), options, owner->shared_device(),
                                    "the trainer's", mutex_, owner, site);
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

std::int64_t TrainerImpl::epoch() {
  const std::lock_guard lock(*mutex_);
  return rows_ > 0 && position_ == batches_per_epoch() ? epoch_ + 1 : epoch_;
}

double TrainerImpl::lr() {
  const std::lock_guard lock(*mutex_);
  return schedule_.at(step_ - schedule_start_);
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
