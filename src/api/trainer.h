// SPDX-License-Identifier: MIT
// The machinery behind Trainer: steps, data order, losses, checkpoints.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "api/checkpoint.h"
#include "api/data_loader.h"
#include "api/engine.h"

namespace tensorgrad::detail {

class TrainerImpl {
 public:
  // On a device of its own, or on that of `other`.
  TrainerImpl(ModelFunctions model, TraceFunction loss, const CompileOptions& options,
              const Site& site, const Engine* other = nullptr);

  StepResult step(const Feed& inputs, const StepOptions& options);
  void abort() { ++aborts_; }
  void submit(int count);
  std::vector<float> run(int count);
  std::vector<float> losses();
  void upload_data(const std::string& name, const HostView& values);
  void set_lr(Schedule schedule);
  void set(const std::string& name, double value);
  void add_loader(const std::string& name, const std::shared_ptr<LoaderImpl>& loader);
  void reset(const ResetOptions& options);
  void save(const std::string& path);
  void load(const std::string& path);
  std::map<std::string, HostTensor> download_params();
  std::map<std::string, HostTensor> download_grads();
  std::map<std::string, HostTensor> download_ema();
  std::map<std::string, HostTensor> download_optimizer();
  void upload_params(const std::map<std::string, HostTensor>& params, bool partial);
  void import_weights(const std::string& path, const ImportOptions& options);
  void upload_optimizer(const std::map<std::string, HostTensor>& states, bool partial);
  std::vector<std::pair<std::string, double>> profile(const Feed& inputs);
  std::shared_ptr<ForwardImpl> attach(TraceFunction forward, const ForwardOptions& options,
                                      const Site& site);
  // The same of another model, with the schedule and the scalars as they are here.
  std::shared_ptr<TrainerImpl> replaced(ModelFunctions model, TraceFunction loss, bool keep,
                                        const Site& site);

  [[nodiscard]] std::int64_t steps();
  [[nodiscard]] std::int64_t updates();
  [[nodiscard]] std::int64_t epoch();
  [[nodiscard]] std::int64_t batches_per_epoch() const;
  [[nodiscard]] double lr();
  [[nodiscard]] double grad_norm();
  [[nodiscard]] std::map<std::string, double> scalars();
  [[nodiscard]] const std::vector<std::string>& captures() const { return captures_; }
  [[nodiscard]] const ParameterTable& table() const { return table_; }
  [[nodiscard]] const Engine& engine() const { return *engine_; }

 private:
  // A call's turn: it ends with an AbortedError where abort() came while it waited, and check()
  // does where it came since.
  class Turn {
   public:
    explicit Turn(TrainerImpl& trainer)
        : trainer_(trainer), before_(trainer.aborts_), lock_(*trainer.mutex_) {
      check();
    }
    void check() const {
      if (trainer_.aborts_ != before_) throw AbortedError("the call was aborted");
    }

   private:
    TrainerImpl& trainer_;
    std::uint64_t before_;
    std::lock_guard<std::recursive_mutex> lock_;
  };

  std::unique_ptr<Engine> build(const Engine* other, bool captures, const Site& site);
  // The program that has the captures as outputs; throws UserError where a name is none of theirs.
  Engine& capturing(const std::vector<std::string>& names);
  void queue(int count, const Turn& turn);
  [[nodiscard]] bool has_state(const std::string& name) const;
  // Averages begin as the parameters do.
  void start_averages(const std::vector<float>& params);
  void set_group_scalars();
  using LoaderStates = std::vector<std::pair<std::shared_ptr<LoaderImpl>, LoaderState>>;
  // What a checkpoint says of the loaders. Throws UserError where it has others, or others' places.
  LoaderStates loader_states(const Checkpoint& checkpoint, const std::string& path) const;
  // Throws UserError where it is gone.
  std::shared_ptr<LoaderImpl> loader(const std::string& name) const;
  // The run-time scalars of step number `step` (from 0).
  [[nodiscard]] HyperValues hypers(std::int64_t step, std::int64_t cursor) const;
  // The rows of the next `count` steps, no further than
  // the end of the epoch; moves the place in the data.
  std::vector<HyperValues> next_rows(int count);
  void begin_epoch();
  void check_data() const;
  void check_queued(int count) const;  // steps that need nothing from the host
  [[nodiscard]] float read_loss(std::int64_t step);
  void explain_nan(const Feed& inputs, std::int64_t step, float loss);
  std::vector<double> leaf_values(const Node& leaf, const Feed& inputs,
                                  const HyperValues& values) const;

  std::shared_ptr<std::recursive_mutex> mutex_ = std::make_shared<std::recursive_mutex>();
  std::atomic<std::uint64_t> aborts_ = 0;
  ModelFunctions model_;
  TraceFunction loss_;
  CompileOptions options_;
  ParameterTable table_;
  Site site_;
  std::unique_ptr<Engine> engine_, capturing_;
  std::vector<std::string> captures_;
  std::map<std::string, std::function<double(std::int64_t)>> per_update_;
  Schedule schedule_ = 0.0;
  std::int64_t schedule_start_ = 0;  // in updates
  std::int64_t step_ = 0, first_unread_ = 0;
  std::vector<float> kept_;                // losses that run() found unread
  std::int64_t rows_ = 0;                  // of the dataset; 0: none
  std::int64_t epoch_ = 0, position_ = 0;  // batches drawn in this epoch
  bool order_sent_ = false;
  // The threads of a loader end with the user's handle.
  std::map<std::string, std::weak_ptr<LoaderImpl>> loaders_;
  Ticket last_ = 0;
  // What the last step began with, kept for detect_nan.
  std::map<std::string, std::vector<std::uint32_t>> before_;
};

}  // namespace tensorgrad::detail
