// SPDX-License-Identifier: MIT
#include "api/parameters.h"

#include <cstring>
#include <set>

#include "api/initial.h"
#include "compile/host_random.h"
#include "ops/registry.h"

namespace tensorgrad {
namespace {

// Parameters begin at multiples of this many elements, so that any of them can be bound by itself.
constexpr std::int64_t kAlignment = 64;

}  // namespace

ParameterTable::ParameterTable(const detail::ModelFunctions& model) {
  std::set<const Parameter*> seen;
  std::set<std::string> names;
  const auto found = [&](const std::string& path, const Parameter& parameter) {
    if (!seen.insert(&parameter).second) return;
    if (!names.insert(path).second) {
      throw UserError("model: two parameters are named '" + path + "'", parameter.site());
    }
    entries_.push_back({path, &parameter, elements_});
    elements_ += (numel(parameter.shape()) + kAlignment - 1) / kAlignment * kAlignment;
  };
  const auto found_buffer = [&](const std::string& path, const Buffer& buffer) {
    if (!buffers_.emplace(&buffer, path).second) return;
    if (!names.insert(path).second || path.starts_with("optim.")) {
      throw UserError("model: a buffer may not be named '" + path +
                          "': another tensor of the model or of the optimizer is",
                      buffer.site());
    }
  };
  ParameterVisitor visitor(found, found_buffer);
  model.visit(visitor);
}

void ParameterTable::declare(Trace& trace) const {
  trace.buffers = buffers_;
  for (const ParameterEntry& entry : entries_) {
    const Attrs attrs = {{"name", entry.name},
                         {"offset", entry.offset},
                         {"shape", entry.parameter->shape()},
                         {"dtype", static_cast<std::int64_t>(DType::kF32)}};
    trace.parameters[entry.parameter] =
        trace.graph.add(ops::parameter, {}, attrs, entry.parameter->site());
  }
}

std::vector<float> ParameterTable::initial(std::uint32_t seed) const {
  std::vector<float> flat(static_cast<size_t>(elements_), 0.0F);
  std::uint32_t stream = kInitStream;
  for (const ParameterEntry& entry : entries_) {
    const auto from = flat.begin() + entry.offset;
    fill_initial(entry.parameter->initial(), entry.parameter->shape(), stream, seed,
                 {from, from + entry.count()});
    ++stream;
  }
  return flat;
}

std::map<std::string, HostTensor> ParameterTable::unpack(const std::vector<float>& flat) const {
  std::map<std::string, HostTensor> tensors;
  for (const ParameterEntry& entry : entries_) {
    HostTensor& tensor = tensors[entry.name];
    tensor.shape = entry.parameter->shape();
    tensor.bytes.resize(static_cast<size_t>(entry.count()) * sizeof(float));
    std::memcpy(tensor.bytes.data(), flat.data() + entry.offset, tensor.bytes.size());
  }
  return tensors;
}

std::vector<float> ParameterTable::pack(const std::map<std::string, HostTensor>& tensors,
                                        const std::string& what) const {
  std::set<std::string> known;
  std::vector<float> flat(static_cast<size_t>(elements_), 0.0F);
  for (const ParameterEntry& entry : entries_) {
    known.insert(entry.name);
    const auto at = tensors.find(entry.name);
    if (at == tensors.end())
      throw UserError(what + ": no value for parameter '" + entry.name + "'");
    const HostTensor& tensor = at->second;
    if (tensor.dtype != DType::kF32 || tensor.shape != entry.parameter->shape() ||
        tensor.bytes.size() != static_cast<size_t>(entry.count()) * sizeof(float)) {
      throw UserError(what + ": parameter '" + entry.name + "' is f32" +
                          to_string(entry.parameter->shape()) + ", got " +
                          std::string(to_string(tensor.dtype)) + to_string(tensor.shape),
                      entry.parameter->site());
    }
    std::memcpy(flat.data() + entry.offset, tensor.bytes.data(), tensor.bytes.size());
  }
  for (const auto& [name, tensor] : tensors) {
    if (!known.contains(name))
      throw UserError(what + ": the model has no parameter '" + name + "'");
  }
  return flat;
}

}  // namespace tensorgrad
