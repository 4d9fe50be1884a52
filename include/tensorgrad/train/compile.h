// SPDX-License-Identifier: MIT
// compile(): traces a model with its loss, compiles forward, backward and optimizer into launches,
// and gives a Trainer that runs them.
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

namespace tensorgrad {

namespace detail {

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

template <class Model>
class Trainer : public TrainerBase {
 public:
  Trainer(std::shared_ptr<const Model> model, std::vector<detail::LossFunction<Model>> losses,
          std::shared_ptr<detail::TrainerImpl> impl)
      : TrainerBase(std::move(impl)), model_(std::move(model)), losses_(std::move(losses)) {}

  // As it was given; what its parameters are by now, download_params() says. Until replace_model().
  [[nodiscard]] const Model& model() const { return *model_; }

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

  // Trains `model` from now on, on the same device, with the same losses and options, from step 0
  // and with the schedules and the scalars as they are; datasets are to be given anew. With `keep`,
  // parameters whose name and shape the old model has begin as they are there, and so do the
  // model's states (as the running statistics of BatchNorm) of one name and type; the optimizer's
  // begin anew. The new programs are built before the old ones go: where this throws, nothing is
  // changed. Attached functions, and Objectives that were got before, stay with the old model. No
  // other thread may use the trainer meanwhile.
  void replace_model(Model model, bool keep = false, Loc loc = Loc::current()) {
    detail::ModelFunctions functions;
    auto kept = detail::keep(std::move(model), functions);
    std::vector<detail::TraceFunction> traced;
    for (const auto& loss : losses_) traced.push_back(detail::traced_loss<Model>(kept, loss));
    impl_ = {detail::replace_trainer(*impl_, std::move(functions), std::move(traced), keep, loc),
             "Trainer"};
    model_ = std::move(kept);
  }

 private:
  std::shared_ptr<const Model> model_;
  std::vector<detail::LossFunction<Model>> losses_;
};

// One of several losses over the parameters of a model: what a trainer of it alone would be given,
// and which parameters it trains.
template <class Model>
struct ObjectiveSpec {
  std::string name;  // of letters, digits, '_' and '-'
  detail::LossFunction<Model> loss;
  ParamFilter params = {};  // none: all; a group may freeze some of them
  // Its inputs, optimizer, clipping ...; but seed, device, memory_budget and initial are
  // TrainerOptions'.
  CompileOptions options = {};
};

// `loss(model, inputs)` gives the scalar to be minimised.
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
          {options.seed, options.device, options.memory_budget, options.initial}, loc));
}

// Several losses that train the model in turns, as the caller steps them: each with a program, an
// optimizer, counts and random numbers of its own, over one set of parameters and states of the
// model. Objectives may have parameters in common; what none trains stays as it is. Dataset entries
// of one name are the same data, which each draws in an order of its own. Throws UserError where
// names are missing, equal or not as ObjectiveSpec says, where an objective trains nothing, and
// where two have a state, a dataset entry or averages of a parameter that differ.
template <class Model>
Trainer<Model> compile(Model model,
                       const std::vector<ObjectiveSpec<std::type_identity_t<Model>>>& objectives,
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
  return Trainer<Model>(
      kept, std::move(losses),
      detail::make_trainer(std::move(functions), std::move(sources), options, loc));
}

// The same program without a device: for report(), explain() and the names of what there is. It
// plans for the least limits that WebGPU allows; its steps compute nothing.
template <class Model, class Loss>
  requires(!std::same_as<Loss, std::vector<ObjectiveSpec<Model>>>)
Trainer<Model> trace(Model model, Loss loss, CompileOptions options, Loc loc = Loc::current()) {
  options.device = {.kind = "null"};
  return compile(std::move(model), std::move(loss), options, loc);
}
template <class Model>
Trainer<Model> trace(Model model,
                     const std::vector<ObjectiveSpec<std::type_identity_t<Model>>>& objectives,
                     TrainerOptions options = {}, Loc loc = Loc::current()) {
  options.device = {.kind = "null"};
  return compile(std::move(model), objectives, options, loc);
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
