// SPDX-License-Identifier: MIT
// Greedy grouping in topological order: a node joins the latest group that makes one of its
// operands, if it fits there and no path leads out of that group and back to the node.
#include "passes/fuse.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "ir/sources.h"
#include "ops/pointwise.h"
#include "ops/registry.h"
#include "passes/limit_concat.h"
#include "passes/place_in_memory.h"

namespace tensorgrad {
namespace {

// Recomputing this many operations per element costs less than a trip through memory.
constexpr int kCheapOps = 6;
// The same for an operand of a contraction, whose elements are read more than once.
constexpr int kCheapOperandOps = 2;
// A reduction to fewer rows than this leaves most of a GPU idle, so only small work may ride along.
constexpr std::int64_t kFewRows = 32;
constexpr std::int64_t kSmallDomain = 1 << 14;

enum class GroupKind { kMap, kRow, kColumn, kContraction, kScatter };

struct Group {
  GroupKind kind = GroupKind::kMap;
  std::int64_t elements = 1;        // of the domain (kColumn: rows)
  std::int64_t rows = 1, cols = 1;  // kRow, kColumn
  std::vector<ValueId> members;     // in order; empty: merged away
};

bool is_copy(const Node& node) { return node.op == &ops::stop_gradient; }

class Fuser {
 public:
  Fuser(const Graph& graph, const FuseOptions& options)
      : graph_(graph),
        options_(options),
        group_of_(graph.nodes.size(), -1),
        row_level_(graph.nodes.size(), false),
        inline_(graph.nodes.size(), false),
        placed_(graph.nodes.size(), false) {}

  Graph run() {
    mark_placed();
    if (options_.enabled) mark_generated();
    if (options_.enabled) mark_masks();
    for (ValueId id = 0; id < graph_.size(); ++id) assign(id);
    if (options_.enabled) {
      merge_column_sums();
      inline_producers();
    }
    limit_bindings();
    return numbered();
  }

 private:
  [[nodiscard]] int group_at(ValueId id) const { return group_of_[static_cast<size_t>(id)]; }
  [[nodiscard]] Group& group(int g) { return groups_[static_cast<size_t>(g)]; }
  [[nodiscard]] const Group& group(int g) const { return groups_[static_cast<size_t>(g)]; }

  // Values that must lie in memory for others than launches.
  void mark_placed() {
    const auto mark = [&](ValueId id) {
      placed_[static_cast<size_t>(through_views(graph_, id).value)] = true;
    };
    for (const GraphOutput& output : graph_.outputs) mark(output.value);
    for (const GraphUpdate& update : graph_.updates) {
      mark(update.value);
      updated_[through_views(graph_, update.value).value] = update.leaf;
    }
    for (const Node& node : graph_.nodes) {
      if (node.op->kind == OpKind::kPack)
        std::for_each(node.inputs.begin(), node.inputs.end(), mark);
      if (node.op->kind == OpKind::kGather) mark(node.inputs[0]);
    }
  }

  // Pointwise nodes of constants, run-time scalars and counters alone are computed by each reader.
  void mark_generated() {
    std::vector<int> cost(graph_.nodes.size(), -1);  // -1: depends on memory
    for (ValueId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      int& own = cost[static_cast<size_t>(id)];
      if (node.op == &ops::constant || node.op == &ops::scalar ||
          node.op->kind == OpKind::kGenerator) {
        own = 0;
      } else if (node.op->kind == OpKind::kView && node.op != &ops::pad) {
        own = cost[static_cast<size_t>(node.inputs[0])];
      } else if (node.op->kind == OpKind::kPointwise && !is_copy(node) && node.op != &ops::philox) {
        int total = node.type.shape.empty() ? 0 : 1;
        for (const ValueId input : node.inputs) {
          const int each = cost[static_cast<size_t>(input)];
          total = each < 0 || total < 0 ? -1 : total + each;
        }
        own = total <= kCheapOps && !placed_[static_cast<size_t>(id)] ? total : -1;
        inline_[static_cast<size_t>(id)] = own >= 0;
      }
    }
  }

  // A mask that is made of one value and of generated ones is never stored: reading that value
  // instead costs as much as reading the mask, and writing nothing costs less.
  void mark_masks() {
    for (ValueId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (node.op->kind != OpKind::kPointwise || node.type.dtype != DType::kBool) continue;
      if (placed_[static_cast<size_t>(id)] || inline_[static_cast<size_t>(id)] || is_copy(node))
        continue;
      std::set<ValueId> memory;
      for (const Source& source : sources_of(id)) {
        if (reads_memory(source.value)) memory.insert(source.value);
      }
      inline_[static_cast<size_t>(id)] = memory.size() <= 1;
    }
    forget_readers();
  }

  // The values a node reads, through views and through nodes that are computed in place.
  void collect_sources(ValueId id, std::vector<Source>& out) const {
    for (const ValueId input : graph_[id].inputs) {
      Source source = through_views(graph_, input);
      if (inline_[static_cast<size_t>(source.value)]) {
        std::vector<Source> deeper;
        collect_sources(source.value, deeper);
        for (Source& s : deeper) out.push_back({s.value, compose(source.map, s.map)});
      } else {
        out.push_back(std::move(source));
      }
    }
  }

  [[nodiscard]] const std::vector<Source>& sources_of(ValueId id) const {
    const auto [at, fresh] = sources_.try_emplace(id);
    if (fresh) collect_sources(id, at->second);
    return at->second;
  }

  void assign(ValueId id) {
    const Node& node = graph_[id];
    if (inline_[static_cast<size_t>(id)]) return;
    switch (node.op->kind) {
      case OpKind::kLeaf:
      case OpKind::kGenerator:
      case OpKind::kView:
      case OpKind::kPack: return;
      case OpKind::kContraction: open(id, GroupKind::kContraction, numel(node.type.shape)); return;
      case OpKind::kScatter: open(id, GroupKind::kScatter, numel(node.type.shape)); return;
      case OpKind::kReduce: assign_reduce(id); return;
      default: assign_pointwise(id);
    }
  }

  int open(ValueId id, GroupKind kind, std::int64_t elements) {
    const int g = static_cast<int>(groups_.size());
    groups_.push_back({kind, elements, 1, 1, {id}});
    ancestors_.emplace_back();
    group_of_[static_cast<size_t>(id)] = g;
    row_level_[static_cast<size_t>(id)] = false;
    add_dependencies(g, id);
    return g;
  }

  void join(ValueId id, int g, bool row_level) {
    group(g).members.push_back(id);
    group_of_[static_cast<size_t>(id)] = g;
    row_level_[static_cast<size_t>(id)] = row_level;
    add_dependencies(g, id);
  }

  // The groups that make a node's operands, latest first.
  [[nodiscard]] std::vector<int> candidates(const std::vector<Source>& sources) const {
    std::set<int, std::greater<>> found;
    for (const Source& source : sources) {
      if (group_at(source.value) >= 0) found.insert(group_at(source.value));
    }
    std::vector<int> list(found.begin(), found.end());
    std::sort(list.begin(), list.end(),
              [&](int a, int b) { return group(a).members.back() > group(b).members.back(); });
    return list;
  }

  void assign_pointwise(ValueId id) {
    const std::vector<Source> sources = sources_of(id);
    if (options_.enabled) {
      merge_maps(candidates(sources));
      for (const int g : candidates(sources)) {
        for (const bool row_level : {false, true}) {
          if (!fits(id, sources, g, row_level)) continue;
          join(id, g, row_level);
          return;
        }
      }
    }
    open(id, GroupKind::kMap, numel(graph_[id].type.shape));
  }

  // Maps over the same elements that a node joins anyway become one, where neither needs the other.
  void merge_maps(const std::vector<int>& found) {
    for (const int g : found) {
      if (group(g).kind == GroupKind::kColumn) continue;
      for (const int h : found) {
        if (h == g || group(h).kind != GroupKind::kMap || group(h).elements != group(g).elements)
          continue;
        if (group(h).members.empty() || group(g).members.empty()) continue;
        if (depends(g, h) || depends(h, g)) continue;
        std::vector<ValueId> together = group(g).members;
        together.insert(together.end(), group(h).members.begin(), group(h).members.end());
        if (count_bindings(together, g, together.back()) <= options_.max_bindings) merge(g, h);
      }
    }
  }

  // h's members become g's.
  void merge(int g, int h) {
    for (int k = 0; k < static_cast<int>(groups_.size()); ++k) {
      if (depends(h, k)) add_dependency(g, k);
    }
    for (int k = 0; k < static_cast<int>(groups_.size()); ++k) {
      if (depends(k, h)) add_dependency(k, g);
    }
    for (const ValueId member : group(h).members) group_of_[static_cast<size_t>(member)] = g;
    std::vector<ValueId>& members = group(g).members;
    members.insert(members.end(), group(h).members.begin(), group(h).members.end());
    std::sort(members.begin(), members.end());
    group(h).members.clear();
  }

  // May `id` become a member of g, at that level?
  [[nodiscard]] bool fits(ValueId id, const std::vector<Source>& sources, int g,
                          bool row_level) const {
    const Group& to = group(g);
    const std::int64_t size = numel(graph_[id].type.shape);
    const bool has_rows = to.kind == GroupKind::kRow || to.kind == GroupKind::kColumn;
    if (row_level && (!has_rows || size != to.rows)) return false;
    if (!row_level && (to.kind == GroupKind::kColumn || size != to.elements)) return false;
    for (const Source& source : sources) {
      if (group_at(source.value) == g && !readable(source, to, row_level)) return false;
    }
    const Node& node = graph_[id];
    if (node.op->kind == OpKind::kGather &&
        group_at(through_views(graph_, node.inputs[0]).value) == g) {
      return false;  // its data must lie in memory first
    }
    return !leads_back(sources, g) && bindings_with(g, id) <= options_.max_bindings;
  }

  // Can a member at that level read this other member without a trip through memory?
  [[nodiscard]] bool readable(const Source& source, const Group& in, bool row_level) const {
    const bool source_is_row = row_level_[static_cast<size_t>(source.value)];
    if (row_level) return source_is_row && source.map.is_identity();
    if (source_is_row) return is_row_number(source.map, in.rows, in.cols);
    return source.map.is_identity();
  }

  // Does one of the sources outside g depend on g?
  [[nodiscard]] bool leads_back(const std::vector<Source>& sources, int g) const {
    return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
      const std::set<int> from = groups_below(source.value);
      return std::any_of(from.begin(), from.end(), [&](int h) { return h != g && depends(h, g); });
    });
  }

  [[nodiscard]] bool depends(int g, int on) const {
    const std::vector<bool>& above = ancestors_[static_cast<size_t>(g)];
    return static_cast<size_t>(on) < above.size() && above[static_cast<size_t>(on)];
  }

  // Records that g, and all that depends on g, depends on `on` and on all that `on` depends on.
  void add_dependency(int g, int on) {
    if (g == on || depends(g, on)) return;
    std::vector<bool> above = ancestors_[static_cast<size_t>(on)];
    above.resize(groups_.size(), false);
    above[static_cast<size_t>(on)] = true;
    for (int k = 0; k < static_cast<int>(groups_.size()); ++k) {
      if (k != g && !depends(k, g)) continue;
      std::vector<bool>& own = ancestors_[static_cast<size_t>(k)];
      own.resize(groups_.size(), false);
      for (std::size_t i = 0; i < above.size(); ++i) own[i] = own[i] || above[i];
    }
  }

  void add_dependencies(int g, ValueId member) {
    for (const Source& source : sources_of(member)) {
      for (const int from : groups_below(source.value)) add_dependency(g, from);
    }
  }

  // The groups that make a value: its own, or those of the parts of a pack.
  [[nodiscard]] std::set<int> groups_below(ValueId id) const {
    if (group_at(id) >= 0) return {group_at(id)};
    std::set<int> found;
    if (graph_[id].op->kind == OpKind::kPack) {
      for (const Source& source : sources_of(id)) found.merge(groups_below(source.value));
    }
    return found;
  }

  void assign_reduce(ValueId id) {
    const ReduceShape shape = reduce_shape(graph_, graph_[id]);
    const std::vector<Source> sources = sources_of(id);
    if (options_.enabled && shape.trailing && sources.size() == 1) {
      const int g = group_at(sources[0].value);
      if (g >= 0 && takes_reduce(group(g), shape, sources[0]) &&
          bindings_with(g, id) <= options_.max_bindings) {
        group(g).kind = GroupKind::kRow;
        group(g).rows = shape.rows;
        group(g).cols = shape.cols;
        join(id, g, true);
        return;
      }
    }
    open_reduce(id, shape);
  }

  void open_reduce(ValueId id, const ReduceShape& shape) {
    const GroupKind kind = shape.trailing ? GroupKind::kRow : GroupKind::kColumn;
    const int g = open(id, kind, shape.trailing ? shape.rows * shape.cols : shape.rows);
    group(g).rows = shape.rows;
    group(g).cols = shape.cols;
    row_level_[static_cast<size_t>(id)] = true;
  }

  [[nodiscard]] bool takes_reduce(const Group& to, const ReduceShape& shape,
                                  const Source& source) const {
    if (row_level_[static_cast<size_t>(source.value)] || !source.map.is_identity()) return false;
    if (to.elements != shape.rows * shape.cols) return false;
    if (to.kind == GroupKind::kRow) return to.rows == shape.rows;
    return to.kind == GroupKind::kMap && (shape.rows >= kFewRows || to.elements <= kSmallDomain);
  }

  // Where in memory a value is read from: what shares a buffer counts once.
  [[nodiscard]] std::string buffer_key(ValueId id) const {
    const Node& node = graph_[id];
    if (node.op == &ops::parameter) return "arena:params";
    if (node.op == &ops::arena) return "arena:" + node.attrs.text("name");
    return "%" + std::to_string(id);
  }

  [[nodiscard]] bool reads_memory(ValueId id) const {
    const Node& node = graph_[id];
    if (node.op == &ops::constant || node.op == &ops::scalar) return false;
    return node.op->kind != OpKind::kGenerator;
  }

  // Storage buffers that g would bind with `id` in it. Later readers of its members are taken to
  // join it; limit_bindings() looks again when all is decided.
  [[nodiscard]] int bindings_with(int g, ValueId id) const {
    std::vector<ValueId> members = group(g).members;
    if (id != kNoValue) members.push_back(id);
    return count_bindings(members, g, id);
  }

  [[nodiscard]] int count_bindings(const std::vector<ValueId>& members, int g,
                                   ValueId extra) const {
    std::set<std::string> keys;
    int stored = 0;
    for (const ValueId member : members) {
      for (const Source& source : sources_of(member)) {
        const bool own = group_at(source.value) == g || source.value == extra;
        if (!own && reads_memory(source.value)) keys.insert(buffer_key(source.value));
      }
      if (!stored_outside(member, g, extra)) continue;
      const auto leaf = updated_.find(member);
      if (leaf != updated_.end() && options_.assume_in_place && group(g).kind == GroupKind::kMap) {
        keys.insert(buffer_key(leaf->second));  // written in place
      } else {
        ++stored;
      }
    }
    return static_cast<int>(keys.size()) + stored;
  }

  [[nodiscard]] bool stored_outside(ValueId member, int g, ValueId extra) const {
    if (placed_[static_cast<size_t>(member)]) return true;
    const std::vector<ValueId>& list = readers(member);
    return std::any_of(list.begin(), list.end(), [&](ValueId reader) {
      const bool undecided = extra != kNoValue && reader > extra;  // it may join too
      return reader != extra && !undecided && group_at(reader) != g;
    });
  }

  // Nodes that read a value, seen through views and inlined nodes.
  [[nodiscard]] const std::vector<ValueId>& readers(ValueId id) const {
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
        const bool passes =
            graph_[user].op->kind == OpKind::kView || inline_[static_cast<size_t>(user)];
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

  // After a change of what is inlined.
  void forget_readers() {
    readers_.clear();
    sources_.clear();
  }

  // The column sum of a contraction's second operand rides in the contraction: db with dW.
  void merge_column_sums() {
    for (Group& sums : groups_) {
      const bool sums_over_k =
          sums.kind == GroupKind::kColumn || (sums.kind == GroupKind::kRow && sums.rows == 1);
      if (!sums_over_k || sums.members.size() != 1) continue;
      const ValueId sum = sums.members[0];
      if (graph_[sum].op != &ops::reduce_sum) continue;
      const Source of = through_views(graph_, graph_[sum].inputs[0]);
      const Shape kept = graph_[sum].type.shape;
      const Shape& whole = graph_[graph_[sum].inputs[0]].type.shape;
      const bool leading = std::equal(kept.rbegin(), kept.rend(), whole.rbegin());
      if (!leading || !of.map.is_identity()) continue;
      for (int g = 0; g < static_cast<int>(groups_.size()); ++g) {
        if (!takes_column_sum(g, of.value, sums.rows, sums.cols, sum)) continue;
        for (int k = 0; k < static_cast<int>(groups_.size()); ++k) {
          if (depends(k, group_at(sum))) add_dependency(k, g);
        }
        group_of_[static_cast<size_t>(sum)] = g;
        group(g).members.push_back(sum);
        std::sort(group(g).members.begin(), group(g).members.end());
        sums.members.clear();
        break;
      }
    }
  }

  [[nodiscard]] bool takes_column_sum(int g, ValueId operand, std::int64_t cols, std::int64_t count,
                                      ValueId sum) const {
    const Group& to = group(g);
    if (to.kind != GroupKind::kContraction || to.members.empty()) return false;
    // Not always the first: maps that go into its epilogue may come before it.
    const ValueId root = *std::find_if(to.members.begin(), to.members.end(), [&](ValueId id) {
      return graph_[id].op->kind == OpKind::kContraction;
    });
    const Node& product = graph_[root];
    if (product.type.shape.size() != 2) return false;
    // The sum over k of b[k, n], or of a[m, k] where a is the transposed operand.
    const Source a = through_views(graph_, product.inputs[0]),
                 b = through_views(graph_, product.inputs[1]);
    const std::int64_t k = graph_[product.inputs[1]].type.shape[0];
    if (k != count) return false;  // a product of the front part alone
    const View transposed{{cols, k}, {1, cols}, 0, {}, {}};
    const bool of_b = b.value == operand && b.map.is_identity() && product.type.shape[1] == cols;
    const bool of_a = a.value == operand && product.type.shape[0] == cols &&
                      a.map.views.size() == 1 &&
                      a.map.views[0].simplified() == transposed.simplified();
    if (!of_a && !of_b) return false;
    if (depends(g, group_at(sum))) return false;
    for (const ValueId member : to.members) {
      if (graph_[member].op == &ops::reduce_sum) return false;  // it has one already
    }
    return bindings_with(g, sum) <= options_.max_bindings;
  }

  // A cheap map with one reader is computed where it is read, if that is a contraction, a scatter,
  // or a launch that sees its elements in another order.
  void inline_producers() {
    for (int g = 0; g < static_cast<int>(groups_.size()); ++g) {
      if (group(g).kind != GroupKind::kMap || group(g).members.empty()) continue;
      int reader = -1, stored = 0, work = 0;
      bool movable = true;
      for (const ValueId member : group(g).members) {
        movable &= !placed_[static_cast<size_t>(member)] && !is_copy(graph_[member]) &&
                   graph_[member].op != &ops::philox;
        ++work;
        bool outside = false;
        for (const ValueId user : readers(member)) {
          if (group_at(user) == g) continue;
          outside = true;
          movable &= reader < 0 || reader == group_at(user);
          movable &= graph_[user].op->kind != OpKind::kPack;
          reader = group_at(user);
        }
        stored += outside ? 1 : 0;
      }
      if (movable && stored == 1 && reader >= 0 && worth_inlining(g, reader, work))
        dissolve(g, reader);
    }
  }

  [[nodiscard]] bool worth_inlining(int g, int reader, int work) const {
    const Group& to = group(reader);
    if (to.kind == GroupKind::kContraction) {
      return work <= kCheapOperandOps && feeds_operand_only(g, reader);
    }
    if (to.kind == GroupKind::kScatter) return work <= kCheapOps;
    const std::int64_t visits = to.kind == GroupKind::kColumn || to.kind == GroupKind::kRow
                                    ? to.rows * to.cols
                                    : to.elements;
    return work <= kCheapOps && visits <= 2 * group(g).elements;
  }

  [[nodiscard]] bool feeds_operand_only(int g, int reader) const {
    for (const ValueId member : group(g).members) {
      for (const ValueId user : readers(member)) {
        if (group_at(user) == reader && graph_[user].op->kind != OpKind::kContraction) return false;
      }
    }
    return true;
  }

  void dissolve(int g, int reader) {
    const std::vector<ValueId> members = group(g).members;
    for (const ValueId member : members) {
      inline_[static_cast<size_t>(member)] = true;
      group_of_[static_cast<size_t>(member)] = -1;
    }
    group(g).members.clear();
    forget_readers();
    if (bindings_with(reader, kNoValue) <= options_.max_bindings) return;
    for (const ValueId member : members) {  // does not fit after all
      inline_[static_cast<size_t>(member)] = false;
      group_of_[static_cast<size_t>(member)] = g;
    }
    group(g).members = members;
    forget_readers();
  }

  // Peels the last members off groups that still bind too much (a bound above may have been too low
  // where readers were inlined later). A node alone always fits: at most four operands and a
  // result.
  void limit_bindings() {
    for (int g = 0; g < static_cast<int>(groups_.size()); ++g) {
      while (group(g).members.size() > 1 && bindings_with(g, kNoValue) > options_.max_bindings) {
        const ValueId last = group(g).members.back();
        group(g).members.pop_back();
        if (graph_[last].op->kind == OpKind::kReduce) {
          open_reduce(last, reduce_shape(graph_, graph_[last]));
        } else {
          open(last, GroupKind::kMap, numel(graph_[last].type.shape));
        }
      }
    }
  }

  // Groups in an order in which each comes after what it reads; ties by first member.
  Graph numbered() const {
    std::vector<std::set<int>> needs(groups_.size());
    std::vector<std::vector<int>> feeds(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      for (const ValueId member : groups_[g].members) {
        for (const Source& source : sources_of(member)) {
          for (const int from : groups_below(source.value)) {
            if (from != static_cast<int>(g) && needs[g].insert(from).second) {
              feeds[static_cast<size_t>(from)].push_back(static_cast<int>(g));
            }
          }
        }
      }
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
      out[id].group = group_at(id) < 0 ? -1 : number[static_cast<size_t>(group_at(id))];
    }
    return out;
  }

  const Graph& graph_;
  const FuseOptions& options_;
  std::vector<Group> groups_;
  std::vector<std::vector<bool>> ancestors_;  // [g][h]: does group g depend on group h?
  std::vector<int> group_of_;
  std::vector<bool> row_level_, inline_, placed_;
  std::map<ValueId, ValueId> updated_;  // value -> the leaf that it is the new value of
  mutable std::vector<std::vector<ValueId>> readers_, users_;
  mutable std::map<ValueId, std::vector<Source>> sources_;
};

}  // namespace

Graph fuse(const Graph& graph, const FuseOptions& options) {
  const Graph prepared = place_in_memory(limit_concat(graph, options.max_bindings - 1));
  return Fuser(prepared, options).run();
}

}  // namespace tensorgrad
