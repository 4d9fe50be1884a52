// SPDX-License-Identifier: MIT
#include "ui/live_run.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "run/interrupt.h"
#include "tensorgrad/error.h"

namespace tensorgrad::cli {
namespace {

constexpr std::size_t kMaxLiveLines = 8192;

}  // namespace

void LiveRun::open(RunHead head) {
  {
    const Lock lock(mutex_);
    head_ = std::make_shared<const RunHead>(std::move(head));
  }
  show();
}

std::shared_ptr<const RunHead> LiveRun::head() const {
  const Lock lock(mutex_);
  return head_;
}

void LiveRun::add_line(std::string_view kind, std::string json) {
  if (kind == "pause") return;
  const Lock lock(mutex_);
  lines_.push_back({std::string(kind), std::move(json)});
  if (lines_.size() > kMaxLiveLines) thin();
}

// Keeps every second line of steps, and of the others if they are many.
void LiveRun::thin() {
  const auto is_step = [](const RunLine& line) { return line.kind == "step"; };
  const auto steps = std::count_if(lines_.begin(), lines_.end(), is_step);
  const bool all = lines_.size() - static_cast<std::size_t>(steps) > kMaxLiveLines / 2;
  std::size_t count[2] = {0, 0};
  std::erase_if(lines_, [&](const RunLine& line) {
    return (is_step(line) || all) && count[is_step(line) ? 1 : 0]++ % 2 == 1;
  });
  ++version_;
}

void LiveRun::progress(const ProgressState& state, std::int64_t step, double lr, double seconds) {
  const Lock lock(mutex_);
  now_.step = step;
  now_.epoch = state.epoch;
  now_.loss = state.loss.value_or(0);
  now_.lr = lr;
  now_.rate = state.rate;
  now_.left = state.seconds_left;
  now_.seconds = seconds;
}

void LiveRun::busy(std::string_view activity) {
  const Lock lock(mutex_);
  now_.activity = activity;
}

void LiveRun::saved(std::int64_t step) {
  const Lock lock(mutex_);
  now_.saved = step;
}

void LiveRun::predictions(std::vector<RunPrediction> predictions) {
  auto shared = std::make_shared<const std::vector<RunPrediction>>(std::move(predictions));
  const Lock lock(mutex_);
  predictions_ = std::move(shared);
  ++now_.pictures;
}

void LiveRun::profiled(Profile profile) {
  auto shared = std::make_shared<const Profile>(std::move(profile));
  const Lock lock(mutex_);
  profile_ = std::move(shared);
  ++now_.profiles;
}

bool LiveRun::take_profile() {
  const Lock lock(mutex_);
  return std::exchange(measure_, false);
}

void LiveRun::between_steps(Progress& progress, const std::function<void()>& save,
                            const std::function<void()>& waiting) {
  Lock lock(mutex_);
  bool waited = false;
  for (;;) {
    if (interrupted() != 0) break;
    if (std::exchange(save_, false)) {
      now_.activity = "saving";
      lock.unlock();
      progress.pause();
      save();
      if (!waited) progress.resume();
      lock.lock();
      continue;
    }
    if (!now_.pausing) break;
    now_.activity = "paused";
    if (!waited) {
      lock.unlock();
      progress.pause();
      progress.print("paused by " + presser_);
      lock.lock();
      waited = true;
    }
    // Signals do not notify.
    changed_.wait_for(lock, std::chrono::milliseconds(100));
    lock.unlock();
    waiting();
    lock.lock();
  }
  now_.activity.clear();
  if (!waited) return;
  lock.unlock();
  progress.resume();
  if (interrupted() == 0) progress.print("resumed by " + presser_);
}

int LiveRun::watch(const std::function<int()>& train) {
  try {
    return train();
  } catch (const Error& error) {
    end("failed", error.message());
    throw;
  } catch (const std::exception& error) {
    end("failed", error.what());
    throw;
  }
}

void LiveRun::end(std::string_view how, std::string_view why) {
  {
    const Lock lock(mutex_);
    now_.activity.clear();
    now_.how = how;
    now_.why = why;
  }
  show_end();
}

RunSnapshot LiveRun::snapshot(std::int64_t version, std::int64_t since) const {
  const Lock lock(mutex_);
  RunSnapshot shot;
  shot.version = version_;
  shot.next = static_cast<std::int64_t>(lines_.size());
  shot.whole = version != version_ || since < 0 || since > shot.next;
  shot.lines.assign(lines_.begin() + (shot.whole ? 0 : since), lines_.end());
  shot.now = now_;
  shot.now.stopping = now_.stopping || interrupted() != 0;
  shot.head = head_;
  shot.profile = profile_;
  shot.predictions = predictions_;
  return shot;
}

void LiveRun::request(RunRequest request) {
  const Lock lock(mutex_);
  switch (request) {
    case RunRequest::kPause: now_.pausing = true; break;
    case RunRequest::kResume: now_.pausing = false; break;
    case RunRequest::kSave: save_ = true; break;
    case RunRequest::kProfile: measure_ = head_->profiles; break;
    case RunRequest::kStop:
      if (std::exchange(now_.stopping, true)) break;
      interrupt();
      break;
  }
  changed_.notify_all();
}

}  // namespace tensorgrad::cli
