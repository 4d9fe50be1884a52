// SPDX-License-Identifier: MIT
#include "codegen/wgsl/matmul/variants.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/hash.h"
#include "codegen/wgsl/matmul/contraction.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Maximum number of multiply-adds for the variant by lanes. It does not reuse operands, so a larger
// launch would be slow. It could run for seconds, which a driver may treat as a hang.
constexpr std::int64_t kMaxByLanes = 1 << 26;

struct VariantName {
  std::string name;
  MatmulTile tile = MatmulTile::kAuto;
  int subgroup_matrix_tile = 0;
};

// As tuning files name them, in the order in which they are tried. "tile 1" has no tile.
constexpr std::pair<const char*, MatmulTile> kTileNames[] = {
    {"tile 128", MatmulTile::k128x128}, {"tile 129", MatmulTile::k128x128MoreThreads},
    {"tile 96", MatmulTile::k128x64},   {"tile 64", MatmulTile::k64x64},
    {"tile 32", MatmulTile::k32x32},    {"tile 33", MatmulTile::k32x32InSlices},
    {"tile 16", MatmulTile::k16x16},    {"tile 8", MatmulTile::k8x8},
    {"tile 1", MatmulTile::kNone}};

std::vector<VariantName> variant_names(const Launch& launch, const WgslOptions& options) {
  std::vector<VariantName> names = {{"default"}};
  const auto& p = launch.as<ContractionLaunch>();
  if (options.subgroup_matrix.present() && p.k >= options.subgroup_matrix.k) {
    for (const int number : wgsl::subgroup_matrix_tiles())
      names.push_back({"subgroup_matrix " + std::to_string(number), MatmulTile::kAuto, number});
  }
  const bool small = p.batch * p.m * p.n * p.k <= kMaxByLanes;
  for (const auto& [name, tile] : kTileNames) {
    if (tile != MatmulTile::kNone || small) names.push_back({name, tile, -1});
  }
  return names;
}

ContractionVariant write_variant(const Launch& launch, WgslOptions options,
                                 const VariantName& name) {
  if (name.subgroup_matrix_tile != 0) {
    options.matmul_tile = name.tile;
    options.subgroup_matrix_tile = name.subgroup_matrix_tile;
  }
  return {name.name, write_wgsl(launch, options)};
}

// Returns the launch with all offsets reduced modulo 8, as vectorized access depends on no more of
// them. Launches that differ only in their place in the buffers become equal.
Launch without_offsets(Launch launch) {
  const auto drop = [](IndexMap& map) { map.views.back().offset %= 8; };
  for (ScalarProgram* const program : programs_of(launch)) {
    for (Access& access : program->accesses) drop(access.map);
  }
  for (Store* const store : stores_of(launch)) drop(store->map);
  return launch;
}

}  // namespace

std::string contraction_key(const Launch& launch, const WgslOptions& options) {
  const WgslKernel kernel = write_wgsl(without_offsets(launch), options);
  std::string text = kernel.body;
  for (const std::int64_t each :
       {std::int64_t{kernel.groups_x}, std::int64_t{kernel.groups_y},
        std::int64_t{options.max_threads}, options.max_workgroup_bytes,
        std::int64_t{options.subgroup_matrix.m}, std::int64_t{options.subgroup_matrix.subgroup}}) {
    text += " " + std::to_string(each);
  }
  std::array<char, 17> digits = {};
  std::snprintf(digits.data(), digits.size(), "%016llx",
                static_cast<unsigned long long>(fnv1a(text)));
  std::string key;
  const auto& p = launch.as<ContractionLaunch>();
  for (const std::int64_t each : {p.batch * p.parts, p.m, p.n, p.k})
    key += (key.empty() ? "" : "x") + std::to_string(each);
  wgsl::Module module(launch);
  key += wgsl::TileOperand(module, launch, options, true).along_k() ? " k" : " m";
  key += wgsl::TileOperand(module, launch, options, false).along_k() ? "k " : "n ";
  return key + digits.data();
}

ContractionVariant contraction_variant(const Launch& launch, const WgslOptions& options,
                                       const std::string& name) {
  for (const VariantName& each : variant_names(launch, options)) {
    if (each.name == name) return write_variant(launch, options, each);
  }
  return {};
}

std::vector<ContractionVariant> contraction_variants(const Launch& launch,
                                                     const WgslOptions& options) {
  std::vector<ContractionVariant> variants;
  for (const VariantName& name : variant_names(launch, options)) {
    ContractionVariant variant = write_variant(launch, options, name);
    const bool known = std::any_of(
        variants.begin(), variants.end(),
        [&](const ContractionVariant& each) { return each.kernel.body == variant.kernel.body; });
    if (!known) variants.push_back(std::move(variant));
  }
  return variants;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
