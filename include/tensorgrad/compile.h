// SPDX-License-Identifier: MIT
// compile(): traces a model with its loss, compiles forward, backward and optimizer into launches,
// and gives a Trainer that runs them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/device.h"
#include "tensorgrad/feed.h"
#include "tensorgrad/module.h"
#include "tensorgrad/ops.h"
#include "tensorgrad/optim.h"

namespace tensorgrad {

struct CompileOptions {
  std::vector<InputSpec> inputs = {};  // given anew for each step
  // Kept on the device: [N, ...], the same N for all. The function sees batches [batch, ...] of
  // them, drawn without repetition in an order that is shuffled anew for each epoch.
  std::vector<InputSpec> dataset = {};
  std::int64_t batch = 0;  // with `dataset`
  bool shuffle = true;     // with `dataset`
  Optimizer optimizer = {};
  double clip_grad_norm = 0;  // scale gradients so that their norm is at most this; 0: off
  std::uint32_t seed = 0;     // of initial values, of random ops and of the order of data
  DeviceOptions device = {};
  std::int64_t memory_budget = 0;  // bytes; refuse to compile a program that needs more; 0: none
  bool check_indices = true;       // refuse integer inputs that are out of a gather's range
  bool detect_nan = false;  // find the op that first gives NaN or infinity (slow; no submit())
};

struct ForwardOptions {
  std::vector<InputSpec> inputs = {};
  DeviceOptions device = {};  // of compile_forward; attach() shares the trainer's
  std::uint32_t seed = 0;
  std::int64_t memory_budget = 0;
  bool check_indices = true;
  bool training = false;  // what is_training() says in the function: with dropout and so on
};

struct StepResult {
  float loss = 0;
  std::int64_t step = 0;  // steps done so far, this one included
};

// How a program was compiled, for people and tests.
struct CompileReport {
  double milliseconds = 0;
  int launches = 0;
  std::int64_t peak_bytes = 0;
  std::vector<std::pair<std::string, double>> passes;  // name, milliseconds
};

namespace detail {

class TrainerImpl;
class ForwardImpl;

struct ModelFunctions {
  std::function<void(ParameterVisitor&)> visit;
  std::shared_ptr<const void> owner;  // keeps the model alive, and its parameters where they are
};
using TraceFunction = std::function<std::map<std::string, Tensor>(const Inputs&)>;

std::shared_ptr<TrainerImpl> make_trainer(ModelFunctions model, TraceFunction loss,
                                          const CompileOptions& options, Site site);
std::shared_ptr<ForwardImpl> make_forward(ModelFunctions model, TraceFunction forward,
                                          const ForwardOptions& options, Site site);
std::shared_ptr<ForwardImpl> attach_forward(TrainerImpl& trainer, TraceFunction forward,
                                            const ForwardOptions& options, Site site);

// What a traced function may return: a tensor ("output"), or several by name.
inline std::map<std::string, Tensor> named(Tensor tensor) { return {{"output", tensor}}; }
inline std::map<std::string, Tensor> named(std::map<std::string, Tensor> tensors) {
  return tensors;
}

// Says in words what a model and a function to be traced must be.
template <class Model, class Function>
constexpr void check_traceable() {
  static_assert(Module<Model>,
                "the model must be a struct that names its fields with TG_MODULE(...), or a module "
                "of tensorgrad::nn");
  static_assert(std::is_invocable_v<Function&, const Model&, const Inputs&>,
                "the function to be traced must be callable with (const Model&, const "
                "tensorgrad::Inputs&); a module's operator() must be const");
}
template <class Model, class Function>
using Traced = std::invoke_result_t<Function&, const Model&, const Inputs&>;
template <class Model, class Function>
constexpr void check_forward() {
  check_traceable<Model, Function>();
  using Result = Traced<Model, Function>;
  static_assert(std::is_convertible_v<Result, Tensor> ||
                    std::is_convertible_v<Result, std::map<std::string, Tensor>>,
                "the function to be traced must return a tensorgrad::Tensor, or several by name: "
                "std::map<std::string, tensorgrad::Tensor>");
}

}  // namespace detail

// A compiled function of a model, without training. Movable; calls from several threads are taken
// one after another.
class Forward {
 public:
  explicit Forward(std::shared_ptr<detail::ForwardImpl> impl) : impl_(std::move(impl)) {}

  // Gives every output of the traced function. Throws
  // UserError on missing, unknown or wrong inputs.
  Outputs run(const Feed& inputs = {}, Loc loc = Loc::current());
  // The output of a function that returns one tensor.
  HostTensor operator()(const Feed& inputs = {}, Loc loc = Loc::current());

  void upload_params(const std::map<std::string, HostTensor>& params, Loc loc = Loc::current());
  [[nodiscard]] std::map<std::string, HostTensor> download_params() const;
  // Takes the parameters, and states if there are any, of a file that a Trainer saved (or the
  // parameters of any safetensors file with these names). Throws IoError, UserError naming the
  // file, and then nothing is changed.
  void load_params(const std::string& path, Loc loc = Loc::current());

  [[nodiscard]] CompileReport report() const;
  [[nodiscard]] std::string explain() const;
  [[nodiscard]] std::string device() const;

 private:
  std::shared_ptr<detail::ForwardImpl> impl_;
};

// The part of a Trainer that does not depend on the model's type. Movable; calls from several
// threads are taken one after another, in one order with uploads, downloads and resets.
class TrainerBase {
 public:
  explicit TrainerBase(std::shared_ptr<detail::TrainerImpl> impl) : impl_(std::move(impl)) {}

  // One step on these inputs; waits for the loss. Inputs are checked before anything changes.
  StepResult step(const Feed& inputs = {}, Loc loc = Loc::current());
  // Does `count` steps over the device's data; gives their losses. Throws UserError where a dataset
  // entry has not been given, inputs are given by the host, or `count` is negative.
  std::vector<float> run(int count, Loc loc = Loc::current());
  // Queues steps and returns at once; at most a bounded number is in flight. Throws as run().
  void submit(int count, Loc loc = Loc::current());
  // Waits for all queued steps; their losses since the last call, oldest first (at most the last
  // 4096). That of a step() which came while queued ones were unread is among them; run()'s never.
  std::vector<float> losses();
  // Fills a dataset entry. Throws UserError on a wrong
  // name, type or size, or an index out of range.
  void upload_data(const std::string& name, const HostView& values, Loc loc = Loc::current());

  [[nodiscard]] std::int64_t steps() const;  // done or queued
  [[nodiscard]] std::int64_t epoch() const;  // full passes over the dataset
  [[nodiscard]] std::int64_t batches_per_epoch() const;
  [[nodiscard]] double lr() const;  // of the next step
  void set_lr(Schedule schedule);   // counted from the next step on
  // Changes a run-time scalar: one of ops.h's scalar(), "clip_grad_norm", "weight_decay".
  void set(const std::string& name, double value, Loc loc = Loc::current());

  [[nodiscard]] std::vector<std::string> parameter_names() const;
  [[nodiscard]] std::map<std::string, HostTensor> download_params() const;
  // Gradients of the last step.
  [[nodiscard]] std::map<std::string, HostTensor> download_grads() const;
  // All parameters at once; throws UserError on missing or unknown names and wrong sizes, and then
  // nothing is changed.
  void upload_params(const std::map<std::string, HostTensor>& params, Loc loc = Loc::current());
  // Back to the initial parameters, optimizer state and step 0.
  void reset();

  // Everything that the next step depends on, in one safetensors file: parameters, optimizer state,
  // step, seed, place in the data, schedule, run-time scalars. A trainer compiled from the same
  // model and options that loads it goes on bit for bit.
  void save(const std::string& path, Loc loc = Loc::current()) const;
  void load(const std::string& path, Loc loc = Loc::current());

  [[nodiscard]] CompileReport report() const;
  // The launch table (kernel, fused ops, shapes, bytes, user line) and the memory plan, as text.
  [[nodiscard]] std::string explain() const;
  // Microseconds of each launch of one (real) step, by launch name in order.
  std::vector<std::pair<std::string, double>> profile(const Feed& inputs = {},
                                                      Loc loc = Loc::current());
  [[nodiscard]] std::string device() const;

 protected:
  std::shared_ptr<detail::TrainerImpl> impl_;
};

template <class Model>
class Trainer : public TrainerBase {
 public:
  Trainer(std::shared_ptr<const Model> model, std::shared_ptr<detail::TrainerImpl> impl)
      : TrainerBase(std::move(impl)), model_(std::move(model)) {}

  // Another function of the same model, on the same device. Parameters and states are the trainer's
  // own: a state that the function sets changes there, too.
  template <class Function>
  Forward attach(Function forward, const ForwardOptions& options, Loc loc = Loc::current()) {
    detail::check_forward<Model, Function>();
    auto traced = [model = model_, forward = std::move(forward)](const Inputs& in) {
      return detail::named(forward(*model, in));
    };
    return Forward(detail::attach_forward(*impl_, std::move(traced), options, loc));
  }

 private:
  std::shared_ptr<const Model> model_;
};

namespace detail {

template <class Model>
std::shared_ptr<const Model> keep(Model model, ModelFunctions& functions) {
  auto kept = std::make_shared<const Model>(std::move(model));
  functions.visit = [raw = kept.get()](ParameterVisitor& visitor) { raw->visit_fields(visitor); };
  functions.owner = kept;
  return kept;
}

}  // namespace detail

// `loss(model, inputs)` gives the scalar to be minimised.
template <class Model, class Loss>
Trainer<Model> compile(Model model, Loss loss, const CompileOptions& options,
                       Loc loc = Loc::current()) {
  detail::check_traceable<Model, Loss>();
  static_assert(std::is_convertible_v<detail::Traced<Model, Loss>, Tensor>,
                "compile: the loss function must return a tensorgrad::Tensor, a scalar");
  detail::ModelFunctions functions;
  auto kept = detail::keep(std::move(model), functions);
  auto traced = [kept, loss = std::move(loss)](const Inputs& in) {
    return std::map<std::string, Tensor>{{"loss", loss(*kept, in)}};
  };
  return Trainer<Model>(
      kept, detail::make_trainer(std::move(functions), std::move(traced), options, loc));
}

// A function of a model without training. Parameters start as their initial values.
template <class Model, class Function>
Forward compile_forward(Model model, Function forward, const ForwardOptions& options,
                        Loc loc = Loc::current()) {
  detail::check_forward<Model, Function>();
  detail::ModelFunctions functions;
  auto kept = detail::keep(std::move(model), functions);
  auto traced = [kept, forward = std::move(forward)](const Inputs& in) {
    return detail::named(forward(*kept, in));
  };
  return Forward(detail::make_forward(std::move(functions), std::move(traced), options, loc));
}

inline void save(const TrainerBase& trainer, const std::string& path, Loc loc = Loc::current()) {
  trainer.save(path, loc);
}
inline void load(TrainerBase& trainer, const std::string& path, Loc loc = Loc::current()) {
  trainer.load(path, loc);
}

}  // namespace tensorgrad
