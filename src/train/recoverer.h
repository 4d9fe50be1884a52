// SPDX-License-Identifier: MIT
// Recovers a trainer when its device is lost: keeps a snapshot on the host and a log of the calls
// since then that change what the next step depends on. All calls of the trainer and its attached
// functions that use the device are made through it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tensorgrad/error.h"
#include "tensorgrad/train/inputs.h"
#include "tensorgrad/train/recovery.h"
#include "train/objective_progress.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
class ProgramSession;
}

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

class CompiledFunctionImpl;
class ObjectiveImpl;
class TrainerImpl;

// Copies of the inputs of a call, for repeating it.
class KeptInputs {
 public:
  KeptInputs() = default;
  // Copies the inputs. Waits for tensors on a device.
  explicit KeptInputs(const FeedView& feed);
  // Valid during the lifetime of this object.
  [[nodiscard]] FeedView feed() const;
  [[nodiscard]] std::int64_t bytes() const;

 private:
  NamedTensors tensors_;  // one-dimensional
};

class Recoverer {
 public:
  // Throws UserError if an option is out of range.
  Recoverer(TrainerImpl& trainer, RecoveryOptions options);
  // Called by the trainer's destructor. Functions may outlive the trainer, but are not recovered
  // then.
  void leave() {
    trainer_ = nullptr;
    unfinished_ = nullptr;
  }
  // True if recovery is active. It is turned on once the trainer has a device that can be lost.
  [[nodiscard]] bool on() const { return on_ && trainer_ != nullptr; }
  void turn_on() { on_ = options_.snapshot_steps > 0; }

  // Makes the call. After a loss of the device, restores the state before the call and repeats it.
  template <class Call>
  decltype(auto) guarded(Call&& call) {
    finish();
    return repeated(std::forward<Call>(call));
  }
  // Like guarded(), for calls that resume an unfinished step.
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
  // Makes a call that sets up everything on the trainer's device. Repeats it on the next device
  // after a loss.
  void set_up(const std::function<void()>& call);

  // Finishes a step in progress.
  void finish();
  void set_unfinished(std::function<void()> finish) { unfinished_ = std::move(finish); }

  // Takes a snapshot if it is due before steps of this objective. Returns how many of `wanted`
  // steps can run before the next snapshot is due.
  int before_steps(const ObjectiveImpl& objective, int wanted);
  // Takes a snapshot if it is due before a function changes states.
  void before_run();
  // Takes a snapshot of the current state. Must be called after calls that replace the state.
  // Leaves out the gradients of `stepping`, since its next step overwrites them.
  void take(const ObjectiveImpl* stepping = nullptr);
  // Takes a snapshot if the log is not empty.
  void take_if_behind();

  // Log a completed call, to be repeated after a loss.
  void log_steps(ObjectiveImpl& objective, int count);
  void log_step(ObjectiveImpl& objective, KeptInputs inputs, bool captures, int count = 1);
  void log_scalar(ObjectiveImpl& objective, const std::string& name, double value);
  void log_schedule(ObjectiveImpl& objective, const Schedule& schedule);
  void log_run(const std::shared_ptr<CompiledFunctionImpl>& function, KeptInputs inputs,
               bool captures, std::uint32_t run);
  void keep_data(const std::string& name, const HostView& values);

  // Records the current positions of the loaders. If the log is empty, also updates the snapshot.
  void note_loaders();
  void add(const std::shared_ptr<CompiledFunctionImpl>& function);
  // Returns the attached functions that still exist.
  [[nodiscard]] std::vector<std::shared_ptr<CompiledFunctionImpl>> functions();
  [[nodiscard]] const std::vector<Recovery>& recoveries() const { return recoveries_; }
  // True if no device could be opened again. Only the snapshot is left.
  [[nodiscard]] bool stranded() const { return on() && stranded_; }
  [[nodiscard]] const std::map<std::string, std::string>& fields() const {
    return snapshot_.fields;
  }
  // Returns a parameter or state buffer of the snapshot.
  [[nodiscard]] std::vector<float> saved_floats(const std::string& buffer) const;
  // Returns the size of the snapshot, the data and the inputs in host memory.
  [[nodiscard]] std::int64_t host_bytes() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Bytes = std::vector<std::byte>;
  struct SavedBuffer {
    ProgramSession* session;
    std::string name;
    Bytes bytes;
  };
  struct Snapshot {
    std::vector<SavedBuffer> buffers;  // of the objectives
    // States of functions that the trainer does not have.
    std::vector<std::pair<std::weak_ptr<CompiledFunctionImpl>, std::vector<SavedBuffer>>> functions;
    std::vector<Progress> progress;
    std::map<std::string, std::string> fields;  // of a checkpoint
    std::int64_t step = 0;                      // sum over all objectives
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
  // Restores the snapshot on the trainer's new device, whose buffers are uninitialized.
  void restore();
  void repeat(const Entry& entry);
  void add_entry(Entry entry, int steps, std::int64_t bytes);
  [[nodiscard]] bool due() const;

  TrainerImpl* trainer_;
  RecoveryOptions options_;
  bool on_ = false, stranded_ = false;
  std::string stranded_reason_;
  std::function<void()> unfinished_;
  Snapshot snapshot_;
  std::map<std::string, std::string> loaders_;  // positions after the last call
  std::vector<Entry> log_;
  std::int64_t logged_steps_ = 0, logged_runs_ = 0, kept_bytes_ = 0;
  NamedTensors data_;
  std::vector<std::string> data_names_;  // entries that were uploaded
  std::vector<std::weak_ptr<CompiledFunctionImpl>> functions_;
  std::vector<Recovery> recoveries_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
