// SPDX-License-Identifier: MIT
// Stubs of the core module for web/bindings/full/. JavaScript loads the full module for models,
// tokenizers and generators that need it; see web/src/engine.ts.
#include "full_module.h"
#include "registry.h"
#include "requests.h"

namespace tensorgrad::web {
namespace {

void export_onnx(const Request& r, Writer&) { needs_full_module("exportOnnx", r.location); }

void export_web(const Request& r, Writer&) { needs_full_module("exportWeb", r.location); }

constexpr std::pair<std::string_view, Handler> kHandlers[] = {{"function.exportOnnx", export_onnx},
                                                              {"function.exportWeb", export_web}};

}  // namespace

HandlerTable full_handlers() { return kHandlers; }
OpTable language_layers() { return {}; }
MakerTable<MakeLayer> language_layer_makers() { return {}; }
void stop_generator(int) {}
std::function<void()> reattach_generators(const Request&, TrainerObject&) {
  return [] {};
}

}  // namespace tensorgrad::web
