// SPDX-License-Identifier: MIT
// The tables of layers of language models that web/generate.py makes of the public headers.
#include "registry.h"

namespace tensorgrad::web {
namespace {

constexpr std::pair<std::string_view, MakeLayer> kLayers[] = {
#include "language_layers.inc"
};

constexpr std::pair<std::string_view, Op> kLayerCalls[] = {
#include "language_layer_calls.inc"
};

}  // namespace

OpTable language_layers() { return kLayerCalls; }
MakerTable<MakeLayer> language_layer_makers() { return kLayers; }

}  // namespace tensorgrad::web
