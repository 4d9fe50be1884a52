// SPDX-License-Identifier: MIT
#include "api/parameters.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>

#include "api/initial.h"
#include "compile/host_random.h"
#include "ops/registry.h"

namespace tensorgrad {
namespace {

// Parameters begin at multiples of this many elements, so that any of them can be bound by itself.
constexpr std::int64_t kAlignment = 64;

}  // namespace

const std::string& group_name(const ParamGroup& group) {
  return group.name.empty() ? group.params.text() : group.name;
}

ParameterTable::ParameterTable(const detail::ModelFunctions& model,
                               const std::vector<ParamGroup>& groups, const ParamFilter& first) {
  std::set<const Parameter*> seen;
  std::set<std::string> names;
  const auto found = [&](const std::string& path, const Parameter& parameter) {
    if (!seen.insert(&parameter).second) return;
    if (!names.insert(path).second) {
      throw UserError("model: two parameters are named '" + path + "'", parameter.site());
    }
    entries_.push_back({path, &parameter, -1, 0});
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
  std::set<std::string> group_names;
  for (const ParamGroup& group : groups) {
    check_filter("group '" + group_name(group) + "'", group.params);
    if (!group_names.insert(group_name(group)).second)
      throw UserError("groups: two are named '" + group_name(group) + "'");
  }
  lay_out(groups, first);
}

void ParameterTable::lay_out(const std::vector<ParamGroup>& groups, const ParamFilter& first) {
  const auto picked = [](const ParamFilter& filter, const ParameterEntry& entry) {
    return filter(entry.name, entry.parameter->shape());
  };
  // Its place: frozen or not, the group (or behind all), apart or not, the number in the model.
  std::vector<std::tuple<bool, int, bool, std::size_t>> order;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    ParameterEntry& entry = entries_[i];
    const auto at = std::find_if(groups.begin(), groups.end(),
                                 [&](const auto& group) { return picked(group.params, entry); });
    const int place = static_cast<int>(at - groups.begin());
    if (at != groups.end()) entry.group = place;
    order.emplace_back(at != groups.end() && at->freeze, place, !picked(first, entry), i);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [frozen, place, apart, i] : order) {
    ParameterEntry& entry = entries_[i];
    entry.offset = elements_;
    elements_ += (entry.count() + kAlignment - 1) / kAlignment * kAlignment;
    if (frozen) continue;
    trained_.push_back(entry);
    if (ranges_.empty() || ranges_.back().group != entry.group)
      ranges_.push_back({entry.group, entry.offset, elements_});
    ranges_.back().end = elements_;
  }
}

void ParameterTable::check_filter(const std::string& what, const ParamFilter& filter) const {
  std::string known;
  for (const ParameterEntry& entry : entries_) {
    if (filter(entry.name, entry.parameter->shape())) return;
    known += (known.empty() ? "" : ", ") + entry.name;
  }
  throw UserError(what + ": no parameter is picked; there are " + known);
}

void ParameterTable::declare(Trace& trace, Weights weights) const {
  trace.buffers = buffers_;
  const auto type_of = [](const Shape& shape) {
    return Attrs{{"shape", shape}, {"dtype", static_cast<std::int64_t>(DType::kF32)}};
  };
  for (const ParameterEntry& entry : entries_) {
    Attrs attrs = type_of(entry.parameter->shape());
    attrs.set("name", entry.name);
    attrs.set("offset", entry.offset);
    trace.parameters[entry.parameter] =
        trace.graph.add(ops::parameter, {}, attrs, entry.parameter->site());
  }
  if (weights == Weights::kTrained) return;
  Builder builder{trace.graph, {}, "ema"};
  Attrs attrs = type_of({trained_elements()});
  attrs.set("name", kEmaState);
  attrs.set("init", 0.0);
  const Ex flat = op::apply(builder, ops::state, {}, std::move(attrs));
  for (const ParameterEntry& entry : trained_) {
    trace.parameters[entry.parameter] =
        op::reshape(op::slice(flat, {entry.offset}, {entry.offset + entry.count()}),
                    entry.parameter->shape())
            .id;
  }
}

bool ParameterTable::has_buffer(const std::string& name) const {
  return std::any_of(buffers_.begin(), buffers_.end(),
                     [&](const auto& buffer) { return buffer.second == name; });
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
    if (static_cast<size_t>(entry.offset + entry.count()) > flat.size()) continue;
    HostTensor& tensor = tensors[entry.name];
    tensor.shape = entry.parameter->shape();
    tensor.bytes.resize(static_cast<size_t>(entry.count()) * sizeof(float));
    std::memcpy(tensor.bytes.data(), flat.data() + entry.offset, tensor.bytes.size());
  }
  return tensors;
}

void ParameterTable::write(const std::map<std::string, HostTensor>& tensors,
                           const std::string& what, bool partial, std::vector<float>& flat) const {
  std::map<std::string, std::int64_t> known;  // to their offsets
  for (const ParameterEntry& entry : entries_) {
    if (static_cast<size_t>(entry.offset + entry.count()) > flat.size()) continue;
    known[entry.name] = entry.offset;
    const auto at = tensors.find(entry.name);
    if (at == tensors.end()) {
      if (partial) continue;
      throw UserError(what + ": no value for parameter '" + entry.name + "'");
    }
    const HostTensor& tensor = at->second;
    if (tensor.dtype != DType::kF32 || tensor.shape != entry.parameter->shape() ||
        tensor.bytes.size() != static_cast<size_t>(entry.count()) * sizeof(float)) {
      throw UserError(what + ": parameter '" + entry.name + "' is f32" +
                          to_string(entry.parameter->shape()) + ", got " +
                          std::string(to_string(tensor.dtype)) + to_string(tensor.shape),
                      entry.parameter->site());
    }
  }
  const auto unknown = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const auto& each) { return !known.contains(each.first); });
  if (unknown != tensors.end())
    throw UserError(what + ": the model has no parameter '" + unknown->first + "'");
  for (const auto& [name, tensor] : tensors)
    std::memcpy(flat.data() + known.at(name), tensor.bytes.data(), tensor.bytes.size());
}

std::vector<float> ParameterTable::pack(const std::map<std::string, HostTensor>& tensors,
                                        const std::string& what) const {
  std::vector<float> flat(static_cast<size_t>(elements_), 0.0F);
  write(tensors, what, false, flat);
  return flat;
}

}  // namespace tensorgrad
