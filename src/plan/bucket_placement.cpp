// SPDX-License-Identifier: MIT
#include "plan/bucket_placement.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "ops/registry.h"
#include "plan/exchange.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Returns which values the first output depends on. In a training step, this is the loss.
std::vector<bool> forward_values(const Graph& graph) {
  std::vector<bool> forward(graph.nodes.size(), false);
  if (graph.outputs.empty()) return forward;
  forward[static_cast<std::size_t>(graph.outputs[0].value)] = true;
  for (ValueId id = graph.size(); id-- > 0;) {
    if (!forward[static_cast<std::size_t>(id)]) continue;
    for (const ValueId input : graph[id].inputs) forward[static_cast<std::size_t>(input)] = true;
  }
  return forward;
}

class BucketPlacer {
 public:
  BucketPlacer(const Graph& graph, const std::vector<ParameterBucket>& buckets,
               Placement& placement, const std::vector<std::vector<Source>>& reads);

  void add_parameter(ValueId leaf, std::size_t bucket);
  // `offset` is the position in the arena.
  void add_gradient(ValueId value, std::size_t bucket, std::int64_t offset);

  // Sets the places of what was added. Returns the steps of the host.
  std::vector<HostStep> place(const AddBuffer& add_buffer);

 private:
  // Positions in the order of the groups, both included.
  struct Interval {
    std::size_t first = 0, last = 0;
  };
  // The values of a bucket.
  struct Content {
    std::size_t bucket = 0;
    std::vector<std::pair<ValueId, std::int64_t>> values;  // with their offsets in the bucket
    // Of parameters: in the forward and, separately, in the backward pass.
    std::optional<Interval> used, used_again;
    std::size_t ready = 0;  // of gradients: the number of groups that precede the reduction
  };

  void find_uses();
  void add_use(std::optional<Interval>& used, std::size_t position) const;
  [[nodiscard]] Interval stage(std::size_t position) const;
  std::vector<std::vector<Content*>> assign(std::vector<Content>& contents) const;
  void place(std::vector<Content>& contents, BufferKind kind, const AddBuffer& add_buffer);

  const Graph& graph_;
  const std::vector<ParameterBucket>& buckets_;
  Placement& placement_;
  const std::vector<std::vector<Source>>& reads_;
  std::vector<Content> params_, grads_;  // one per bucket
  std::vector<HostStep> steps_;
};

BucketPlacer::BucketPlacer(const Graph& graph, const std::vector<ParameterBucket>& buckets,
                           Placement& placement, const std::vector<std::vector<Source>>& reads)
    : graph_(graph),
      buckets_(buckets),
      placement_(placement),
      reads_(reads),
      params_(buckets.size()),
      grads_(buckets.size()) {
  for (std::size_t b = 0; b < buckets.size(); ++b) params_[b].bucket = grads_[b].bucket = b;
}

void BucketPlacer::add_parameter(ValueId leaf, std::size_t bucket) {
  params_[bucket].values.emplace_back(
      leaf, graph_[leaf].attrs.integer("offset") - buckets_[bucket].begin);
}

void BucketPlacer::add_gradient(ValueId value, std::size_t bucket, std::int64_t offset) {
  grads_[bucket].values.emplace_back(value, offset - buckets_[bucket].begin);
}

// Returns the groups that run concurrently with that at `position`.
BucketPlacer::Interval BucketPlacer::stage(std::size_t position) const {
  const auto joined = [&](std::size_t p) {
    const int g = placement_.order[p];
    return placement_.concurrent.contains(g) || placement_.fused_sequence.contains(g);
  };
  Interval stage{position, position};
  while (joined(stage.first)) --stage.first;
  while (stage.last + 1 < placement_.order.size() && joined(stage.last + 1)) ++stage.last;
  return stage;
}

void BucketPlacer::add_use(std::optional<Interval>& used, std::size_t position) const {
  const Interval use = stage(position);
  if (used) {
    used = Interval{std::min(used->first, use.first), std::max(used->last, use.last)};
  } else {
    used = use;
  }
}

void BucketPlacer::find_uses() {
  std::map<ValueId, Content*> params, grads;
  for (Content& content : params_) {
    for (const auto& [leaf, offset] : content.values) params[leaf] = &content;
  }
  for (Content& content : grads_) {
    for (const auto& [value, offset] : content.values) grads[value] = &content;
  }
  const std::vector<bool> forward = forward_values(graph_);
  for (std::size_t p = 0; p < placement_.order.size(); ++p) {
    const auto g = static_cast<std::size_t>(placement_.order[p]);
    const std::vector<ValueId>& members = placement_.members[g];
    const bool first = std::any_of(members.begin(), members.end(), [&](ValueId id) {
      return forward[static_cast<std::size_t>(id)];
    });
    for (const Source& source : reads_[g]) {
      if (const auto at = params.find(source.value); at != params.end())
        add_use(first ? at->second->used : at->second->used_again, p);
      if (const auto at = grads.find(source.value); at != grads.end()) add_use(at->second->used, p);
    }
    for (const ValueId id : members) {
      const auto at = grads.find(id);
      if (at == grads.end()) continue;
      add_use(at->second->used, p);
      at->second->ready = std::max(at->second->ready, stage(p).last + 1);
    }
  }
  for (Content& content : params_) {
    std::optional<Interval>&used = content.used, &again = content.used_again;
    if (!again || (used && again->first > used->last)) continue;
    if (used) again = {std::min(used->first, again->first), std::max(used->last, again->last)};
    used = std::exchange(again, std::nullopt);
  }
}

// Returns the contents of each window. Larger ones come first, so that each window has the size of
// its first content.
std::vector<std::vector<BucketPlacer::Content*>> BucketPlacer::assign(
    std::vector<Content>& contents) const {
  std::vector<Content*> sorted;
  for (Content& content : contents) {
    if (content.used) sorted.push_back(&content);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Content* a, const Content* b) {
    return buckets_[a->bucket].elements > buckets_[b->bucket].elements;
  });
  const auto overlap = [](const std::optional<Interval>& a, const std::optional<Interval>& b) {
    return a && b && a->first <= b->last && b->first <= a->last;
  };
  const auto overlaps = [&](const Content* a, const Content* b) {
    return overlap(a->used, b->used) || overlap(a->used, b->used_again) ||
           overlap(a->used_again, b->used) || overlap(a->used_again, b->used_again);
  };
  std::vector<std::vector<Content*>> windows;
  for (Content* content : sorted) {
    const auto fits = [&](const std::vector<Content*>& window) {
      return std::none_of(window.begin(), window.end(),
                          [&](const Content* other) { return overlaps(content, other); });
    };
    auto window = std::find_if(windows.begin(), windows.end(), fits);
    if (window == windows.end()) window = windows.insert(window, std::vector<Content*>());
    window->push_back(content);
  }
  return windows;
}

void BucketPlacer::place(std::vector<Content>& contents, BufferKind kind,
                         const AddBuffer& add_buffer) {
  constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));
  int number = 0;
  for (const std::vector<Content*>& window : assign(contents)) {
    const int buffer = add_buffer(kind, "window " + std::to_string(number++),
                                  buckets_[window.front()->bucket].elements * kFloatBytes);
    for (const Content* content : window) {
      const auto bucket = static_cast<int>(content->bucket);
      for (const auto& [value, offset] : content->values)
        placement_.places[value] = {buffer, offset};
      if (kind == BufferKind::kGrads) {
        steps_.push_back({HostStep::Kind::kReduce, bucket, buffer, content->ready});
        continue;
      }
      steps_.push_back({HostStep::Kind::kGather, bucket, buffer, content->used->first});
      if (!content->used_again) continue;
      const auto between = [&](const std::optional<Interval>& use) {
        return use && use->first > content->used->last && use->first < content->used_again->first;
      };
      // Parameters that nothing has overwritten since the forward pass are not gathered again.
      if (std::any_of(window.begin(), window.end(), [&](const Content* other) {
            return between(other->used) || between(other->used_again);
          })) {
        steps_.push_back({HostStep::Kind::kGather, bucket, buffer, content->used_again->first});
      }
    }
  }
}

std::vector<HostStep> BucketPlacer::place(const AddBuffer& add_buffer) {
  find_uses();
  place(params_, BufferKind::kSlot, add_buffer);
  place(grads_, BufferKind::kGrads, add_buffer);
  // A window is reduced before it is used again.
  std::stable_sort(steps_.begin(), steps_.end(), [](const HostStep& a, const HostStep& b) {
    const auto key = [](const HostStep& step) {
      return std::pair(step.before, step.kind != HostStep::Kind::kReduce);
    };
    return key(a) < key(b);
  });
  return std::move(steps_);
}

// Returns the steps of the host with positions in planned_launches().
std::vector<HostStep> host_steps(const Placement& placement) {
  std::vector<std::size_t> begins = {0};  // of the launches of each group
  for (const int g : placement.order)
    begins.push_back(begins.back() + 1 + placement.copied.count(g));
  std::vector<HostStep> steps = placement.host_steps;
  for (HostStep& step : steps) step.before = begins[step.before];
  return steps;
}

// Returns the first of the launches into which planned launches from number `planned` on were
// split.
std::size_t first_part(const Program& program, std::size_t planned) {
  const auto at = std::find_if(
      program.launches.begin(), program.launches.end(),
      [&](const Launch& launch) { return static_cast<std::size_t>(launch.planned) >= planned; });
  return static_cast<std::size_t>(at - program.launches.begin());
}

// Adds the step that sums a scalar output over the ranks.
void add_sum(Program& program, const std::string& output) {
  const Port& port = *std::find_if(program.outputs.begin(), program.outputs.end(),
                                   [&](const Port& each) { return each.name == output; });
  const ExchangeStops stops = exchange_stops(program, output, {{0, 1}});
  CHECK(stops.resume < program.launches.size(), "nothing reads the output " + output);
  const auto at = std::upper_bound(
      program.host_steps.begin(), program.host_steps.end(), stops.resume,
      [](std::size_t before, const HostStep& step) { return before < step.before; });
  program.host_steps.insert(at, {HostStep::Kind::kSum, -1, port.buffer, stops.resume});
}

}  // namespace

std::optional<std::size_t> bucket_at(const std::vector<ParameterBucket>& buckets,
                                     std::int64_t element) {
  const auto after =
      std::find_if(buckets.begin(), buckets.end(),
                   [&](const ParameterBucket& bucket) { return element < bucket.end(); });
  if (after == buckets.end()) return std::nullopt;
  return static_cast<std::size_t>(after - buckets.begin());
}

void place_buckets(const Graph& graph, const std::vector<ParameterBucket>& buckets,
                   Placement& placement, const std::vector<std::vector<Source>>& reads,
                   const AddBuffer& add_buffer) {
  BucketPlacer placer(graph, buckets, placement, reads);
  for (ValueId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    if (node.op == &ops::parameter) {
      if (const auto bucket = bucket_at(buckets, node.attrs.integer("offset")))
        placer.add_parameter(id, *bucket);
    } else if (node.op == &ops::reduce_scatter) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const std::int64_t offset = node.attrs.list("offsets")[i];
        placer.add_gradient(through_views(graph, node.inputs[i]).value,
                            bucket_at(buckets, offset).value(), offset);
      }
    }
  }
  placement.host_steps = placer.place(add_buffer);
}

void set_host_steps(Program& program, const Placement& placement, const std::string& sum) {
  program.host_steps = host_steps(placement);
  for (HostStep& step : program.host_steps) step.before = first_part(program, step.before);
  if (!sum.empty()) add_sum(program, sum);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
