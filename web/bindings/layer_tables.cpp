// SPDX-License-Identifier: MIT
// Tables of layers, generated from the public headers by web/generate.py.
#include "registry.h"

namespace tensorgrad::web {
namespace {

constexpr std::pair<std::string_view, MakeLayer> kLayers[] = {
#include "layers.inc"
};

constexpr std::pair<std::string_view, Op> kLayerCalls[] = {
#include "layer_calls.inc"
};

}  // namespace

OpTable generated_layers() { return kLayerCalls; }
MakerTable<MakeLayer> layer_makers() { return kLayers; }

}  // namespace tensorgrad::web
