// SPDX-License-Identifier: MIT
// Requests for compiled functions and devices.
#include "requests.h"

namespace tensorgrad::web {
namespace {

CompiledFunction& function(const Request& r) { return functions().at(r).function; }

void compile_function_request(const Request& r, Writer& w) {
  auto options = r.get<FunctionOptions>("options");
  auto traced = TracedFunction::from(r["function"]);
  Model model = Model::from(r["model"]);
  auto made = compile_function(
      model,
      [traced, specs = options.inputs](const Model& m, const Inputs& in) {
        return (*traced)(m, in, specs);
      },
      options, r.location);
  w.number(functions().add({std::move(made), std::move(model), std::move(traced)}));
}

void devices_request(const Request& r, Writer& w) {
  std::string note;
  const auto all = devices(r.get<DeviceOptions>("options", {}), note);
  w.object(2);
  w.key("devices");
  put(w, all);
  w.key("note");
  put(w, note);
}

constexpr std::pair<std::string_view, Handler> kHandlers[] = {
    {"compileFunction", compile_function_request},
    {"devices", devices_request},
    // Adds a tape for another dynamic size, which a call requested by NeedsTape.
    {"function.addTapes",
     [](const Request& r, Writer&) {
       // Ignores tapes of a model that was replaced meanwhile; the call requests them again.
       FunctionObject& f = functions().at(r);
       if (f.generation == r.get<int>("generation", 0)) f.traced->add(r["tapes"]);
     }},
    {"function.run",
     [](const Request& r, Writer& w) {
       put(w, function(r).run(read_feed(r["inputs"], r.where("run")),
                              {.captures = r.get<std::vector<std::string>>("captures", {})},
                              r.location));
     }},
    {"function.captures", [](const Request& r, Writer& w) { put(w, function(r).captures()); }},
    {"function.uploadParams",
     [](const Request& r, Writer&) {
       FunctionObject& f = functions().at(r);
       f.function.upload_params(read_tensors_by_name(r["values"], f.model, r.where("uploadParams")),
                                r.get<UploadOptions>("options", {}), r.location);
     }},
    {"function.downloadParams",
     [](const Request& r, Writer& w) { put(w, function(r).download_params(r.location)); }},
    {"function.downloadBuffers",
     [](const Request& r, Writer& w) { put(w, function(r).download_buffers(r.location)); }},
    {"function.loadParams",
     [](const Request& r, Writer&) {
       function(r).load_params(FileSource::text(r["bytes"].text),
                               r.get<WeightSource>("weights", WeightSource::kTrained), r.location);
     }},
    {"function.importWeights",
     [](const Request& r, Writer&) {
       function(r).import_weights(FileSource::text(r["bytes"].text),
                                  r.get<ImportOptions>("options", {}), r.location);
     }},
    {"function.profile",
     [](const Request& r, Writer& w) {
       put_profile(w, function(r).profile(read_feed(r["inputs"], r.where("profile")),
                                          r.get<ProfileOptions>("options", {}), r.location));
     }},
    {"function.explain", [](const Request& r, Writer& w) { put(w, function(r).explain()); }},
    {"function.report", [](const Request& r, Writer& w) { put(w, function(r).report()); }},
    {"function.device", [](const Request& r, Writer& w) { put(w, function(r).device()); }},
    {"function.graph",
     [](const Request& r, Writer& w) {
       put(w, function(r).graph(r.get<GraphStage>("stage", GraphStage::kTraced),
                                r.get<std::optional<std::int64_t>>("dynamicSize", {}), r.location));
     }},
    {"function.compiledSizes",
     [](const Request& r, Writer& w) { put(w, function(r).compiled_sizes()); }},
    {"function.free", [](const Request& r, Writer&) { functions().remove(r.get<int>("id")); }},
};

}  // namespace

HandlerTable function_handlers() { return kHandlers; }

}  // namespace tensorgrad::web
