// SPDX-License-Identifier: MIT
// Appends groups to sequences in execution order, then prepends groups that a sequence reads and
// that fit its blocks. A fused sequence saves launches. Its cost is that one workgroup computes all
// columns of its rows.
#include "plan/fused_sequences.h"

#include <algorithm>
#include <functional>

#include "base/divide.h"
#include "base/visits.h"
#include "ir/sources.h"
#include "kernel/program.h"
#include "ops/registry.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::size_t kMaxSequenceLength = 16;  // larger kernels take too long to compile
constexpr std::int64_t kMaxBlocks = 512;
constexpr std::int64_t kPieceSide = 64, kElementsAtOnce = 256;

class FusedSequenceFinder {
 public:
  FusedSequenceFinder(const Graph& graph, const std::vector<std::vector<ValueId>>& members,
                      const std::vector<GroupWork>& work, const std::set<int>& barred,
                      int max_bindings, const GpuModel& gpu)
      : graph_(graph), members_(members), work_(work), max_bindings_(max_bindings), gpu_(gpu) {
    for (int g = 0; g < static_cast<int>(members.size()); ++g) {
      sequence_of_.push_back(g);
      sequences_.push_back({{g}, 0});
      forms_.push_back(barred.contains(g) ? Form{} : form_of(g));
    }
    feeds_.resize(members.size());
    for (int g = 0; g < count(); ++g) {
      for (const int before : work_[index(g)].before) {
        if (before < g) feeds_[index(before)].push_back(g);
      }
    }
  }

  std::vector<FusedSequence> run() {
    for (int g = 0; g < count(); ++g) lengthen_by(g);
    for (int g = count(); g-- > 0;) put_before(g);
    std::vector<FusedSequence> result;
    for (FusedSequence& sequence : sequences_) {
      if (sequence.groups.size() == 1) sequence.blocks = 0;
      if (!sequence.groups.empty()) result.push_back(std::move(sequence));
    }
    std::sort(result.begin(), result.end(), [](const FusedSequence& a, const FusedSequence& b) {
      return a.groups.front() < b.groups.front();
    });
    return result;
  }

 private:
  // Properties of a group that decide whether it fits a sequence. elements == 0: it fits none.
  struct Form {
    std::int64_t elements = 0, rows = 0;
    std::int64_t n = 0, k = 0;  // of a product
  };

  [[nodiscard]] int count() const { return static_cast<int>(members_.size()); }
  static std::size_t index(int g) { return static_cast<std::size_t>(g); }
  [[nodiscard]] bool is_member(ValueId id, int g) const { return graph_[id].group == g; }

  [[nodiscard]] Form form_of(int g) const {
    if (work_[index(g)].concurrent != kSmallByRows || members_[index(g)].empty()) return {};
    Form form;
    for (const ValueId id : members_[index(g)]) {
      const Node& node = graph_[id];
      const std::int64_t elements = numel(node.type.shape);
      form.elements = std::max(form.elements, elements);
      switch (node.op->kind) {
        case OpKind::kContraction:
          if (node.type.shape.size() != 2 || node.type.shape[0] % kFusedSequenceRows != 0)
            return {};
          form.rows = node.type.shape[0];
          form.n = node.type.shape[1];
          form.k = graph_[node.inputs[0]].type.shape[1];
          break;
        case OpKind::kReduce: {
          const ReduceShape reduce = reduce_shape(graph_, node);
          const Source summed = through_views(graph_, node.inputs[0]);
          const bool own = is_member(summed.value, g);
          if (!reduce.trailing || (form.n > 0 && !own)) return {};
          form.elements = std::max(form.elements, reduce.rows * reduce.cols);
          if (form.n == 0) form.rows = reduce.rows;
          break;
        }
        case OpKind::kPointwise:
        case OpKind::kGather: break;
        default: return {};
      }
    }
    return form;
  }

  // Returns the estimated microseconds of a group as a step of a sequence of `blocks` blocks.
  [[nodiscard]] double time_in(const Form& form, std::int64_t blocks) const {
    const auto pieces = [](std::int64_t size, std::int64_t each) {
      return static_cast<double>(ceil_div(size, each));
    };
    const std::int64_t heights = form.rows / blocks / kFusedSequenceRows;
    const double work = form.n > 0 ? gpu_.block_piece_microseconds * pieces(form.n, kPieceSide) *
                                         pieces(form.k, kPieceSide) * static_cast<double>(heights)
                                   : gpu_.block_elements_microseconds *
                                         pieces(form.elements / blocks, kElementsAtOnce);
    return (gpu_.block_microseconds + work) * pieces(blocks, gpu_.blocks_per_core * gpu_.cores);
  }

  // True if the group can be a step of a sequence of `blocks` blocks, and is not slower there by
  // more than a launch costs.
  [[nodiscard]] bool fits(int g, std::int64_t blocks) const {
    const Form& form = forms_[index(g)];
    if (form.elements % blocks != 0 || form.rows % blocks != 0) return false;
    if (form.n > 0 && form.rows / blocks % kFusedSequenceRows != 0) return false;
    return time_in(form, blocks) - work_[index(g)].microseconds < gpu_.launch_microseconds;
  }

  // True if each block of g reads only the same block of the groups of sequence c.
  [[nodiscard]] bool reads_own_blocks(int g, int c, std::int64_t blocks) const {
    return std::all_of(members_[index(g)].begin(), members_[index(g)].end(),
                       [&](ValueId id) { return reads_own_blocks(id, g, c, blocks); });
  }

  // The same for one member. Looks through values without a group, which g computes itself.
  [[nodiscard]] bool reads_own_blocks(ValueId member, int g, int c, std::int64_t blocks) const {
    std::set<ValueId> seen;
    std::vector<ValueId> open{member};
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      const Node& node = graph_[id];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const Source source = through_views(graph_, node.inputs[i]);
        if (is_member(source.value, g) || !comes_from(source.value, c)) continue;
        const bool elsewhere = (node.op->kind == OpKind::kContraction && i > 0) ||
                               (node.op->kind == OpKind::kGather && i == 0) ||
                               node.op->kind == OpKind::kConcat;
        if (elsewhere) return false;
        const Node& from = graph_[source.value];
        if (from.op->kind == OpKind::kPack) return false;  // its inputs are concatenated
        if (!stays_in_blocks(source.map, numel(from.type.shape), blocks)) return false;
        if (from.group < 0 && seen.insert(source.value).second) open.push_back(source.value);
      }
    }
    return true;
  }

  // True if the value is computed by a group of the sequence, or by its readers from such values.
  [[nodiscard]] bool comes_from(ValueId value, int c) const {
    std::set<ValueId> seen;
    std::vector<ValueId> open{value};
    while (!open.empty()) {
      const ValueId id = open.back();
      open.pop_back();
      const Node& node = graph_[id];
      if (node.group >= 0) {
        visit();
        if (sequence_of_[index(node.group)] == c) return true;
      } else if (seen.insert(id).second) {
        open.insert(open.end(), node.inputs.begin(), node.inputs.end());
      }
    }
    return false;
  }

  // True if merging sequences a and b would create a dependency cycle.
  [[nodiscard]] bool circle(int a, int b) const {
    std::vector<int> open;
    std::set<int> seen;
    // Groups depend only on groups of lower numbers.
    const int first_group =
        std::min(sequences_[index(a)].groups.front(), sequences_[index(b)].groups.front());
    const auto look = [&](int c, bool first) {
      for (const int g : sequences_[index(c)].groups) {
        visit(1 + static_cast<std::int64_t>(work_[index(g)].before.size()));
        for (const int before : work_[index(g)].before) {
          const int from = sequence_of_[index(before)];
          if (from == a || from == b) {
            if (first) continue;
            return true;
          }
          const bool early = sequences_[index(from)].groups.back() < first_group;
          if (!early && seen.insert(from).second) open.push_back(from);
        }
      }
      return false;
    };
    look(a, true);
    look(b, true);
    while (!open.empty()) {
      const int c = open.back();
      open.pop_back();
      if (look(c, false)) return true;
    }
    return false;
  }

  [[nodiscard]] bool binds_too_much(int a, int b) const {
    std::set<std::int64_t> buffers;
    for (const int c : {a, b}) {
      for (const int g : sequences_[index(c)].groups) {
        buffers.insert(work_[index(g)].buffers.begin(), work_[index(g)].buffers.end());
      }
    }
    return static_cast<int>(buffers.size()) > max_bindings_;
  }

  // Appends sequence `after` to sequence `first`.
  void join(int first, int after, std::int64_t blocks) {
    FusedSequence& to = sequences_[index(first)];
    for (const int g : sequences_[index(after)].groups) {
      sequence_of_[index(g)] = first;
      to.groups.push_back(g);
    }
    std::sort(to.groups.begin(), to.groups.end());
    to.blocks = blocks;
    sequences_[index(after)].groups.clear();
  }

  [[nodiscard]] bool may_join(int a, int b) const {
    return a != b &&
           sequences_[index(a)].groups.size() + sequences_[index(b)].groups.size() <=
               kMaxSequenceLength &&
           !binds_too_much(a, b) && !circle(a, b);
  }

  // Returns the number of blocks of sequence c with g next to its group `other`, or 0 if none fits
  // both.
  [[nodiscard]] std::int64_t blocks_with(int c, int other, int g) const {
    std::int64_t blocks = sequences_[index(c)].blocks;
    if (blocks > 0) return fits(g, blocks) ? blocks : 0;
    for (const int each : {other, g}) {
      const Form& form = forms_[index(each)];
      if (form.n > 0 && (blocks == 0 || form.rows / kFusedSequenceRows < blocks))
        blocks = form.rows / kFusedSequenceRows;
    }
    if (blocks < 2 || blocks > kMaxBlocks) return 0;
    return fits(g, blocks) && fits(other, blocks) ? blocks : 0;
  }

  // Appends g to the latest sequence whose blocks it reads.
  void lengthen_by(int g) {
    if (forms_[index(g)].elements == 0) return;
    std::set<int, std::greater<>> found;
    for (const int before : work_[index(g)].before) {
      if (forms_[index(before)].elements > 0) found.insert(before);
    }
    for (const int before : found) {
      const int c = sequence_of_[index(before)];
      const std::int64_t blocks = blocks_with(c, before, g);
      if (blocks == 0 || !reads_own_blocks(g, c, blocks) || !may_join(c, sequence_of_[index(g)]))
        continue;
      join(c, sequence_of_[index(g)], blocks);
      return;
    }
  }

  // Prepends g, if it is in no sequence, to a sequence that reads it.
  void put_before(int g) {
    if (forms_[index(g)].elements == 0 ||
        sequences_[index(sequence_of_[index(g)])].groups.size() > 1)
      return;
    for (const int reader : feeds_[index(g)]) {
      if (forms_[index(reader)].elements == 0) continue;
      const int c = sequence_of_[index(reader)];
      const std::int64_t blocks = blocks_with(c, reader, g);
      if (blocks == 0 || !reads_own_blocks(g, c, blocks)) continue;
      const std::vector<int>& groups = sequences_[index(c)].groups;
      const bool local = std::all_of(groups.begin(), groups.end(), [&](int each) {
        return reads_own_blocks(each, sequence_of_[index(g)], blocks);
      });
      if (!local || !may_join(sequence_of_[index(g)], c)) continue;
      join(c, sequence_of_[index(g)], blocks);
      return;
    }
  }

  const Graph& graph_;
  const std::vector<std::vector<ValueId>>& members_;
  const std::vector<GroupWork>& work_;
  int max_bindings_;
  const GpuModel& gpu_;
  std::vector<int> sequence_of_;
  std::vector<FusedSequence> sequences_;
  std::vector<Form> forms_;
  std::vector<std::vector<int>> feeds_;  // the later groups that depend on each group
};

}  // namespace

std::vector<FusedSequence> find_fused_sequences(const Graph& graph,
                                                const std::vector<std::vector<ValueId>>& members,
                                                const std::vector<GroupWork>& work,
                                                const std::set<int>& barred, int max_bindings,
                                                const GpuModel& gpu) {
  return FusedSequenceFinder(graph, members, work, barred, max_bindings, gpu).run();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
