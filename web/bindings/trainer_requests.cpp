// SPDX-License-Identifier: MIT
// Requests for trainers.
#include <algorithm>

#include "compile/debug/dump.h"
#include "requests.h"

namespace tensorgrad::web {
namespace {

TrainerBase& base(const Request& r) { return trainers().at(r).base(); }

// Returns the only loss of a trainer, or the objective that the request names.
Stepper& stepper(const Request& r) {
  TrainerObject& object = trainers().at(r);
  if (auto* one = std::get_if<Trainer<Model>>(&object.trainer)) return *one;
  const auto name = r.get<std::string>("objective");
  const auto known = object.objectives.find(name);
  if (known == object.objectives.end()) throw InternalError("unknown objective '" + name + "'");
  return known->second;
}

// Returns the objective that the request names, or null.
const Objective* objective(const Request& r) {
  return r["objective"].present() ? static_cast<const Objective*>(&stepper(r)) : nullptr;
}

StepOptions step_options(const Request& r) {
  return {.captures = r.get<std::vector<std::string>>("captures", {})};
}

// Writes the properties of a trainer that JavaScript keeps.
void put_trainer(Writer& w, double id, TrainerObject& object, Loc location) {
  const TrainerBase& base = object.base();
  w.object(4);
  w.key("id");
  w.number(id);
  w.key("device");
  put(w, base.device());
  w.key("parameters");
  put(w, base.parameter_names());
  w.key("captures");  // by objective; a single loss is named ""
  std::map<std::string, std::vector<std::string>> captures;
  if (auto* one = std::get_if<Trainer<Model>>(&object.trainer))
    captures[""] = one->captures(location);
  for (const auto& [name, each] : object.objectives) captures[name] = each.captures(location);
  put(w, captures);
}

// Reads {options, function} of a loss, and keeps its tapes.
CompileOptions read_loss(const Request& r, const Value& value, TracedLosses& traced) {
  const Where where = r.where("options");
  auto options = read<CompileOptions>(value["options"], where);
  traced.losses.push_back(TracedFunction::from(value["function"]));
  const Value& optimizer = value["options"]["optimizer"];
  auto& tape = traced.optimizers.emplace_back();
  if (optimizer["tape"].present()) {
    tape = std::make_shared<Tape>(read_tape(optimizer["tape"]));
    options.optimizer = traced_optimizer(optimizer, where, tape);
  }
  return options;
}

TrainerObject with_objectives(Trainer<Model> trainer, TracedLosses traced) {
  return {std::move(trainer), std::move(traced)};
}
TrainerObject with_objectives(MultiTrainer<Model> trainer, TracedLosses traced) {
  std::map<std::string, Objective> objectives;
  for (const std::string& name : trainer.objectives()) objectives.emplace(name, trainer[{name}]);
  return {std::move(trainer), std::move(traced), std::move(objectives)};
}

// Compiles the trainer that a request describes: one loss, or {objectives, options}. Uses the
// device of `on` if it is given.
TrainerObject compiled(const Request& r, const TrainerBase* on = nullptr) {
  TracedLosses traced;
  const Value& objectives = r["objectives"];
  if (!objectives.present()) {
    auto options = read_loss(r, r.all(), traced);
    if (on != nullptr) options.device = on->same_device();
    return with_objectives(
        compile(Model::from(r["model"]), loss_function(traced.losses.back(), options.inputs),
                options, r.location),
        traced);
  }
  std::vector<ObjectiveSpec<Model>> all;
  for (const Value& each : objectives.items) {
    const auto name = read<std::string>(each["name"], r.where("objectives"));
    auto options = read_loss(r, each, traced);
    const Value& params = each["params"];
    all.push_back({name, loss_function(traced.losses.back(), options.inputs),
                   params.present() ? read<ParamFilter>(params, r.where(name).field("params"))
                                    : ParamFilter{},
                   std::move(options)});
  }
  auto options = r.get<TrainerOptions>("options");
  if (on != nullptr) options.device = on->same_device();
  return with_objectives(compile(Model::from(r["model"]), all, options, r.location), traced);
}

void compile_request(const Request& r, Writer& w) {
  const double id = trainers().add(compiled(r));
  put_trainer(w, id, *trainers().find(static_cast<int>(id)), r.location);
}

// Compiles a trainer only to dump its programs.
void dump_request(const Request& r, Writer& w) {
  const DumpToMemory dump;
  compiled(r);
  put(w, dump.files());
}

FunctionObject attached(TrainerObject& to, const Value& given, const Where& where, int generation) {
  auto options = read<FunctionOptions>(given["options"], where);
  auto traced = TracedFunction::from(given["function"]);
  auto function =
      to.attach([traced, specs = options.inputs](
                    const Model& model, const Inputs& in) { return (*traced)(model, in, specs); },
                options, where.location);
  return {std::move(function), to.model(), std::move(traced), generation};
}

void attach_request(const Request& r, Writer& w) {
  w.number(functions().add(
      attached(trainers().at(r), r.all(), r.where("options"), r.get<int>("generation", 0))));
}

// Returns a trainer of another model with the losses and options of `before`. Tapes refer to
// entries of the model, so they are recorded again.
TrainerObject replaced(const Request& r, const TrainerObject& before) {
  const auto renew = [&](std::size_t i, const Value& loss) {
    *before.traced.losses[i] = *TracedFunction::from(loss["function"]);
    if (const auto& tape = before.traced.optimizers[i])
      *tape = read_tape(loss["options"]["optimizer"]["tape"]);
  };
  const Value& objectives = r["objectives"];
  if (!objectives.present()) renew(0, r.all());
  for (std::size_t i = 0; i < objectives.items.size(); ++i) renew(i, objectives.items[i]);
  return std::visit(
      [&](const auto& trainer) {
        return with_objectives(
            trainer.with_model(Model::from(r["model"]), r.get<bool>("keep", false), r.location),
            before.traced);
      },
      before.trainer);
}

// Copies the parameters of equal name and shape.
void copy_params(const TrainerBase& from, TrainerBase& to, Loc location) {
  auto params = from.download_params(location);
  const auto wanted = to.download_params(location);
  std::erase_if(params, [&](const auto& each) {
    const auto at = wanted.find(each.first);
    return at == wanted.end() || at->second.shape != each.second.shape;
  });
  if (!params.empty()) to.upload_params(params, {.partial = true}, location);
}

// Attaches the functions {id, options, function, file, line} to the trainer of the new model.
std::vector<FunctionObject> reattached(const Request& r, TrainerObject& to) {
  std::vector<FunctionObject> all;
  for (const Value& each : r["attached"].items) {
    const Loc location = source_location(each["file"], each["line"]);
    with_context("in the function attached at ", location, [&] {
      all.push_back(attached(to, each, {"options", location}, r.get<int>("generation")));
    });
  }
  return all;
}

// Replaces the model, and attaches the functions to the new one. Compiles with other options if
// `anew` is set. If it throws, nothing is changed.
void replace_model(const Request& r, Writer& w) {
  TrainerObject& object = trainers().at(r);
  TracedLosses before;  // to be restored after an error
  for (const auto& each : object.traced.losses)
    before.losses.push_back(std::make_shared<TracedFunction>(*each));
  for (const auto& each : object.traced.optimizers)
    before.optimizers.push_back(each ? std::make_shared<Tape>(*each) : nullptr);
  const bool anew = r.get<bool>("anew", false);
  try {
    TrainerObject made = anew ? compiled(r, &object.base()) : replaced(r, object);
    if (anew && r.get<bool>("keep", false)) copy_params(object.base(), made.base(), r.location);
    auto following = reattached(r, made);
    const auto move_generators = reattach_generators(r, made);
    put_trainer(w, r.get<double>("id"), made, r.location);
    for (std::size_t i = 0; i < following.size(); ++i) {
      // Skips functions that were freed meanwhile.
      auto* known = functions().find(static_cast<int>(r["attached"].items[i]["id"].number));
      if (known != nullptr) *known = std::move(following[i]);
    }
    move_generators();
    object = std::move(made);
    object.generation = r.get<int>("generation", 0);
  } catch (...) {
    for (std::size_t i = 0; i < before.losses.size(); ++i) {
      *object.traced.losses[i] = *before.losses[i];
      if (before.optimizers[i]) *object.traced.optimizers[i] = *before.optimizers[i];
    }
    throw;
  }
}

// Adds tapes of a loss for another dynamic size, which a step requested by NeedsTape.
void add_tapes(const Request& r, Writer&) {
  TrainerObject& object = trainers().at(r);
  if (object.generation != r.get<int>("generation", 0)) return;  // tapes of a replaced model
  std::size_t i = 0;
  if (const auto* many = std::get_if<MultiTrainer<Model>>(&object.trainer)) {
    const std::vector<std::string> names = many->objectives();
    i = static_cast<std::size_t>(
        std::find(names.begin(), names.end(), r.get<std::string>("objective")) - names.begin());
  }
  object.traced.losses.at(i)->add(r["tapes"]);
}

void put_step(Writer& w, const StepResult& result) {
  w.object(3);
  w.key("loss");
  put(w, result.loss);
  w.key("step");
  put(w, result.step);
  w.key("captures");
  put(w, result.captures);
}

void step(const Request& r, Writer& w) {
  put_step(w,
           stepper(r).step(read_feed(r["inputs"], r.where("step")), step_options(r), r.location));
}

void step_for(const Request& r, Writer& w) {
  const auto result = stepper(r).step_for(r.get<double>("seconds"),
                                          read_feed(r["inputs"], r.where("stepFor")), r.location);
  if (result) {
    put_step(w, *result);
  } else {
    w.nothing();
  }
}

void counters(const Request& r, Writer& w) {
  const Stepper& t = stepper(r);
  w.object(5);
  w.key("steps");
  put(w, t.steps());
  w.key("updates");
  put(w, t.updates());
  w.key("epoch");
  put(w, t.epoch());
  w.key("batchesPerEpoch");
  put(w, t.batches_per_epoch());
  w.key("lr");
  put(w, t.lr());
}

void upload_data(const Request& r, Writer&) {
  const auto name = r.get<std::string>("name");
  const Value& data = r["data"];
  if (data.kind != Kind::kArray || data.dtype >= kBytes)
    r.where("uploadData").field(name).expected("a Float32Array, Int32Array or Uint32Array", data);
  const HostView view(static_cast<DType>(data.dtype), data.text.data(), data.count);
  base(r).upload_data(name, view, r.location);
}

UploadOptions upload_options(const Request& r) { return r.get<UploadOptions>("options", {}); }

constexpr std::pair<std::string_view, Handler> kHandlers[] = {
    {"compile", compile_request},
    {"dump", dump_request},
    {"attach", attach_request},
    {"trainer.replaceModel", replace_model},
    {"trainer.step", step},
    {"trainer.stepFor", step_for},
    {"trainer.cancelStep", [](const Request& r, Writer& w) { put(w, stepper(r).cancel_step()); }},
    {"trainer.addTapes", add_tapes},
    {"trainer.compiledSizes",
     [](const Request& r, Writer& w) { put(w, stepper(r).compiled_sizes(r.location)); }},
    {"trainer.counters", counters},
    {"trainer.uploadData", upload_data},
    {"trainer.run",
     [](const Request& r, Writer& w) { put(w, stepper(r).run(r.get<int>("steps"), r.location)); }},
    {"trainer.submit",
     [](const Request& r, Writer&) {
       if (r["inputs"].present())
         return stepper(r).submit(read_feed(r["inputs"], r.where("submit")), r.location);
       stepper(r).submit(r.get<int>("steps"), r.location);
     }},
    {"trainer.losses", [](const Request& r, Writer& w) { put(w, stepper(r).losses(r.location)); }},
    {"trainer.setLR",
     [](const Request& r, Writer&) { stepper(r).set_lr(r.get<Schedule>("lr"), r.location); }},
    {"trainer.set",
     [](const Request& r, Writer&) {
       stepper(r).set(r.get<std::string>("name"), r.get<double>("value"), r.location);
     }},
    {"trainer.scalars",
     [](const Request& r, Writer& w) { put(w, stepper(r).scalars(r.location)); }},
    {"trainer.gradNorm",
     [](const Request& r, Writer& w) { put(w, stepper(r).grad_norm(r.location)); }},
    {"trainer.lossScale",
     [](const Request& r, Writer& w) { put(w, stepper(r).loss_scale(r.location)); }},
    {"trainer.skippedUpdates",
     [](const Request& r, Writer& w) { put(w, stepper(r).skipped_updates(r.location)); }},
    {"trainer.downloadParams",
     [](const Request& r, Writer& w) { put(w, base(r).download_params(r.location)); }},
    {"trainer.downloadBuffers",
     [](const Request& r, Writer& w) { put(w, base(r).download_buffers(r.location)); }},
    {"trainer.downloadEma",
     [](const Request& r, Writer& w) { put(w, base(r).download_ema(r.location)); }},
    {"trainer.downloadGrads",
     [](const Request& r, Writer& w) { put(w, stepper(r).download_grads(r.location)); }},
    {"trainer.downloadOptimizer",
     [](const Request& r, Writer& w) { put(w, base(r).download_optimizer(r.location)); }},
    {"trainer.uploadParams",
     [](const Request& r, Writer&) {
       TrainerObject& t = trainers().at(r);
       t.base().upload_params(read_tensors_by_name(r["values"], t.model(), r.where("uploadParams")),
                              upload_options(r), r.location);
     }},
    {"trainer.uploadOptimizer",
     [](const Request& r, Writer&) {
       TrainerObject& t = trainers().at(r);
       t.base().upload_optimizer(
           read_tensors_by_name(r["values"], t.model(), r.where("uploadOptimizer")),
           upload_options(r), r.location);
     }},
    {"trainer.reset",
     [](const Request& r, Writer&) {
       base(r).reset(r.get<ResetOptions>("options", {}), r.location);
     }},
    {"trainer.save",
     [](const Request& r, Writer& w) {
       std::vector<std::byte> bytes;
       base(r).save(bytes, r.get<SaveOptions>("options", {}), r.location);
       put_bytes(w, bytes);
     }},
    {"trainer.load", [](const Request& r,
                        Writer&) { base(r).load(FileSource::text(r["bytes"].text), r.location); }},
    {"trainer.saveWeights",
     [](const Request& r, Writer& w) {
       std::vector<std::byte> bytes;
       base(r).save_weights(bytes, r.get<WeightSource>("weights", WeightSource::kTrained),
                            r.location);
       put_bytes(w, bytes);
     }},
    {"trainer.loadParams",
     [](const Request& r, Writer&) {
       base(r).load_params(FileSource::text(r["bytes"].text),
                           r.get<WeightSource>("weights", WeightSource::kTrained), r.location);
     }},
    {"trainer.importWeights",
     [](const Request& r, Writer&) {
       base(r).import_weights(FileSource::text(r["bytes"].text),
                              r.get<ImportOptions>("options", {}), r.location);
     }},
    {"trainer.profile",
     [](const Request& r, Writer& w) {
       put_profile(w, stepper(r).profile(read_feed(r["inputs"], r.where("profile")),
                                         r.get<ProfileOptions>("options", {}), r.location));
     }},
    {"trainer.explain",
     [](const Request& r, Writer& w) {
       const Objective* one = objective(r);
       put(w, one != nullptr ? one->explain() : base(r).explain());
     }},
    {"trainer.report",
     [](const Request& r, Writer& w) {
       const Objective* one = objective(r);
       put(w, one != nullptr ? one->report() : base(r).report());
     }},
    {"trainer.recoveries", [](const Request& r, Writer& w) { put(w, base(r).recoveries()); }},
    {"trainer.graph",
     [](const Request& r, Writer& w) {
       put(w, stepper(r).graph(r.get<GraphStage>("stage", GraphStage::kTraced), r.location));
     }},
    {"trainer.addLoader",
     [](const Request& r, Writer&) {
       const auto* loader = loaders().find(r.get<int>("loader"));
       if (loader == nullptr) throw UserError("the data loader was freed", r.location);
       base(r).add_loader(r.get<std::string>("name"), *loader, r.location);
     }},
    {"readMetadata",
     [](const Request& r, Writer& w) {
       const auto name = r.get<std::string>("name", std::string(detail::kInMemory));
       put(w, read_metadata(FileSource::text(r["bytes"].text, name)));
     }},
    {"trainer.free", [](const Request& r, Writer&) { trainers().remove(r.get<int>("id")); }},
};

}  // namespace

TrainerBase& TrainerObject::base() {
  return std::visit([](auto& each) -> TrainerBase& { return each; }, trainer);
}

const Model& TrainerObject::model() const {
  return std::visit([](const auto& each) -> const Model& { return each.model(); }, trainer);
}

CompiledFunction TrainerObject::attach(ModelFunction forward, const FunctionOptions& options,
                                       Loc loc) {
  return std::visit([&](auto& each) { return each.attach(std::move(forward), options, loc); },
                    trainer);
}

std::function<Tensor(const Model&, const Inputs&)> loss_function(
    const std::shared_ptr<TracedFunction>& traced, const std::vector<InputSpec>& inputs) {
  return [traced, inputs](const Model& model, const Inputs& in) {
    return (*traced)(model, in, inputs).at("loss");
  };
}

HandlerTable trainer_handlers() { return kHandlers; }

}  // namespace tensorgrad::web
