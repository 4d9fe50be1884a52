// SPDX-License-Identifier: MIT
// ONNX models as data (github.com/onnx/onnx/blob/main/onnx/onnx.proto) and writing of their files.
// Does not interpret operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/variant.h"
#include "tensorgrad/data/file_source.h"
#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// TensorProto.DataType, with its numbers.
enum class OnnxType : std::uint8_t {
  kFloat = 1,
  kInt32 = 6,
  kInt64 = 7,
  kBool = 9,
  kFloat16 = 10,
  kUint32 = 12,
  kUint64 = 13
};

// A dynamic size in the shape of a value.
inline constexpr std::int64_t kUnknownSize = -1;

struct OnnxValue {
  std::string name;
  OnnxType type = OnnxType::kFloat;
  Shape shape;
  // Either empty, or the name of each size, which is empty for constant sizes. Equal names denote
  // equal sizes.
  std::vector<std::string> sizes = {};
};

// A value with its elements: row-major, little-endian, one byte for a bool.
struct OnnxTensor {
  OnnxValue value;
  std::span<const std::byte> data;  // must remain valid until the model is written
};

struct OnnxGraph;
using OnnxAttribute =
    Variant<std::int64_t, std::vector<std::int64_t>, std::string, std::shared_ptr<const OnnxGraph>>;
using OnnxAttributes = std::vector<std::pair<std::string, OnnxAttribute>>;

struct OnnxNode {
  std::string op;
  std::vector<std::string> inputs, outputs;  // value names; empty for an omitted input
  OnnxAttributes attributes;
  std::string name;  // unique in the graph
};

struct OnnxGraph {
  std::string name, doc;
  std::vector<OnnxNode> nodes;  // in topological order
  std::vector<OnnxValue> inputs, outputs;
  std::vector<OnnxTensor> initializers;
};

struct OnnxModel {
  std::string producer, version;
  std::int64_t ir_version = 0, opset = 0;
  std::vector<std::pair<std::string, std::string>> metadata;  // metadata_props
  OnnxGraph graph;
  // Data of initializers owned by the model. A list, because moving a deque allocates.
  std::list<std::vector<std::byte>> kept;
};

// Writes the model atomically, without a copy of the initializers' data. Throws IoError if a name
// or `doc` is not UTF-8, the model exceeds the size limit of Protocol Buffers, or the path is not
// writable.
void write_onnx(const FileSink& sink, const OnnxModel& model);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
