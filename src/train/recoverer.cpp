// SPDX-License-Identifier: MIT
#include "train/recoverer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <span>

#include "base/check.h"
#include "base/numbers.h"
#include "train/trainer.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace detail {
namespace {

constexpr int kMaxLosses = 3;  // consecutive losses during one call

// Downloads buffers in pieces, so that the driver's staging copies stay small.
class Downloads {
 public:
  void add(const Memory& memory, std::span<std::byte> bytes) {
    device_ = memory.device();
    for (std::size_t at = 0; at < bytes.size(); at += kSnapshotPiece) {
      const std::span<std::byte> piece =
          bytes.subspan(at, std::min(kSnapshotPiece, bytes.size() - at));
      last_ = device_->download(memory.handle(), static_cast<std::int64_t>(at), piece);
      pending_ += piece.size();
      if (pending_ >= 4 * kSnapshotPiece) wait();
    }
  }
  void wait() {
    if (device_) device_->wait(last_);
    pending_ = 0;
  }

 private:
  static constexpr std::size_t kSnapshotPiece = 16 << 20;  // bytes
  std::shared_ptr<Device> device_;
  Ticket last_ = 0;
  std::size_t pending_ = 0;
};

// True if the next calls depend on the contents of such a buffer, or return them.
bool lasts(BufferKind kind, bool with_gradients) {
  return kind == BufferKind::kParams || kind == BufferKind::kState || kind == BufferKind::kOutput ||
         (kind == BufferKind::kGrads && with_gradients);
}

void check(const RecoveryOptions& options) {
  const auto refuse = [](const std::string& name, const std::string& got) {
    throw UserError("RecoveryOptions: expected " + name + " of at least 0, got " + got);
  };
  if (options.snapshot_steps < 0) refuse("snapshot_steps", std::to_string(options.snapshot_steps));
  if (!(options.snapshot_seconds >= 0))
    refuse("snapshot_seconds", number_text(options.snapshot_seconds));
  if (options.max_input_bytes < 0)
    refuse("max_input_bytes", std::to_string(options.max_input_bytes));
  if (!(options.wait_seconds >= 0)) refuse("wait_seconds", number_text(options.wait_seconds));
}

}  // namespace

KeptInputs::KeptInputs(const FeedView& feed) {
  for (const auto& [name, value] : feed) {
    HostTensor& kept = tensors_[name];
    if (value.on_device) kept = DeviceTensor(value.on_device).download();
    kept.dtype = value.dtype;
    kept.shape = {static_cast<std::int64_t>(value.count)};
    if (value.on_device) continue;
    const auto* first = static_cast<const std::byte*>(value.data);
    kept.bytes.assign(first, first + value.count * element_bytes(value.dtype));
  }
}

FeedView KeptInputs::feed() const {
  FeedView feed;
  for (const auto& [name, kept] : tensors_) {
    feed.add(name, FeedValue(kept.dtype, kept.bytes.data(),
                             static_cast<std::size_t>(kept.shape.front())));
  }
  return feed;
}

std::int64_t KeptInputs::bytes() const {
  std::int64_t sum = 0;
  for (const auto& [name, kept] : tensors_) sum += static_cast<std::int64_t>(kept.bytes.size());
  return sum;
}

Recoverer::Recoverer(TrainerImpl& trainer, RecoveryOptions options)
    : trainer_(&trainer), options_(std::move(options)) {
  check(options_);
}

void Recoverer::finish() {
  if (!unfinished_) return;
  // Cleared while it runs, because it makes guarded calls itself.
  const auto finish = std::exchange(unfinished_, nullptr);
  try {
    finish();
  } catch (...) {
    unfinished_ = finish;
    throw;
  }
}

void Recoverer::set_up(const std::function<void()>& call) {
  for (int losses = 1;; ++losses) {
    try {
      return call();
    } catch (const DeviceLostError&) {
      if (!on() || losses == kMaxLosses) throw;
      trainer_->use(replace_lost(trainer_->session().device(), options_.wait_seconds));
    }
  }
}

bool Recoverer::due() const {
  if (log_.empty()) return false;
  const std::chrono::duration<double> age = Clock::now() - snapshot_.time;
  return logged_steps_ >= options_.snapshot_steps || logged_runs_ >= options_.snapshot_steps ||
         kept_bytes_ >= options_.max_input_bytes ||
         (options_.snapshot_seconds > 0 && age.count() >= options_.snapshot_seconds);
}

int Recoverer::before_steps(const ObjectiveImpl& objective, int wanted) {
  if (!on()) return wanted;
  if (due()) take(&objective);
  return static_cast<int>(std::min<std::int64_t>(wanted, options_.snapshot_steps - logged_steps_));
}

void Recoverer::before_run() {
  if (on() && due()) take();
}

void Recoverer::take_if_behind() {
  if (on() && !log_.empty()) take();
}

void Recoverer::take(const ObjectiveImpl* stepping) {
  if (!on()) return;
  Snapshot next;
  Downloads downloads;
  std::set<const Memory*> seen;
  const auto save = [&](ProgramSession& session, bool with_gradients, bool own_only,
                        std::vector<SavedBuffer>& saved) {
    for (const BufferDecl& decl : session.compiled().program.buffers) {
      if (!lasts(decl.kind, with_gradients)) continue;
      if (own_only && (decl.kind != BufferKind::kState || session.instance().shares(decl.name)))
        continue;
      if (!seen.insert(session.instance().memory(decl.name).get()).second) continue;
      saved.push_back({&session, decl.name, Bytes(static_cast<std::size_t>(decl.bytes))});
    }
  };
  for (std::size_t k = 0; k < trainer_->size(); ++k) {
    ObjectiveImpl& objective = trainer_->objective(k);
    next.progress.push_back(objective.progress());
    next.step += next.progress.back().step;
    const bool kept = &objective != stepping && next.progress.back().step > 0;
    save(objective.session(), kept, false, next.buffers);
  }
  for (const auto& function : functions()) {
    auto& [at, saved] = next.functions.emplace_back();
    at = function;
    save(function->first(), false, true, saved);
  }
  const auto download = [&](std::vector<SavedBuffer>& buffers) {
    for (SavedBuffer& each : buffers)
      downloads.add(*each.session->instance().memory(each.name), each.bytes);
  };
  download(next.buffers);
  for (auto& [function, buffers] : next.functions) download(buffers);
  downloads.wait();
  next.fields = trainer_->fields();
  if (stepping == nullptr) note_loaders();
  next.fields.insert(loaders_.begin(), loaders_.end());
  next.time = Clock::now();
  snapshot_ = std::move(next);
  log_.clear();
  logged_steps_ = logged_runs_ = kept_bytes_ = 0;
}

void Recoverer::add_entry(Entry entry, int steps, std::int64_t bytes) {
  if (!on()) return;
  log_.push_back(std::move(entry));
  logged_steps_ += steps;
  kept_bytes_ += bytes;
  loaders_ = trainer_->loader_fields();
}

void Recoverer::log_steps(ObjectiveImpl& objective, int count) {
  auto* last = log_.empty() ? nullptr : std::get_if<Steps>(&log_.back());
  if (on() && last != nullptr && last->objective == &objective) {
    last->count += count;
    logged_steps_ += count;
    return;
  }
  add_entry(Steps{&objective, count}, count, 0);
}

void Recoverer::log_step(ObjectiveImpl& objective, KeptInputs inputs, bool captures, int count) {
  const std::int64_t bytes = inputs.bytes();
  add_entry(Step{&objective, std::move(inputs), captures, count}, count, bytes);
}

void Recoverer::log_scalar(ObjectiveImpl& objective, const std::string& name, double value) {
  add_entry(Scalar{&objective, name, value}, 0, 0);
}

void Recoverer::log_schedule(ObjectiveImpl& objective, const Schedule& schedule) {
  add_entry(NewSchedule{&objective, schedule}, 0, 0);
}

void Recoverer::log_run(const std::shared_ptr<CompiledFunctionImpl>& function, KeptInputs inputs,
                        bool captures, std::uint32_t run) {
  const std::int64_t bytes = inputs.bytes();
  ++logged_runs_;
  add_entry(Run{function, std::move(inputs), captures, run}, 0, bytes);
}

void Recoverer::keep_data(const std::string& name, const HostView& values) {
  if (!on()) return;
  if (std::find(data_names_.begin(), data_names_.end(), name) == data_names_.end())
    data_names_.push_back(name);
  if (options_.dataset) return;
  const auto* first = static_cast<const std::byte*>(values.data);
  data_[name] = {values.dtype,
                 {static_cast<std::int64_t>(values.count)},
                 {first, first + values.count * element_bytes(values.dtype)}};
}

void Recoverer::note_loaders() {
  if (!on()) return;
  loaders_ = trainer_->loader_fields();
  for (const auto& [field, place] : loaders_) {
    const auto [at, fresh] = snapshot_.fields.emplace(field, place);
    if (log_.empty()) at->second = place;
  }
}

void Recoverer::add(const std::shared_ptr<CompiledFunctionImpl>& function) {
  functions_.push_back(function);
}

std::vector<std::shared_ptr<CompiledFunctionImpl>> Recoverer::functions() {
  std::vector<std::shared_ptr<CompiledFunctionImpl>> living;
  std::erase_if(functions_, [](const auto& each) { return each.expired(); });
  for (const auto& each : functions_) {
    if (auto function = each.lock()) living.push_back(std::move(function));
  }
  return living;
}

void Recoverer::recover(const std::string& reason, int losses) {
  const Clock::time_point start = Clock::now();
  // After one unsuccessful wait, a single attempt is enough.
  const double wait = std::exchange(stranded_, true) ? 0 : options_.wait_seconds;
  stranded_reason_ = reason;
  try {
    if (losses >= kMaxLosses) throw DeviceLostError("it was lost three times in a row");
    for (int again = losses;; ++again) {
      trainer_->use(replace_lost(trainer_->session().device(), wait));
      try {
        restore();
        break;
      } catch (const DeviceLostError&) {
        if (again >= kMaxLosses) throw;
      }
    }
  } catch (const DeviceLostError& error) {
    throw DeviceLostError(reason + "; " + error.message() +
                          "; save() writes the snapshot of step " + std::to_string(snapshot_.step));
  }
  stranded_ = false;
  const std::chrono::duration<double> took = Clock::now() - start;
  recoveries_.push_back({reason, snapshot_.step, logged_steps_, took.count()});
  if (options_.on_recovery) options_.on_recovery(Recovery(recoveries_.back()));
}

void Recoverer::restore() {
  trainer_->allocate();
  const auto upload = [](const std::vector<SavedBuffer>& buffers) {
    for (const SavedBuffer& each : buffers)
      each.session->instance().upload(each.name, 0, each.bytes);
  };
  upload(snapshot_.buffers);
  for (const auto& function : functions()) trainer_->move(*function);
  for (const auto& [function, buffers] : snapshot_.functions) {
    if (!function.expired()) upload(buffers);
  }
  for (const std::string& name : data_names_) {
    if (options_.dataset) {
      trainer_->put_data(name, options_.dataset(name));
    } else {
      const HostTensor& kept = data_.at(name);
      trainer_->put_data(name, HostView(kept.dtype, kept.bytes.data(),
                                        static_cast<std::size_t>(kept.shape.front())));
    }
  }
  for (std::size_t k = 0; k < trainer_->size(); ++k)
    trainer_->objective(k).go_back(snapshot_.progress[k]);
  for (const Entry& entry : log_) repeat(entry);
  trainer_->wait();
}

void Recoverer::repeat(const Entry& entry) {
  if (const auto* steps = std::get_if<Steps>(&entry)) {
    for (int left = steps->count; left > 0;) left -= steps->objective->run_rows(left);
  } else if (const auto* step = std::get_if<Step>(&entry)) {
    const FeedView feed = step->inputs.feed();
    for (int i = 0; i < step->count; ++i) step->objective->repeat_step(feed, step->captures);
  } else if (const auto* scalar = std::get_if<Scalar>(&entry)) {
    scalar->objective->put_scalar(scalar->name, scalar->value);
  } else if (const auto* schedule = std::get_if<NewSchedule>(&entry)) {
    schedule->objective->put_schedule(schedule->schedule);
  } else if (const auto* run = std::get_if<Run>(&entry)) {
    if (const auto function = run->function.lock())
      function->repeat(run->inputs.feed(), run->captures, run->run);
  }
}

std::vector<float> Recoverer::saved_floats(const std::string& buffer) const {
  for (const SavedBuffer& each : snapshot_.buffers) {
    if (each.name != buffer) continue;
    std::vector<float> values(each.bytes.size() / sizeof(float));
    std::memcpy(values.data(), each.bytes.data(), values.size() * sizeof(float));
    return values;
  }
  UNREACHABLE("no buffer '" + buffer + "' in the snapshot");
}

std::int64_t Recoverer::host_bytes() const {
  if (!on()) return 0;
  std::int64_t sum = kept_bytes_;
  const auto add = [&](const std::vector<SavedBuffer>& buffers) {
    for (const SavedBuffer& each : buffers) sum += static_cast<std::int64_t>(each.bytes.size());
  };
  add(snapshot_.buffers);
  for (const auto& [function, buffers] : snapshot_.functions) add(buffers);
  for (const auto& [name, kept] : data_) sum += static_cast<std::int64_t>(kept.bytes.size());
  return sum;
}

}  // namespace detail

std::string to_string(const Recovery& recovery) {
  return "the device was lost and opened again; repeated " +
         std::to_string(recovery.repeated_steps) + " steps from step " +
         std::to_string(recovery.snapshot_step) + " in " + number_text(recovery.seconds) + " s (" +
         recovery.reason + ")";
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
