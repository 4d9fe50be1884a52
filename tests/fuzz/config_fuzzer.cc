// SPDX-License-Identifier: MIT
// libFuzzer: reads configurations of models (our own and those of published folders) and the
// special tokens of a tokenizer, which may fail with a UserError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "read_or_refuse.h"
#include "tensorgrad/data/safetensors.h"
#include "tensorgrad/lm.h"

namespace lm = tensorgrad::lm;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto bytes = std::as_bytes(std::span(data, size));
  tensorgrad::testing::read_or_refuse([&] {
    const auto config = lm::config_from_json(text, "fuzz");
    const std::string written = lm::to_json(config);
    if (lm::to_json(lm::config_from_json(written, "again")) != written) std::abort();
  });
  // Always fails, because there are no weights.
  tensorgrad::testing::read_or_refuse([&] {
    lm::load_pretrained(tensorgrad::FolderSource{
        {"config.json", tensorgrad::FileSource(bytes, "config.json")},
        {"tokenizer_config.json", tensorgrad::FileSource(bytes, "tokenizer_config.json")}});
    std::abort();
  });
  return 0;
}
