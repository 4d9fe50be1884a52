// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(tokenizer_file_that_is_no_json, IoError) {
  const std::string path = temporary("no_tokenizer.json");
  write_file_atomically(path, "vocabulary");
  // throws: TMP/no_tokenizer.json: is not JSON at byte 0: unexpected "v"
  Tokenizer::from_file(path);
}

}  // namespace tensorgrad::testing
