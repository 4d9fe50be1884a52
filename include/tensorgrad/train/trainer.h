// SPDX-License-Identifier: MIT
// What compile() and its kin give: a program on a device, to be run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/train/data_loader.h"
#include "tensorgrad/train/device_tensor.h"
#include "tensorgrad/train/graph_view.h"
#include "tensorgrad/train/handle.h"
#include "tensorgrad/data/onnx.h"
#include "tensorgrad/train/options.h"
#include "tensorgrad/train/profile.h"
#include "tensorgrad/data/weights.h"

namespace tensorgrad {

namespace detail {

class TrainerImpl;
class ForwardImpl;

struct ModelFunctions {
  std::function<void(ParameterVisitor&)> visit;
  std::shared_ptr<const void> owner;  // keeps the model alive, and its parameters where they are
};
using TraceFunction = std::function<std::map<std::string, Tensor>(const Inputs&)>;

// One loss of a trainer, traced by `loss`, and how it trains.
struct ObjectiveSource {
  std::string name;  // empty where it is the only one
  TraceFunction loss;
  ParamFilter params;  // none: all
  CompileOptions options;
};

// The objectives' options have the trainer's seed, device and budget.
std::shared_ptr<TrainerImpl> make_trainer(ModelFunctions model,
                                          std::vector<ObjectiveSource> objectives,
                                          const TrainerOptions& options, Site site);
// A trainer as `old` is, of another model, whose losses are given in the same order; with `keep`,
// parameters of one name and shape, and the model's states of one name and type, are taken over.
std::shared_ptr<TrainerImpl> replace_trainer(TrainerImpl& old, ModelFunctions model,
                                             std::vector<TraceFunction> losses, bool keep,
                                             Site site);
std::shared_ptr<ForwardImpl> make_forward(ModelFunctions model, TraceFunction forward,
                                          const ForwardOptions& options, Site site);
std::shared_ptr<ForwardImpl> attach_forward(TrainerImpl& trainer, TraceFunction forward,
                                            const ForwardOptions& options, Site site);

}  // namespace detail

// A compiled function of a model, without training. Movable; calls from several threads are taken
// one after another.
class Forward {
 public:
  explicit Forward(std::shared_ptr<detail::ForwardImpl> impl) : impl_(std::move(impl), "Forward") {}

  // Gives every output of the traced function, and the captures that are asked for. Throws
  // UserError on missing, unknown or wrong inputs, and on captures that there are not. Where inputs
  // have an open size that is not compiled yet, compiles first, and throws what that throws.
  Outputs run(const Feed& inputs = {}, const StepOptions& options = {}, Loc loc = Loc::current());
  // The same, but the results stay on the device, where they can be the inputs of this function, of
  // others and of steps; that they are made is not waited for. Throws as run().
  //   for (...) state = step.run_on_device({{"state", state}}).at("output");
  DeviceOutputs run_on_device(const Feed& inputs = {}, const StepOptions& options = {},
                              Loc loc = Loc::current());
  // The same as run(); says what went wrong instead of throwing it.
  RunOutcome try_run(const Feed& inputs = {}, const StepOptions& options = {},
                     Loc loc = Loc::current());
  // Runs of other threads end with an AbortedError where they wait for their turn, or compile for
  // an open size or for captures; what is compiled by then is kept. Of this function alone: a
  // trainer that it is attached to has its own.
  void abort();
  // What each launch of a run costs, of real ones on the same inputs; the median of each launch's
  // times counts. Throws as run(), and UserError for fewer steps than one.
  Profile profile(const Feed& inputs = {}, const ProfileOptions& options = {},
                  Loc loc = Loc::current());
  [[nodiscard]] std::vector<std::string> captures() const;  // all names
  // From now on reads this input from, or writes this output to, a buffer on the application's own
  // device (DeviceOptions::external): row-major, of whole multiples of 256 bytes, with the usages
  // Storage and CopySrc; f16 as f32 where the device has no f16. run() then takes no such input
  // from the host (nor can it check its indices), leaves such outputs where they are, and where all
  // are such returns at once: what the application submits afterwards comes after. Null: its own
  // buffer again, empty. Throws UserError on a wrong name or buffer.
  void bind_input(const NameAt& input, WGPUBufferImpl* buffer);
  void bind_output(const NameAt& output, WGPUBufferImpl* buffer);
  // The output of a function that returns one tensor.
  HostTensor operator()(const Feed& inputs = {}, Loc loc = Loc::current());

  // All parameters at once, or some; and any of the model's buffers by their paths (f32 is rounded
  // for one of f16). Throws UserError on missing or unknown names, on wrong sizes
  // and where the parameters are a trainer's averages, and then nothing is changed.
  void upload_params(const std::map<std::string, HostTensor>& params,
                     const UploadOptions& options = {}, Loc loc = Loc::current());
  [[nodiscard]] std::map<std::string, HostTensor> download_params() const;
  // Takes the parameters, and states if there are any, of a file that a Trainer saved (or the
  // parameters of any safetensors file with these names). Throws IoError, UserError naming the
  // file, and then nothing is changed.
  // With kEma, where the file has averages of parameters, takes those instead.
  void load_params(const std::string& path, Weights weights = Weights::kTrained,
                   Loc loc = Loc::current());
  // Takes parameters and buffers of a file that another library has written. All of the model's
  // must be there, unless the options are `partial`, and no other. Throws as read_weights(), and
  // UserError, naming the file, the tensor and both types; then nothing is changed.
  void import_weights(const std::string& path, const ImportOptions& options = {},
                      Loc loc = Loc::current());

  // Writes the function to a file of ONNX (opset 18), which other runtimes compute the same numbers
  // from: inputs and outputs by their names, shapes and types; parameters as they are now, by their
  // paths; states as they are now, as constants. Traces the function anew. An open size (kOpen) is
  // open in the file too, as OnnxOptions says.
  //   forward.export_onnx("model.onnx");
  // Throws UserError: random numbers, a CustomOp, bitcast between f32 and integers, what the file
  // cannot compute from an open size (each with the op and its line), a state that the function
  // changes, one name for two of inputs, outputs, parameters and states. Throws IoError: more than
  // 2 GiB, a path that cannot be written.
  void export_onnx(const std::string& path, const OnnxOptions& options = {},
                   Loc loc = Loc::current()) const;

  // The graph of the function; where inputs have an open size, for ForwardOptions::open_size or the
  // one that is given. kTraced calls the function anew and compiles nothing, kSimplified is of the
  // program that runs, and compiles it first for a size that has none. Throws UserError where a
  // size is given and no input has an open one, and what the function throws.
  [[nodiscard]] GraphView graph(GraphStage stage = GraphStage::kTraced,
                                std::optional<std::int64_t> open_size = {},
                                Loc loc = Loc::current()) const;
  // Of the program for ForwardOptions::open_size, where inputs have an open size.
  [[nodiscard]] CompileReport report() const;
  [[nodiscard]] std::string explain() const;
  [[nodiscard]] std::string device() const;
  // Options with which another function or trainer is compiled for the device of this one.
  [[nodiscard]] DeviceOptions same_device() const;
  // The open sizes that are compiled: ForwardOptions::open_size, then the others, the one used last
  // first. Empty where no input has one.
  [[nodiscard]] std::vector<std::int64_t> compiled_sizes() const;

 private:
  detail::Handle<detail::ForwardImpl> impl_;
};

// One loss of a trainer, to be stepped: by itself where there are several (Trainer::operator[]),
// else the trainer is its own only one. Counts, rates, scalars, random numbers, the place in the
// data, captures and losses are each objective's own. The calls of a trainer with several throw
// UserError with their names, but for report() and explain(), which are then of all. Movable; keeps
// what it needs of the trainer alive.
class Objective {
 public:
  static constexpr int kOnly = -1;
  explicit Objective(std::shared_ptr<detail::TrainerImpl> impl, int index = kOnly)
      : impl_(std::move(impl), "Trainer"), index_(index) {}

  // One step on these inputs; waits for the loss. Inputs are checked before anything changes. A
  // step with captures runs a program of its own, whose results may differ in the last bits.
  StepResult step(const Feed& inputs = {}, const StepOptions& options = {},
                  Loc loc = Loc::current());
  // The same; says what went wrong instead of throwing it.
  StepOutcome try_step(const Feed& inputs = {}, const StepOptions& options = {},
                       Loc loc = Loc::current());
  // Does `count` steps over the device's data; gives their losses. Throws UserError where a dataset
  // entry has not been given, inputs are given by the host, or `count` is negative.
  std::vector<float> run(int count, Loc loc = Loc::current());
  // Queues steps. A GPU does them later (at most a bounded number), the CPU now. Throws as run().
  void submit(int count, Loc loc = Loc::current());
  // As Forward::bind_input(). Where all inputs are bound, run() and submit() may be called.
  void bind_input(const NameAt& input, WGPUBufferImpl* buffer);
  // Waits for all queued steps; their losses since the last call, oldest first (at most the last
  // 4096). That of a step() which came while queued ones were unread is among them; run()'s never.
  std::vector<float> losses(Loc loc = Loc::current());

  [[nodiscard]] std::int64_t steps(Loc loc = Loc::current()) const;    // done or queued
  [[nodiscard]] std::int64_t updates(Loc loc = Loc::current()) const;  // steps() / accumulate
  [[nodiscard]] std::int64_t epoch(Loc loc = Loc::current()) const;    // full passes over the data
  [[nodiscard]] std::int64_t batches_per_epoch(Loc loc = Loc::current()) const;
  [[nodiscard]] double lr(Loc loc = Loc::current()) const;  // of the next step
  // Counted from the next update on. Throws UserError where it begins with no rate.
  void set_lr(Schedule schedule, Loc loc = Loc::current());
  // Changes a run-time scalar: one of ops.h's scalar(), "clip_grad_norm", "clip_grad_value",
  // "weight_decay", those of the optimizer that optim::adjustable() made; of a group
  // "lr_factor.NAME", "weight_decay.NAME". Throws UserError with the
  // names there are, or where it is none of the values that the option may have.
  void set(const std::string& name, double value, Loc loc = Loc::current());
  // All, with their values.
  [[nodiscard]] std::map<std::string, double> scalars(Loc loc = Loc::current()) const;
  // Norm of all gradients before it was clipped, in the last step (with `accumulate`: of the mean,
  // to which the steps to come add nothing yet). Throws UserError where the program computes none:
  // neither clip_grad_norm nor skip_nonfinite is on.
  [[nodiscard]] double grad_norm(Loc loc = Loc::current()) const;
  // With CompileOptions::mixed_precision or loss_scale: the factor on the loss of the next step,
  // and how many updates so far changed nothing, as their gradients were not finite. Throw
  // UserError without.
  [[nodiscard]] double loss_scale(Loc loc = Loc::current()) const;
  [[nodiscard]] std::int64_t skipped_updates(Loc loc = Loc::current()) const;
  [[nodiscard]] std::vector<std::string> captures(Loc loc = Loc::current()) const;  // all names
  // Gradients of the last step, of the parameters that are trained.
  [[nodiscard]] std::map<std::string, HostTensor> download_grads(Loc loc = Loc::current()) const;
  // What each launch of a step costs. The steps are real ones, on the same inputs; the median of
  // each launch's times counts. Throws UserError as step(), and for fewer steps than one.
  Profile profile(const Feed& inputs = {}, const ProfileOptions& options = {},
                  Loc loc = Loc::current());
  // Of the device that it runs on, with all else that does.
  [[nodiscard]] HostTimes host_times() const;

  // The graph of a step, as Forward::graph().
  [[nodiscard]] GraphView graph(GraphStage stage = GraphStage::kTraced,
                                Loc loc = Loc::current()) const;
  [[nodiscard]] CompileReport report() const;
  // The launch table (kernel, fused ops, shapes, bytes, user line) and the memory plan, as text.
  [[nodiscard]] std::string explain() const;

 protected:
  detail::Handle<detail::TrainerImpl> impl_;
  int index_;
};

// The part of a Trainer that does not depend on the model's type. Movable; calls from several
// threads are taken one after another, those of its objectives too, in one order with uploads,
// downloads and resets.
class TrainerBase : public Objective {
 public:
  explicit TrainerBase(std::shared_ptr<detail::TrainerImpl> impl) : Objective(std::move(impl)) {}

  // One of several objectives. Throws UserError with the names there are.
  [[nodiscard]] Objective operator[](const NameAt& objective) const;
  // Their names; none where there is only one.
  [[nodiscard]] std::vector<std::string> objectives() const;

  // step(), run() and submit() of other threads end with an AbortedError where they wait for their
  // turn, the latter two also between two pieces of their work. The steps that are done are kept,
  // their losses too.
  void abort();
  // Fills a dataset entry, which all objectives have in common that declare it. Throws UserError on
  // a wrong name, type or size, or an index out of range.
  void upload_data(const std::string& name, const HostView& values, Loc loc = Loc::current());

  // The same with a buffer of the application's, which stands for the entry from now on, as
  // Forward::bind_input().
  void bind_data(const NameAt& entry, WGPUBufferImpl* buffer);

  [[nodiscard]] std::vector<std::string> parameter_names() const;
  [[nodiscard]] std::map<std::string, HostTensor> download_params() const;
  // The averages; those of parameters that have none are the parameters. Throws UserError without
  // ema_decay.
  [[nodiscard]] std::map<std::string, HostTensor> download_ema(Loc loc = Loc::current()) const;
  // All parameters at once, or some; throws UserError on missing or unknown names and wrong sizes,
  // and then nothing is changed. Before the first step, averages are set, too.
  void upload_params(const std::map<std::string, HostTensor>& params,
                     const UploadOptions& options = {}, Loc loc = Loc::current());
  // Of a file that another library has written, as Forward::import_weights(); buffers, too.
  void import_weights(const std::string& path, const ImportOptions& options = {},
                      Loc loc = Loc::current());
  // The optimizer's states by name ("exp_avg/in.weight"; of one of several objectives
  // "d.exp_avg/in.weight"), those of accumulation and averages too.
  [[nodiscard]] std::map<std::string, HostTensor> download_optimizer() const;
  void upload_optimizer(const std::map<std::string, HostTensor>& states,
                        const UploadOptions& options = {}, Loc loc = Loc::current());
  // save() and load() keep the loader's place too, under this name, and reset() of the optimizer
  // takes it back to the beginning. The loader must live as long as these are called. Throws
  // UserError where the trainer has another loader of that name.
  void add_loader(const std::string& name, const DataLoader& loader, Loc loc = Loc::current());
  // Back to the beginning. Run-time scalars stay.
  void reset(const ResetOptions& options = {});

  // Everything that the next step depends on, in one safetensors file: parameters, optimizer state,
  // step, seed, place in the data and of the loaders, schedule, run-time scalars. A trainer
  // compiled from the same model and options, with the same loaders, that loads it goes on bit for
  // bit. load() throws, and then nothing is changed: IoError where the file is damaged or no
  // checkpoint, UserError where it has other objectives, parameters or states (missing or left
  // over, or of another type), loaders or run-time scalars than this trainer, an optimizer of
  // another name (kName), another `batch` or `accumulate`, or a place beyond the data's end. Not
  // compared are the loss, the data, and numbers that are constants of the optimizer, as betas; nor
  // what a file lacks: older ones have neither the optimizer's name nor `batch`.
  void save(const std::string& path, Loc loc = Loc::current()) const;
  void load(const std::string& path, Loc loc = Loc::current());

  [[nodiscard]] std::string device() const;
  // As Forward::same_device().
  [[nodiscard]] DeviceOptions same_device() const;
};

}  // namespace tensorgrad
