// SPDX-License-Identifier: MIT
#include "onnx/emitter.h"

#include <cstring>

#include "base/check.h"

namespace tensorgrad::onnx {
namespace {

template <class T>
void append(std::vector<std::byte>& to, double value) {
  const auto element = static_cast<T>(value);
  const auto* bytes = reinterpret_cast<const std::byte*>(&element);
  to.insert(to.end(), bytes, bytes + sizeof element);
}

void append(std::vector<std::byte>& to, double value, OnnxType type) {
  switch (type) {
    case OnnxType::kFloat: return append<float>(to, value);
    case OnnxType::kFloat16: UNREACHABLE("f16 numbers");
    case OnnxType::kInt32: return append<std::int32_t>(to, value);
    case OnnxType::kInt64: return append<std::int64_t>(to, value);
    case OnnxType::kBool: return append<std::uint8_t>(to, value);
    case OnnxType::kUint32: return append<std::uint32_t>(to, value);
    case OnnxType::kUint64: return append<std::uint64_t>(to, value);
  }
}

}  // namespace

OnnxType type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16: return OnnxType::kFloat;  // f16 is computed in f32; see cast()
    case DType::kI32: return OnnxType::kInt32;
    case DType::kU32: return OnnxType::kInt64;
    case DType::kBool: return OnnxType::kBool;
  }
  UNREACHABLE("invalid element type");
}

std::string Emitter::fresh(const std::string& name) {
  std::string free = name;
  while (!reserve(free)) free = name + "_" + std::to_string(++counts_[name]);
  return free;
}

std::string Emitter::node(const char* op, std::vector<std::string> inputs,
                          io::OnnxAttributes attributes) {
  return node(op, std::move(inputs), std::move(attributes), 0, 1);
}

std::string Emitter::node(const char* op, std::vector<std::string> inputs,
                          io::OnnxAttributes attributes, std::size_t which, std::size_t count) {
  const std::string stem = prefix_.empty() ? op : prefix_ + "/" + op;
  std::vector<std::string> outputs;
  for (std::size_t i = 0; i < count; ++i) outputs.push_back(fresh(stem));
  std::string result = outputs[which];
  std::string name = outputs[0];
  nodes_.push_back(
      {op, std::move(inputs), std::move(outputs), std::move(attributes), std::move(name)});
  return result;
}

std::string Emitter::constant(OnnxType type, const Shape& shape, std::vector<std::byte> data) {
  std::string key = std::to_string(static_cast<int>(type)) + to_string(shape);
  key.append(reinterpret_cast<const char*>(data.data()), data.size());
  const auto [at, made] = constants_.try_emplace(key);
  if (made) {
    at->second = fresh("constant");
    model.kept.push_back(std::move(data));
    model.graph.initializers.push_back({{at->second, type, shape}, model.kept.back()});
  }
  return at->second;
}

std::string Emitter::numbers(const std::vector<double>& values, OnnxType type, const Shape& shape) {
  std::vector<std::byte> data;
  for (const double value : values) append(data, value, type);
  return constant(type, shape, std::move(data));
}

std::string Emitter::list(const std::vector<std::int64_t>& values) {
  return list(values, {static_cast<std::int64_t>(values.size())});
}

std::string Emitter::list(const std::vector<std::int64_t>& values, const Shape& shape) {
  std::vector<std::byte> data(values.size() * sizeof(std::int64_t));
  if (!data.empty()) std::memcpy(data.data(), values.data(), data.size());
  return constant(OnnxType::kInt64, shape, std::move(data));
}

std::string Emitter::elements(const std::string& name, const Type& type,
                              std::span<const std::byte> values) {
  CHECK(values.size() == static_cast<std::size_t>(numel(type.shape)) * element_bytes(type.dtype),
        name);
  std::span<const std::byte> data = values;
  if (type.dtype == DType::kU32 || type.dtype == DType::kBool) {
    std::vector<std::byte>& wide = model.kept.emplace_back();
    for (std::size_t i = 0; i < values.size(); i += kWordBytes) {
      std::uint32_t word = 0;
      std::memcpy(&word, &values[i], sizeof word);
      append(wide, word, type_of(type.dtype));
    }
    data = wide;
  }
  const OnnxType kept = type.dtype == DType::kF16 ? OnnxType::kFloat16 : type_of(type.dtype);
  model.graph.initializers.push_back({{name, kept, type.shape}, data});
  return name;
}

}  // namespace tensorgrad::onnx
