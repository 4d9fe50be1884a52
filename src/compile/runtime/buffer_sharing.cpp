// SPDX-License-Identifier: MIT
#include "compile/runtime/buffer_sharing.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Returns the program's slots, largest first.
std::vector<std::size_t> slots_of(const Program& program) {
  std::vector<std::size_t> slots;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    if (program.buffers[i].kind == BufferKind::kSlot) slots.push_back(i);
  }
  std::stable_sort(slots.begin(), slots.end(), [&](std::size_t a, std::size_t b) {
    return program.buffers[a].bytes > program.buffers[b].bytes;
  });
  return slots;
}

bool lasts(BufferKind kind) {
  return kind == BufferKind::kParams || kind == BufferKind::kState || kind == BufferKind::kData;
}

}  // namespace

std::int64_t BufferPool::bytes() const {
  return std::accumulate(buffers.begin(), buffers.end(), std::int64_t{0},
                         [](std::int64_t sum, const PooledBuffer& b) { return sum + b.bytes; });
}

BufferPool pool_buffers(std::span<const Program* const> programs,
                        const std::set<std::string>& own) {
  BufferPool pool;
  std::map<std::pair<std::string, std::int64_t>, std::size_t> common;
  std::vector<std::size_t> slots;  // indices in the pool
  const auto add = [&](const BufferDecl& decl) {
    pool.buffers.push_back({decl.name, decl.bytes});
    return pool.buffers.size() - 1;
  };
  for (const Program* program : programs) {
    std::vector<std::size_t>& places = pool.places.emplace_back(program->buffers.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      const BufferDecl& decl = program->buffers[i];
      if (decl.kind == BufferKind::kSlot) continue;
      const auto known = common.find({decl.name, decl.bytes});
      places[i] = known == common.end() ? add(decl) : known->second;
      if (lasts(decl.kind) && !own.contains(decl.name)) common[{decl.name, decl.bytes}] = places[i];
    }
    const std::vector<std::size_t> sorted = slots_of(*program);
    for (std::size_t k = 0; k < sorted.size(); ++k) {
      const BufferDecl& decl = program->buffers[sorted[k]];
      if (k == slots.size()) slots.push_back(add(decl));
      places[sorted[k]] = slots[k];
      pool.buffers[slots[k]].bytes = std::max(pool.buffers[slots[k]].bytes, decl.bytes);
    }
  }
  return pool;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
