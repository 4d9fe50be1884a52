// SPDX-License-Identifier: MIT
#include "kernel/contraction_forms.h"

#include <algorithm>

#include "kernel/wgsl_contraction.h"

namespace tensorgrad {
namespace {

// By lanes nothing is read once for several results: above so many multiply-adds it loses, and a
// driver may take the seconds that it needs for a kernel that hangs.
constexpr std::int64_t kMostByLanes = 1 << 26;

struct FormName {
  std::string name;
  int tile = 0, unit_tile = 0;
};

std::vector<FormName> form_names(const Launch& launch, const WgslOptions& options) {
  std::vector<FormName> names = {{"default"}};
  if (options.units.present() && launch.k >= options.units.k) {
    for (const int number : wgsl::unit_tile_numbers())
      names.push_back({"units " + std::to_string(number), 0, number});
  }
  const bool small = launch.batch * launch.m * launch.n * launch.k <= kMostByLanes;
  for (const int number : wgsl::tile_numbers()) {
    if (number > 1 || small) names.push_back({"tile " + std::to_string(number), number, -1});
  }
  return names;
}

ContractionForm write_form(const Launch& launch, WgslOptions options, const FormName& name) {
  if (name.tile != 0 || name.unit_tile != 0) {
    options.tile = name.tile;
    options.unit_tile = name.unit_tile;
  }
  WgslKernel kernel = write_wgsl(launch, options);
  return {name.name, std::move(options), std::move(kernel)};
}

}  // namespace

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

}  // namespace tensorgrad
