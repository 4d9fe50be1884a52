// SPDX-License-Identifier: MIT
// Tables of the functions that JavaScript can call by name. Most are generated from the public
// headers.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "model.h"
#include "tracing.h"

namespace tensorgrad::web {

using OpTable = std::span<const std::pair<std::string_view, Op>>;

OpTable generated_ops();     // functions of the op headers
OpTable generated_layers();  // methods of layers: "Linear.call"
OpTable language_layers();   // methods of language model layers; only in the full module
OpTable model_ops();         // parameters, buffers and inputs
OpTable callback_ops();      // ops that take functions
OpTable update_ops();        // methods for optimizers written in JavaScript

inline std::vector<OpTable> op_tables() {
  return {generated_ops(), generated_layers(), language_layers(),
          model_ops(),     callback_ops(),     update_ops()};
}

using MakeLayer = std::shared_ptr<const AnyLayer> (*)(const Call&);
using MakeInit = Init (*)(const Call&);
using MakeSchedule = Schedule (*)(const Call&);
using MakeOptimizer = Optimizer (*)(const Value& fields, const Where& where);

template <class Make>
using MakerTable = std::span<const std::pair<std::string_view, Make>>;

MakerTable<MakeLayer> layer_makers();
MakerTable<MakeLayer> language_layer_makers();  // only in the full module
MakerTable<MakeInit> init_makers();
MakerTable<MakeSchedule> schedule_makers();
MakerTable<MakeOptimizer> optimizer_makers();

// Returns the maker of a name. Throws UserError listing the names if it is unknown.
template <class Make>
Make find_maker(std::initializer_list<MakerTable<Make>> tables, std::string_view name,
                const Where& where) {
  std::string names;
  for (const auto& table : tables) {
    for (const auto& [each, make] : table) {
      if (each == name) return make;
      names += (names.empty() ? "" : ", ") + std::string(each);
    }
  }
  throw UserError(where.path + ": unknown name '" + std::string(name) + "'; available: " + names,
                  where.location);
}

}  // namespace tensorgrad::web
