// SPDX-License-Identifier: MIT
// Windows: buffers that buckets of sharded parameters, and of their gradients, use in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/sources.h"
#include "plan/buffer_assignment.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// Returns the bucket that has this element of the arena, if any has.
std::optional<std::size_t> bucket_at(const std::vector<ParameterBucket>& buckets,
                                     std::int64_t element);

using AddBuffer = std::function<int(BufferKind kind, const std::string& name, std::int64_t bytes)>;

// Assigns each bucket of parameters, and each bucket of gradients, to a window. Two buckets share a
// window if they are never in use at the same time. A bucket of parameters is in use from its first
// to its last reader in the forward pass, and again in the backward pass. A bucket of gradients is
// in use until the host has reduced it.
//
// `placement` has the order of the groups, and `reads` the values that each group reads. Sets the
// places of parameters and gradients, and the steps of the host.
void place_buckets(const Graph& graph, const std::vector<ParameterBucket>& buckets,
                   Placement& placement, const std::vector<std::vector<Source>>& reads,
                   const AddBuffer& add_buffer);

// Sets Program::host_steps. The launches of `program` are final. `sum` is an output that the host
// sums over the ranks, or empty.
void set_host_steps(Program& program, const Placement& placement, const std::string& sum);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
