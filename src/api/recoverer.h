// SPDX-License-Identifier: MIT
// What lets a trainer survive the loss of its device: a snapshot on the host, and a log of the
// calls since then that change what the next step depends on. All calls that use the device go
// through it, as do those of attached functions.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/objective_progress.h"
#include "tensorgrad/error.h"
#include "tensorgrad/train/inputs.h"
#include "tensorgrad/train/recovery.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
class Engine;
}

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

class CompiledFunctionImpl;
class ObjectiveImpl;
class TrainerImpl;

// The inputs of a call, kept to be given again.
class KeptInputs {
 public:
  KeptInputs() = default;
  // Copies them. Waits for what lies on a device.
  explicit KeptInputs(const FeedView& feed);
  // Valid as long as this.
  [[nodiscard]] FeedView feed() const;
  [[nodiscard]] std::int64_t bytes() const;

 private:
  NamedTensors tensors_;  // of one dimension
};

class Recoverer {
 public:
  // Throws UserError where an option is out of range.
  Recoverer(TrainerImpl& trainer, RecoveryOptions options);
  // Its functions may outlive the trainer; what they then lose is lost.
  void leave() { trainer_ = nullptr; }
  // Is there anything to do? Set once the trainer has a device that can be lost.
  [[nodiscard]] bool on() const { return on_ && trainer_ != nullptr; }
  void turn_on() { on_ = options_.snapshot_steps > 0; }

  // Makes the call, and after a loss makes it again, with everything as it was before it.
  template <class Call>
  decltype(auto) guarded(Call&& call) {
    finish();
    return repeated(std::forward<Call>(call));
  }
  // The same for calls that resume an unfinished step.
  template <class Call>
  decltype(auto) repeated(Call&& call) {
    if (!on()) return std::forward<Call>(call)();
    if (stranded_) recover(stranded_reason_, 1);
    for (int losses = 1;; ++losses) {
      std::string reason;
      try {
        return call();
      } catch (const DeviceLostError& error) {
        reason = error.message();
      }
      recover(reason, losses);
    }
  }
  // Makes a call that sets all up on the trainer's device, on the next one after a loss.
  void set_up(const std::function<void()>& call);

  // Finishes a step that is in progress.
  void finish();
  void set_unfinished(std::function<void()> finish) { unfinished_ = std::move(finish); }

  // Takes a snapshot where it is due before steps of this objective. Returns how many of `wanted`
  // may be taken before the next one is.
  int before_steps(const ObjectiveImpl& objective, int wanted);
  // The same before a function changes states.
  void before_run();
  // Takes a snapshot of the current state: after calls that replace it. The gradients of `stepping`
  // are left out, since its next step overwrites them.
  void take(const ObjectiveImpl* stepping = nullptr);
  // Takes a snapshot if any logged call would have to be repeated.
  void take_if_behind();

  // After the call: it will be repeated.
  void log_steps(ObjectiveImpl& objective, int count);
  void log_step(ObjectiveImpl& objective, KeptInputs inputs, bool captures, int count = 1);
  void log_scalar(ObjectiveImpl& objective, const std::string& name, double value);
  void log_schedule(ObjectiveImpl& objective, const Schedule& schedule);
  void log_run(const std::shared_ptr<CompiledFunctionImpl>& function, KeptInputs inputs,
               bool captures, std::uint32_t run);
  void keep_data(const std::string& name, const HostView& values);

  // The snapshot has the places of loaders as they are now, or after the last step.
  void note_loaders();
  void add(const std::shared_ptr<CompiledFunctionImpl>& function);
  [[nodiscard]] const std::vector<Recovery>& recoveries() const { return recoveries_; }
  // No device came back: the snapshot is all there is.
  [[nodiscard]] bool stranded() const { return on() && stranded_; }
  [[nodiscard]] const std::map<std::string, std::string>& fields() const {
    return snapshot_.fields;
  }
  // Of parameters and states in the snapshot.
  [[nodiscard]] std::vector<float> saved_floats(const std::string& buffer) const;
  // Of the snapshot, the data and the inputs.
  [[nodiscard]] std::int64_t host_bytes() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Bytes = std::vector<std::byte>;
  struct SavedBuffer {
    Engine* engine;
    std::string name;
    Bytes bytes;
  };
  struct Snapshot {
    std::vector<SavedBuffer> buffers;  // of the objectives
    // States of functions that the trainer has not.
    std::vector<std::pair<std::weak_ptr<CompiledFunctionImpl>, std::vector<SavedBuffer>>> functions;
    std::vector<Progress> progress;
    std::map<std::string, std::string> fields;  // of a checkpoint
    std::int64_t step = 0;                      // of all objectives together
    Clock::time_point time;
  };
  struct Steps {
    ObjectiveImpl* objective;
    int count;
  };
  struct Step {
    ObjectiveImpl* objective;
    KeptInputs inputs;
    bool captures;
    int count;
  };
  struct Scalar {
    ObjectiveImpl* objective;
    std::string name;
    double value;
  };
  struct NewSchedule {
    ObjectiveImpl* objective;
    Schedule schedule;
  };
  struct Run {
    std::weak_ptr<CompiledFunctionImpl> function;
    KeptInputs inputs;
    bool captures;
    std::uint32_t run;
  };
  using Entry = std::variant<Steps, Step, Scalar, NewSchedule, Run>;

  void recover(const std::string& reason, int losses);
  // On the trainer's device, whose buffers hold nothing yet.
  void restore();
  void repeat(const Entry& entry);
  void add_entry(Entry entry, int steps, std::int64_t bytes);
  [[nodiscard]] std::vector<std::shared_ptr<CompiledFunctionImpl>> functions();
  [[nodiscard]] bool due() const;

  TrainerImpl* trainer_;
  RecoveryOptions options_;
  bool on_ = false, stranded_ = false;
  std::string stranded_reason_;
  std::function<void()> unfinished_;
  Snapshot snapshot_;
  std::map<std::string, std::string> loaders_;  // their places after the last call
  std::vector<Entry> log_;
  std::int64_t logged_steps_ = 0, logged_runs_ = 0, kept_bytes_ = 0;
  NamedTensors data_;
  std::vector<std::string> data_names_;  // that were given
  std::vector<std::weak_ptr<CompiledFunctionImpl>> functions_;
  std::vector<Recovery> recoveries_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
