// SPDX-License-Identifier: MIT
// The machinery behind Trainer: steps, data order, losses, checkpoints.
#pragma once

#include "api/checkpoint.h"
#include "api/engine.h"

namespace tensorgrad::detail {

class TrainerImpl {
 public:
  TrainerImpl(ModelFunctions model, TraceFunction loss, const CompileOptions& options,
              const Site& site);

  StepResult step(const Feed& inputs);
  void submit(int count);
  std::vector<float> run(int count);
  std::vector<float> losses();
  void upload_data(const std::string& name, const HostView& values);
  void set_lr(Schedule schedule);
  void set(const std::string& name, double value);
  void reset();
  void save(const std::string& path);
  void load(const std::string& path);
  std::map<std::string, HostTensor> download_params();
  std::map<std::string, HostTensor> download_grads();
  void upload_params(const std::map<std::string, HostTensor>& params);
  std::vector<std::pair<std::string, double>> profile(const Feed& inputs);
  std::shared_ptr<ForwardImpl> attach(TraceFunction forward, const ForwardOptions& options,
                                      const Site& site);

  [[nodiscard]] std::int64_t steps();
  [[nodiscard]] std::int64_t epoch();
  [[nodiscard]] std::int64_t batches_per_epoch() const;
  [[nodiscard]] double lr();
  [[nodiscard]] const ParameterTable& table() const { return table_; }
  [[nodiscard]] const Engine& engine() const { return *engine_; }

 private:
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
  ModelFunctions model_;
  ParameterTable table_;
  CompileOptions options_;
  std::unique_ptr<Engine> engine_;
  Schedule schedule_ = 0.0;
  std::int64_t schedule_start_ = 0;
  std::int64_t step_ = 0, first_unread_ = 0;
  std::vector<float> kept_;                // losses that run() found unread
  std::int64_t rows_ = 0;                  // of the dataset; 0: none
  std::int64_t epoch_ = 0, position_ = 0;  // batches drawn in this epoch
  bool order_sent_ = false;
  Ticket last_ = 0;
  // What the last step began with, kept for detect_nan.
  std::map<std::string, std::vector<std::uint32_t>> before_;
};

}  // namespace tensorgrad::detail
