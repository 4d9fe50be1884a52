// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(name_rule_that_matches_nothing, IoError) {
  const std::string path = temporary("no_match.safetensors");
  write_safetensors(path, {{{"fc.bias", {"F32", {2}, std::vector<std::byte>(8)}}}, {}});
  const ImportOptions options{.names = {{"fc.*", "fc.*"}, {"*.bias", "*.b"}}};
  // error: TMP/no_match.safetensors: no remaining tensor matches the name rule '*.bias' -> '*.b'
  read_weights(path, options);
}

}  // namespace tensorgrad::testing
