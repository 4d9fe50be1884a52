// SPDX-License-Identifier: MIT
#include "api/checkpoint.h"

#include "tensorgrad/io.h"

namespace tensorgrad {
namespace {

constexpr std::string_view kStatePrefix = "state/";
constexpr std::string_view kFieldPrefix = "tensorgrad.";

std::string dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "F32";
    case DType::kI32: return "I32";
    default: return "U32";
  }
}

HostTensor host_tensor(const std::string& path, const std::string& name,
                       const StoredTensor& stored) {
  HostTensor tensor;
  if (stored.dtype == "F32") {
    tensor.dtype = DType::kF32;
  } else if (stored.dtype == "I32") {
    tensor.dtype = DType::kI32;
  } else if (stored.dtype == "U32") {
    tensor.dtype = DType::kU32;
  } else {
    throw IoError(path + ": tensor '" + name + "' is " + stored.dtype +
                  "; F32, I32 or U32 expected");
  }
  tensor.shape = stored.shape;
  tensor.bytes = stored.data;
  return tensor;
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  StoredFile file;
  for (const auto& [name, tensor] : checkpoint.params) {
    file.tensors[name] = {dtype_name(tensor.dtype), tensor.shape, tensor.bytes};
  }
  for (const auto& [name, tensor] : checkpoint.states) {
    file.tensors[std::string(kStatePrefix) + name] = {dtype_name(tensor.dtype), tensor.shape,
                                                      tensor.bytes};
  }
  for (const auto& [name, value] : checkpoint.fields)
    file.metadata[std::string(kFieldPrefix) + name] = value;
  write_safetensors(path, file);
}

Checkpoint read_checkpoint(const std::string& path) {
  const StoredFile file = read_safetensors(path);
  Checkpoint checkpoint;
  for (const auto& [name, stored] : file.tensors) {
    const bool is_state = name.starts_with(kStatePrefix);
    auto& into = is_state ? checkpoint.states : checkpoint.params;
    into[is_state ? name.substr(kStatePrefix.size()) : name] = host_tensor(path, name, stored);
  }
  for (const auto& [name, value] : file.metadata) {
    if (name.starts_with(kFieldPrefix)) checkpoint.fields[name.substr(kFieldPrefix.size())] = value;
  }
  return checkpoint;
}

const HostTensor& find_state(const Checkpoint& checkpoint, const std::string& name,
                             const Type& type, const std::string& path) {
  const auto at = checkpoint.states.find(name);
  if (at == checkpoint.states.end() || at->second.shape != type.shape ||
      at->second.dtype != type.dtype) {
    throw UserError(path + ": no state '" + name + "' of type " + to_string(type));
  }
  return at->second;
}

std::map<std::string, HostTensor> read_parameters(const std::string& path) {
  return read_checkpoint(path).params;
}

}  // namespace tensorgrad
