// SPDX-License-Identifier: MIT
#pragma once

#include <mutex>
#include <shared_mutex>

#include "pages/model.h"
#include "train/call_lock.h"
#include "train/checkpoint.h"
#include "train/distributed.h"
#include "train/program_session.h"
#include "train/recoverer.h"
#include "train/retrace.h"
#include "train/sized_sessions.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

class CompiledFunctionImpl : public std::enable_shared_from_this<CompiledFunctionImpl> {
 public:
  // With `owners`, shares their parameters and states. Its calls are then serialized with the
  // trainer's, and the trainer's recoverer guards them. `ranks` are those of the trainer; they make
  // all calls together if parameters are sharded.
  CompiledFunctionImpl(ModelFunctions model, ParameterTable table, TraceFunction function,
                       const FunctionOptions& options, std::shared_ptr<Device> device,
                       std::string reason, std::shared_ptr<CallLock> call_lock,
                       const std::vector<const Instance*>& owners, const SourceLocation& location,
                       std::shared_ptr<Recoverer> recoverer = nullptr,
                       std::shared_ptr<Communicator> ranks = nullptr);

  // For the recoverer, after a device was lost: moves to `device`, with the owners' parameters and
  // states.
  void use(const std::shared_ptr<Device>& device, const std::vector<const Instance*>& owners);
  void repeat(const FeedView& inputs, bool captures, std::uint32_t run);
  // Returns the program that owns the parameters and states.
  [[nodiscard]] ProgramSession& first() const { return *sizes_.first().session; }

  NamedTensors run(const FeedView& inputs, const StepOptions& options);
  HostTensor call(const FeedView& inputs);
  NamedDeviceTensors run_on_device(const FeedView& inputs, const StepOptions& options);
  Profile profile(const FeedView& inputs, const ProfileOptions& options);
  // Returns the same function with shared parameters and states, which can run concurrently.
  [[nodiscard]] std::shared_ptr<CompiledFunctionImpl> replica(const SourceLocation& location) const;
  void abort() { call_lock_->abort(); }
  [[nodiscard]] const std::shared_ptr<CallLock>& call_lock() const { return call_lock_; }
  void bind(const std::string& name, bool output, WGPUBufferImpl* native);
  void upload_params(const std::map<std::string, HostTensor>& params, bool partial);
  void load(const FileSource& source, WeightSource weights);
  void import_weights(const FileSource& source, const ImportOptions& options);
  [[nodiscard]] std::map<std::string, HostTensor> download_params() const;
  [[nodiscard]] NamedTensors download_buffers() const;
  [[nodiscard]] web::Files web_files(const WebOptions& options) const;
  void export_onnx(const FileSink& sink, const OnnxOptions& options) const;
  [[nodiscard]] GraphView graph(GraphStage stage, std::optional<std::int64_t> size);
  [[nodiscard]] std::vector<std::int64_t> compiled_sizes() const;
  [[nodiscard]] const std::vector<std::string>& captures() const { return captures_; }

 private:
  // The program that a call has run, and the names of its outputs.
  struct Ran {
    SizedSession& sized;
    ProgramSession& session;
    // Names for the caller, and names in the program.
    std::vector<std::pair<std::string, std::string>> outputs;
  };
  // Makes a call through the recoverer, if there is one.
  template <class Call>
  decltype(auto) guarded(Call&& call) const {
    return recoverer_ ? recoverer_->guarded(std::forward<Call>(call)) : std::forward<Call>(call)();
  }
  // Lock of the weights that replicas share: many readers or one writer.
  class Weights {
   public:
    [[nodiscard]] std::shared_lock<std::shared_mutex> to_read() {
      const std::lock_guard lock(next_);  // lets waiting writers go first
      return std::shared_lock(mutex_);
    }
    [[nodiscard]] std::unique_lock<std::shared_mutex> to_write() {
      const std::lock_guard lock(next_);
      return std::unique_lock(mutex_);
    }

   private:
    std::mutex next_;
    std::shared_mutex mutex_;
  };
  // Runs the function and returns `read(ran)`. Repeats both after a device was lost.
  template <class Read>
  auto run_guarded(const FeedView& inputs, const StepOptions& options, Read&& read);
  // Must be called after a call that sets parameters or states.
  void changed() const {
    if (recoverer_) recoverer_->take();
  }
  // Returns a function that compiles for a size. The program shares parameters and states with
  // first().
  [[nodiscard]] SizedSessions::Build builder();
  // Throws UserError if the function now traces differently; see Retrace.
  void check_retrace() const;
  // Returns the scalars of run number `run`.
  [[nodiscard]] ScalarValues scalars_of(const ProgramSession& session, std::uint32_t run) const;
  Ran execute(const FeedView& inputs, const StepOptions& options, const ScopedCall& scoped_call);
  // Hands the memory of an output to the caller. The next run writes to other memory.
  static DeviceTensor give_away(const Ran& ran, const std::string& output);
  [[nodiscard]] bool captures_are_read(const StepOptions& options) const {
    return !options.captures.empty() || !printed_.empty();
  }
  [[nodiscard]] std::unique_ptr<TracedFunction> traced(std::int64_t size, bool captures,
                                                       const SourceLocation& location) const;
  std::unique_ptr<ProgramSession> build(std::int64_t size, std::shared_ptr<Device> device,
                                        std::string reason, bool captures,
                                        const std::vector<const Instance*>& owners,
                                        const SourceLocation& location);
  ProgramSession& capturing(SizedSession& sized, const std::vector<std::string>& names);
  // Compiles for a browser.
  [[nodiscard]] web::SizedProgram compiled_for_web(std::int64_t size, bool f16) const;
  // Traces for export; `size` is the dynamic size, if there is one.
  [[nodiscard]] std::unique_ptr<TracedFunction> traced_for_export(std::int64_t size) const;
  [[nodiscard]] std::map<std::int64_t, std::unique_ptr<TracedFunction>> traced_for_sizes(
      const std::vector<std::int64_t>& sizes) const;
  void check_size_of_one(const TracedFunction& usual) const;
  void set_params(const NamedTensors& params, const NamedTensors& buffers, bool partial);
  void run_once(ProgramSession& session, const ScalarValues& scalars);
  [[nodiscard]] std::vector<float> download_arena() const;
  void upload_arena(const std::vector<float>& arena);
  void refuse_averages(const char* who) const;

  std::shared_ptr<CallLock> call_lock_;
  std::shared_ptr<Weights> weights_ = std::make_shared<Weights>();
  std::shared_ptr<Recoverer> recoverer_;  // null without a trainer
  std::shared_ptr<Communicator> ranks_;   // null without distributed training
  ModelFunctions model_;
  ParameterTable table_;
  TraceFunction function_;
  FunctionOptions options_;
  SourceLocation location_;
  SizedSessions sizes_;
  Retrace retrace_;
  std::vector<std::string> captures_, printed_;  // see print()
  std::uint32_t runs_ = 0;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
