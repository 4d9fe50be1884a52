// SPDX-License-Identifier: MIT
// One loss of a trainer: its program, its steps, its place in the data, what it draws.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "api/checkpoint.h"
#include "api/engine.h"
#include "api/loss_scale.h"
#include "api/recoverer.h"
#include "api/retrace.h"
#include "api/sized_engines.h"
#include "api/turns.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

class ObjectiveImpl {
 public:
  // Compiles for the device; allocate() comes before any other call. The table's part of that
  // number is its own; the table outlives it.
  ObjectiveImpl(ObjectiveSource source, const ParameterTable& table, std::size_t number,
                std::shared_ptr<Device> device, const std::string& why,
                std::shared_ptr<Turns> turns, Recoverer& recoverer, const SourceLocation& location);
  void allocate(SharedMemory shared);

  StepResult step(const FeedView& inputs, const StepOptions& options);
  std::optional<StepResult> step_for(double seconds, const FeedView& inputs);
  bool cancel_step();
  void submit(int count);
  void bind_input(const std::string& name, WGPUBufferImpl* native);
  std::vector<float> run(int count);
  std::vector<float> losses();
  void set_lr(const Schedule& schedule);
  void set(const std::string& name, double value);
  Profile profile(const FeedView& inputs, const ProfileOptions& options);

  [[nodiscard]] std::int64_t steps() const;
  [[nodiscard]] std::int64_t updates() const;
  [[nodiscard]] std::int64_t epoch() const;
  [[nodiscard]] std::int64_t batches_per_epoch() const;
  [[nodiscard]] double lr() const;
  [[nodiscard]] double grad_norm() const;
  // Throws UserError, naming the call, where there is no such state.
  [[nodiscard]] double scale_number(ScaleNumber which, const char* call) const;
  [[nodiscard]] std::map<std::string, double> scalars() const;
  [[nodiscard]] const std::vector<std::string>& captures() const { return captures_; }
  [[nodiscard]] NamedTensors download_grads() const;
  [[nodiscard]] GraphView graph(GraphStage stage) const;

  // For the trainer, in its turn.
  [[nodiscard]] const std::string& name() const { return source_.name; }
  [[nodiscard]] const ObjectiveSource& source() const { return source_; }
  // The program that has the parameters and states.
  [[nodiscard]] Engine& engine() const { return *sizes_.first().engine; }
  // See CompiledFunction::compiled_sizes().
  [[nodiscard]] std::vector<std::int64_t> compiled_sizes() const;
  [[nodiscard]] const TrainedPart& part() const { return part_; }
  void reset();  // counts and schedule
  void bind(const std::string& buffer, const std::shared_ptr<Memory>& memory,
            const WGPUBufferImpl* native);
  // Its averages begin as the parameters do.
  void start_averages(const std::vector<float>& params);
  // The schedule and the scalars of `other`.
  void go_on_as(const ObjectiveImpl& other);

  // What a checkpoint holds of it, beside states.
  [[nodiscard]] Progress progress() const;
  void write(std::map<std::string, std::string>& fields) const;
  // Throws IoError where the fields are none of such an objective.
  [[nodiscard]] Progress read(const Checkpoint& checkpoint, const std::string& path) const;
  void go_on_from(Progress progress, std::uint32_t seed);
  // Files of before do not say which updates were skipped: then all took place.
  void complete(Checkpoint& checkpoint, const Progress& progress) const;

  // For the recoverer. Losses that wait to be read still do.
  void use(const std::shared_ptr<Device>& device);
  void go_back(const Progress& progress);
  // Steps on the dataset, as many of `count` as go at once; returns how many.
  int run_rows(int count);
  void repeat_step(const FeedView& inputs, bool captures);
  void put_scalar(const std::string& name, double value) { engine().scalars()[name] = value; }
  void put_schedule(const Schedule& schedule);
  void wait() { engine().instance().wait(last_); }

 private:
  void check_same_options(const Checkpoint& checkpoint, const std::string& path) const;
  void check_same_optimizer(const Checkpoint& checkpoint, const std::string& path) const;
  void check_same_batch(const Checkpoint& checkpoint, const std::string& path) const;
  [[nodiscard]] bool captures_are_read(const StepOptions& options) const {
    return !options.captures.empty() || !printed_.empty();
  }
  [[nodiscard]] bool looks_at_each_step() const { return options_.detect_nan || !printed_.empty(); }
  void check_not_step_by_step(const std::string& call) const;
  [[nodiscard]] std::unique_ptr<TracedFunction> traced(std::int64_t size, bool captures) const;
  std::unique_ptr<Engine> build(std::int64_t size, bool captures, std::shared_ptr<Device> device,
                                const std::string& why);
  // The same on the device of `owner`, whose buffers it shares.
  std::unique_ptr<Engine> build_beside(const Engine& owner, std::int64_t size, bool captures);
  // Returns the program for these inputs, compiled if there is none for their dynamic size.
  SizedEngine& of_checked(const FeedView& inputs);
  template <class Call>
  void for_each_engine(const Call& call);
  // Returns the program that has the captures as outputs. Throws UserError if there is no capture
  // of a name.
  Engine& capturing(SizedEngine& sized, const std::vector<std::string>& names);
  // What a field of a checkpoint is called.
  [[nodiscard]] std::string field(const std::string& name) const;
  void set_group_scalars();
  [[nodiscard]] bool scales() const { return options_.mixed_precision || options_.loss_scale; }
  // Does the device decide which updates take place?
  [[nodiscard]] bool skips() const { return scales() || options_.skip_nonfinite; }
  // A number of the state that then says so.
  [[nodiscard]] float state_number(ScaleNumber which) const;
  void queue(int count, const Turn& turn);
  StepResult step_once(const FeedView& inputs, const StepOptions& options);
  // Counts a step that was run, and reads its loss.
  StepResult counted();
  // Resumes the unfinished step, or begins it with these inputs.
  std::optional<StepResult> resume_step(double seconds, const FeedView& inputs);
  // The run-time scalars of step number `step` (from 0).
  void put_hypers(std::int64_t step, std::int64_t cursor, HyperValues& values) const;
  // The rows of the next `count` steps, no further than
  // the end of the epoch; moves the place in the data.
  std::span<const HyperValues> next_rows(int count);
  void begin_epoch();
  // Throws UserError if data is missing, or the loss traces differently by now; see Retrace.
  void check_ready() const;
  // Of steps that need nothing from the host; `call` is what the user called.
  void check_queued(const std::string& call, int count) const;
  [[nodiscard]] float read_loss(std::int64_t step);
  void keep_for_nan();
  void explain_nan(const Engine& engine, const FeedView& inputs, std::int64_t step, float loss);
  std::vector<double> leaf_values(const Engine& engine, const Node& leaf, const FeedView& inputs,
                                  const HyperValues& values) const;

  std::shared_ptr<Turns> turns_;
  Recoverer& recoverer_;  // the trainer's
  ObjectiveSource source_;
  CompileOptions& options_ = source_.options;
  const ParameterTable& table_;
  const TrainedPart& part_;
  SourceLocation location_;
  SizedEngines sizes_;
  Retrace retrace_;
  std::vector<std::string> captures_, printed_;  // see print()
  std::map<std::string, PerUpdate> per_update_;
  bool counts_taken_ = false;  // the host computes with the number of updates that took place,
  std::int64_t taken_ = 0;     // which the device says before each step
  struct GroupRate {
    const ParamGroup& group;
    std::string scalar, factor;  // of the program, of the user
  };
  std::vector<GroupRate> group_rates_;  // of groups that have their own
  std::map<std::string, double> hyper_limits_;
  Schedule schedule_ = 0.0;
  std::int64_t schedule_start_ = 0;  // in updates
  std::int64_t step_ = 0, first_unread_ = 0;
  std::vector<float> kept_;                // losses that run() found unread
  std::int64_t rows_ = 0;                  // of the dataset; 0: none
  std::int64_t epoch_ = 0, position_ = 0;  // batches drawn in this epoch
  bool order_sent_ = false;
  std::vector<std::int32_t> order_;  // of the rows in the last epoch that was begun
  Ticket last_ = 0;
  // A step of step_for().
  struct Unfinished {
    bool begun = false;    // else it begins again: it has not, or the device was lost
    std::size_t next = 0;  // launch
    HyperValues row;
    Progress before;
    Engine* engine = nullptr;  // once begun
    KeptInputs inputs;         // if they may be needed again
  };
  std::optional<Unfinished> unfinished_;
  std::optional<StepResult> finished_;  // by another call than step_for()
  std::vector<HyperValues> next_;       // of the last steps: the next ones allocate nothing
  // What the last step began with, kept for detect_nan.
  std::map<std::string, std::vector<std::uint32_t>> before_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
