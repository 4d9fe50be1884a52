// SPDX-License-Identifier: MIT
// The machinery behind Trainer: the parameters and states that its objectives have in common.
#pragma once

#include "api/data_loader.h"
#include "api/forward.h"
#include "api/objective.h"
#include "compile/buffer_pool.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

class TrainerImpl : public std::enable_shared_from_this<TrainerImpl> {
 public:
  // On a device of its own, or on that of `other`. The sources have the common options.
  TrainerImpl(ModelFunctions model, std::vector<ObjectiveSource> sources,
              const TrainerOptions& options, const SourceLocation& location,
              const Engine* other = nullptr);
  TrainerImpl(const TrainerImpl&) = delete;
  TrainerImpl& operator=(const TrainerImpl&) = delete;
  ~TrainerImpl() { recoverer_->leave(); }

  [[nodiscard]] std::size_t size() const { return objectives_.size(); }
  [[nodiscard]] ObjectiveImpl& objective(std::size_t index) const { return *objectives_[index]; }
  // The number of that name; throws UserError with the names there are.
  [[nodiscard]] std::size_t find(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> names() const;

  void abort() { turns_->abort(); }
  [[nodiscard]] const std::shared_ptr<Turns>& turns() const { return turns_; }
  void upload_data(const std::string& name, const HostView& values);
  void bind_data(const std::string& name, WGPUBufferImpl* native);
  void add_loader(const std::string& name, const std::shared_ptr<LoaderImpl>& loader);
  void reset(const ResetOptions& options);
  void save(const FileSink& sink);
  void load(const FileSource& source);
  NamedTensors download_params();
  NamedTensors download_buffers();
  NamedTensors download_ema();
  NamedTensors download_optimizer();
  void upload_params(const NamedTensors& params, bool partial);
  void import_weights(const FileSource& source, const ImportOptions& options);
  void load_params(const FileSource& source, WeightSource weights);
  void save_weights(const FileSink& sink, WeightSource weights);
  void upload_optimizer(const NamedTensors& states, bool partial);
  std::shared_ptr<CompiledFunctionImpl> attach(TraceFunction forward,
                                               const FunctionOptions& options,
                                               const SourceLocation& location);
  // The same of another model, with the schedules and the scalars as they are here.
  std::shared_ptr<TrainerImpl> replaced(ModelFunctions model, std::vector<TraceFunction> losses,
                                        bool keep, const SourceLocation& location);

  // For the recoverer. After use(), allocate() makes all buffers, with initial states; then move()
  // takes functions along.
  void use(const std::shared_ptr<Device>& device);
  void allocate();
  void move(CompiledFunctionImpl& function);
  void put_data(const std::string& name, const HostView& values);
  void wait();
  // Of a checkpoint: of objectives; of the loaders that are there.
  [[nodiscard]] std::map<std::string, std::string> fields() const;
  [[nodiscard]] std::map<std::string, std::string> loader_fields() const;
  [[nodiscard]] std::vector<Recovery> recoveries() const;

  // Of all objectives.
  [[nodiscard]] CompileReport report() const;
  [[nodiscard]] std::string explain() const;
  [[nodiscard]] const ParameterTable& table() const { return table_; }
  [[nodiscard]] Engine& engine() const { return objectives_.front()->engine(); }

 private:
  // A state of the model, or of an objective's optimizer.
  struct State {
    StateEntry entry;
    const ObjectiveImpl* objective;  // one that has it
    [[nodiscard]] bool optimizers() const { return entry.name.starts_with(kOptimPrefix); }
    [[nodiscard]] bool models() const { return !optimizers() && !is_scale_state(entry.name); }
    [[nodiscard]] std::string buffer() const { return state_buffer(entry.name); }
    [[nodiscard]] Engine& engine() const { return objective->engine(); }
  };

  [[nodiscard]] std::string known_names() const;  // in words
  [[nodiscard]] std::vector<std::string> dataset_names() const;
  [[nodiscard]] bool averages() const;  // some objective keeps them
  void collect_states();
  void check_datasets() const;
  [[nodiscard]] std::vector<const Instance*> instances() const;
  void reset_now(const ResetOptions& options);
  [[nodiscard]] NamedTensors averaged() const;
  [[nodiscard]] NamedTensors buffers() const;  // of the model
  [[nodiscard]] NamedTensors optimizer_states() const;
  // The engines that have the dataset entry. Throws UserError where that is none.
  [[nodiscard]] std::vector<Engine*> users_of_data(const std::string& name,
                                                   const HostView& values) const;
  // Parameters and states of a checkpoint, as `read` gives a buffer's contents.
  [[nodiscard]] Checkpoint checkpoint_of(
      const std::function<std::vector<float>(Engine&, const std::string&)>& read) const;
  // Of all objectives, or of those that have not begun.
  void start_averages(const std::vector<float>& params, bool always);
  // The model's states that `old` has by the same name and type are as they are there.
  void take_states(const TrainerImpl& old);
  // What a checkpoint holds for the state, laid out as the device has it. Throws where it does not.
  [[nodiscard]] std::vector<float> read_state(const State& state, const Checkpoint& checkpoint,
                                              const std::string& path) const;
  // Throws UserError where the checkpoint has a state that there is none for here.
  void check_states_known(const Checkpoint& checkpoint, const std::string& path) const;
  using LoaderStates = std::vector<std::pair<std::shared_ptr<LoaderImpl>, LoaderState>>;
  // What a checkpoint says of the loaders. Throws UserError where it has others, or others' places.
  LoaderStates loader_states(const Checkpoint& checkpoint, const std::string& path) const;
  // Throws UserError where it is gone.
  std::shared_ptr<LoaderImpl> loader(const std::string& name) const;

  std::shared_ptr<Turns> turns_ = std::make_shared<Turns>();
  ModelFunctions model_;
  TrainerOptions options_;
  ParameterTable table_;
  std::shared_ptr<Recoverer> recoverer_;  // the functions' too
  std::vector<std::unique_ptr<ObjectiveImpl>> objectives_;
  std::size_t attached_ = 0;   // functions that were given a seed
  std::vector<State> states_;  // each once
  std::int64_t bytes_ = 0;     // of all buffers
  // The threads of a loader end with the user's handle.
  std::map<std::string, std::weak_ptr<LoaderImpl>> loaders_;
};

// The sources with what the trainer's options say. Throws UserError on names that are missing,
// wrong or there twice, and on options that are the trainer's.
std::vector<ObjectiveSource> with_common_options(std::vector<ObjectiveSource> sources, bool named,
                                                 const TrainerOptions& options);

// What objective number `number` of a trainer with this seed draws by.
std::uint32_t objective_seed(std::uint32_t seed, std::size_t number);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
