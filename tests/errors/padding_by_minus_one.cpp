// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(padding_by_minus_one, UserError) {
  auto function = compile_function(nn::Embedding(4, 2),
                                   [](const nn::Embedding& table, In in) {
                                     // error: input 'i': element 2 is -1, which embedding uses as
                                     // an index in [0, 4); for padding, use an index in the table
                                     // as padding_idx
                                     return table(in["i"]);
                                   },
                                   {.inputs = {{"i", {3}, i32}}, .device = {.kind = "cpu"}});
  function({{"i", std::vector<std::int32_t>{0, 3, -1}}});
}

}  // namespace tensorgrad::testing
