// SPDX-License-Identifier: MIT
// GGUF files, in which llama.cpp and other programs of ggml keep models.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/data/safetensors.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Array of the metadata of a GGUF file. Alternatives have the numbers of the format's types.
/// std::monostate stands for arrays of arrays, which are not supported.
using GgufArray =
    std::variant<std::vector<std::uint8_t>, std::vector<std::int8_t>, std::vector<std::uint16_t>,
                 std::vector<std::int16_t>, std::vector<std::uint32_t>, std::vector<std::int32_t>,
                 std::vector<float>, std::vector<bool>, std::vector<std::string>, std::monostate,
                 std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>>;

/// Value of the metadata of a GGUF file. Alternatives have the numbers of the format's types.
using GgufValue = std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t,
                               std::uint32_t, std::int32_t, float, bool, std::string, GgufArray,
                               std::uint64_t, std::int64_t, double>;

/// Content of a GGUF file.
struct GgufFile {
  /// Tensors by name. The dtype is ggml's name of the type, such as "F32" or "Q8_0". The shape
  /// begins with the outermost axis, unlike that in the file. The data of quantized types are
  /// ggml's blocks.
  std::map<std::string, StoredTensor> tensors;

  std::map<std::string, GgufValue> metadata;  ///< By key, such as "general.architecture".

  bool operator==(const GgufFile&) const = default;
};

/// Reads a GGUF file of version 2 or 3. Types of tensors can be F32, F16, BF16, F64, I8, I16, I32,
/// I64, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K. Throws IoError naming the file and the
/// byte if it cannot be read, is malformed, is big-endian or has tensors of other types.
GgufFile read_gguf(const FileSource& source);

/// Writes a GGUF file of version 3, atomically. The same content always results in the same bytes.
/// `general.alignment` is honored. Throws IoError if a type is unknown, the data does not fit the
/// shape, a tensor has more than four axes or a name of more than 63 bytes, the metadata has an
/// array of arrays, or the file cannot be written.
void write_gguf(const FileSink& sink, const GgufFile& file);

/// Returns the elements of a tensor as f32, dequantized as ggml does. F64 and integers are not
/// converted. Throws IoError with `file` and `name` if the tensor has another type, or if its data
/// does not fit its shape.
std::vector<float> gguf_floats(const std::string& file, const std::string& name,
                               const StoredTensor& tensor);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
