// SPDX-License-Identifier: MIT
// libFuzzer: reads IDX or, depending on the first byte, CSV (gzipped or not). Not part of the
// build: `./dev fuzz` compiles and runs it, starting with the files in corpus/.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "tensorgrad/data/csv.h"
#include "tensorgrad/data/idx.h"
#include "tensorgrad/error.h"

namespace {

void read_idx_bytes(std::span<const std::uint8_t> input) {
  const tensorgrad::IdxArray array = tensorgrad::read_idx({std::as_bytes(input), "fuzz"});
  std::size_t bytes = tensorgrad::idx_element_bytes(array.element);
  for (const std::int64_t n : array.shape) bytes *= static_cast<std::size_t>(n);
  if (bytes != array.bytes.size()) std::abort();
}

void read_csv_text(std::span<const std::uint8_t> input) {
  tensorgrad::CsvOptions options;
  options.holdout = 0.25;
  const tensorgrad::CsvData data = tensorgrad::read_csv({std::as_bytes(input), "fuzz"}, options);
  for (const tensorgrad::CsvRows* rows : {&data.train, &data.test}) {
    const auto count = static_cast<std::size_t>(rows->count);
    if (rows->features.size() != count * data.feature_names.size()) std::abort();
    if (rows->labels.size() != count) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::span<const std::uint8_t> input(data, size);
    if (size > 0 && data[0] == 'c') {
      read_csv_text(input.subspan(1));
    } else {
      read_idx_bytes(input);
    }
  } catch (const tensorgrad::IoError&) {  // malformed input
  }
  return 0;
}
