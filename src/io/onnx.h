// SPDX-License-Identifier: MIT
// A model as ONNX has it (github.com/onnx/onnx/blob/main/onnx/onnx.proto), and its file. Knows the
// messages, not what the operators mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

// TensorProto.DataType, by its numbers.
enum class OnnxType : std::uint8_t {
  kFloat = 1,
  kInt32 = 6,
  kInt64 = 7,
  kBool = 9,
  kFloat16 = 10,
  kUint32 = 12,
  kUint64 = 13
};

// In a value's shape: a size that only a run knows.
inline constexpr std::int64_t kUnknownSize = -1;

struct OnnxValue {
  std::string name;
  OnnxType type = OnnxType::kFloat;
  Shape shape;
  // Where there are any, one an axis: what an unknown size is called, or nothing. Equal names stand
  // for equal sizes.
  std::vector<std::string> sizes = {};
};

// A value with its elements: row-major, little-endian, a byte for a bool.
struct OnnxTensor {
  OnnxValue value;
  std::span<const std::byte> data;  // kept by whoever made it until the model is written
};

struct OnnxGraph;
using OnnxAttribute = std::variant<std::int64_t, std::vector<std::int64_t>, std::string,
                                   std::shared_ptr<const OnnxGraph>>;
using OnnxAttributes = std::vector<std::pair<std::string, OnnxAttribute>>;

struct OnnxNode {
  std::string op;
  std::vector<std::string> inputs, outputs;  // values; an empty input is one left out
  OnnxAttributes attributes;
  std::string name;  // unique in the graph
};

struct OnnxGraph {
  std::string name, doc;
  std::vector<OnnxNode> nodes;  // what makes a value comes before what reads it
  std::vector<OnnxValue> inputs, outputs;
  std::vector<OnnxTensor> initializers;
};

struct OnnxModel {
  std::string producer, version;
  std::int64_t ir_version = 0, opset = 0;
  std::vector<std::pair<std::string, std::string>> metadata;  // metadata_props
  OnnxGraph graph;
  std::deque<std::vector<std::byte>> kept;  // data of initializers that nobody else keeps
};

// Writes the model atomically; of the initializers' data it makes no copy. IoError: a name or the
// doc that is not UTF-8, more bytes than a message of Protocol Buffers may have, a path that cannot
// be written.
void write_onnx(const FileSink& sink, const OnnxModel& model);

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
