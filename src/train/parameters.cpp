// SPDX-License-Identifier: MIT
#include "train/parameters.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "compile/runtime/host_random.h"
#include "ops/registry.h"
#include "trace/initial.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Parameters are aligned to this number of elements, so that each can be bound separately.
constexpr std::int64_t kAlignment = 64;
// Minimum number of buckets of sharded parameters, unless they would have fewer elements (1 MiB).
constexpr std::int64_t kMinBuckets = 8, kMinBucket = 256 << 10;

bool picked(const ParamFilter& filter, const ParameterEntry& entry) {
  return filter(entry.name, entry.parameter->shape());
}

// Returns the first group that selects the parameter, or the number of groups if there is none.
int matching_group(const TrainingPick& pick, const ParameterEntry& entry) {
  const auto at = std::find_if(pick.groups.begin(), pick.groups.end(),
                               [&](const auto& group) { return picked(group.params, entry); });
  return static_cast<int>(at - pick.groups.begin());
}

bool trains(const TrainingPick& pick, const ParameterEntry& entry) {
  if (pick.params.present() && !picked(pick.params, entry)) return false;
  const auto group = static_cast<std::size_t>(matching_group(pick, entry));
  return group == pick.groups.size() || !pick.groups[group].freeze;
}

// Sort key of a parameter in the arena: position of its set of objectives in the Gray code, then
// its groups, then whether it comes first within them.
struct ParameterSortKey {
  std::vector<bool> set;
  std::vector<int> groups;
  std::vector<bool> apart;
  // std::vector has no <=> in libc++ 16.
  bool operator<(const ParameterSortKey& other) const {
    return std::tie(set, groups, apart) < std::tie(other.set, other.groups, other.apart);
  }
};

ParameterSortKey sort_key(const std::vector<TrainingPick>& picks, const ParameterEntry& entry) {
  ParameterSortKey rank;
  bool odd = false;
  for (const TrainingPick& pick : picks) {
    const bool trained = trains(pick, entry);
    odd ^= trained;  // the position's bits are the parities of the code's bits
    rank.set.push_back(!odd);
    rank.groups.push_back(trained ? matching_group(pick, entry) : 0);
    rank.apart.push_back(trained && !picked(pick.first, entry));
  }
  return rank;
}

NamedTensors unpacked(const std::vector<ParameterEntry>& entries, const std::vector<float>& flat) {
  NamedTensors tensors;
  for (const ParameterEntry& entry : entries) {
    HostTensor& tensor = tensors[entry.name];
    tensor.shape = entry.parameter->shape();
    tensor.bytes.resize(static_cast<size_t>(entry.count()) * sizeof(float));
    std::memcpy(tensor.bytes.data(), flat.data() + entry.offset, tensor.bytes.size());
  }
  return tensors;
}

void write_all(const std::vector<ParameterEntry>& entries, const NamedTensors& tensors,
               const std::string& what, bool partial, std::vector<float>& flat) {
  std::map<std::string, std::int64_t> known;  // name to offset
  for (const ParameterEntry& entry : entries) {
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
                      std::string(to_string(tensor.dtype)) + to_string(tensor.shape));
    }
  }
  const auto unknown = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const auto& each) { return !known.contains(each.first); });
  if (unknown != tensors.end())
    throw UserError(what + ": the model has no parameter '" + unknown->first + "'");
  for (const auto& [name, tensor] : tensors)
    std::memcpy(flat.data() + known.at(name), tensor.bytes.data(), tensor.bytes.size());
}

}  // namespace

const std::string& group_name(const ParamGroup& group) {
  return group.name.empty() ? group.params.text() : group.name;
}

std::int64_t ParameterEntry::end() const {
  return offset + (count() + kAlignment - 1) / kAlignment * kAlignment;
}

std::string ParameterRange::state(const std::string& name) const {
  return std::string(kOptimPrefix) + (objective.empty() ? "" : objective + ".") + name;
}

std::int64_t ParameterRange::elements_before(std::int64_t element, int shard) const {
  std::int64_t count = 0;
  for (const ParameterBucket& bucket : buckets) {
    const std::int64_t part = bucket.elements / shards;
    count += std::clamp<std::int64_t>(element - bucket.begin - shard * part, 0, part);
  }
  return count;
}

void ParameterRange::take_shard(std::span<const float> whole, int shard,
                                std::span<float> out) const {
  for (const ParameterBucket& bucket : buckets) {
    const std::int64_t part = bucket.elements / shards;
    std::copy_n(whole.begin() + bucket.begin + shard * part, part,
                out.begin() + bucket.begin / shards);
  }
}

void ParameterRange::put_shard(std::span<const float> part, int shard,
                               std::span<float> whole) const {
  for (const ParameterBucket& bucket : buckets) {
    const std::int64_t count = bucket.elements / shards;
    std::copy_n(part.begin() + bucket.begin / shards, count,
                whole.begin() + bucket.begin + shard * count);
  }
}

NamedTensors ParameterRange::unpack(const std::vector<float>& flat) const {
  return unpacked(entries, flat);
}

void ParameterRange::write(const NamedTensors& tensors, const std::string& what, bool partial,
                           std::vector<float>& flat) const {
  write_all(entries, tensors, what, partial, flat);
}

ParameterTable::ParameterTable(const detail::ModelFunctions& model,
                               const std::vector<TrainingPick>& picks) {
  std::set<const Parameter*> seen;
  std::set<std::string> names;
  const auto found = [&](const std::string& path, const Parameter& parameter) {
    if (!seen.insert(&parameter).second) return;
    if (!names.insert(path).second) {
      throw UserError("model: two parameters are named '" + path + "'", parameter.location());
    }
    entries_.push_back({path, &parameter, 0});
  };
  const auto found_buffer = [&](const std::string& path, const Buffer& buffer) {
    if (!buffers_.emplace(&buffer, path).second) return;
    if (!names.insert(path).second || path.starts_with(kOptimPrefix)) {
      throw UserError("model: the buffer name '" + path +
                          "' is taken by another tensor of the model or the optimizer",
                      buffer.location());
    }
  };
  ParameterVisitor visitor(found, found_buffer);
  model.visit(visitor);
  for (const TrainingPick& pick : picks) check(pick);
  lay_out(picks);
  check_averages();
}

void ParameterTable::check(const TrainingPick& pick) const {
  if (pick.params.present()) check_filter("objective '" + pick.objective + "'", pick.params);
  std::set<std::string> names;
  for (const ParamGroup& group : pick.groups) {
    check_filter("group '" + group_name(group) + "'", group.params);
    if (!names.insert(group_name(group)).second)
      throw UserError("groups: two groups are named '" + group_name(group) + "'");
  }
}

void ParameterTable::lay_out(const std::vector<TrainingPick>& picks) {
  std::vector<std::pair<ParameterSortKey, std::size_t>> order;  // key and index in model order
  for (std::size_t i = 0; i < entries_.size(); ++i)
    order.emplace_back(sort_key(picks, entries_[i]), i);
  std::sort(order.begin(), order.end());
  for (const TrainingPick& pick : picks) {
    parts_.push_back({.objective = pick.objective,
                      .averaged = pick.averaged,
                      .shards = pick.shards,
                      .shards_params = pick.bucket_bytes > 0});
  }
  std::int64_t trained = 0;
  for (const ParameterEntry& entry : entries_)
    trained += !picks.empty() && trains(picks[0], entry) ? entry.count() : 0;
  for (const auto& [rank, i] : order) {
    ParameterEntry& entry = entries_[i];
    const bool frozen = std::none_of(picks.begin(), picks.end(),
                                     [&](const TrainingPick& pick) { return trains(pick, entry); });
    entry.offset = elements_;
    if (frozen || exceeds_bucket(entry, picks, trained)) end_bucket();
    entry.offset = elements_;
    elements_ = entry.end();
    for (std::size_t k = 0; k < picks.size(); ++k) {
      if (!trains(picks[k], entry)) continue;
      const int group = matching_group(picks[k], entry);
      add_to(parts_[k], entry, group == static_cast<int>(picks[k].groups.size()) ? -1 : group);
    }
  }
  end_bucket();
}

// Small models have several buckets as well, since the parameters of a bucket are in memory at the
// same time.
bool ParameterTable::exceeds_bucket(const ParameterEntry& entry,
                                    const std::vector<TrainingPick>& picks,
                                    std::int64_t trained) const {
  if (picks.empty() || picks[0].bucket_bytes == 0) return false;
  const ParameterRange& part = parts_[0];
  const std::int64_t begin = part.buckets.empty() ? 0 : part.buckets.back().end();
  const std::int64_t most =
      std::min<std::int64_t>(picks[0].bucket_bytes / static_cast<std::int64_t>(sizeof(float)),
                             std::max(trained / kMinBuckets, kMinBucket));
  return elements_ > begin && entry.end() - begin > most;
}

void ParameterTable::end_bucket() {
  for (ParameterRange& part : parts_) {
    if (part.shards == 1) continue;
    const std::int64_t begin = part.buckets.empty() ? 0 : part.buckets.back().end();
    if (part.elements == begin) continue;
    CHECK(parts_.size() == 1 && part.begin == 0, "a part with shards is the first and only one");
    const std::int64_t multiple = kAlignment * part.shards;
    part.elements = (part.elements + multiple - 1) / multiple * multiple;
    part.ranges.back().end = part.elements;
    part.buckets.push_back({begin, part.elements - begin});
    elements_ = std::max(elements_, part.elements);
  }
}

const ParameterRange* ParameterTable::sharded_params() const {
  return parts_.size() == 1 && parts_[0].shards_params ? &parts_[0] : nullptr;
}

void ParameterTable::describe(PlanOptions& plan) const {
  plan.params_elements = elements_;
  const ParameterRange* const part = sharded_params();
  if (part == nullptr) return;
  plan.params_elements -= part->elements - part->shard_elements();
  plan.buckets = part->buckets;
  plan.shards = part->shards;
}

void ParameterTable::add_to(ParameterRange& part, const ParameterEntry& entry, int group) const {
  if (part.entries.empty()) part.begin = entry.offset;
  ParameterEntry own = entry;
  own.offset -= part.begin;
  part.exclusive &= own.offset == part.elements;
  part.elements = own.end();
  part.entries.push_back(own);
  if (part.ranges.empty() || part.ranges.back().group != group)
    part.ranges.push_back({group, own.offset, own.end()});
  part.ranges.back().end = own.end();
}

void ParameterTable::check_averages() const {
  std::map<std::string, std::string> by;  // parameter name to objective
  for (const ParameterRange& part : parts_) {
    if (!part.averaged) continue;
    for (const ParameterEntry& entry : part.entries) {
      const auto [at, fresh] = by.emplace(entry.name, part.objective);
      if (fresh) continue;
      throw UserError("ema_decay: the objectives '" + at->second + "' and '" + part.objective +
                      "' both train '" + entry.name + "': only one may average it");
    }
  }
}

void ParameterTable::check_filter(const std::string& what, const ParamFilter& filter) const {
  std::string known;
  for (const ParameterEntry& entry : entries_) {
    if (filter(entry.name, entry.parameter->shape())) return;
    known += (known.empty() ? "" : ", ") + entry.name;
  }
  throw UserError(what + ": no parameter matches; available: " + known);
}

void ParameterTable::declare(Trace& trace, WeightSource weights) const {
  trace.buffers = buffers_;
  const auto type_of = [](const Shape& shape) {
    return Attrs{{"shape", shape}, {"dtype", static_cast<std::int64_t>(DType::kF32)}};
  };
  for (const ParameterEntry& entry : entries_) {
    Attrs attrs = type_of(entry.parameter->shape());
    attrs.set("name", entry.name);
    attrs.set("offset", entry.offset);
    trace.parameters[entry.parameter] =
        trace.graph.add(ops::parameter, {}, attrs, entry.parameter->location());
  }
  if (weights == WeightSource::kTrained) return;
  Builder builder{trace.graph, {}, "ema"};
  for (const ParameterRange& part : parts_) {
    if (!part.averaged) continue;
    Attrs attrs = type_of({part.elements});
    attrs.set("name", part.state(kEmaName));
    attrs.set("init", 0.0);
    const Expr flat = op::apply(builder, ops::state, {}, std::move(attrs));
    for (const ParameterEntry& entry : part.entries) {
      trace.parameters[entry.parameter] =
          op::reshape(op::slice(flat, {entry.offset}, {entry.offset + entry.count()}),
                      entry.parameter->shape())
              .id;
    }
  }
}

bool ParameterTable::has_buffer(const std::string& name) const {
  return std::any_of(buffers_.begin(), buffers_.end(),
                     [&](const auto& buffer) { return buffer.second == name; });
}

std::set<std::string> ParameterTable::buffer_names() const {
  std::set<std::string> names;
  for (const auto& [buffer, name] : buffers_) names.insert(name);
  return names;
}

std::vector<float> ParameterTable::initial(std::uint32_t seed, const InitFunction& function) const {
  std::vector<float> flat(static_cast<size_t>(elements_), 0.0F);
  std::uint32_t stream = kInitStream;
  for (const ParameterEntry& entry : entries_) {
    const Parameter& parameter = *entry.parameter;
    const auto from = flat.begin() + entry.offset;
    std::optional<Init> given;
    if (function) given = function(entry.name, parameter.shape());
    if (given) {
      check_initial("the initial values of '" + entry.name + "'", *given, parameter.shape(),
                    SourceLocation());
    }
    fill_initial(given ? *given : parameter.initial(), parameter.shape(), stream, seed,
                 {from, from + entry.count()});
    ++stream;
  }
  return flat;
}

NamedTensors ParameterTable::unpack(const std::vector<float>& flat) const {
  return unpacked(entries_, flat);
}

NamedTensors ParameterTable::averages(
    const std::vector<float>& flat,
    const std::function<std::vector<float>(const std::string& state)>& read) const {
  NamedTensors tensors = unpack(flat);
  for (const ParameterRange& part : parts_) {
    if (!part.averaged) continue;
    for (auto& [name, average] : part.unpack(read(part.state(kEmaName))))
      tensors[name] = std::move(average);
  }
  return tensors;
}

void ParameterTable::write(const NamedTensors& tensors, const std::string& what, bool partial,
                           std::vector<float>& flat) const {
  write_all(entries_, tensors, what, partial, flat);
}

std::vector<float> ParameterTable::pack(const NamedTensors& tensors,
                                        const std::string& what) const {
  std::vector<float> flat(static_cast<size_t>(elements_), 0.0F);
  write(tensors, what, false, flat);
  return flat;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
