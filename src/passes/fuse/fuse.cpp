// SPDX-License-Identifier: MIT
// Greedy grouping in topological order. A node joins the latest group that computes one of its
// operands, if it fits there and no path leads from that group through another one to the node.
#include "passes/fuse/fuse.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "base/visits.h"
#include "ir/sources.h"
#include "ops/opaque.h"
#include "ops/pointwise.h"
#include "ops/registry.h"
#include "passes/fuse/fuse_bias_gradient.h"
#include "passes/fuse/fuse_row_operands.h"
#include "passes/fuse/in_place_updates.h"
#include "passes/fuse/limit_concat.h"
#include "passes/fuse/materialize.h"
#include "passes/fuse/partition.h"
#include "passes/fuse/sibling_fusion.h"
#include "passes/fuse/sink.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Recomputing this many operations per element costs less than storing and loading the result.
constexpr int kCheapOps = 6;
// The same for an operand of a contraction, whose elements are read more than once.
constexpr int kCheapOperandOps = 2;
// Maximum number of operations that an inlined producer may add to each element of its reader: its
// own and those inlined into it, times the number of reads. In a chain of values that each read the
// previous one twice, inlining doubles the work with every value.
constexpr int kMaxRepeatedOps = 32;
// The same for operands of attention and unpacked weights, which take much memory if stored.
constexpr int kMaxRepeatedOperandOps = 256;
// Maximum number of members of a launch. Drivers compile kernels in more than linear time.
constexpr std::size_t kMaxMembers = 1024;
constexpr std::int64_t kSmallDomain = 1 << 14;
// Size of a reader that justifies a separate launch for its operand: at least kLargeReader
// elements, and kLargerReader times those of the operand. See holds_up().
constexpr std::int64_t kLargeReader = 1 << 20, kLargerReader = 32;
// Limits for a product with a row epilogue. It has one workgroup per 16 rows, whatever its depth.
constexpr std::int64_t kMaxEpilogueRows = 1 << 13, kMaxEpilogueDepth = 1 << 10;

bool is_copy(const Node& node) { return node.op == &ops::detach; }

class Fuser {
 public:
  Fuser(const Graph& graph, const FuseOptions& options, std::vector<FuseNote>* notes)
      : graph_(graph),
        options_(options),
        notes_(notes),
        parts_(graph, options),
        work_(graph.nodes.size(), 0),
        updating_(in_place_updates(graph)) {
    for (ValueId id = 0; id < graph.size(); ++id)
      if (numel(graph[id].type.shape) >= kLargeReader) last_large_ = id;
  }

  Graph run() {
    mark_attended();  // even without fusion: mask and random numbers need bindings
    if (options_.enabled) mark_generated();
    if (options_.enabled) mark_masks();
    if (options_.enabled) mark_upcasts();
    if (options_.enabled) mark_unpacked();
    for (ValueId id = 0; id < graph_.size(); ++id) assign(id);
    if (options_.enabled) {
      fuse_bias_gradient(graph_, options_, parts_);
      inline_producers();
      fuse_siblings(graph_, options_, parts_);
      if (options_.row_epilogue_columns > 0) merge_row_epilogues();
      sink_cheap_values(graph_, options_, parts_);
      if (options_.row_operands) fuse_row_operands(graph_, options_, parts_);
    }
    limit_bindings();
    return parts_.numbered();
  }

 private:
  // Inlines values that are read only for the T x S operands of attention: the mask and the random
  // numbers of dropout. Attention computes them tile by tile. Storing them would take the memory
  // that is saved by not storing the attention weights.
  void mark_attended() {
    attended_.assign(graph_.nodes.size(), false);
    std::vector<bool> used(attended_.size(), false), elsewhere = used;
    for (const GraphOutput& output : graph_.outputs) elsewhere[index(output.value)] = true;
    for (const GraphUpdate& update : graph_.updates) elsewhere[index(update.value)] = true;
    for (ValueId id = graph_.size(); id-- > 0;) {
      const Node& node = graph_[id];
      const OpKind kind = node.op->kind;
      const bool passes =
          kind == OpKind::kPointwise || kind == OpKind::kView || kind == OpKind::kGenerator;
      attended_[index(id)] = passes && used[index(id)] && !elsewhere[index(id)] && !is_copy(node) &&
                             !parts_.placed(id) && !node.op->barrier;
      std::set<int> inside;
      if (kind == OpKind::kOpaque) {
        const auto kernel = opaque_kernel(graph_, node);
        for (const OpaqueInput& input : kernel->inputs) {
          if (input.computed_inside) inside.insert(input.operand);
        }
      }
      for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
        const bool here = attended_[index(id)] || inside.contains(i);
        (here ? used : elsewhere)[index(node.inputs[static_cast<std::size_t>(i)])] = true;
      }
    }
    for (ValueId id = 0; id < graph_.size(); ++id) {
      if (!attended_[index(id)] || graph_[id].op->kind != OpKind::kPointwise) continue;
      std::set<ValueId> memory;
      for (const Source& source : parts_.sources_of(id)) {
        if (parts_.reads_memory(source.value)) memory.insert(source.value);
      }
      // At most one stored source, no larger than half of the value, since few bindings are left.
      const bool small = std::all_of(memory.begin(), memory.end(), [&](ValueId from) {
        return 2 * numel(graph_[from].type.shape) <= numel(graph_[id].type.shape);
      });
      if (memory.empty() || (small && memory.size() <= 1)) inline_up_to(kMaxRepeatedOperandOps, id);
    }
  }

  // Opens a group for an op with a kernel of its own, whose results are stored as they are.
  void open_own(ValueId id) {
    const int g = parts_.open(id, GroupKind::kOpaque, numel(graph_[id].type.shape));
    parts_.group(g).closed = true;
    if (graph_[id].op->only_result >= 0) joinable_[graph_[id].inputs[0]].push_back(g);
  }

  // Fuses ops that return different results of the same kernel: attention and the logsumexp of its
  // rows.
  bool join_own(ValueId id) {
    const Node& node = graph_[id];
    if (node.op->only_result < 0) return false;
    const auto found = joinable_.find(node.inputs[0]);
    if (found == joinable_.end()) return false;
    for (const int g : found->second) {
      if (parts_.group(g).members.size() != 1) continue;
      const Node& other = graph_[parts_.group(g).members.front()];
      if (other.op->opaque != node.op->opaque || other.op == node.op ||
          other.inputs != node.inputs || other.attrs != node.attrs ||
          parts_.bindings_with(g, id) > options_.max_bindings)
        continue;
      parts_.join(id, g, false);
      return true;
    }
    return false;
  }

  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

  // Returns the number of operations per element of a value, including those inlined into it.
  [[nodiscard]] int operations_per_element(ValueId id) const {
    int total = 1;
    for (const ValueId input : graph_[id].inputs) {
      const ValueId from = through_views(graph_, input).value;
      if (parts_.inlined(from)) total += work_[index(from)];
    }
    return total;
  }

  // Inlines a value into its readers, unless that takes more than `most` operations.
  void inline_up_to(int most, ValueId id) {
    const int work = operations_per_element(id);
    if (work > most) return note_repeated(id, most);
    work_[index(id)] = work;
    parts_.set_inlined(id, true);
  }

  void note_repeated(ValueId id, int most) {
    note(id, "its readers may repeat at most " + std::to_string(most) + " operations");
  }

  void note(ValueId id, const std::string& bound) {
    if (notes_ == nullptr) return;
    const Node& node = graph_[id];
    const std::string op = node.origin.empty() ? node.op->name : node.origin;
    const auto [at, fresh] =
        note_numbers_.try_emplace({op, to_string(node.location), bound}, notes_->size());
    if (fresh) {
      notes_->push_back({op, node.location, bound});
    } else {
      ++(*notes_)[at->second].count;
    }
  }

  // Inlines pointwise nodes that depend only on constants, runtime scalars and generators.
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
        own = total <= kCheapOps && !parts_.placed(id) ? total : -1;
        if (!attended_[index(id)] && own >= 0) inline_up_to(kMaxRepeatedOps, id);
      }
    }
  }

  // Inlines masks computed from at most one stored value and generated ones. Reading that value
  // costs no more than reading the mask, and the mask need not be written.
  void mark_masks() {
    for (ValueId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (node.op->kind != OpKind::kPointwise || node.type.dtype != DType::kBool) continue;
      if (parts_.placed(id) || parts_.inlined(id) || is_copy(node)) continue;
      std::set<ValueId> memory;
      for (const Source& source : parts_.sources_of(id)) {
        if (parts_.reads_memory(source.value)) memory.insert(source.value);
      }
      if (memory.size() <= 1) inline_up_to(kMaxRepeatedOps, id);
    }
  }

  // Inlines casts from f16: each reader loads f16 and converts to f32.
  void mark_upcasts() {
    for (ValueId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (node.op != &ops::cast || graph_[node.inputs[0]].type.dtype != DType::kF16) continue;
      if (!parts_.placed(id)) inline_up_to(kMaxRepeatedOps, id);
    }
  }

  // Inlines quantized weights: values that only products read and that are extracted from leaves
  // whose u32 words hold several of them. Each product unpacks them itself. Storing them would
  // forfeit the memory that quantization saves.
  void mark_unpacked() {
    std::vector<bool> multiplied(graph_.nodes.size(), false), elsewhere = multiplied;
    for (const GraphOutput& output : graph_.outputs) elsewhere[index(output.value)] = true;
    for (const GraphUpdate& update : graph_.updates) elsewhere[index(update.value)] = true;
    for (ValueId id = graph_.size(); id-- > 0;) {
      const Node& node = graph_[id];
      const bool product = node.op->kind == OpKind::kContraction;
      const bool passes = node.op->kind == OpKind::kPointwise || node.op->kind == OpKind::kView;
      const bool here = product || (passes && multiplied[index(id)] && !elsewhere[index(id)] &&
                                    !is_copy(node) && !parts_.placed(id) && !node.op->barrier);
      for (const ValueId input : node.inputs) (here ? multiplied : elsewhere)[index(input)] = true;
      multiplied[index(id)] = here && !product;
    }
    for (ValueId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (!multiplied[index(id)] || node.op->kind != OpKind::kPointwise) continue;
      bool leaves = true, words = false;
      std::int64_t elements = 0;
      std::set<ValueId> memory;
      for (const Source& source : parts_.sources_of(id)) {
        if (parts_.reads_memory(source.value)) memory.insert(source.value);
      }
      for (const ValueId from : memory) {
        const Node& leaf = graph_[from];
        leaves &= leaf.op->kind == OpKind::kLeaf;
        words |= leaf.type.dtype == DType::kU32;
        elements += numel(leaf.type.shape);
      }
      if (leaves && words && 2 * elements <= numel(node.type.shape))
        inline_up_to(kMaxRepeatedOperandOps, id);
    }
  }

  void assign(ValueId id) {
    const Node& node = graph_[id];
    if (parts_.inlined(id)) return;
    switch (node.op->kind) {
      case OpKind::kLeaf:
      case OpKind::kGenerator:
      case OpKind::kView:
      case OpKind::kPack: return;
      case OpKind::kContraction:
        parts_.open(id, GroupKind::kContraction, numel(node.type.shape));
        return;
      case OpKind::kScatter: parts_.open(id, GroupKind::kScatter, numel(node.type.shape)); return;
      case OpKind::kScan: parts_.open(id, GroupKind::kScan, numel(node.type.shape)); return;
      case OpKind::kSort: {
        const int g = parts_.open(id, GroupKind::kSort, numel(node.type.shape));
        const auto axis = static_cast<size_t>(node.attrs.integer("axis"));
        parts_.group(g).closed = node.type.shape[axis] > kMaxSortedInside;
        return;
      }
      case OpKind::kOpaque:
        if (!join_own(id)) open_own(id);
        return;
      case OpKind::kReduce: assign_reduce(id); return;
      case OpKind::kIndexUpdate: assign_index_update(id); return;
      default: assign_pointwise(id);
    }
  }

  void assign_pointwise(ValueId id) {
    const std::vector<Source> sources = parts_.sources_of(id);
    if (options_.enabled) {
      merge_maps(parts_.candidates(sources));
      for (const int g : parts_.candidates(sources)) {
        for (const bool row_level : {false, true}) {
          if (!fits(id, sources, g, row_level)) continue;
          parts_.join(id, g, row_level);
          return;
        }
        if (parts_.group(g).members.size() >= kMaxMembers)
          note(id, "a launch computes at most " + std::to_string(kMaxMembers) + " nodes");
      }
    }
    parts_.open(id, GroupKind::kMap, numel(graph_[id].type.shape));
  }

  // Joins the map that computes the new elements, or opens a group. No other node joins afterwards,
  // as the launch stores only a part of the result.
  void assign_index_update(ValueId id) {
    const std::vector<Source> sources = parts_.sources_of(id);
    const std::int64_t elements = numel(graph_[graph_[id].inputs[1]].type.shape);
    const std::vector<int> found =
        options_.enabled ? parts_.candidates(sources) : std::vector<int>();
    const auto map = std::find_if(found.begin(), found.end(), [&](int g) {
      return parts_.group(g).kind == GroupKind::kMap && parts_.group(g).elements == elements &&
             updates_from(id, sources, g);
    });
    if (map == found.end()) {
      const int g = parts_.open(id, GroupKind::kIndexUpdate, elements);
      parts_.group(g).closed = true;
      return;
    }
    parts_.join(id, *map, false);
    parts_.group(*map).kind = GroupKind::kIndexUpdate;
    parts_.group(*map).closed = true;
  }

  // True if the value is computed in g, or inlined and reads a value that is.
  [[nodiscard]] bool computed_in(ValueId id, int g) const {
    if (!parts_.inlined(id)) return parts_.group_of(id) == g;
    const std::vector<Source>& sources = parts_.sources_of(id);
    return std::any_of(sources.begin(), sources.end(),
                       [&](const Source& source) { return parts_.group_of(source.value) == g; });
  }

  // True if an index_update may join g. The tensor that it updates must not be computed there.
  [[nodiscard]] bool updates_from(ValueId id, const std::vector<Source>& sources, int g) const {
    const Group& to = parts_.group(g);
    if (to.closed || to.members.size() >= kMaxMembers) return false;
    if (computed_in(through_views(graph_, graph_[id].inputs[0]).value, g)) return false;
    visit(static_cast<std::int64_t>(sources.size()));
    const bool readable = std::all_of(sources.begin(), sources.end(), [&](const Source& source) {
      return parts_.group_of(source.value) != g || parts_.readable(source, to, false);
    });
    return readable && !parts_.leads_back(sources, g) && !holds_up(id, sources, g) &&
           parts_.bindings_with(g, id) <= options_.max_bindings;
  }

  // Merges maps into other groups over the same elements, if the node reads both and neither
  // depends on the other.
  void merge_maps(const std::vector<int>& found) {
    for (const int g : found) {
      if (parts_.group(g).kind == GroupKind::kColumn || parts_.group(g).closed) continue;
      for (const int h : found) {
        if (h == g || parts_.group(h).kind != GroupKind::kMap ||
            parts_.group(h).elements != parts_.group(g).elements)
          continue;
        if (parts_.group(h).members.empty() || parts_.group(g).members.empty()) continue;
        if (parts_.depends(g, h) || parts_.depends(h, g)) continue;
        std::vector<ValueId> together = parts_.group(g).members;
        together.insert(together.end(), parts_.group(h).members.begin(),
                        parts_.group(h).members.end());
        if (together.size() <= kMaxMembers &&
            parts_.count_bindings(together, g, together.back()) <= options_.max_bindings)
          parts_.merge(g, h);
      }
    }
  }

  // True if `id` may join g at the given level.
  [[nodiscard]] bool fits(ValueId id, const std::vector<Source>& sources, int g,
                          bool row_level) const {
    const Group& to = parts_.group(g);
    if (to.closed || to.members.size() >= kMaxMembers) return false;
    const std::int64_t size = numel(graph_[id].type.shape);
    const bool has_rows = to.kind == GroupKind::kRow || to.kind == GroupKind::kColumn;
    if (row_level && (!has_rows || size != to.rows)) return false;
    if (!row_level && (to.kind == GroupKind::kColumn || size != to.elements)) return false;
    if (!row_level && updates_after_row(id, sources, g)) return false;
    const Node& node = graph_[id];
    visit(static_cast<std::int64_t>(sources.size()));
    for (const Source& source : sources) {
      if (parts_.group_of(source.value) != g) continue;
      // The index maps of a concat's operands are over the operand, not over the result.
      if (node.op->kind == OpKind::kConcat || !parts_.readable(source, to, row_level)) return false;
    }
    if (node.op->kind == OpKind::kGather &&
        parts_.group_of(through_views(graph_, node.inputs[0]).value) == g) {
      return false;  // its data must be stored
    }
    return !parts_.leads_back(sources, g) && !holds_up(id, sources, g) &&
           parts_.bindings_with(g, id) <= options_.max_bindings;
  }

  // True if `id` is an updated value that depends on a reduction in the same single-row group.
  // There it could not overwrite the old value, which is read again after the reduction. In a map
  // of its own it can. So the norm of all gradients is one launch; clipping and the optimizer are
  // the next, in place.
  [[nodiscard]] bool updates_after_row(ValueId id, const std::vector<Source>& sources,
                                       int g) const {
    const Group& to = parts_.group(g);
    if (!updating_[index(id)] || to.kind != GroupKind::kRow || to.rows != 1) return false;
    return std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
      return parts_.group_of(source.value) == g && parts_.row_level(source.value);
    });
  }

  // True if g, with `id` in it, would depend on other groups that a much larger later reader of g
  // could join otherwise. Example: a loss gathers logits by targets that are sampled on the device.
  // The gradient of all logits also reads the targets, but not the gathered logits.
  [[nodiscard]] bool holds_up(ValueId id, const std::vector<Source>& sources, int g) const {
    if (last_large_ <= id) return false;
    const Group& to = parts_.group(g);
    visit(static_cast<std::int64_t>(to.members.size()));
    const bool waits = std::any_of(sources.begin(), sources.end(), [&](const Source& source) {
      const int h = parts_.group_of(source.value);
      return h >= 0 && h != g && !parts_.depends(g, h);
    });
    const std::int64_t large = std::max(kLargeReader, kLargerReader * to.elements);
    return waits && std::any_of(to.members.begin(), to.members.end(), [&](ValueId member) {
             const std::vector<ValueId>& readers = parts_.readers(member);
             return std::any_of(readers.begin(), readers.end(), [&](ValueId reader) {
               return reader > id && numel(graph_[reader].type.shape) >= large;
             });
           });
  }

  void assign_reduce(ValueId id) {
    const ReduceShape shape = reduce_shape(graph_, graph_[id]);
    const std::vector<Source> sources = parts_.sources_of(id);
    if (options_.enabled && shape.trailing && sources.size() == 1) {
      const int g = parts_.group_of(sources[0].value);
      if (g >= 0 && takes_reduce(parts_.group(g), shape, sources[0]) &&
          parts_.bindings_with(g, id) <= options_.max_bindings) {
        parts_.group(g).kind = GroupKind::kRow;
        parts_.group(g).rows = shape.rows;
        parts_.group(g).cols = shape.cols;
        parts_.join(id, g, true);
        return;
      }
    }
    open_reduce(id, shape);
  }

  void open_reduce(ValueId id, const ReduceShape& shape) {
    const GroupKind kind = shape.trailing ? GroupKind::kRow : GroupKind::kColumn;
    const int g = parts_.open(id, kind, shape.trailing ? shape.rows * shape.cols : shape.rows);
    parts_.group(g).rows = shape.rows;
    parts_.group(g).cols = shape.cols;
  }

  [[nodiscard]] bool takes_reduce(const Group& to, const ReduceShape& shape,
                                  const Source& source) const {
    if (source.barrier || parts_.row_level(source.value) || !source.map.is_identity()) return false;
    if (to.elements != shape.rows * shape.cols) return false;
    if (to.kind == GroupKind::kRow) return to.rows == shape.rows;
    return to.kind == GroupKind::kMap && (shape.rows >= kFewRows || to.elements <= kSmallDomain);
  }

  // Inlines cheap maps with a single reader group, if that is a contraction, a scatter, or a launch
  // that reads the elements in another order.
  void inline_producers() {
    for (int g = 0; g < parts_.size(); ++g) {
      visit(1 + static_cast<std::int64_t>(parts_.group(g).members.size()));
      if (parts_.group(g).kind != GroupKind::kMap || parts_.group(g).members.empty()) continue;
      int reader = -1, stored = 0, work = 0, repeated = 0;
      bool movable = true, joined = options_.concat_operands;  // joined: only concats read it
      for (const ValueId member : parts_.group(g).members) {
        movable &=
            !parts_.placed(member) && !is_copy(graph_[member]) && graph_[member].op != &ops::philox;
        ++work;
        repeated += operations_per_element(member);
        bool outside = false;
        for (const ValueId user : parts_.readers(member)) {
          if (parts_.group_of(user) == g) continue;
          outside = true;
          movable &= reader < 0 || reader == parts_.group_of(user);
          movable &= graph_[user].op->kind != OpKind::kPack;
          joined &= graph_[user].op->kind == OpKind::kConcat;
          reader = parts_.group_of(user);
        }
        stored += outside ? 1 : 0;
      }
      if (reader < 0 || !movable) continue;
      // A scan may read two values of the same map: gates and gated inputs. A concat computes all
      // operands at each element, which is cheaper on a GPU than a launch of their own.
      const bool one = stored == 1 || joined || parts_.group(reader).kind == GroupKind::kScan;
      if (!one || !worth_inlining(g, reader, work)) continue;
      if (repeated * readings(g) <= kMaxRepeatedOps) {
        dissolve(g, reader);
      } else {
        note_repeated(parts_.group(g).members.back(), kMaxRepeatedOps);
      }
    }
  }

  // Returns how often an element of another group reads an element of g.
  [[nodiscard]] int readings(int g) const {
    std::int64_t most = 0;
    visit(static_cast<std::int64_t>(parts_.group(g).members.size()));
    for (const ValueId member : parts_.group(g).members) {
      for (const ValueId user : parts_.readers(member)) {
        if (parts_.group_of(user) == g) continue;
        const std::vector<Source>& sources = parts_.sources_of(user);
        most = std::max<std::int64_t>(
            most, std::count_if(sources.begin(), sources.end(),
                                [&](const Source& s) { return s.value == member; }));
      }
    }
    return static_cast<int>(most);
  }

  [[nodiscard]] bool worth_inlining(int g, int reader, int work) const {
    const Group& to = parts_.group(reader);
    if (to.kind == GroupKind::kContraction) {
      return work <= kCheapOperandOps && feeds_operand_only(g, reader) &&
             !read_repeatedly(g, reader);
    }
    const bool update = to.kind == GroupKind::kIndexUpdate;
    if (to.closed && !update) return false;  // it reads each element many times
    if (to.kind == GroupKind::kScatter) return work <= kCheapOps;
    const std::int64_t visits = to.kind == GroupKind::kColumn || to.kind == GroupKind::kRow
                                    ? to.rows * to.cols
                                    : to.elements;
    return work <= kCheapOps && visits <= 2 * parts_.group(g).elements;
  }

  [[nodiscard]] bool feeds_operand_only(int g, int reader) const {
    for (const ValueId member : parts_.group(g).members) {
      for (const ValueId user : parts_.readers(member)) {
        if (parts_.group_of(user) == reader && graph_[user].op->kind != OpKind::kContraction)
          return false;
      }
    }
    return true;
  }

  // True if an operand of the contraction has more than twice as many elements as g (overlapping
  // windows, a broadcast). Inlined, each would be computed that often.
  [[nodiscard]] bool read_repeatedly(int g, int reader) const {
    for (const ValueId member : parts_.group(reader).members) {
      if (graph_[member].op->kind != OpKind::kContraction) continue;
      for (const ValueId operand : graph_[member].inputs) {
        if (parts_.group_of(through_views(graph_, operand).value) != g) continue;
        if (numel(graph_[operand].type.shape) > 2 * parts_.group(g).elements) return true;
      }
    }
    return false;
  }

  // Merges row groups into the epilogue of the small product that they read, which has the same
  // rows and columns. This saves a launch, and values that only these rows read are not stored.
  void merge_row_epilogues() {
    for (int r = 0; r < parts_.size(); ++r) {
      const Group& rows = parts_.group(r);
      if (rows.kind != GroupKind::kRow || rows.members.empty() || rows.closed) continue;
      if (rows.cols < 2 || rows.cols > options_.row_epilogue_columns ||
          rows.rows > kMaxEpilogueRows)
        continue;
      std::set<int, std::greater<>> makers;
      for (const ValueId member : rows.members) {
        for (const int g : parts_.candidates(parts_.sources_of(member))) makers.insert(g);
      }
      for (const int g : makers) {
        if (g == r || !takes_rows(g, r)) continue;
        parts_.merge(g, r);
        break;
      }
    }
  }

  [[nodiscard]] bool takes_rows(int g, int r) const {
    const Group& to = parts_.group(g);
    const Group& rows = parts_.group(r);
    if (to.kind != GroupKind::kContraction || to.members.empty()) return false;
    for (const ValueId member : to.members) {
      const Node& node = graph_[member];
      if (node.op->kind == OpKind::kReduce && sums_operand(node, to)) return false;
      if (node.op->kind != OpKind::kContraction) continue;
      const Shape& shape = node.type.shape;
      if (shape.size() != 2 || shape[0] != rows.rows || shape[1] != rows.cols) return false;
      if (graph_[node.inputs[0]].type.shape[1] > kMaxEpilogueDepth) return false;
    }
    std::set<ValueId> made(to.members.begin(), to.members.end());  // depend on the product
    for (const ValueId member : rows.members) {
      const Node& node = graph_[member];
      if (node.op->kind == OpKind::kConcat || node.op->kind == OpKind::kGather) return false;
      const std::vector<Source>& sources = parts_.sources_of(member);
      if (std::any_of(sources.begin(), sources.end(),
                      [&](const Source& source) { return made.contains(source.value); })) {
        made.insert(member);
      } else if (node.op->kind == OpKind::kReduce) {
        return false;  // of other values: a product supports that only as the sum of an operand
      }
      for (const Source& source : sources) {
        const int from = parts_.group_of(source.value);
        if (graph_[source.value].op->kind == OpKind::kPack) return false;
        const bool by_row = parts_.row_level(member) && node.op->kind != OpKind::kReduce;
        if (from == g && !parts_.readable(source, rows, by_row)) return false;
        if (from >= 0 && from != g && from != r && parts_.depends(from, g)) return false;
      }
    }
    return parts_.bindings_together(g, r) <= options_.max_bindings;
  }

  // True if `reduce`, a member of a contraction group, is the sum of an operand over k. Otherwise
  // it is a reduction over the rows of the result.
  [[nodiscard]] bool sums_operand(const Node& reduce, const Group& group) const {
    const ValueId summed = through_views(graph_, reduce.inputs[0]).value;
    return std::find(group.members.begin(), group.members.end(), summed) == group.members.end();
  }

  void dissolve(int g, int reader) {
    const std::vector<ValueId> members = parts_.dissolve(g);
    for (const ValueId member : members) work_[index(member)] = operations_per_element(member);
    if (parts_.bindings_with(reader, kNoValue) > options_.max_bindings) parts_.restore(g, members);
  }

  // Removes the last members of groups that still bind too many buffers. Earlier counts can be too
  // low for readers into which values were inlined later. A single node always fits: at most four
  // operands and a result.
  void limit_bindings() {
    for (int g = 0; g < parts_.size(); ++g) {
      while (parts_.group(g).members.size() > 1 &&
             parts_.bindings_with(g, kNoValue) > options_.max_bindings) {
        const ValueId last = parts_.group(g).members.back();
        parts_.group(g).members.pop_back();
        if (graph_[last].op->kind == OpKind::kOpaque) {
          open_own(last);
        } else if (graph_[last].op->kind == OpKind::kIndexUpdate) {
          parts_.group(g).kind = GroupKind::kMap;
          parts_.group(g).closed = false;
          const int own = parts_.open(last, GroupKind::kIndexUpdate, parts_.group(g).elements);
          parts_.group(own).closed = true;
        } else if (graph_[last].op->kind == OpKind::kReduce) {
          open_reduce(last, reduce_shape(graph_, graph_[last]));
        } else {
          parts_.open(last, GroupKind::kMap, numel(graph_[last].type.shape));
        }
      }
    }
  }

  const Graph& graph_;
  const FuseOptions& options_;
  std::vector<FuseNote>* notes_;
  Partition parts_;
  std::map<ValueId, std::vector<int>> joinable_;  // of ops with one result, by first operand
  std::vector<int> work_;                         // per inlined value, see operations_per_element()
  std::vector<bool> attended_;                    // used only for the T x S operands of attention
  std::vector<bool> updating_;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> note_numbers_;
  ValueId last_large_ = kNoValue;  // the last node that may be a large reader
};

}  // namespace

Graph fuse(const Graph& graph, const FuseOptions& options, std::vector<FuseNote>* notes) {
  const Graph prepared = materialize(limit_concat(graph, options.max_bindings - 1));
  return Fuser(prepared, options, notes).run();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
