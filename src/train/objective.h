// SPDX-License-Identifier: MIT
// One loss of a trainer: its program, steps, position in the data and random numbers.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "train/call_lock.h"
#include "train/checkpoint.h"
#include "train/distributed.h"
#include "train/loss_scale.h"
#include "train/program_session.h"
#include "train/recoverer.h"
#include "train/retrace.h"
#include "train/sized_sessions.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

class ObjectiveImpl {
 public:
  // Compiles for the device. Call allocate() before any other member. The objective trains part
  // `number` of the table, which must outlive it.
  ObjectiveImpl(ObjectiveSource source, const ParameterTable& table, std::size_t number,
                std::shared_ptr<Device> device, const std::string& reason,
                std::shared_ptr<CallLock> call_lock, Recoverer& recoverer,
                const SourceLocation& location);
  void allocate(SharedMemory shared);

  StepResult step(const FeedView& inputs, const StepOptions& options);
  std::optional<StepResult> step_for(double seconds, const FeedView& inputs);
  bool cancel_step();
  void submit(int count);
  void submit(const FeedView& inputs);
  // Submits the steps that submit() gathered.
  void submit_gathered();
  // False if each step must wait for its result.
  [[nodiscard]] bool can_queue() const { return !options_.detect_nan && printed_.empty(); }
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
  // Throws UserError, naming the call, if there is no such state.
  [[nodiscard]] double scale_number(ScaleNumber which, const char* call) const;
  [[nodiscard]] std::map<std::string, double> scalars() const;
  [[nodiscard]] const std::vector<std::string>& captures() const { return captures_; }
  [[nodiscard]] NamedTensors download_grads() const;
  [[nodiscard]] GraphView graph(GraphStage stage) const;

  // The following are for the trainer, which holds the call lock.
  [[nodiscard]] const std::string& name() const { return source_.name; }
  // The other ranks of distributed training, or null.
  [[nodiscard]] Communicator* ranks() const { return ranks_; }
  // Throws DistributedError if another rank trains something else. Otherwise, the ranks agree on
  // how they exchange gradients.
  void agree();
  [[nodiscard]] const ObjectiveSource& source() const { return source_; }
  // Returns the program that owns the parameters and states.
  [[nodiscard]] ProgramSession& session() const { return *sizes_.first().session; }
  // True if gradients are being accumulated.
  [[nodiscard]] bool between_updates() const { return step_ % options_.accumulate != 0; }
  // See CompiledFunction::compiled_sizes().
  [[nodiscard]] std::vector<std::int64_t> compiled_sizes() const;
  [[nodiscard]] const ParameterRange& part() const { return part_; }
  void reset();  // resets counters and schedule
  void bind(const std::string& buffer, const std::shared_ptr<Memory>& memory,
            const WGPUBufferImpl* native);
  // True if each rank keeps only a part of this state of the optimizer.
  [[nodiscard]] bool is_sharded(const std::string& state) const;
  // Return and set all elements of a state of the optimizer. All ranks must make the call if it is
  // sharded; the values of rank 0 are then set.
  [[nodiscard]] std::vector<float> download_state(const std::string& state) const;
  void upload_state(const std::string& state, const std::vector<float>& values) const;
  // Return and set all parameters, in the order of the arena. All ranks must make the call if
  // parameters are sharded; the values of rank 0 are then set.
  [[nodiscard]] std::vector<float> download_arena() const;
  void upload_arena(const std::vector<float>& arena) const;
  // Initializes the averages with the parameters.
  void start_averages(const std::vector<float>& params);
  // Copies the schedule and the scalars of `other`.
  void go_on_as(const ObjectiveImpl& other);

  // Contents of a checkpoint besides states.
  [[nodiscard]] Progress progress() const;
  void write(std::map<std::string, std::string>& fields) const;
  // Throws IoError if the fields do not fit this objective.
  [[nodiscard]] Progress read(const Checkpoint& checkpoint, const std::string& path) const;
  void go_on_from(Progress progress, std::uint32_t seed);
  // Adds the state of skipped updates, which older files lack: all updates then count as made.
  void complete(Checkpoint& checkpoint, const Progress& progress) const;

  // The following are for the recoverer. They keep unread losses.
  void use(const std::shared_ptr<Device>& device);
  void go_back(const Progress& progress);
  // Runs steps on the dataset, at most `count` and as many as one submission takes. Returns their
  // number.
  int run_rows(int count);
  void repeat_step(const FeedView& inputs, bool captures);
  void put_scalar(const std::string& name, double value) { session().scalars()[name] = value; }
  void put_schedule(const Schedule& schedule);
  void wait() { session().instance().wait(last_); }

 private:
  void check_one_rank(const char* call) const;
  // Returns a hash of the training step that is equal on all ranks.
  [[nodiscard]] std::uint64_t step_hash() const;
  // Runs steps from number `step` on with these scalars. Steps that end in an update exchange
  // gradients with other ranks.
  Ticket run_on_ranks(ProgramSession& session, std::span<const ScalarValues> rows,
                      std::int64_t step);
  // Returns the states of the model that a step changes.
  [[nodiscard]] std::vector<StateEntry> changed_states() const;
  // Returns the size of the batches of all ranks together.
  [[nodiscard]] std::int64_t whole_batch() const;
  void check_same_options(const Checkpoint& checkpoint, const std::string& path) const;
  void check_same_optimizer(const Checkpoint& checkpoint, const std::string& path) const;
  void check_same_batch(const Checkpoint& checkpoint, const std::string& path) const;
  [[nodiscard]] bool captures_are_read(const StepOptions& options) const {
    return !options.captures.empty() || !printed_.empty();
  }
  void check_not_step_by_step(const std::string& call) const;
  [[nodiscard]] std::unique_ptr<TracedFunction> traced(std::int64_t size, bool captures) const;
  std::unique_ptr<ProgramSession> build(std::int64_t size, bool captures,
                                        std::shared_ptr<Device> device, const std::string& reason);
  // Compiles another program on the device of `owner` that shares its buffers.
  std::unique_ptr<ProgramSession> build_sharing(const ProgramSession& owner, std::int64_t size,
                                                bool captures);
  // Returns the program for these inputs. Compiles it if their dynamic size is new.
  SizedSession& of_checked(const FeedView& inputs);
  template <class Call>
  void for_each_session(const Call& call);
  // Returns the program that has captures as outputs. Throws UserError if a capture is unknown.
  ProgramSession& capturing(SizedSession& sized, const std::vector<std::string>& names);
  // Returns the name of a field in a checkpoint.
  [[nodiscard]] std::string field(const std::string& name) const;
  void set_group_scalars();
  [[nodiscard]] bool scales() const { return options_.mixed_precision || options_.loss_scale; }
  // True if the device decides which updates are made.
  [[nodiscard]] bool skips() const { return scales() || options_.skip_nonfinite; }
  // Reads an element of the state of that decision.
  [[nodiscard]] float state_number(ScaleNumber which) const;
  void queue(int count, const ScopedCall& scoped_call);
  // Trains on the inputs of gathered steps that were lost with the device.
  void repeat_gathered();
  StepResult step_once(const FeedView& inputs, const StepOptions& options);
  // Counts a step that has run and reads its loss.
  StepResult counted();
  // Resumes the unfinished step, or begins it with these inputs.
  std::optional<StepResult> resume_step(double seconds, const FeedView& inputs);
  // Sets the runtime scalars of step number `step` (from 0).
  void set_scalars(std::int64_t step, std::int64_t cursor, ScalarValues& values) const;
  // Returns the scalars of the next steps, at most `count` and up to the end of the epoch. Advances
  // the position in the data.
  std::span<const ScalarValues> next_rows(int count);
  void begin_epoch();
  // Throws UserError if data is missing, or if the loss now traces differently; see Retrace.
  void check_ready() const;
  // Checks a call that runs steps without inputs from the host. `call` is its name.
  void check_queued(const std::string& call, int count) const;
  [[nodiscard]] float read_loss(std::int64_t step);
  void keep_for_nan();
  void explain_nan(const ProgramSession& session, const FeedView& inputs, std::int64_t step,
                   float loss);
  std::vector<double> leaf_values(const ProgramSession& session, const Node& leaf,
                                  const FeedView& inputs, const ScalarValues& values) const;

  std::shared_ptr<CallLock> call_lock_;
  Recoverer& recoverer_;  // the trainer's
  ObjectiveSource source_;
  CompileOptions& options_ = source_.options;
  const ParameterTable& table_;
  const ParameterRange& part_;
  SourceLocation location_;
  Communicator* ranks_ = communicator_if_several(options_.distributed);
  std::vector<StateEntry> averaged_states_;  // by the ranks, after each update
  std::vector<ElementRange> exchanged_;      // ranges of gradients, in the order of their exchange
  ShardCopies shard_copies_;
  SizedSessions sizes_;
  Retrace retrace_;
  std::vector<std::string> captures_, printed_;  // see print()
  std::map<std::string, PerUpdate> per_update_;
  bool counts_taken_ = false;  // the host needs taken_
  std::int64_t taken_ = 0;     // updates made, downloaded before each step
  struct GroupRate {
    const ParamGroup& group;
    std::string scalar, factor;  // names in the program and for the user
  };
  std::vector<GroupRate> group_rates_;  // of groups with their own learning rate
  std::map<std::string, double> scalar_limits_;
  Schedule schedule_ = 0.0;
  std::int64_t schedule_start_ = 0;  // in updates
  std::int64_t step_ = 0, first_unread_ = 0;
  std::vector<float> kept_;                // losses queued before run(), not read yet
  std::int64_t rows_ = 0;                  // of the dataset; 0: no dataset
  std::int64_t epoch_ = 0, position_ = 0;  // batches drawn in this epoch
  bool order_sent_ = false;
  std::vector<std::int32_t> order_;  // order of the rows in the current epoch
  Ticket last_ = 0;
  // Steps of submit(inputs) that are not submitted yet. The inputs of step i are in set i of the
  // input buffers.
  struct Gathered {
    std::size_t count = 0, most = 1;
    ProgramSession* session = nullptr;  // valid if `count` > 0
    std::vector<ScalarValues> rows;     // the memory is reused
    std::vector<KeptInputs> inputs;     // set if recovery may need them
  };
  Gathered gathered_;
  // A step of step_for().
  struct Unfinished {
    bool begun = false;    // false: not started, or restarted because the device was lost
    std::size_t next = 0;  // the next launch
    ScalarValues row;
    Progress before;
    ProgramSession* session = nullptr;  // valid if begun
    KeptInputs inputs;                  // set if recovery may need them
  };
  std::optional<Unfinished> unfinished_;
  std::optional<StepResult> finished_;  // result of a step that another call finished
  std::vector<ScalarValues> next_;      // scalars of the last steps; the memory is reused
  // Buffers before the last step, saved for detect_nan.
  std::map<std::string, std::vector<std::uint32_t>> before_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
