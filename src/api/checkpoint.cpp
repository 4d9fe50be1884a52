// SPDX-License-Identifier: MIT
#include "api/checkpoint.h"

#include <utility>

#include "tensorgrad/data/safetensors.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::string_view kStatePrefix = "state/";
constexpr std::string_view kFieldPrefix = "tensorgrad.";

// A bool is a word on the device, and so it is in the file.
DType stored_as(DType dtype) { return dtype == DType::kBool ? DType::kU32 : dtype; }

StoredTensor stored(HostTensor&& tensor) {
  return {std::string(stored_dtype(stored_as(tensor.dtype))), std::move(tensor.shape),
          std::move(tensor.bytes)};
}

}  // namespace

void write_checkpoint(const FileSink& sink, Checkpoint checkpoint) {
  StoredFile file;
  for (auto& [name, tensor] : checkpoint.params) file.tensors[name] = stored(std::move(tensor));
  for (auto& [name, tensor] : checkpoint.states)
    file.tensors[std::string(kStatePrefix) + name] = stored(std::move(tensor));
  for (const auto& [name, value] : checkpoint.fields)
    file.metadata[std::string(kFieldPrefix) + name] = value;
  write_safetensors(sink, file);
}

Checkpoint read_checkpoint(const FileSource& source) {
  StoredFile file = read_safetensors(source);
  Checkpoint checkpoint;
  for (auto& [name, tensor] : file.tensors) {
    const bool is_state = name.starts_with(kStatePrefix);
    auto& into = is_state ? checkpoint.states : checkpoint.params;
    const DType dtype = element_type(source.name(), name, tensor);
    into[is_state ? name.substr(kStatePrefix.size()) : name] = {dtype, std::move(tensor.shape),
                                                                std::move(tensor.data)};
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
      at->second.dtype != stored_as(type.dtype)) {
    throw UserError(path + ": no state '" + name + "' of type " + to_string(type));
  }
  return at->second;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
