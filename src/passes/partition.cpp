// SPDX-License-Identifier: MIT
#include "passes/partition.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "ops/registry.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

Partition::Partition(const Graph& graph, const FuseOptions& options)
    : graph_(graph), options_(options), places_(graph.nodes.size()) {
  mark_placed();
}

int Partition::open(ValueId id, GroupKind kind, std::int64_t elements) {
  const int g = size();
  groups_.push_back({kind, elements, 1, 1, {id}, false});
  ancestors_.emplace_back();
  at(id).group = g;
  at(id).row_level = kind == GroupKind::kRow || kind == GroupKind::kColumn;
  add_dependencies(g, id);
  return g;
}

void Partition::join(ValueId id, int g, bool row_level) {
  group(g).members.push_back(id);
  at(id).group = g;
  at(id).row_level = row_level;
  add_dependencies(g, id);
}

std::vector<int> Partition::candidates(const std::vector<Source>& sources) const {
  std::set<int, std::greater<>> found;
  for (const Source& source : sources) {
    if (group_of(source.value) >= 0) found.insert(group_of(source.value));
  }
  std::vector<int> list(found.begin(), found.end());
  std::sort(list.begin(), list.end(),
            [&](int a, int b) { return group(a).members.back() > group(b).members.back(); });
  return list;
}

void Partition::merge(int g, int h) {
  for (int k = 0; k < size(); ++k) {
    if (depends(h, k)) add_dependency(g, k);
  }
  for (int k = 0; k < size(); ++k) {
    if (depends(k, h)) add_dependency(k, g);
  }
  for (const ValueId member : group(h).members) at(member).group = g;
  std::vector<ValueId>& members = group(g).members;
  members.insert(members.end(), group(h).members.begin(), group(h).members.end());
  std::sort(members.begin(), members.end());
  group(h).members.clear();
}

bool Partition::leads_back(const std::vector<Source>& sources, int g) const {
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    const std::set<int> from = groups_below(source.value);
    return std::any_of(from.begin(), from.end(), [&](int h) { return h != g && depends(h, g); });
  });
}

bool Partition::depends(int g, int on) const {
  const std::vector<bool>& above = ancestors_[static_cast<size_t>(g)];
  return static_cast<size_t>(on) < above.size() && above[static_cast<size_t>(on)];
}

void Partition::add_dependency(int g, int on) {
  if (g == on || depends(g, on)) return;
  std::vector<bool> above = ancestors_[static_cast<size_t>(on)];
  above.resize(groups_.size(), false);
  above[static_cast<size_t>(on)] = true;
  for (int k = 0; k < size(); ++k) {
    if (k != g && !depends(k, g)) continue;
    std::vector<bool>& own = ancestors_[static_cast<size_t>(k)];
    own.resize(groups_.size(), false);
    for (std::size_t i = 0; i < above.size(); ++i) own[i] = own[i] || above[i];
  }
}

std::set<int> Partition::groups_below(ValueId id) const {
  if (group_of(id) >= 0) return {group_of(id)};
  std::set<int> found;
  if (graph_[id].op->kind == OpKind::kPack) {
    for (const Source& source : sources_of(id)) found.merge(groups_below(source.value));
  }
  return found;
}

const std::vector<Source>& Partition::sources_of(ValueId id) const {
  const auto [at, fresh] = sources_.try_emplace(id);
  if (fresh) collect_sources(id, at->second);
  return at->second;
}

bool Partition::readable(const Source& source, const Group& in, bool row_level_reader) const {
  if (source.barrier) return false;
  const bool source_is_row = row_level(source.value);
  if (row_level_reader) return source_is_row && source.map.is_identity();
  if (source_is_row) return is_row_number(source.map, in.rows, in.cols);
  return source.map.is_identity();
}

int Partition::bindings_with(int g, ValueId id) const {
  std::vector<ValueId> members = group(g).members;
  if (id != kNoValue) members.push_back(id);
  return count_bindings(members, g, id);
}

int Partition::count_bindings(const std::vector<ValueId>& members, int g, ValueId extra) const {
  return count_bindings(members, std::set<int>{g}, extra);
}

int Partition::bindings_together(int g, int h) const {
  std::vector<ValueId> members = group(g).members;
  members.insert(members.end(), group(h).members.begin(), group(h).members.end());
  return count_bindings(members, std::set<int>{g, h}, kNoValue);
}

int Partition::count_bindings(const std::vector<ValueId>& members, const std::set<int>& groups,
                              ValueId extra) const {
  std::set<std::string> keys;
  int stored = 0;
  for (const ValueId member : members) {
    for (const Source& source : sources_of(member)) {
      const bool own = groups.contains(group_of(source.value)) || source.value == extra;
      if (!own && reads_memory(source.value)) keys.insert(buffer_key(source.value));
    }
    if (!stored_outside(member, groups, extra)) continue;
    const auto leaf = updated_.find(member);
    const bool map = group(*groups.begin()).kind == GroupKind::kMap;
    if (leaf != updated_.end() && options_.assume_in_place && map) {
      keys.insert(buffer_key(leaf->second));  // written in place
    } else {
      ++stored;
    }
  }
  return static_cast<int>(keys.size()) + stored;
}

const std::vector<ValueId>& Partition::readers(ValueId id) const {
  if (readers_.empty()) readers_.resize(graph_.nodes.size());
  std::vector<ValueId>& list = readers_[static_cast<size_t>(id)];
  if (!list.empty()) return list;
  if (users_.empty()) users_ = users_of(graph_);
  std::set<ValueId> found;
  std::vector<ValueId> stack{id};
  while (!stack.empty()) {
    const ValueId at = stack.back();
    stack.pop_back();
    for (const ValueId user : users_[static_cast<size_t>(at)]) {
      const bool passes = graph_[user].op->kind == OpKind::kView || inlined(user);
      if (passes) {
        stack.push_back(user);
      } else {
        found.insert(user);
      }
    }
  }
  list.assign(found.begin(), found.end());
  return list;
}

void Partition::forget_readers() {
  readers_.clear();
  sources_.clear();
}

std::vector<std::set<int>> Partition::needs() const {
  std::vector<std::set<int>> needs(groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (const ValueId member : groups_[g].members) {
      for (const Source& source : sources_of(member)) needs[g].merge(groups_below(source.value));
    }
    needs[g].erase(static_cast<int>(g));
  }
  return needs;
}

Graph Partition::numbered() const {
  const std::vector<std::set<int>> needs = this->needs();
  std::vector<std::vector<int>> feeds(groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (const int from : needs[g]) feeds[static_cast<size_t>(from)].push_back(static_cast<int>(g));
  }
  std::set<std::pair<ValueId, int>> ready;
  std::vector<std::size_t> waiting(groups_.size());
  std::size_t live = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].members.empty()) continue;
    ++live;
    waiting[g] = needs[g].size();
    if (waiting[g] == 0) ready.insert({groups_[g].members.back(), static_cast<int>(g)});
  }
  std::vector<int> number(groups_.size(), -1);
  int next = 0;
  while (!ready.empty()) {
    const int g = ready.begin()->second;
    ready.erase(ready.begin());
    number[static_cast<size_t>(g)] = next++;
    for (const int user : feeds[static_cast<size_t>(g)]) {
      if (--waiting[static_cast<size_t>(user)] == 0) {
        ready.insert({groups_[static_cast<size_t>(user)].members.back(), user});
      }
    }
  }
  CHECK(next == static_cast<int>(live), "fused groups depend on one another in a circle");
  Graph out = graph_;
  for (ValueId id = 0; id < out.size(); ++id) {
    out[id].group = group_of(id) < 0 ? -1 : number[static_cast<size_t>(group_of(id))];
  }
  return out;
}

bool Partition::reads_memory(ValueId id) const {
  const Node& node = graph_[id];
  if (node.op == &ops::constant || node.op == &ops::scalar) return false;
  return node.op->kind != OpKind::kGenerator;
}

void Partition::mark_placed() {
  const auto mark = [&](ValueId id) { at(through_views(graph_, id).value).placed = true; };
  for (const GraphOutput& output : graph_.outputs) mark(output.value);
  for (const GraphUpdate& update : graph_.updates) {
    mark(update.value);
    updated_[through_views(graph_, update.value).value] = update.leaf;
  }
  for (const Node& node : graph_.nodes) {
    if (node.op->kind == OpKind::kPack) std::for_each(node.inputs.begin(), node.inputs.end(), mark);
    if (node.op->kind == OpKind::kGather) mark(node.inputs[0]);
  }
}

void Partition::collect_sources(ValueId id, std::vector<Source>& out) const {
  for (const ValueId input : graph_[id].inputs) {
    Source source = through_views(graph_, input);
    if (inlined(source.value)) {
      std::vector<Source> deeper;
      collect_sources(source.value, deeper);
      // The maps of these two's operands are over the operand, not over what is computed.
      const OpKind kind = graph_[source.value].op->kind;
      const bool moved = kind == OpKind::kConcat || kind == OpKind::kGather;
      for (Source& s : deeper)
        out.push_back({s.value, compose(source.map, s.map), source.barrier || s.barrier || moved});
    } else {
      out.push_back(std::move(source));
    }
  }
}

void Partition::add_dependencies(int g, ValueId member) {
  for (const Source& source : sources_of(member)) {
    for (const int from : groups_below(source.value)) add_dependency(g, from);
  }
}

std::string Partition::buffer_key(ValueId id) const {
  const Node& node = graph_[id];
  if (node.op == &ops::parameter && options_.arena_fits_binding) return "arena:params";
  if (node.op == &ops::arena) return "arena:" + node.attrs.text("name");
  return "%" + std::to_string(id);
}

bool Partition::stored_outside(ValueId member, const std::set<int>& groups, ValueId extra) const {
  if (placed(member)) return true;
  const std::vector<ValueId>& list = readers(member);
  return std::any_of(list.begin(), list.end(), [&](ValueId reader) {
    const bool undecided = extra != kNoValue && reader > extra;  // it may join too
    return reader != extra && !undecided && !groups.contains(group_of(reader));
  });
}

void Partition::move(ValueId id, int g) {
  const int from = group_of(id);
  for (int k = 0; k < size(); ++k) {
    if (depends(k, from)) add_dependency(k, g);
  }
  at(id).group = g;
  group(g).members.push_back(id);
  std::sort(group(g).members.begin(), group(g).members.end());
  group(from).members.clear();
}

void Partition::set_inlined(ValueId id, bool inlined) {
  if (at(id).inlined == inlined) return;
  at(id).inlined = inlined;
  forget_readers();
}

std::vector<ValueId> Partition::dissolve(int g) {
  std::vector<ValueId> members;
  members.swap(group(g).members);
  for (const ValueId member : members) {
    at(member).group = -1;
    set_inlined(member, true);
  }
  return members;
}

void Partition::restore(int g, const std::vector<ValueId>& members) {
  for (const ValueId member : members) {
    at(member).group = g;
    set_inlined(member, false);
  }
  group(g).members = members;
}

void Partition::sink(ValueId id) {
  std::erase(group(group_of(id)).members, id);
  at(id).group = -1;
  set_inlined(id, true);
}

void Partition::raise(ValueId id, int g) {
  std::vector<ValueId>& members = group(g).members;
  members.insert(std::upper_bound(members.begin(), members.end(), id), id);
  at(id).group = g;
  set_inlined(id, false);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
