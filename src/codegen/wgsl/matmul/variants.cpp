// SPDX-License-Identifier: MIT
#include "codegen/wgsl/matmul/variants.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/hash.h"
#include "codegen/wgsl/matmul/contraction.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Maximum number of multiply-adds for the form by lanes. It does not reuse operands, so a larger
// launch would be slow. It could run for seconds, which a driver may treat as a hang.
constexpr std::int64_t kMaxByLanes = 1 << 26;

struct FormName {
  std::string name;
  int tile = 0, subgroup_matrix_tile = 0;
};

std::vector<FormName> form_names(const Launch& launch, const WgslOptions& options) {
  std::vector<FormName> names = {{"default"}};
  const auto& p = launch.as<ContractionLaunch>();
  if (options.subgroup_matrix.present() && p.k >= options.subgroup_matrix.k) {
    for (const int number : wgsl::subgroup_matrix_tiles())
      names.push_back({"subgroup_matrix " + std::to_string(number), 0, number});
  }
  const bool small = p.batch * p.m * p.n * p.k <= kMaxByLanes;
  for (const int number : wgsl::tile_numbers()) {
    if (number > 1 || small) names.push_back({"tile " + std::to_string(number), number, -1});
  }
  return names;
}

ContractionForm write_form(const Launch& launch, WgslOptions options, const FormName& name) {
  if (name.tile != 0 || name.subgroup_matrix_tile != 0) {
    options.tile = name.tile;
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

ContractionForm contraction_form(const Launch& launch, const WgslOptions& options,
                                 const std::string& name) {
  for (const FormName& each : form_names(launch, options)) {
    if (each.name == name) return write_form(launch, options, each);
  }
  return {};
}

std::vector<ContractionForm> contraction_forms(const Launch& launch, const WgslOptions& options) {
  std::vector<ContractionForm> forms;
  for (const FormName& name : form_names(launch, options)) {
    ContractionForm form = write_form(launch, options, name);
    const bool known = std::any_of(forms.begin(), forms.end(), [&](const ContractionForm& each) {
      return each.kernel.body == form.kernel.body;
    });
    if (!known) forms.push_back(std::move(form));
  }
  return forms;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
