// SPDX-License-Identifier: MIT
#include "passes/fuse/partition.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/check.h"
#include "base/visits.h"
#include "ops/registry.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

ValueId below_views(const Graph& graph, ValueId id) {
  while (graph[id].op->kind == OpKind::kView) id = graph[id].inputs[0];
  return id;
}

constexpr std::size_t kMaxKnownNeeds = 4;

// Removes and returns the group with the least distance among the last few of `open`.
template <class Distance>
int take_nearest(std::vector<int>& open, const Distance& distance) {
  constexpr std::ptrdiff_t kLookedAt = 4;
  const auto first = open.end() - std::min<std::ptrdiff_t>(kLookedAt, std::ssize(open));
  const auto nearest =
      std::min_element(first, open.end(), [&](int a, int b) { return distance(a) < distance(b); });
  const int taken = *nearest;
  *nearest = open.back();
  open.pop_back();
  return taken;
}

bool writes_in_place(GroupKind kind) {
  return kind == GroupKind::kMap || kind == GroupKind::kIndexUpdate;
}

bool has_group(std::span<const int> groups, int g) {
  return std::find(groups.begin(), groups.end(), g) != groups.end();
}

}  // namespace

Partition::Partition(const Graph& graph, const FuseOptions& options)
    : graph_(graph),
      options_(options),
      places_(graph.nodes.size()),
      users_(users_of(graph)),
      readers_(graph.nodes.size()),
      sources_(graph.nodes.size()) {
  mark_placed();
  for (const Node& node : graph.nodes) {
    if (node.op != &ops::arena) continue;
    arenas_.try_emplace(node.attrs.text("name"), static_cast<int>(arenas_.size()));
  }
}

int Partition::open(ValueId id, GroupKind kind, std::int64_t elements) {
  const int g = size();
  groups_.push_back({kind, elements, 1, 1, {id}, false});
  needs_.emplace_back();
  feeds_.emplace_back();
  levels_.push_back(0);
  bounds_.emplace_back();
  seen_.push_back(0);
  seen_above_.push_back(0);
  known_needs_.emplace_back();
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
  // If a dissolved group is between the two, its own dependencies count instead.
  std::set<int> open = needs_[static_cast<size_t>(h)], seen;
  while (!open.empty()) {
    const int on = open.extract(open.begin()).value();
    visit();
    if (on == g || !seen.insert(on).second) continue;
    if (depends(on, g)) {
      open.insert(needs_[static_cast<size_t>(on)].begin(), needs_[static_cast<size_t>(on)].end());
    } else {
      add_dependency(g, on);
    }
  }
  const std::vector<int>& feeds = feeds_[static_cast<size_t>(h)];
  open.insert(feeds.begin(), feeds.end());
  seen.clear();
  while (!open.empty()) {
    const int reader = open.extract(open.begin()).value();
    visit();
    if (reader == g || !seen.insert(reader).second) continue;
    if (depends(g, reader)) {
      const std::vector<int>& further = feeds_[static_cast<size_t>(reader)];
      open.insert(further.begin(), further.end());
    } else {
      add_dependency(reader, g);
    }
  }
  forget_bindings(g);
  forget_bindings(h);
  visit(static_cast<std::int64_t>(group(g).members.size() + group(h).members.size()));
  for (const ValueId member : group(h).members) at(member).group = g;
  std::vector<ValueId>& members = group(g).members;
  members.insert(members.end(), group(h).members.begin(), group(h).members.end());
  std::sort(members.begin(), members.end());
  group(h).members.clear();
}

bool Partition::leads_back(const std::vector<Source>& sources, int g) const {
  visit(static_cast<std::int64_t>(sources.size()));
  return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
    const std::set<int> from = groups_below(source.value);
    return std::any_of(from.begin(), from.end(), [&](int h) { return h != g && depends(h, g); });
  });
}

// Bidirectional search, from g along dependencies and from `on` along readers, until the two meet
// or one is exhausted. Skips groups whose level is not between the two, and visits the groups
// nearest to the other end first.
bool Partition::depends(int g, int on) const {
  if (level(g) <= level(on)) return false;
  searches_ += 2;
  const int down_mark = searches_, up_mark = searches_ + 1;
  std::vector<int> down{g}, up{on};
  bool met = false;
  const auto look_at = [&](int k, int mark, int other, std::vector<int>& open) {
    if (level(k) > level(g) || level(k) < level(on)) return;
    int& seen = seen_[static_cast<size_t>(k)];
    int& seen_from_above = seen_above_[static_cast<size_t>(k)];
    int& own = mark == down_mark ? seen : seen_from_above;
    met |= (mark == down_mark ? seen_from_above : seen) == other;
    if (own == mark) return;
    own = mark;
    open.push_back(k);
  };
  seen_[static_cast<size_t>(g)] = down_mark;
  seen_above_[static_cast<size_t>(on)] = up_mark;
  while (!met && !down.empty() && !up.empty()) {
    const int below = take_nearest(down, [&](int k) { return level(k); });
    const int above = take_nearest(up, [&](int k) { return -level(k); });
    const std::set<int>& needs = needs_[static_cast<size_t>(below)];
    const std::vector<int>& feeds = feeds_[static_cast<size_t>(above)];
    visit(2 + static_cast<std::int64_t>(std::min(needs.size(), feeds.size())));
    for (const int k : needs) look_at(k, down_mark, up_mark, down);
    for (const int k : known_needs_[static_cast<size_t>(below)])
      look_at(k, down_mark, up_mark, down);
    for (const int k : feeds) look_at(k, up_mark, down_mark, up);
  }
  if (met) remember_need(g, on);
  return met;
}

// Caches the last few indirect dependencies found, as shortcuts for later searches.
void Partition::remember_need(int g, int on) const {
  std::vector<int>& known = known_needs_[static_cast<size_t>(g)];
  if (needs_[static_cast<size_t>(g)].contains(on) ||
      std::find(known.begin(), known.end(), on) != known.end())
    return;
  if (known.size() == kMaxKnownNeeds) known.erase(known.begin());
  known.push_back(on);
}

bool Partition::depends_through_third(int g, int on) const {
  const std::set<int>& needs = needs_[static_cast<size_t>(g)];
  return std::any_of(needs.begin(), needs.end(), [&](int k) { return k != on && depends(k, on); });
}

void Partition::add_dependency(int g, int on) {
  if (g == on || !needs_[static_cast<size_t>(g)].insert(on).second) return;
  feeds_[static_cast<size_t>(on)].push_back(g);
  std::vector<int> raised;
  const auto raise_above = [&](int k, int below) {
    if (levels_[static_cast<size_t>(k)] > levels_[static_cast<size_t>(below)]) return;
    CHECK(k != on, "fused groups depend on one another in a circle");
    levels_[static_cast<size_t>(k)] = levels_[static_cast<size_t>(below)] + 1;
    raised.push_back(k);
  };
  raise_above(g, on);
  while (!raised.empty()) {
    const int from = raised.back();
    raised.pop_back();
    visit(1 + static_cast<std::int64_t>(feeds_[static_cast<size_t>(from)].size()));
    for (const int k : feeds_[static_cast<size_t>(from)]) raise_above(k, from);
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
  std::vector<ValueId> stack{id};
  while (!stack.empty()) {
    const ValueId at = stack.back();
    std::optional<std::vector<Source>>& found = sources_[static_cast<size_t>(at)];
    const std::size_t waiting = stack.size();
    if (!found) {  // values inlined into it come first
      for (const ValueId input : graph_[at].inputs) {
        const ValueId value = below_views(graph_, input);
        if (inlined(value) && !sources_[static_cast<size_t>(value)]) stack.push_back(value);
      }
    }
    if (stack.size() > waiting) continue;
    if (!found) found = collect_sources(at);
    stack.pop_back();
  }
  return *sources_[static_cast<size_t>(id)];
}

bool Partition::readable(const Source& source, const Group& in, bool row_level_reader) const {
  if (source.barrier) return false;
  const bool source_is_row = row_level(source.value);
  if (row_level_reader) return source_is_row && source.map.is_identity();
  if (source_is_row) return is_row_number(source.map, in.rows, in.cols);
  return source.map.is_identity();
}

void Partition::forget_bindings(int g) {
  if (g >= 0) bounds_[static_cast<size_t>(g)].reset();
}

// Returns the cached state of g, after accounting for all readers before `id`.
Partition::Bound& Partition::bound(int g, ValueId id) const {
  std::optional<Bound>& known = bounds_[static_cast<size_t>(g)];
  const std::vector<ValueId>& members = group(g).members;
  if (!known || known->counted > members.size()) known.emplace();
  for (; known->counted < members.size(); ++known->counted) {
    const ValueId member = members[known->counted];
    visit();
    for (const Source& source : sources_of(member)) {
      if (group_of(source.value) != g && reads_memory(source.value))
        known->keys.insert(buffer_key(source.value));
    }
    if (placed(member)) {
      known->stored.push_back(member);
    } else {
      wait_for_reader(*known, member, -1);
    }
  }
  while (!known->waiting.empty() && known->waiting.begin()->first < id) {
    const auto [reader, member] = *known->waiting.begin();
    known->waiting.erase(known->waiting.begin());
    visit();
    if (group_of(reader) == g) {
      wait_for_reader(*known, member, reader);
    } else {
      known->stored.push_back(member);
    }
  }
  known->settled_before = std::max(known->settled_before, id);
  return *known;
}

void Partition::wait_for_reader(Bound& bound, ValueId member, ValueId after) const {
  const std::vector<ValueId>& list = readers(member);
  const auto next = std::upper_bound(list.begin(), list.end(), after);
  if (next != list.end()) bound.waiting.insert({*next, member});
}

int Partition::bindings_with(int g, ValueId id) const {
  const std::vector<ValueId>& all = group(g).members;
  const ValueId before = id == kNoValue ? graph_.size() : id;
  const std::optional<Bound>& last = bounds_[static_cast<size_t>(g)];
  const bool earlier = id != kNoValue && !all.empty() && id < all.back();
  if (earlier || (last && last->settled_before > before)) {
    std::vector<ValueId> members = all;
    if (id != kNoValue) members.push_back(id);
    return count_bindings(members, g, id);
  }
  const Bound& known = bound(g, before);
  std::set<int> added;  // keys
  const auto add = [&](int key) {
    if (!known.keys.contains(key)) added.insert(key);
  };
  int stored = 0;
  const auto count_store = [&](ValueId member) {
    const auto leaf = updated_.find(member);
    if (leaf != updated_.end() && options_.assume_in_place && writes_in_place(group(g).kind)) {
      add(buffer_key(leaf->second));  // written in place
    } else {
      ++stored;
    }
  };
  visit(1 + static_cast<std::int64_t>(known.stored.size()));
  for (const ValueId member : known.stored) count_store(member);
  if (id != kNoValue) {
    for (const Source& source : sources_of(id)) {
      if (group_of(source.value) != g && source.value != id && reads_memory(source.value))
        add(buffer_key(source.value));
    }
    if (stored_outside(id, {&g, 1}, id)) count_store(id);
  }
  return static_cast<int>(known.keys.size() + added.size()) + stored;
}

int Partition::count_bindings(const std::vector<ValueId>& members, int g, ValueId extra) const {
  return count_bindings(members, std::span<const int>(&g, 1), extra);
}

int Partition::bindings_together(int g, int h) const {
  std::vector<ValueId> members = group(g).members;
  members.insert(members.end(), group(h).members.begin(), group(h).members.end());
  return count_bindings(members, std::array{g, h}, kNoValue);
}

int Partition::count_bindings(const std::vector<ValueId>& members, std::span<const int> groups,
                              ValueId extra) const {
  std::set<int> keys;
  int stored = 0;
  visit(static_cast<std::int64_t>(members.size()));
  for (const ValueId member : members) {
    for (const Source& source : sources_of(member)) {
      const bool own = has_group(groups, group_of(source.value)) || source.value == extra;
      if (!own && reads_memory(source.value)) keys.insert(buffer_key(source.value));
    }
    if (!stored_outside(member, groups, extra)) continue;
    const auto leaf = updated_.find(member);
    const bool able = writes_in_place(group(groups.front()).kind);
    if (leaf != updated_.end() && options_.assume_in_place && able) {
      keys.insert(buffer_key(leaf->second));  // written in place
    } else {
      ++stored;
    }
  }
  return static_cast<int>(keys.size()) + stored;
}

const std::vector<ValueId>& Partition::readers(ValueId id) const {
  std::optional<std::vector<ValueId>>& list = readers_[static_cast<size_t>(id)];
  if (list) return *list;
  any_readers_ = true;
  std::set<ValueId> found, passed;
  std::vector<ValueId> stack{id};
  while (!stack.empty()) {
    const ValueId at = stack.back();
    stack.pop_back();
    visit(1 + static_cast<std::int64_t>(users_[static_cast<size_t>(at)].size()));
    for (const ValueId user : users_[static_cast<size_t>(at)]) {
      if (!passes(user)) {
        found.insert(user);
      } else if (passed.insert(user).second) {
        stack.push_back(user);
      }
    }
  }
  list.emplace(found.begin(), found.end());
  return *list;
}

void Partition::forget_paths(ValueId id) {
  forget_bindings(group_of(id));
  std::set<ValueId> seen;
  std::vector<ValueId> stack{id};
  while (!stack.empty()) {  // its readers
    const ValueId at = stack.back();
    stack.pop_back();
    visit(1 + static_cast<std::int64_t>(users_[static_cast<size_t>(at)].size()));
    for (const ValueId user : users_[static_cast<size_t>(at)]) {
      std::optional<std::vector<Source>>& sources = sources_[static_cast<size_t>(user)];
      // Sources of what reads an inlined value are cached only if those of the value are.
      const bool ends = !passes(user) || (inlined(user) && !sources);
      sources.reset();
      forget_bindings(group_of(user));
      if (!ends && seen.insert(user).second) stack.push_back(user);
    }
  }
  if (!any_readers_) return;
  seen.clear();
  stack = {id};
  while (!stack.empty()) {  // its inputs
    const ValueId at = stack.back();
    stack.pop_back();
    visit();
    for (const ValueId input : graph_[at].inputs) {
      readers_[static_cast<size_t>(input)].reset();
      forget_bindings(group_of(input));
      if (passes(input) && seen.insert(input).second) stack.push_back(input);
    }
  }
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

std::vector<Source> Partition::collect_sources(ValueId id) const {
  std::vector<Source> out;
  for (const ValueId input : graph_[id].inputs) {
    Source source = through_views(graph_, input);
    if (inlined(source.value)) {
      // The index maps of concat and gather operands are over the operand, not over the result.
      const OpKind kind = graph_[source.value].op->kind;
      const bool moved = kind == OpKind::kConcat || kind == OpKind::kGather;
      for (const Source& s : sources_of(source.value))
        out.push_back({s.value, compose(source.map, s.map), source.barrier || s.barrier || moved});
    } else {
      out.push_back(std::move(source));
    }
  }
  return out;
}

void Partition::add_dependencies(int g, ValueId member) {
  for (const Source& source : sources_of(member)) {
    for (const int from : groups_below(source.value)) add_dependency(g, from);
  }
}

// Returns the number of the value, or a negative key if it is in an arena.
int Partition::buffer_key(ValueId id) const {
  const Node& node = graph_[id];
  if (node.op == &ops::parameter && options_.arena_fits_binding) {
    const std::vector<std::int64_t>& ends = options_.bucket_ends;
    const auto bucket = std::upper_bound(ends.begin(), ends.end(), node.attrs.integer("offset"));
    if (bucket == ends.end()) return arena_key("params");
    return -3 - static_cast<int>(arenas_.size()) - static_cast<int>(bucket - ends.begin());
  }
  if (node.op == &ops::arena) return arena_key(node.attrs.text("name"));
  return id;
}

int Partition::arena_key(const std::string& name) const {
  const auto at = arenas_.find(name);
  return at == arenas_.end() ? -1 : -2 - at->second;
}

bool Partition::stored_outside(ValueId member, std::span<const int> groups, ValueId extra) const {
  if (placed(member)) return true;
  const std::vector<ValueId>& list = readers(member);
  visit(static_cast<std::int64_t>(list.size()));
  return std::any_of(list.begin(), list.end(), [&](ValueId reader) {
    const bool undecided = extra != kNoValue && reader > extra;  // it may still join
    return reader != extra && !undecided && !has_group(groups, group_of(reader));
  });
}

void Partition::move(ValueId id, int g) {
  const int from = group_of(id);
  const std::vector<int> feeds = feeds_[static_cast<size_t>(from)];
  for (const int reader : feeds) add_dependency(reader, g);
  forget_bindings(g);
  forget_bindings(from);
  at(id).group = g;
  group(g).members.push_back(id);
  std::sort(group(g).members.begin(), group(g).members.end());
  group(from).members.clear();
}

void Partition::set_inlined(ValueId id, bool inlined) {
  if (at(id).inlined == inlined) return;
  at(id).inlined = inlined;
  forget_paths(id);
}

std::vector<ValueId> Partition::dissolve(int g) {
  forget_bindings(g);
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
  forget_bindings(g);
}

void Partition::sink(ValueId id) {
  forget_bindings(group_of(id));
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
