// SPDX-License-Identifier: MIT
// Requests about trainers.
#include "dump.h"
#include "requests.h"

namespace tensorgrad::web {
namespace {

AnyTrainer& trainer(const Request& r) { return trainers().at(r).trainer; }

StepOptions step_options(const Request& r) {
  return {.captures = r.get<std::vector<std::string>>("captures", {})};
}

auto loss_function(const std::shared_ptr<TracedFunction>& traced) {
  return [traced](const Model& model, const Inputs& in) {
    const auto outputs = (*traced)(model, in, {});
    return outputs.at("loss");
  };
}

// What JavaScript keeps of a trainer.
void put_trainer(Writer& w, double id, const AnyTrainer& trainer, Loc location) {
  w.object(4);
  w.key("id");
  w.number(id);
  w.key("device");
  put(w, trainer.device());
  w.key("parameters");
  put(w, trainer.parameter_names());
  w.key("captures");
  put(w, trainer.captures(location));
}

void compile_request(const Request& r, Writer& w) {
  auto options = r.get<CompileOptions>("options");
  auto traced = TracedFunction::from(r["function"]);
  auto made = compile(Model::from(r["model"]), loss_function(traced), options, r.location);
  const double id = trainers().add({std::move(made), std::move(traced)});
  put_trainer(w, id, trainers().find(static_cast<int>(id))->trainer, r.location);
}

// Compiles a trainer that nobody uses.
void dump_request(const Request& r, Writer& w) {
  put(w, dumped([&] {
        compile(Model::from(r["model"]), loss_function(TracedFunction::from(r["function"])),
                r.get<CompileOptions>("options"), r.location);
      }));
}

void attach_request(const Request& r, Writer& w) {
  auto options = r.get<FunctionOptions>("options");
  auto traced = TracedFunction::from(r["function"]);
  auto& from = trainers().at(r).trainer;
  auto function =
      from.attach([traced, specs = options.inputs](
                      const Model& model, const Inputs& in) { return (*traced)(model, in, specs); },
                  options, r.location);
  w.number(functions().add({std::move(function), from.model(), std::move(traced)}));
}

void replace_model(const Request& r, Writer& w) {
  TrainerObject& object = trainers().at(r);
  // The tapes name entries of the model, so that they are recorded again for the new one.
  *object.loss = *TracedFunction::from(r["function"]);
  object.trainer.replace_model(Model::from(r["model"]), r.get<bool>("keep", false), r.location);
  put_trainer(w, r.get<double>("id"), object.trainer, r.location);
}

void step(const Request& r, Writer& w) {
  const StepResult result =
      trainer(r).step(read_feed(r["inputs"], r.where("step")), step_options(r), r.location);
  w.object(3);
  w.key("loss");
  put(w, result.loss);
  w.key("step");
  put(w, result.step);
  w.key("captures");
  put(w, result.captures);
}

void counters(const Request& r, Writer& w) {
  const AnyTrainer& t = trainer(r);
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
  trainer(r).upload_data(name, view, r.location);
}

UploadOptions upload_options(const Request& r) { return r.get<UploadOptions>("options", {}); }

constexpr std::pair<std::string_view, Handler> kHandlers[] = {
    {"compile", compile_request},
    {"dump", dump_request},
    {"attach", attach_request},
    {"trainer.replaceModel", replace_model},
    {"trainer.step", step},
    {"trainer.counters", counters},
    {"trainer.uploadData", upload_data},
    {"trainer.run",
     [](const Request& r, Writer& w) { put(w, trainer(r).run(r.get<int>("steps"), r.location)); }},
    {"trainer.submit",
     [](const Request& r, Writer&) { trainer(r).submit(r.get<int>("steps"), r.location); }},
    {"trainer.losses", [](const Request& r, Writer& w) { put(w, trainer(r).losses(r.location)); }},
    {"trainer.setLR",
     [](const Request& r, Writer&) { trainer(r).set_lr(r.get<Schedule>("lr"), r.location); }},
    {"trainer.set",
     [](const Request& r, Writer&) {
       trainer(r).set(r.get<std::string>("name"), r.get<double>("value"), r.location);
     }},
    {"trainer.scalars",
     [](const Request& r, Writer& w) { put(w, trainer(r).scalars(r.location)); }},
    {"trainer.gradNorm",
     [](const Request& r, Writer& w) { put(w, trainer(r).grad_norm(r.location)); }},
    {"trainer.lossScale",
     [](const Request& r, Writer& w) { put(w, trainer(r).loss_scale(r.location)); }},
    {"trainer.skippedUpdates",
     [](const Request& r, Writer& w) { put(w, trainer(r).skipped_updates(r.location)); }},
    {"trainer.downloadParams",
     [](const Request& r, Writer& w) { put(w, trainer(r).download_params()); }},
    {"trainer.downloadEma",
     [](const Request& r, Writer& w) { put(w, trainer(r).download_ema(r.location)); }},
    {"trainer.downloadGrads",
     [](const Request& r, Writer& w) { put(w, trainer(r).download_grads(r.location)); }},
    {"trainer.downloadOptimizer",
     [](const Request& r, Writer& w) { put(w, trainer(r).download_optimizer()); }},
    {"trainer.uploadParams",
     [](const Request& r, Writer&) {
       auto& t = trainers().at(r).trainer;
       t.upload_params(read_tensors_by_name(r["values"], t.model(), r.where("uploadParams")),
                       upload_options(r), r.location);
     }},
    {"trainer.uploadOptimizer",
     [](const Request& r, Writer&) {
       auto& t = trainers().at(r).trainer;
       t.upload_optimizer(read_tensors_by_name(r["values"], t.model(), r.where("uploadOptimizer")),
                          upload_options(r), r.location);
     }},
    {"trainer.reset",
     [](const Request& r, Writer&) { trainer(r).reset(r.get<ResetOptions>("options", {})); }},
    {"trainer.save",
     [](const Request& r, Writer& w) {
       std::vector<std::byte> bytes;
       trainer(r).save(bytes, r.location);
       put_bytes(w, bytes);
     }},
    {"trainer.load",
     [](const Request& r, Writer&) {
       trainer(r).load(FileSource::text(r["bytes"].text), r.location);
     }},
    {"trainer.importWeights",
     [](const Request& r, Writer&) {
       trainer(r).import_weights(FileSource::text(r["bytes"].text),
                                 r.get<ImportOptions>("options", {}), r.location);
     }},
    {"trainer.profile",
     [](const Request& r, Writer& w) {
       put_profile(w, trainer(r).profile(read_feed(r["inputs"], r.where("profile")),
                                         r.get<ProfileOptions>("options", {}), r.location));
     }},
    {"trainer.explain",
     [](const Request& r, Writer& w) { put(w, trainer(r).TrainerBase::explain()); }},
    {"trainer.report",
     [](const Request& r, Writer& w) { put(w, trainer(r).TrainerBase::report()); }},
    {"trainer.recoveries",
     [](const Request& r, Writer& w) { put(w, trainer(r).TrainerBase::recoveries()); }},
    {"trainer.graph",
     [](const Request& r, Writer& w) {
       put(w, trainer(r).graph(r.get<GraphStage>("stage", GraphStage::kTraced), r.location));
     }},
    {"trainer.free", [](const Request& r, Writer&) { trainers().remove(r.get<int>("id")); }},
};

}  // namespace

HandlerTable trainer_handlers() { return kHandlers; }

}  // namespace tensorgrad::web
