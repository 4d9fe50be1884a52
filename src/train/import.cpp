// SPDX-License-Identifier: MIT
#include "train/import.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "io/elements.h"
#include "tensorgrad/optim/param_groups.h"
#include "trace/source_location.h"
#include "train/checkpoint.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// A tensor with its new name.
struct Renamed {
  HostTensor tensor;
  std::string old_name, old_type;  // "F16 [3,2]"
};

bool is_wildcard(char c) { return c == '*' || c == '?'; }

void check_rule(const NameRule& rule) {
  const auto wildcards = [](const std::string& text) {
    return std::count_if(text.begin(), text.end(), is_wildcard);
  };
  const std::string who = "name rule '" + rule.pattern + "' -> '" + rule.replacement + "': ";
  if (wildcards(rule.replacement) > wildcards(rule.pattern))
    throw UserError(who + "the replacement has more wildcards than the pattern");
  std::vector<int> axes = rule.permute;
  std::sort(axes.begin(), axes.end());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] == static_cast<int>(i)) continue;
    throw UserError(who + "permute must name each of its " + std::to_string(axes.size()) +
                    " axes once");
  }
}

std::string fill_in(const std::string& replacement, const std::vector<std::string>& parts) {
  std::string name;
  std::size_t next = 0;
  for (const char c : replacement) {
    if (is_wildcard(c)) {
      name += parts[next++];
    } else {
      name += c;
    }
  }
  return name;
}

// Returns the tensor with axis axes[i] as axis i. Elements must have four bytes.
HostTensor permuted(const HostTensor& tensor, const std::vector<int>& axes) {
  const std::size_t rank = axes.size();
  std::vector<std::int64_t> strides(rank, 1);  // of the tensor
  for (std::size_t i = rank - 1; i-- > 0;) strides[i] = strides[i + 1] * tensor.shape[i + 1];
  HostTensor out{tensor.dtype, {}, std::vector<std::byte>(tensor.bytes.size())};
  for (const int axis : axes) out.shape.push_back(tensor.shape[static_cast<std::size_t>(axis)]);
  std::vector<std::int64_t> place(rank, 0);
  std::int64_t from = 0;
  const std::size_t each = element_bytes(tensor.dtype);
  for (std::size_t to = 0; to < out.bytes.size(); to += each) {
    std::memcpy(&out.bytes[to], &tensor.bytes[static_cast<std::size_t>(from) * each], each);
    for (std::size_t i = rank; i-- > 0;) {
      const std::int64_t stride = strides[static_cast<std::size_t>(axes[i])];
      from += stride;
      if (++place[i] < out.shape[i]) break;
      from -= stride * out.shape[i];
      place[i] = 0;
    }
  }
  return out;
}

using RenamedTensors = std::map<std::string, Renamed>;

RenamedTensors read_renamed(const FileSource& source, const ImportOptions& options) {
  const std::string& path = source.name();
  for (const NameRule& rule : options.names) check_rule(rule);
  std::vector<bool> used(options.names.size(), options.partial);
  RenamedTensors result;
  StoredFile file = read_safetensors(source);
  keep_model(file);
  for (auto& [old_name, stored] : file.tensors) {
    if (std::any_of(options.ignore.begin(), options.ignore.end(),
                    [&](const auto& pattern) { return match_pattern(pattern, old_name); })) {
      continue;
    }
    std::string name = old_name;
    const std::vector<int>* axes = nullptr;
    for (std::size_t i = 0; i < options.names.size(); ++i) {
      const auto parts = match_pattern(options.names[i].pattern, old_name);
      if (!parts) continue;
      name = fill_in(options.names[i].replacement, *parts);
      axes = &options.names[i].permute;
      used[i] = true;
      break;
    }
    const Shape shape = stored.shape;
    const std::string old_type = stored.dtype + " " + to_string(shape);
    // Moves the bytes, so that at most one tensor is in memory twice.
    io::Elements elements = io::to_elements(path, old_name, std::move(stored));
    Renamed renamed{{elements.dtype, shape, std::move(elements.bytes)}, old_name, old_type};
    if (axes != nullptr && !axes->empty()) {
      if (axes->size() != shape.size()) {
        throw IoError(path + ": tensor '" + old_name + "' (" + renamed.old_type +
                      ") cannot be permuted by a rule for " + std::to_string(axes->size()) +
                      " axes");
      }
      renamed.tensor = permuted(renamed.tensor, *axes);
      renamed.old_type += ", permuted to " + to_string(renamed.tensor.shape);
    }
    const auto [at, inserted] = result.emplace(name, std::move(renamed));
    if (inserted) continue;
    throw IoError(path + ": tensors '" + at->second.old_name + "' and '" + old_name +
                  "' both become '" + name + "'");
  }
  const auto unused = std::find(used.begin(), used.end(), false);
  if (unused == used.end()) return result;
  const NameRule& rule = options.names[static_cast<std::size_t>(unused - used.begin())];
  throw IoError(path + ": no remaining tensor matches the name rule '" + rule.pattern + "' -> '" +
                rule.replacement + "'");
}

// Destination of a tensor of the file: "parameter" or "buffer", and its type.
struct Place {
  const char* kind;
  Type type;
};

std::string text_of(const std::string& name, const Place& place) {
  return std::string(place.kind) + " '" + name + "' " + to_string(place.type);
}

void check_fit(const std::string& path, const std::string& name, const Renamed& renamed,
               const Place& place) {
  if (renamed.tensor.dtype == place.type.dtype && renamed.tensor.shape == place.type.shape) return;
  throw UserError(path + ": tensor '" + renamed.old_name + "' (" + renamed.old_type +
                  ") does not fit " + text_of(name, place));
}

}  // namespace

std::map<std::string, HostTensor> read_weights(const FileSource& source,
                                               const ImportOptions& options, Loc loc) {
  return with_source_location(loc, [&] {
    std::map<std::string, HostTensor> tensors;
    for (auto& [name, renamed] : read_renamed(source, options))
      tensors[name] = std::move(renamed.tensor);
    return tensors;
  });
}

ImportedModel import_model(const FileSource& source, const ImportOptions& options,
                           const ParameterTable& table, const std::vector<StateEntry>& states,
                           std::vector<float> params) {
  const std::string& path = source.name();
  std::map<std::string, Place> places;
  for (const ParameterEntry& entry : table.entries())
    places[entry.name] = {"parameter", {f32, entry.parameter->shape()}};
  for (const StateEntry& state : states) {
    if (table.has_buffer(state.name)) places[state.name] = {"buffer", state.type};
  }
  RenamedTensors tensors = read_renamed(source, options);
  // A buffer that the traced function does not use is not in any program.
  std::erase_if(tensors, [&](const auto& each) {
    return table.has_buffer(each.first) && !places.contains(each.first);
  });
  for (auto& [name, renamed] : tensors) {
    const auto place = places.find(name);
    if (place == places.end()) {
      throw UserError(path + ": tensor '" + renamed.old_name + "' (" + renamed.old_type +
                      "): the model has no parameter or buffer '" + name + "'");
    }
    // Checkpoints store booleans as u32, as the device does.
    if (place->second.type.dtype == boolean && renamed.tensor.dtype == u32)
      renamed.tensor.dtype = boolean;
    check_fit(path, name, renamed, place->second);
  }
  for (const auto& [name, place] : places) {
    if (!options.partial && !tensors.contains(name))
      throw UserError(path + ": no tensor for " + text_of(name, place));
  }
  ImportedModel model;
  std::map<std::string, HostTensor> found;
  for (auto& [name, renamed] : tensors) {
    auto& into = table.has_buffer(name) ? model.states : found;
    into[name] = std::move(renamed.tensor);
  }
  table.write(found, path, options.partial, params);
  model.params = std::move(params);
  return model;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
