// SPDX-License-Identifier: MIT
#include <span>

#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(checkpoint_cut_short, IoError) {
  Example example;
  const std::string path = temporary("cut_short.safetensors");
  example.trainer.save(path);
  const std::vector<std::byte> bytes = read_file(path);
  write_file_atomically(path, std::span(bytes).first(40));
  // error: TMP/cut_short.safetensors: header length # at byte 0: the file has only 32 more bytes
  example.trainer.load(path);
}

}  // namespace tensorgrad::testing
