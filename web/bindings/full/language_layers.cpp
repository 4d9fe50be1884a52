// SPDX-License-Identifier: MIT
// Tables of the layers of language models, generated from the public headers by web/generate.py.
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
