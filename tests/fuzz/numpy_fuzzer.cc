// SPDX-License-Identifier: MIT
// libFuzzer: reads arrays and archives of NumPy, which must be the same after they are written and
// read again. May fail with an IoError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "tensorgrad/data/npy.h"
#include "tensorgrad/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  const auto same = [](const tensorgrad::HostTensor& a, const tensorgrad::HostTensor& b) {
    return a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes;
  };
  try {
    const tensorgrad::HostTensor array = tensorgrad::read_npy({input, "fuzz"});
    std::vector<std::byte> written;
    tensorgrad::write_npy(written, array);
    if (!same(tensorgrad::read_npy({written, "fuzz"}), array)) std::abort();
  } catch (const tensorgrad::IoError&) {  // malformed input
  }
  try {
    const auto arrays = tensorgrad::read_npz({input, "fuzz"});
    std::vector<std::byte> written;
    tensorgrad::write_npz(written, arrays);
    const auto again = tensorgrad::read_npz({written, "fuzz"});
    if (again.size() != arrays.size()) std::abort();
    for (const auto& [name, array] : arrays)
      if (!same(again.at(name), array)) std::abort();
  } catch (const tensorgrad::IoError&) {  // malformed input
  }
  return 0;
}
