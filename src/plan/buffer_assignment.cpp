// SPDX-License-Identifier: MIT
// Assigns fixed places first (leaves, arenas, outputs, in-place updates), then slots by liveness.
#include "plan/buffer_assignment.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include "base/check.h"
#include "base/visits.h"
#include "ir/sources.h"
#include "ops/opaque.h"
#include "ops/registry.h"
#include "ops/structured.h"
#include "plan/bucket_placement.h"
#include "plan/fused_sequences.h"
#include "plan/schedule.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// A free slot of more than this many times the required bytes is kept for a larger value.
constexpr std::int64_t kMaxWaste = 16;
constexpr std::int64_t kParamBytes = sizeof(float);

std::int64_t round_up(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

class Placer {
 public:
  Placer(const Graph& graph, const PlanOptions& options) : graph_(graph), options_(options) {}

  Placement run() {
    result_.stores_f16 = options_.stores_f16;
    collect_groups();
    collect_readers();
    place_leaves();
    place_packs();
    place_outputs();
    place_updates();
    order_groups();
    place_buckets();
    place_slots();
    drop_unread_groups();
    find_copied();
    check_budget();
    check_buffers();
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::int64_t bytes_of(const Type& type) const {
    return numel(type.shape) * static_cast<std::int64_t>(element_bytes(result_.stored(type.dtype)));
  }

  // Drops launches that store nothing. Without dce, there are values that nothing reads.
  void drop_unread_groups() {
    std::vector<int> kept;
    bool first = false;  // the first of a concurrent group or sequence was dropped
    auto step = result_.host_steps.begin();
    for (std::size_t p = 0; p <= result_.order.size(); ++p) {
      for (; step != result_.host_steps.end() && step->before == p; ++step)
        step->before = kept.size();
      if (p == result_.order.size()) break;
      const int g = result_.order[p];
      const std::vector<ValueId>& members = result_.members[static_cast<size_t>(g)];
      const bool stores = std::any_of(members.begin(), members.end(),
                                      [&](ValueId id) { return result_.places.contains(id); });
      first = runs_with_last(g) && first;
      if (!stores) {
        first |= !runs_with_last(g);
      } else {
        if (first) {
          result_.concurrent.erase(g);
          result_.fused_sequence.erase(g);
        }
        first = false;
        kept.push_back(g);
      }
    }
    result_.order = std::move(kept);
  }

  void collect_groups() {
    for (ValueId id = 0; id < graph_.size(); ++id) {
      const int g = graph_[id].group;
      if (g < 0) continue;
      if (static_cast<int>(result_.members.size()) <= g)
        result_.members.resize(static_cast<size_t>(g) + 1);
      result_.members[static_cast<size_t>(g)].push_back(id);
    }
    reads_.resize(result_.members.size());
    read_elsewhere_.resize(graph_.nodes.size());
  }

  // Sets reads_[g]: the values outside g that it reads from memory, with their index maps.
  void collect_readers() {
    std::vector<int> seen(graph_.nodes.size(), -1);
    std::vector<ValueId> open;  // members, and values inlined into them
    for (int g = 0; g < static_cast<int>(result_.members.size()); ++g) {
      const std::vector<ValueId>& members = result_.members[static_cast<size_t>(g)];
      open.assign(members.rbegin(), members.rend());
      while (!open.empty()) {
        const ValueId id = open.back();
        open.pop_back();
        for (const ValueId input : graph_[id].inputs) {
          Source source = through_views(graph_, input);
          const Node& node = graph_[source.value];
          if (node.group == g) continue;
          int& last = seen[static_cast<size_t>(source.value)];
          if (!computed_by_readers(node)) {
            read_elsewhere_[static_cast<size_t>(source.value)] = true;
            reads_[static_cast<size_t>(g)].push_back(std::move(source));
          } else if (last != g) {
            last = g;
            open.push_back(source.value);
          }
        }
      }
    }
    // Copies into leaves read updates, and exchanges read the parts of a pack.
    const auto mark = [&](ValueId id) {
      read_elsewhere_[static_cast<size_t>(through_views(graph_, id).value)] = true;
    };
    for (const GraphUpdate& update : graph_.updates) mark(update.value);
    for (const Node& node : graph_.nodes) {
      if (node.op->kind == OpKind::kPack)
        std::for_each(node.inputs.begin(), node.inputs.end(), mark);
    }
  }

  [[nodiscard]] static bool computed_by_readers(const Node& node) {
    const OpKind kind = node.op->kind;
    return node.group < 0 &&
           (kind == OpKind::kPointwise || kind == OpKind::kGather || kind == OpKind::kConcat);
  }

  // Returns the index_update of a group, or kNoValue.
  [[nodiscard]] ValueId index_update_of(int g) const {
    const std::vector<ValueId>& members = result_.members[static_cast<size_t>(g)];
    if (members.empty()) return kNoValue;
    return graph_[members.back()].op->kind == OpKind::kIndexUpdate ? members.back() : kNoValue;
  }

  // True if an index_update has the place of its operand, and so writes only the new elements.
  [[nodiscard]] bool updates_in_place(ValueId id) const {
    const auto to = result_.places.find(id);
    return to != result_.places.end() && updates_whole(id, to->second);
  }

  // True if the operand of an index_update has the place `to`, without views.
  [[nodiscard]] bool updates_whole(ValueId id, const BufferRange& to) const {
    const Source x = through_views(graph_, graph_[id].inputs[0]);
    const auto from = result_.places.find(x.value);
    return from != result_.places.end() && from->second.buffer == to.buffer &&
           from->second.offset == to.offset && x.map.is_identity() &&
           numel(graph_[x.value].type.shape) == numel(graph_[id].type.shape);
  }

  // The launch of an index_update that is not in place follows a copy of its operand.
  void find_copied() {
    for (const int g : result_.order) {
      const ValueId id = index_update_of(g);
      if (id == kNoValue || updates_in_place(id) || !result_.places.contains(id)) continue;
      result_.copied[g] = {graph_[id].inputs[0], result_.places.at(id)};
    }
  }

  int add_buffer(const std::string& name, BufferKind kind, std::int64_t bytes) {
    result_.buffers.push_back(
        {buffer_name(kind, name), kind, round_up(std::max<std::int64_t>(bytes, 4)), {}});
    return static_cast<int>(result_.buffers.size()) - 1;
  }

  int params_buffer() {
    if (params_ < 0) {
      params_ = add_buffer("", BufferKind::kParams, options_.params_elements * kParamBytes);
    }
    return params_;
  }

  void place_leaves() {
    for (ValueId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (node.op->kind != OpKind::kLeaf || node.op == &ops::constant || node.op == &ops::scalar)
        continue;
      if (is_in_bucket(node)) continue;  // place_buckets()
      result_.places[id] = place_leaf(node);
    }
  }

  BufferRange place_leaf(const Node& node) {
    if (node.op == &ops::arena) return {params_buffer(), node.attrs.integer("offset")};
    if (node.op == &ops::parameter) {
      const std::int64_t end = options_.buckets.empty() ? 0 : options_.buckets.back().end();
      return {params_buffer(), node.attrs.integer("offset") - (end - end / options_.shards)};
    }
    if (node.op == &ops::literal) {
      const int buffer = add_buffer(std::to_string(result_.buffers.size()), BufferKind::kConstant,
                                    bytes_of(node.type));
      for (const std::int64_t bits : node.attrs.list("bits")) {
        result_.buffers.back().data.push_back(static_cast<std::uint32_t>(bits));
      }
      return {buffer, 0};
    }
    const BufferKind kind = node.op == &ops::state  ? BufferKind::kState
                            : node.op == &ops::data ? BufferKind::kData
                                                    : BufferKind::kInput;
    const std::string& name = node.attrs.text("name");
    const int buffer = add_buffer(name, kind, bytes_of(node.type));
    if (kind != BufferKind::kState) {
      result_.inputs.push_back({name, node.type.dtype, node.type.shape, buffer, 0});
    }
    return {buffer, 0};
  }

  void place_packs() {
    int count = 0;
    for (ValueId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_[id];
      if (node.op->kind != OpKind::kPack) continue;
      const std::string name = count++ == 0 ? "" : std::to_string(count);
      const int buffer = add_buffer(name, BufferKind::kGrads, bytes_of(node.type));
      result_.places[id] = {buffer, 0};
      if (node.op == &ops::reduce_scatter) continue;  // place_buckets()
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId part = through_views(graph_, node.inputs[i]).value;
        CHECK(!result_.places.contains(part), "a part of a pack has a place already");
        result_.places[part] = {buffer, node.attrs.list("offsets")[i]};
      }
    }
  }

  void place_outputs() {
    for (const GraphOutput& output : graph_.outputs) {
      const Type& type = graph_[output.value].type;
      const auto ring = options_.rings.find(output.name);
      const std::int64_t count = ring == options_.rings.end() ? 1 : ring->second;
      const int buffer = add_buffer(output.name, BufferKind::kOutput, bytes_of(type) * count);
      const ValueId value = through_views(graph_, output.value).value;
      CHECK(!result_.places.contains(value), "output " + output.name + " has a place already");
      result_.places[value] = {buffer, 0};
      if (ring != options_.rings.end()) result_.ringed.insert(value);
      result_.outputs.push_back({output.name, type.dtype, type.shape, buffer, 0});
    }
  }

  // Updates a leaf in place if no launch would read the new value instead of the old one.
  void place_updates() {
    find_readers_of_leaves();
    for (const GraphUpdate& update : graph_.updates) {
      const ValueId value = through_views(graph_, update.value).value;
      const BufferRange leaf = result_.places.at(update.leaf);
      const int writer = graph_[value].group;
      CHECK(writer >= 0, "an update's value is not computed by a launch");
      if (!result_.places.contains(value) && may_write(writer, value, leaf)) {
        result_.places[value] = leaf;
        in_place_.push_back({writer, leaf});
      } else {
        result_.copies.push_back({value, leaf});
      }
    }
  }

  [[nodiscard]] bool lies_in(ValueId value, const BufferRange& place) const {
    const auto at = result_.places.find(value);
    return at != result_.places.end() && at->second.buffer == place.buffer;
  }

  // True if the launch reads the value of the leaf from before the step. (A value written in place
  // is a different one.) Sets `elementwise` if each element is read only to compute the same
  // element.
  [[nodiscard]] bool reads_buffer(int g, const BufferRange& place, bool& elementwise) const {
    bool reads = false;
    visit(static_cast<std::int64_t>(reads_[static_cast<size_t>(g)].size()));
    elementwise = true;
    for (const Source& source : reads_[static_cast<size_t>(g)]) {
      if (graph_[source.value].op->kind != OpKind::kLeaf) continue;
      if (!lies_in(source.value, place)) continue;
      reads = true;
      elementwise &=
          source.map.is_identity() && result_.places.at(source.value).offset == place.offset;
    }
    return reads;
  }

  // True if the launch visits the elements of `value` once. This holds for a map, and for a row
  // launch if no element depends on a reduction. Nothing may be gathered from `place`.
  [[nodiscard]] bool goes_once(int g, ValueId value, const BufferRange& place) const {
    const std::int64_t elements = numel(graph_[value].type.shape);
    std::set<ValueId> of_sums;
    for (const ValueId id : result_.members[static_cast<size_t>(g)]) {
      const Node& node = graph_[id];
      const bool sum = node.op->kind == OpKind::kReduce;
      // A gather reads other elements than its own.
      const bool gathered = node.op->kind == OpKind::kGather &&
                            !lies_in(through_views(graph_, node.inputs[0]).value, place);
      if (!sum && !gathered && node.op->kind != OpKind::kPointwise) return false;
      const bool waits = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
        return of_sums.contains(through_views(graph_, input).value);
      });
      const Node& element = sum ? graph_[node.inputs[0]] : node;
      if (waits && numel(element.type.shape) == elements) return false;
      if (sum && numel(element.type.shape) != elements) return false;
      if (sum || waits) of_sums.insert(id);
    }
    return true;
  }

  [[nodiscard]] bool may_write(int writer, ValueId value, const BufferRange& place) const {
    std::set<int> others;
    for (const int g : readers_of_buffer(place)) {
      bool elementwise = true;
      if (!reads_buffer(g, place, elementwise)) continue;
      if (g != writer) {
        others.insert(g);
      } else if (index_update_of(g) == value) {
        // Nothing but the operand itself may be read there.
        const std::vector<Source>& reads = reads_[static_cast<size_t>(g)];
        const auto count = std::count_if(reads.begin(), reads.end(), [&](const Source& source) {
          return lies_in(source.value, place);
        });
        if (count > (updates_whole(value, place) ? 1 : 0)) return false;
      } else if (!elementwise || !goes_once(g, value, place)) {
        return false;
      }
    }
    return !any_depends(others, writer);  // it would need both the new value and the old one
  }

  // Returns the groups that compute what g reads.
  [[nodiscard]] std::set<int> direct(int g) const {
    std::set<int> found;
    for (const Source& source : reads_[static_cast<size_t>(g)]) add_makers(source.value, found);
    found.erase(g);
    return found;
  }

  void add_makers(ValueId id, std::set<int>& found) const {
    const Node& node = graph_[id];
    if (node.group >= 0) found.insert(node.group);
    if (node.op->kind != OpKind::kPack) return;
    for (const ValueId input : node.inputs) add_makers(through_views(graph_, input).value, found);
  }

  // True if one of the groups depends on `on`, directly or indirectly. Groups are numbered after
  // those they read.
  [[nodiscard]] bool any_depends(std::set<int> groups, int on) const {
    while (!groups.empty() && *groups.rbegin() > on) {
      const int g = *groups.rbegin();
      groups.erase(g);
      visit(1 + static_cast<std::int64_t>(reads_[static_cast<size_t>(g)].size()));
      for (const int from : direct(g)) {
        CHECK(from < g, "groups are not in order");
        if (from == on) return true;
        if (from > on) groups.insert(from);
      }
    }
    return false;
  }

  // Collects the groups that read the buffer of each leaf.
  void find_readers_of_leaves() {
    for (int g = 0; g < static_cast<int>(result_.members.size()); ++g) {
      for (const Source& source : reads_[static_cast<size_t>(g)]) {
        const auto at = result_.places.find(source.value);
        if (graph_[source.value].op->kind != OpKind::kLeaf || at == result_.places.end()) continue;
        readers_of_buffer_[at->second.buffer].insert(g);
      }
    }
  }

  [[nodiscard]] const std::set<int>& readers_of_buffer(const BufferRange& place) const {
    static const std::set<int> kNone;
    const auto at = readers_of_buffer_.find(place.buffer);
    return at == readers_of_buffer_.end() ? kNone : at->second;
  }

  // Sorts topologically, by number. Readers of a value that is updated in place precede its writer.
  void order_groups() {
    if (sort_groups()) return;
    // Updates that are possible in place separately may not be so together. In that case all are
    // copied at the end.
    for (const GraphUpdate& update : graph_.updates) {
      const ValueId value = through_views(graph_, update.value).value;
      const BufferRange leaf = result_.places.at(update.leaf);
      const auto at = result_.places.find(value);
      if (at == result_.places.end() || at->second.buffer != leaf.buffer) continue;
      result_.places.erase(at);
      result_.copies.push_back({value, leaf});
    }
    in_place_.clear();
    CHECK(sort_groups(), "groups depend on one another in a circle");
  }

  bool sort_groups() {
    const std::size_t count = result_.members.size();
    std::vector<GroupWork> groups;
    for (int g = 0; g < static_cast<int>(count); ++g) groups.push_back(work_of(g));
    for (const auto& [writer, place] : in_place_) {
      for (const int g : readers_of_buffer(place)) {
        bool elementwise = true;
        if (g != writer && reads_buffer(g, place, elementwise))
          groups[static_cast<size_t>(writer)].before.insert(g);
      }
    }
    result_.order.clear();
    result_.concurrent.clear();
    result_.blocks.clear();
    result_.fused_sequence.clear();
    const std::vector<FusedSequence> sequences = sequences_of(groups);
    const auto stages =
        order_schedule(joined_work(groups, sequences), options_.join_bindings, options_.gpu);
    for (const std::vector<int>& stage : stages) {
      for (const int c : stage) {
        const FusedSequence& sequence = sequences[static_cast<size_t>(c)];
        if (c != stage.front()) result_.concurrent.insert(sequence.groups.front());
        result_.order.insert(result_.order.end(), sequence.groups.begin(), sequence.groups.end());
        result_.fused_sequence.insert(sequence.groups.begin() + 1, sequence.groups.end());
        for (const int g : sequence.groups) {
          if (sequence.blocks > 0) result_.blocks[g] = sequence.blocks;
        }
      }
    }
    return !stages.empty() || count == 0;
  }

  [[nodiscard]] std::vector<FusedSequence> sequences_of(
      const std::vector<GroupWork>& groups) const {
    if (options_.fused_sequences) {
      std::set<int> writers;
      for (const auto& [writer, place] : in_place_) writers.insert(writer);
      return find_fused_sequences(graph_, result_.members, groups, writers, options_.join_bindings,
                                  options_.gpu);
    }
    std::vector<FusedSequence> single;
    for (int g = 0; g < static_cast<int>(groups.size()); ++g) single.push_back({{g}, 0});
    return single;
  }

  // Returns the work of each sequence, with dependencies between sequences. A sequence of several
  // groups is not concurrent with others.
  static std::vector<GroupWork> joined_work(const std::vector<GroupWork>& groups,
                                            const std::vector<FusedSequence>& sequences) {
    std::vector<int> sequence_of(groups.size());
    for (std::size_t c = 0; c < sequences.size(); ++c) {
      for (const int g : sequences[c].groups)
        sequence_of[static_cast<size_t>(g)] = static_cast<int>(c);
    }
    std::vector<GroupWork> joined(sequences.size());
    for (std::size_t c = 0; c < sequences.size(); ++c) {
      for (const int g : sequences[c].groups) {
        const GroupWork& work = groups[static_cast<size_t>(g)];
        joined[c].concurrent = sequences[c].groups.size() == 1 ? work.concurrent : 0;
        joined[c].microseconds += work.microseconds;
        joined[c].buffers.insert(work.buffers.begin(), work.buffers.end());
        for (const int before : work.before) {
          const int from = sequence_of[static_cast<size_t>(before)];
          if (from != static_cast<int>(c)) joined[c].before.insert(from);
        }
      }
    }
    return joined;
  }

  [[nodiscard]] GroupWork work_of(int g) const {
    const GpuModel& gpu = options_.gpu;
    GroupWork work{direct(g), kSmallByRows, gpu.map_microseconds, {}};
    double flops = 0;
    std::int64_t bytes = 0;
    const ValueId update = index_update_of(g);
    const ValueId updated =
        update == kNoValue ? kNoValue : through_views(graph_, graph_[update].inputs[0]).value;
    const auto touch = [&](ValueId id) {
      const Node& node = graph_[id];
      if (node.op == &ops::constant || node.op == &ops::scalar) return;
      if (id == update) {
        bytes += bytes_of(graph_[node.inputs[1]].type);
      } else if (id != updated) {
        bytes += bytes_of(node.type);
      }
      const auto at = result_.places.find(id);
      if (at != result_.places.end()) {
        work.buffers.insert(at->second.buffer);
      } else if (read_elsewhere_[static_cast<size_t>(id)]) {
        work.buffers.insert(-1 - std::int64_t{id});  // a slot, not yet assigned
      }
    };
    std::set<ValueId> read;
    for (const Source& source : reads_[static_cast<size_t>(g)]) read.insert(source.value);
    for (const ValueId id : read) touch(id);
    for (const ValueId id : result_.members[static_cast<size_t>(g)]) {
      const Node& node = graph_[id];
      touch(id);
      double time = gpu.map_microseconds;
      switch (node.op->kind) {
        case OpKind::kReduce: time = gpu.reduce_microseconds; break;
        case OpKind::kScatter: time = gpu.scatter_microseconds; break;
        case OpKind::kContraction: {
          const bool cut = node.attrs.has(ops::kPartDepth);
          const std::int64_t depth =
              cut ? node.attrs.integer(ops::kPartDepth) : graph_[node.inputs[0]].type.shape.back();
          const auto k = static_cast<double>(depth);
          time = gpu.product_microseconds + gpu.microseconds_per_product_step * k;
          flops += 2 * k * static_cast<double>(numel(node.type.shape));
          break;
        }
        case OpKind::kOpaque: {
          const auto kernel = opaque_kernel(graph_, node);
          time = gpu.*kernel->microseconds;
          work.concurrent = kernel->concurrent ? kSmallOpaque : 0;
          break;
        }
        case OpKind::kScan:
        case OpKind::kSort: work.concurrent = 0; break;
        default: break;
      }
      work.microseconds = std::max(work.microseconds, time);
    }
    if (bytes > gpu.small_bytes || flops > gpu.small_flops) work.concurrent = 0;
    // It needs the copy that precedes it.
    if (update != kNoValue && !updates_in_place(update)) work.concurrent = 0;
    return work;
  }

  // Returns true for a sharded parameter.
  [[nodiscard]] bool is_in_bucket(const Node& node) const {
    return node.op == &ops::parameter && bucket_at(options_.buckets, node.attrs.integer("offset"));
  }

  void place_buckets() {
    if (options_.buckets.empty()) return;
    tensorgrad::place_buckets(graph_, options_.buckets, result_, reads_,
                              [&](BufferKind kind, const std::string& name, std::int64_t bytes) {
                                return add_buffer(name, kind, bytes);
                              });
    params_buffer();  // of which the host reads its part, even if no launch does
  }

  // Returns the position of the last launch that reads each value.
  [[nodiscard]] std::map<ValueId, int> last_uses() const {
    std::map<ValueId, int> last;
    for (int p = 0; p < static_cast<int>(result_.order.size()); ++p) {
      for (const Source& source :
           reads_[static_cast<size_t>(result_.order[static_cast<size_t>(p)])]) {
        last[source.value] = p;
      }
    }
    for (const auto& [value, leaf] : result_.copies) last[value] = std::numeric_limits<int>::max();
    return last;
  }

  void place_slots() {
    const std::map<ValueId, int> last = last_uses();
    std::set<std::pair<std::int64_t, int>> free;  // bytes, buffer
    const int count = static_cast<int>(result_.order.size());
    std::vector<std::vector<ValueId>> dying(result_.order.size());
    for (int p = 0, first = 0; p < count; ++p) {
      const int g = result_.order[static_cast<size_t>(p)];
      for (const ValueId id : result_.members[static_cast<size_t>(g)]) {
        const auto use = last.find(id);
        if (use == last.end() || result_.places.contains(id)) continue;
        result_.places[id] = {take_slot(bytes_of(graph_[id].type), free), 0};
        if (use->second < count) dying[static_cast<size_t>(use->second)].push_back(id);
      }
      // Concurrent launches and fused sequences run as one kernel, so no slot is reused within
      // them.
      if (p + 1 < count && runs_with_last(result_.order[static_cast<size_t>(p) + 1])) continue;
      for (; first <= p; ++first) {
        for (const ValueId id : dying[static_cast<size_t>(first)]) {
          const int buffer = result_.places.at(id).buffer;
          free.insert({result_.buffers[static_cast<size_t>(buffer)].bytes, buffer});
        }
      }
    }
  }

  [[nodiscard]] bool runs_with_last(int g) const {
    return result_.concurrent.contains(g) || result_.fused_sequence.contains(g);
  }

  int take_slot(std::int64_t bytes, std::set<std::pair<std::int64_t, int>>& free) {
    const auto fit = free.lower_bound({round_up(bytes), -1});
    const bool fits = fit != free.end();
    if (fits && fit->first <= kMaxWaste * round_up(bytes)) {
      const int buffer = fit->second;
      free.erase(fit);
      return buffer;
    }
    // Otherwise the largest free slot grows, which costs no more than a new one.
    if (!fits && !free.empty()) {
      const int buffer = std::prev(free.end())->second;
      free.erase(std::prev(free.end()));
      result_.buffers[static_cast<size_t>(buffer)].bytes = round_up(bytes);
      return buffer;
    }
    return add_buffer(std::to_string(slots_++), BufferKind::kSlot, bytes);
  }

  void check_budget() const {
    std::int64_t total = 0;
    for (const BufferDecl& buffer : result_.buffers) total += buffer.bytes;
    if (options_.memory_budget == 0 || total <= options_.memory_budget) return;
    std::vector<ValueId> largest;
    for (const auto& [id, where] : result_.places) largest.push_back(id);
    std::stable_sort(largest.begin(), largest.end(), [&](ValueId a, ValueId b) {
      return bytes_of(graph_[a].type) > bytes_of(graph_[b].type);
    });
    std::string text = "memory budget: the plan needs " + std::to_string(total) +
                       " bytes, the budget is " + std::to_string(options_.memory_budget) +
                       "; the largest tensors are";
    for (std::size_t i = 0; i < std::min<std::size_t>(10, largest.size()); ++i) {
      const Node& node = graph_[largest[i]];
      text += "\n    " + std::to_string(bytes_of(node.type)) +
              " bytes: " + (node.op == &ops::arena ? "parameters" : node.op->name) + " " +
              to_string(node.type);
      if (node.location.known()) text += " at " + to_string(node.location);
    }
    throw UserError(text);
  }

  // Throws UserError, naming the largest tensor, if a buffer exceeds the device's limit.
  void check_buffers() const {
    if (options_.max_buffer_bytes == 0) return;
    for (const auto& [id, where] : result_.places) {
      const BufferDecl& buffer = result_.buffers[static_cast<size_t>(where.buffer)];
      const Node& node = graph_[id];
      const auto each = static_cast<std::int64_t>(element_bytes(result_.stored(node.type.dtype)));
      const bool largest = where.offset * each + round_up(bytes_of(node.type)) >= buffer.bytes;
      if (buffer.bytes <= options_.max_buffer_bytes || !largest) continue;
      if (buffer.kind == BufferKind::kParams) {
        throw UserError("compile: the model has " + std::to_string(options_.params_elements) +
                        " parameters, the device allows at most " +
                        std::to_string(options_.max_buffer_bytes / kParamBytes) +
                        "; use a smaller model or another device");
      }
      const std::string of = buffer.kind == BufferKind::kSlot ? node.op->name : buffer_text(buffer);
      throw UserError(of + ": " + to_string(node.type) + " needs " + std::to_string(buffer.bytes) +
                          " bytes in one buffer, the device allows at most " +
                          std::to_string(options_.max_buffer_bytes),
                      node.location);
    }
  }

  const Graph& graph_;
  const PlanOptions& options_;
  Placement result_;
  std::vector<std::vector<Source>> reads_;
  std::vector<bool> read_elsewhere_;                // values that another group reads from memory
  std::map<int, std::set<int>> readers_of_buffer_;  // of leaves
  std::vector<std::pair<int, BufferRange>> in_place_;  // writing group, what it writes
  int params_ = -1, slots_ = 0;
};

}  // namespace

Placement place(const Graph& graph, const PlanOptions& options) {
  return Placer(graph, options).run();
}

std::vector<PlannedLaunch> planned_launches(const Placement& placement) {
  std::vector<PlannedLaunch> launches;
  for (const int g : placement.order) {
    if (const auto copy = placement.copied.find(g); copy != placement.copied.end())
      launches.push_back({.copied = copy->second.first, .to = copy->second.second});
    launches.push_back({.group = g, .to = {}});
  }
  for (const auto& [value, to] : placement.copies) launches.push_back({.copied = value, .to = to});
  return launches;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
