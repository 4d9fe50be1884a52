// SPDX-License-Identifier: MIT
// Windows: buffers that buckets of sharded parameters, and of their gradients, use in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/sources.h"
#include "plan/buffer_assignment.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Assigns each bucket of parameters, and each bucket of gradients, to a window. Two buckets share a
// window if they are never in use at the same time. A bucket of parameters is in use from its first
// to its last reader in the forward pass, and again in the backward pass. A bucket of gradients is
// in use until the host has reduced it.
class BucketPlacer {
 public:
  // `placement` has the order of the groups. `reads` are the values that each group reads.
  BucketPlacer(const Graph& graph, const std::vector<ParameterBucket>& buckets,
               Placement& placement, const std::vector<std::vector<Source>>& reads);

  void add_parameter(ValueId leaf, std::size_t bucket);
  // `offset` is the position in the arena.
  void add_gradient(ValueId value, std::size_t bucket, std::int64_t offset);

  using AddBuffer =
      std::function<int(BufferKind kind, const std::string& name, std::int64_t bytes)>;
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

}  // namespace tensorgrad::inline TENSORGRAD_ABI
