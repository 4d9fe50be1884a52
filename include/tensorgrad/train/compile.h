// SPDX-License-Identifier: MIT
// compile() and compile_function(): tracing and compiling a model into a Trainer, which runs
// training steps, or a CompiledFunction.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensorgrad/train/trainer.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

namespace detail {

// Names the result of a traced function: a single tensor is "output".
inline std::map<std::string, Tensor> named(Tensor tensor) { return {{"output", tensor}}; }
inline std::map<std::string, Tensor> named(std::map<std::string, Tensor> tensors) {
  return tensors;
}

// Static checks, with readable messages, that a model and a function can be traced.
template <class Model, class Function>
constexpr void check_traceable() {
  static_assert(Module<Model>,
                "the model must be a struct that names its fields with TG_MODULE(...), or a module "
                "of tensorgrad::nn");
  static_assert(
      std::is_invocable_v<Function&, const Model&, const Inputs&>,
      "the function to be traced must be callable with (const Model&, const "
      "tensorgrad::Inputs&); a module's operator() must be const; if the compiler reports "
      "an error inside the function too, that is the cause");
}
template <class Model, class Function>
using Traced = std::invoke_result_t<Function&, const Model&, const Inputs&>;
template <class Model, class Function>
constexpr void check_function() {
  check_traceable<Model, Function>();
  using Result = Traced<Model, Function>;
  static_assert(std::is_convertible_v<Result, Tensor> ||
                    std::is_convertible_v<Result, std::map<std::string, Tensor>>,
                "the function to be traced must return a tensorgrad::Tensor, or several by name: "
                "std::map<std::string, tensorgrad::Tensor>");
}

template <class Model>
std::shared_ptr<const Model> keep(Model model, ModelFunctions& functions) {
  auto kept = std::make_shared<const Model>(std::move(model));
  functions.visit = [raw = kept.get()](ParameterVisitor& visitor) { raw->visit_fields(visitor); };
  functions.owner = kept;
  return kept;
}

template <class Model>
using LossFunction = std::function<Tensor(const Model&, const Inputs&)>;
template <class Model>
TraceFunction traced_loss(std::shared_ptr<const Model> model, LossFunction<Model> loss) {
  if (!loss) return {};
  return [model = std::move(model), loss = std::move(loss)](const Inputs& in) {
    return std::map<std::string, Tensor>{{"loss", loss(*model, in)}};
  };
}

}  // namespace detail

/// The calls of a trainer that depend on the type of the model. Base class of Trainer and
/// MultiTrainer.
template <class Model, class Base>
class ModelTrainer : public Base {
 public:
  /// Wraps an implementation; called by compile().
  ModelTrainer(std::shared_ptr<const Model> model, std::vector<detail::LossFunction<Model>> losses,
               const std::shared_ptr<detail::TrainerImpl>& impl)
      : Base(impl), model_(std::move(model)), losses_(std::move(losses)) {}

  /// Returns the model passed to compile() or replace_model(). Training does not update its values;
  /// use download_params(). The reference is valid until replace_model().
  [[nodiscard]] const Model& model() const { return *model_; }

  /// Compiles another function of the model that shares the trainer's device, parameters and
  /// states. `forward(model, inputs)` returns a Tensor or a `std::map<std::string, Tensor>` of
  /// outputs; a single tensor is named "output". The function always sees the current parameters,
  /// after all steps queued before. If it sets a state, the trainer's state changes. It can outlive
  /// the trainer.
  ///
  /// Throws UserError if the function returns no output, if it declares a state of the trainer with
  /// a different type, or if FunctionOptions::weights is WeightSource::kEma without `ema_decay`.
  /// ```cpp
  /// auto predict = trainer.attach(
  ///     [](const Net& net, const tg::Inputs& in) { return net(in["x"]); },
  ///     {.inputs = {{"x", {1, 784}}}});
  /// ```
  template <class Function>
  CompiledFunction attach(Function forward, const FunctionOptions& options,
                          Loc loc = Loc::current()) {
    detail::check_function<Model, Function>();
    auto traced = [model = model_, forward = std::move(forward)](const Inputs& in) {
      return detail::named(forward(*model, in));
    };
    return CompiledFunction(detail::attach_function(*this->impl_, std::move(traced), options, loc));
  }

  /// Replaces the model. Recompiles the same losses with the same options on the same device.
  /// Training restarts at step 0 with the current schedules and run-time scalars. Datasets must be
  /// uploaded, and buffers bound, again.
  ///
  /// With `keep`, parameters of equal name and shape keep their values, as do model states of equal
  /// name and type, such as the running statistics of BatchNorm. Optimizer states always restart.
  ///
  /// Attached functions and previously obtained Objectives stay with the old model. Both programs
  /// are in memory until the new one is complete. Nothing is changed if it throws; it throws as
  /// compile(). No other thread may use the trainer during the call.
  void replace_model(Model model, bool keep = false, Loc loc = Loc::current()) {
    auto [kept, impl] = replacement(std::move(model), keep, loc);
    this->rebind(std::move(impl));
    model_ = std::move(kept);
  }

 protected:
  /// Returns a trainer of type T for another model, compiled as by replace_model().
  template <class T>
  [[nodiscard]] T replaced(Model model, bool keep, Loc loc) const {
    auto [kept, impl] = replacement(std::move(model), keep, loc);
    return T(std::move(kept), losses_, std::move(impl));
  }

 private:
  [[nodiscard]] std::pair<std::shared_ptr<const Model>, std::shared_ptr<detail::TrainerImpl>>
  replacement(Model model, bool keep, Loc loc) const {
    detail::ModelFunctions functions;
    auto kept = detail::keep(std::move(model), functions);
    std::vector<detail::TraceFunction> traced;
    for (const auto& loss : losses_) traced.push_back(detail::traced_loss<Model>(kept, loss));
    auto impl =
        detail::replace_trainer(*this->impl_, std::move(functions), std::move(traced), keep, loc);
    return {std::move(kept), std::move(impl)};
  }

  std::shared_ptr<const Model> model_;
  std::vector<detail::LossFunction<Model>> losses_;
};

/// A model compiled for training with one loss, returned by compile(). Movable, not copyable.
///
/// Its members are inherited:
/// - Stepper: step(), run(), submit(), losses, learning rate, run-time scalars, gradients, profile.
/// - `ModelTrainer`: `model()`, `attach()`, `replace_model()`.
/// - TrainerBase: datasets, parameters, optimizer states, checkpoints, reports.
///
/// Converts to AnyTrainer, for functions that work with any model.
template <class Model>
class Trainer : public ModelTrainer<Model, AnyTrainer> {
 public:
  using ModelTrainer<Model, AnyTrainer>::ModelTrainer;
  // A copy would train the same parameters.
  Trainer(const Trainer&) = delete;
  Trainer(Trainer&&) = default;
  Trainer& operator=(const Trainer&) = delete;
  Trainer& operator=(Trainer&&) = default;
  ~Trainer() = default;

  /// Returns a new trainer of another model, compiled as by replace_model(). This one is unchanged.
  [[nodiscard]] Trainer with_model(Model model, bool keep = false, Loc loc = Loc::current()) const {
    return this->template replaced<Trainer>(std::move(model), keep, loc);
  }
};

/// A model compiled for training with several losses (objectives), returned by compile(). Movable,
/// not copyable.
///
/// Its members are inherited:
/// - AnyMultiTrainer: `trainer["name"]`, which returns an Objective with the calls that step one
///   loss, and objectives().
/// - `ModelTrainer`: `model()`, `attach()`, `replace_model()`.
/// - TrainerBase: datasets, parameters, optimizer states, checkpoints, reports.
///
/// Converts to AnyMultiTrainer, for functions that work with any model.
template <class Model>
class MultiTrainer : public ModelTrainer<Model, AnyMultiTrainer> {
 public:
  using ModelTrainer<Model, AnyMultiTrainer>::ModelTrainer;
  // A copy would train the same parameters.
  MultiTrainer(const MultiTrainer&) = delete;
  MultiTrainer(MultiTrainer&&) = default;
  MultiTrainer& operator=(const MultiTrainer&) = delete;
  MultiTrainer& operator=(MultiTrainer&&) = default;
  ~MultiTrainer() = default;

  /// Returns a new trainer of another model, compiled as by replace_model(). This one is unchanged.
  [[nodiscard]] MultiTrainer with_model(Model model, bool keep = false,
                                        Loc loc = Loc::current()) const {
    return this->template replaced<MultiTrainer>(std::move(model), keep, loc);
  }
};

/// One of several losses over the parameters of a model, with its training options.
template <class Model>
struct ObjectiveSpec {
  std::string name;                  ///< Unique; consists of letters, digits, `_` and `-`.
  detail::LossFunction<Model> loss;  ///< `loss(model, inputs)` returns the scalar to minimize.
  ParamFilter params = {};           ///< Parameters to train; default: all.

  /// Options of this loss. `seed`, `device`, `memory_budget`, `initial` and `recovery` must not
  /// be set; they are in TrainerOptions.
  CompileOptions options = {};
};

/// Traces a model with its loss and compiles forward pass, backward pass and optimizer for a
/// device. `loss(model, inputs)` returns the scalar to minimize. Parameters start with their
/// initial values.
/// ```cpp
/// auto trainer = tg::compile(
///     Net{}, [](const Net& net, const tg::Inputs& in) { return mse(net(in["x"]), in["y"]); },
///     {.inputs = {{"x", {64, 8}}, {"y", {64, 1}}}, .optimizer = tg::optim::AdamW{.lr = 1e-3}});
/// ```
/// Throws UserError if:
/// - the optimizer is missing or an option is invalid,
/// - the model has no parameters, or all are frozen,
/// - the loss does not depend on any trained parameter,
/// - the program needs more memory than CompileOptions::memory_budget.
///
/// Throws ShapeError if the loss is not a scalar, and DeviceError if the device is not available.
/// Also throws whatever the loss function throws.
template <class Model, class Loss>
  requires(!std::same_as<Loss, std::vector<ObjectiveSpec<Model>>>)
Trainer<Model> compile(Model model, Loss loss, const CompileOptions& options,
                       Loc loc = Loc::current()) {
  detail::check_traceable<Model, Loss>();
  static_assert(std::is_convertible_v<detail::Traced<Model, Loss>, Tensor>,
                "compile: the loss function must return a tensorgrad::Tensor, a scalar");
  detail::ModelFunctions functions;
  auto kept = detail::keep(std::move(model), functions);
  const detail::LossFunction<Model> function = std::move(loss);
  return Trainer<Model>(
      kept, {function},
      detail::make_trainer(
          std::move(functions), {{"", detail::traced_loss<Model>(kept, function), {}, options}},
          false,
          {options.seed, options.device, options.memory_budget, options.initial, options.recovery},
          loc));
}

/// Compiles several losses over one model, for example the two sides of a GAN. The caller decides
/// which objective makes the next step. Each has its own program, optimizer, step counts, order of
/// the data and random numbers. All share the parameters and states of the model, and dataset
/// entries of the same name. Objectives may train the same parameters. Parameters that no objective
/// trains keep their initial values.
///
/// Throws the errors of compile() for one loss. Also throws UserError if:
/// - the name of an objective is missing, duplicate or invalid,
/// - an objective sets an option that belongs to TrainerOptions,
/// - two objectives declare the same state or dataset entry differently,
/// - two objectives average the same parameter (`ema_decay`).
template <class Model>
MultiTrainer<Model> compile(
    Model model, const std::vector<ObjectiveSpec<std::type_identity_t<Model>>>& objectives,
    const TrainerOptions& options = {}, Loc loc = Loc::current()) {
  detail::ModelFunctions functions;
  auto kept = detail::keep(std::move(model), functions);
  std::vector<detail::LossFunction<Model>> losses;
  std::vector<detail::ObjectiveSource> sources;
  for (const auto& each : objectives) {
    losses.push_back(each.loss);
    sources.push_back(
        {each.name, detail::traced_loss<Model>(kept, each.loss), each.params, each.options});
  }
  return MultiTrainer<Model>(
      kept, std::move(losses),
      detail::make_trainer(std::move(functions), std::move(sources), true, options, loc));
}

/// Runs compile() on `executor` and returns the future trainer. Errors are rethrown by
/// Future::get().
template <class Model, class Loss>
  requires(!std::same_as<Loss, std::vector<ObjectiveSpec<Model>>>)
Future<Trainer<Model>> compile_async(Model model, Loss loss, CompileOptions options,
                                     Executor& executor = default_executor(),
                                     Loc loc = Loc::current()) {
  return async([model = std::move(model), loss = std::move(loss), options = std::move(options),
                loc]() mutable { return compile(std::move(model), std::move(loss), options, loc); },
               executor);
}
template <class Model>
Future<MultiTrainer<Model>> compile_async(
    Model model, std::vector<ObjectiveSpec<std::type_identity_t<Model>>> objectives,
    TrainerOptions options = {}, Executor& executor = default_executor(),
    Loc loc = Loc::current()) {
  return async(
      [model = std::move(model), objectives = std::move(objectives), options = std::move(options),
       loc]() mutable { return compile(std::move(model), objectives, options, loc); },
      executor);
}

/// Like compile(), but without a device. Use it for report(), explain(), graph() and names of
/// parameters, scalars and captures. The program is planned for the minimum limits of WebGPU,
/// except that buffers can have any size, and a launch can bind more if it cannot be split. No
/// initial values are drawn, and steps compute nothing.
template <class Model, class Loss>
  requires(!std::same_as<Loss, std::vector<ObjectiveSpec<Model>>>)
Trainer<Model> trace(Model model, Loss loss, CompileOptions options, Loc loc = Loc::current()) {
  options.device = {.kind = "null"};
  return compile(std::move(model), std::move(loss), options, loc);
}
template <class Model>
MultiTrainer<Model> trace(Model model,
                          const std::vector<ObjectiveSpec<std::type_identity_t<Model>>>& objectives,
                          TrainerOptions options = {}, Loc loc = Loc::current()) {
  options.device = {.kind = "null"};
  return compile(std::move(model), objectives, options, loc);
}

/// Compiles a function of a model without training. `forward(model, inputs)` returns a Tensor or a
/// `std::map<std::string, Tensor>` of outputs; a single tensor is named "output". Parameters start
/// with their initial values; set them with CompiledFunction::load_params(),
/// CompiledFunction::import_weights() or CompiledFunction::upload_params().
/// ```cpp
/// auto predict = tg::compile_function(
///     Net{}, [](const Net& net, const tg::Inputs& in) { return net(in["x"]); },
///     {.inputs = {{"x", {tg::kDynamic, 784}}}});
/// predict.load_params("model.safetensors");
/// ```
/// Throws UserError if an option is invalid, the function returns no output, or the program needs
/// more memory than FunctionOptions::memory_budget. Throws DeviceError if the device is not
/// available. Also throws whatever the function throws.
template <class Model, class Function>
CompiledFunction compile_function(Model model, Function forward, const FunctionOptions& options,
                                  Loc loc = Loc::current()) {
  detail::check_function<Model, Function>();
  detail::ModelFunctions functions;
  auto kept = detail::keep(std::move(model), functions);
  auto traced = [kept, forward = std::move(forward)](const Inputs& in) {
    return detail::named(forward(*kept, in));
  };
  return CompiledFunction(
      detail::make_function(std::move(functions), std::move(traced), options, loc));
}

/// Compiles a function without a model: `function(inputs)`. Otherwise like compile_function() of a
/// model.
/// ```cpp
/// auto norm = tg::compile_function([](const tg::Inputs& in) { return sum(square(in["x"])); },
///                                  {.inputs = {{"x", {3}}}});
/// ```
template <class Function>
  requires std::invocable<Function&, const Inputs&>
CompiledFunction compile_function(Function function, const FunctionOptions& options,
                                  Loc loc = Loc::current()) {
  struct NoModel {
    TG_MODULE()
  };
  return compile_function(
      NoModel{},
      [function = std::move(function)](const NoModel&, const Inputs& in) { return function(in); },
      options, loc);
}

/// Runs compile_function() on `executor` and returns the future function, like compile_async().
template <class Model, class Function>
Future<CompiledFunction> compile_function_async(Model model, Function forward,
                                                FunctionOptions options,
                                                Executor& executor = default_executor(),
                                                Loc loc = Loc::current()) {
  return async(
      [model = std::move(model), forward = std::move(forward), options = std::move(options),
       loc]() mutable {
        return compile_function(std::move(model), std::move(forward), options, loc);
      },
      executor);
}

/// Writes a checkpoint, like TrainerBase::save().
inline void save(const TrainerBase& trainer, const FileSink& sink, const SaveOptions& options = {},
                 Loc loc = Loc::current()) {
  trainer.save(sink, options, loc);
}

/// Loads a checkpoint, like TrainerBase::load().
inline void load(TrainerBase& trainer, const FileSource& source, Loc loc = Loc::current()) {
  trainer.load(source, loc);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
