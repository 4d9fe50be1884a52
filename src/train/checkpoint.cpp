// SPDX-License-Identifier: MIT
#include "train/checkpoint.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "io/elements.h"
#include "io/text.h"
#include "train/loss_scale.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::string_view kStatePrefix = "state/";
constexpr std::string_view kFieldPrefix = "tensorgrad.";

// A bool takes a 32-bit word on the device, and is saved as such.
DType stored_as(DType dtype) { return dtype == DType::kBool ? DType::kU32 : dtype; }

StoredTensor stored(HostTensor&& tensor) {
  return {std::string(stored_dtype(stored_as(tensor.dtype))), std::move(tensor.shape),
          std::move(tensor.bytes)};
}

void check_utf8(const std::string& text, const std::string& what) {
  if (io::is_utf8(text)) return;
  throw UserError("save: SaveOptions::metadata: " + what + " is not UTF-8: " + io::in_quotes(text));
}

}  // namespace

std::map<std::string, std::string> checked_metadata(const SaveOptions& options) {
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : options.metadata) {
    check_utf8(key, "a key");
    const std::string quoted = "'" + io::printable(key) + "'";
    check_utf8(value, "the value of " + quoted);
    if (key.starts_with(kFieldPrefix)) {
      throw UserError("save: SaveOptions::metadata has the key " + quoted +
                      "; keys that start with 'tensorgrad.' are reserved");
    }
    if (!metadata.emplace(key, value).second) {
      throw UserError("save: SaveOptions::metadata has the key " + quoted +
                      " more than once; expected different keys");
    }
  }
  return metadata;
}

void write_checkpoint(const FileSink& sink, Checkpoint checkpoint,
                      std::map<std::string, std::string> metadata) {
  StoredFile file;
  file.checksums = true;
  file.metadata = std::move(metadata);
  for (auto& [name, tensor] : checkpoint.params) file.tensors[name] = stored(std::move(tensor));
  for (auto& [name, tensor] : checkpoint.states)
    file.tensors[std::string(kStatePrefix) + name] = stored(std::move(tensor));
  for (const auto& [name, value] : checkpoint.fields)
    file.metadata[std::string(kFieldPrefix) + name] = value;
  write_safetensors(sink, file);
}

Checkpoint read_checkpoint(const FileSource& source, const std::set<std::string>& buffers) {
  StoredFile file = read_safetensors(source);
  Checkpoint checkpoint;
  for (auto& [name, tensor] : file.tensors) {
    const bool prefixed = name.starts_with(kStatePrefix);
    if (buffers.contains(name)) {
      io::Elements elements = io::to_elements(source.name(), name, StoredTensor(tensor));
      checkpoint.states[name] = {stored_as(elements.dtype), std::move(tensor.shape),
                                 std::move(elements.bytes)};
      continue;
    }
    auto& into = prefixed ? checkpoint.states : checkpoint.params;
    const DType dtype = element_type(source.name(), name, tensor);
    into[prefixed ? name.substr(kStatePrefix.size()) : name] = {dtype, std::move(tensor.shape),
                                                                std::move(tensor.data)};
  }
  for (const auto& [name, value] : file.metadata) {
    if (name.starts_with(kFieldPrefix)) checkpoint.fields[name.substr(kFieldPrefix.size())] = value;
  }
  return checkpoint;
}

void take_averages(Checkpoint& checkpoint, const std::string& path) {
  std::vector<std::string> objectives = {""};
  for (std::string& name : split_words(checkpoint.fields[kObjectivesField]))
    objectives.push_back(std::move(name));
  bool found = false;
  for (const std::string& objective : objectives) {
    const std::string prefix = ParameterRange{.objective = objective}.state(kEmaName) + "/";
    for (auto& [name, tensor] : checkpoint.params) {
      const auto average = checkpoint.states.find(prefix + name);
      if (average == checkpoint.states.end()) continue;  // this parameter has no average
      tensor = average->second;
      found = true;
    }
  }
  if (!found) throw UserError(path + ": the file has no parameter averages");
}

void keep_model(StoredFile& file) {
  const auto own = [](const auto& field) { return field.first.starts_with(kFieldPrefix); };
  if (std::none_of(file.metadata.begin(), file.metadata.end(), own)) return;
  std::map<std::string, StoredTensor> model;
  for (auto& [name, tensor] : file.tensors) {
    const bool state = name.starts_with(kStatePrefix);
    const std::string plain = state ? name.substr(kStatePrefix.size()) : name;
    if (state && (plain.starts_with(kOptimPrefix) || is_scale_state(plain))) continue;
    model[plain] = std::move(tensor);
  }
  file.tensors = std::move(model);
}

void write_weights(const FileSink& sink, std::map<std::string, HostTensor> tensors) {
  StoredFile file;
  file.checksums = true;
  for (auto& [name, tensor] : tensors) {
    StoredTensor& to = file.tensors[name];
    to.dtype = stored_dtype(tensor.dtype);
    to.shape = std::move(tensor.shape);
    to.data = std::move(tensor.bytes);
    if (tensor.dtype != DType::kBool) continue;
    // A bool has 4 bytes in memory and 1 byte in the file.
    for (std::size_t i = 0; i < to.data.size() / kWordBytes; ++i)
      to.data[i] = to.data[i * kWordBytes];
    to.data.resize(to.data.size() / kWordBytes);
  }
  write_safetensors(sink, file);
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

void refuse_field(const std::string& path, const std::string& name, const std::string& what) {
  throw IoError(path + ": not a trainer checkpoint: the field '" + name + "' is " + what);
}

const std::string& text_field(const Checkpoint& checkpoint, const std::string& name,
                              const std::string& path) {
  const auto at = checkpoint.fields.find(name);
  if (at == checkpoint.fields.end()) {
    refuse_field(
        path, name,
        name == "version" ? "missing; use load_params() for a file of weights" : "missing");
  }
  return at->second;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
