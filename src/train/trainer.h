// SPDX-License-Identifier: MIT
// Implementation of Trainer: the parameters and states that its objectives share.
#pragma once

#include "compile/runtime/buffer_sharing.h"
#include "train/compiled_function.h"
#include "train/loader_table.h"
#include "train/objective.h"
#include "train/state_table.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

class TrainerImpl : public std::enable_shared_from_this<TrainerImpl> {
 public:
  // Creates its own device, or uses that of `other`. The sources must have the common options.
  TrainerImpl(ModelFunctions model, std::vector<ObjectiveSource> sources,
              const TrainerOptions& options, const SourceLocation& location,
              const ProgramSession* other = nullptr);
  TrainerImpl(const TrainerImpl&) = delete;
  TrainerImpl& operator=(const TrainerImpl&) = delete;
  ~TrainerImpl();

  [[nodiscard]] std::size_t size() const { return objectives_.size(); }
  [[nodiscard]] ObjectiveImpl& objective(std::size_t index) const { return *objectives_[index]; }
  // Returns the index of an objective. Throws UserError, listing the names, if it is unknown.
  [[nodiscard]] std::size_t find(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> names() const;

  void abort() { call_lock_->abort(); }
  [[nodiscard]] const std::shared_ptr<CallLock>& call_lock() const { return call_lock_; }
  void upload_data(const std::string& name, const HostView& values);
  void bind_data(const std::string& name, WGPUBufferImpl* native);
  void add_loader(const std::string& name, const std::shared_ptr<LoaderImpl>& loader);
  void reset(const ResetOptions& options);
  void save(const FileSink& sink, const SaveOptions& options);
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
  // Creates a trainer for another model with the schedules and scalars of this one.
  std::shared_ptr<TrainerImpl> replaced(ModelFunctions model, std::vector<TraceFunction> losses,
                                        bool keep, const SourceLocation& location);

  // The following are for the recoverer. After use(), allocate() creates all buffers with initial
  // states; then move() moves functions to the device.
  void use(const std::shared_ptr<Device>& device);
  void allocate();
  void move(CompiledFunctionImpl& function);
  void put_data(const std::string& name, const HostView& values);
  void wait();
  // Fields of a checkpoint: of the objectives, and of the loaders that still exist.
  [[nodiscard]] std::map<std::string, std::string> fields() const;
  [[nodiscard]] std::map<std::string, std::string> loader_fields() const {
    return loaders_.fields();
  }
  [[nodiscard]] std::vector<Recovery> recoveries() const;

  // Reports over all objectives.
  [[nodiscard]] CompileReport report() const;
  [[nodiscard]] std::string explain() const;
  [[nodiscard]] const ParameterTable& table() const { return table_; }
  [[nodiscard]] ProgramSession& session() const { return objectives_.front()->session(); }

 private:
  using State = TrainerState;

  // The other ranks of distributed training, or null.
  [[nodiscard]] Communicator* ranks() const { return objectives_.front()->ranks(); }
  // Return and set the whole arena; see ObjectiveImpl.
  [[nodiscard]] std::vector<float> arena() const { return objectives_.front()->download_arena(); }
  void upload_arena(const std::vector<float>& values) const {
    objectives_.front()->upload_arena(values);
  }
  [[nodiscard]] bool shards_params() const { return table_.sharded_params() != nullptr; }
  // True if this is not the rank that writes the file.
  [[nodiscard]] bool leaves_to_first(const FileSink& sink) const {
    return ranks() != nullptr && ranks()->rank() != 0 && sink.bytes() == nullptr;
  }
  // In distributed training, replaces parameters and states by those of rank 0. Sharded states do
  // not change.
  void take_from_first();
  // Takes part in the gathering of the sharded states that rank 0 writes to a file.
  void gather_states() const;
  [[nodiscard]] std::string known_names() const;  // as text
  // Returns the line of explain() about sharded states of the optimizer, or nothing.
  [[nodiscard]] std::string states_text() const;
  [[nodiscard]] std::vector<std::string> dataset_names() const;
  [[nodiscard]] bool averages() const;  // true if an objective keeps averages
  void check_datasets() const;
  [[nodiscard]] std::vector<const Instance*> instances() const;
  void reset_now(const ResetOptions& options);
  [[nodiscard]] NamedTensors averaged() const;
  // Returns the sessions that use the dataset entry. Throws UserError if there are none.
  [[nodiscard]] std::vector<ProgramSession*> users_of_data(const std::string& name,
                                                           const HostView& values) const;
  // Initializes the averages of all objectives, or of those that have not begun.
  void start_averages(const std::vector<float>& params, bool always);
  // Copies the model states of equal name and type from `old`.
  void take_states(const TrainerImpl& old);
  // The contents of a checkpoint.
  struct Loaded {
    std::uint32_t seed = 0;
    std::vector<Progress> progress = {};  // of the objectives
    std::vector<float> params = {};
    std::vector<std::vector<float>> states = {};  // parallel to states_
    LoaderTable::States loaders = {};
    std::string fields = {};  // as text
  };
  // Throws if the checkpoint does not fit this trainer.
  [[nodiscard]] Loaded read(const FileSource& source) const;
  std::shared_ptr<CallLock> call_lock_ = std::make_shared<CallLock>();
  ModelFunctions model_;
  TrainerOptions options_;
  ParameterTable table_;
  std::shared_ptr<Recoverer> recoverer_;  // shared with attached functions
  std::vector<std::unique_ptr<ObjectiveImpl>> objectives_;
  std::size_t attached_ = 0;  // number of functions that were given a seed
  StateTable states_;
  std::int64_t bytes_ = 0;  // of all buffers
  LoaderTable loaders_;
};

// Returns the sources with the trainer's common options applied. Throws UserError if a name is
// missing, invalid or duplicate, or an option belongs to the trainer.
std::vector<ObjectiveSource> with_common_options(std::vector<ObjectiveSource> sources, bool named,
                                                 const TrainerOptions& options);

// Returns the random seed of an objective.
std::uint32_t objective_seed(std::uint32_t seed, std::size_t number);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
