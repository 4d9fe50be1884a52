// SPDX-License-Identifier: MIT
#include "plan/bucket_placement.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"

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

}  // namespace

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

}  // namespace tensorgrad::inline TENSORGRAD_ABI
