// SPDX-License-Identifier: MIT
// Buckets are formed from the launches that write what the exchanged map reads, since gradients lie
// in the order of the parameters and are computed roughly in the reverse order.
#include "plan/exchange.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "plan/binding_limits.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::int64_t kCutElements = 64;    // large values are cut at multiples of this
constexpr std::int64_t kMinCut = 256 << 10;  // elements of a part of a large value: 1 MiB
// Nothing hides the exchange of the last bucket, so it should be a small part of the whole.
constexpr std::int64_t kMinBuckets = 8;

const Port& port_of(const Program& program, const std::string& output) {
  const auto port = std::find_if(program.outputs.begin(), program.outputs.end(),
                                 [&](const Port& each) { return each.name == output; });
  CHECK(port != program.outputs.end(), "the program has no output " + output);
  return *port;
}

bool binds(const Launch& launch, int buffer, bool writes) {
  return std::any_of(launch.bindings.begin(), launch.bindings.end(), [&](const Binding& each) {
    return each.buffer == buffer && (each.mode != BindMode::kRead) == writes;
  });
}

// The single axis of a map over `count` elements.
struct Line {
  std::int64_t offset = 0, stride = 0;
};
std::optional<Line> line_of(const IndexMap& map, std::int64_t count) {
  if (map.views.size() != 1) return std::nullopt;
  const View view = map.views[0].simplified();
  if (view.masked() || view.shape != Shape{count}) return std::nullopt;
  return Line{view.offset, view.strides[0]};
}

bool is_by_strides(const Launch& launch, std::int64_t count) {
  const auto* map = launch.find<MapLaunch>();
  if (map == nullptr || map->rows != count || launch.row_count != 0) return false;
  if (launch.stores.size() != 1) return false;
  const Store& store = launch.stores[0];
  const std::optional<Line> to = line_of(store.map, count);
  if (!to || to->stride != 1 || store.dtype != DType::kF32 || store.ring_word >= 0 || store.at >= 0)
    return false;
  const auto known = [](const Instr& instr) {
    return instr.kind == InstrKind::kConst || instr.kind == InstrKind::kRuntimeScalar ||
           instr.kind == InstrKind::kLoad || instr.kind == InstrKind::kOp;
  };
  return std::all_of(launch.body.instrs.begin(), launch.body.instrs.end(), known) &&
         std::all_of(launch.body.accesses.begin(), launch.body.accesses.end(),
                     [&](const Access& each) { return line_of(each.map, count).has_value(); });
}

// Elements that can be exchanged as soon as `ready` launches have run.
struct Bucket {
  std::int64_t begin = 0, end = 0;
  std::size_t ready = 0;
};

// Adds the elements that an access reads from the bytes of a buffer.
void add_readers(const Launch& launch, const Access& access, std::int64_t count, ByteRange written,
                 std::size_t ready, std::vector<Bucket>& out) {
  const Line line = line_of(access.map, count).value();
  const auto each = static_cast<std::int64_t>(element_bytes(access.dtype));
  const Binding& binding = launch.bindings[static_cast<std::size_t>(access.binding)];
  const std::int64_t start = binding.offset + line.offset * each;
  Bucket read{0, count, ready};
  if (line.stride == 1) {
    read.begin = std::clamp<std::int64_t>((written.begin - start) / each, 0, count);
    read.end = std::clamp<std::int64_t>((written.end - start + each - 1) / each, 0, count);
  }
  if (read.begin < read.end) out.push_back(read);
}

// Returns which elements of the map depend on which earlier launch, in the order of the launches.
std::vector<Bucket> dependences(const Program& program, std::size_t map, std::int64_t count) {
  const Launch& launch = program.launches[map];
  std::vector<Bucket> found;
  for (std::size_t i = 0; i < map; ++i) {
    const Launch& before = program.launches[i];
    std::vector<ByteRange> ranges;
    for (std::size_t b = 0; b < before.bindings.size(); ++b) {
      const Binding& written = before.bindings[b];
      if (written.mode == BindMode::kRead) continue;
      for (const Access& access : launch.body.accesses) {
        const Binding& read = launch.bindings[static_cast<std::size_t>(access.binding)];
        if (read.buffer != written.buffer) continue;
        if (ranges.empty()) ranges = accessed_bytes(before);
        add_readers(launch, access, count, ranges[b], i + 1, found);
      }
    }
  }
  return found;
}

// Returns the ranges of elements that become ready together, in ascending order.
std::vector<Bucket> segments_of(const std::vector<Bucket>& dependences, std::int64_t count) {
  std::vector<std::int64_t> ends = {0, count};
  for (const Bucket& each : dependences) {
    ends.push_back(each.begin);
    ends.push_back(each.end);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::vector<Bucket> segments;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) segments.push_back({ends[i], ends[i + 1], 0});
  for (const Bucket& each : dependences) {
    auto segment = std::lower_bound(
        segments.begin(), segments.end(), each.begin,
        [](const Bucket& other, std::int64_t begin) { return other.begin < begin; });
    for (; segment != segments.end() && segment->begin < each.end; ++segment)
      segment->ready = std::max(segment->ready, each.ready);
  }
  return segments;
}

// Joins segments, from the last to the first, to buckets of at most `most` elements.
std::vector<Bucket> join_segments(const std::vector<Bucket>& segments, std::int64_t most) {
  const std::int64_t part = std::max(most, kMinCut) / kCutElements * kCutElements;
  std::vector<Bucket> buckets;
  bool open = false;
  for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
    const std::int64_t size = segment->end - segment->begin;
    if (open && buckets.back().end - buckets.back().begin + size <= most) {
      buckets.back().begin = segment->begin;
      buckets.back().ready = std::max(buckets.back().ready, segment->ready);
      continue;
    }
    std::int64_t end = segment->end;
    for (; size > most && end - segment->begin > part; end = buckets.back().begin) {
      const std::int64_t begin = (end - part + kCutElements - 1) / kCutElements * kCutElements;
      buckets.push_back({begin, end, segment->ready});
    }
    buckets.push_back({segment->begin, end, segment->ready});
    open = true;
  }
  std::stable_sort(buckets.begin(), buckets.end(),
                   [](const Bucket& a, const Bucket& b) { return a.ready < b.ready; });
  return buckets;
}

IndexMap within_bucket(const IndexMap& map, std::int64_t count, const Bucket& bucket) {
  const Line line = line_of(map, count).value();
  View view = View::contiguous({bucket.end - bucket.begin});
  view.strides = {line.stride};
  view.offset = line.offset + line.stride * bucket.begin;
  return {{view}};
}

Launch within_bucket(const Launch& launch, std::int64_t count, const Bucket& bucket) {
  Launch part = launch;
  const std::int64_t rows = bucket.end - bucket.begin;
  const double share = static_cast<double>(rows) / static_cast<double>(count);
  part.as<MapLaunch>().rows = rows;
  part.concurrent = false;
  part.bytes_moved = static_cast<std::int64_t>(share * static_cast<double>(launch.bytes_moved));
  part.flops = static_cast<std::int64_t>(share * static_cast<double>(launch.flops));
  for (Access& access : part.body.accesses) access.map = within_bucket(access.map, count, bucket);
  part.stores[0].map = within_bucket(part.stores[0].map, count, bucket);
  return part;
}

// Returns the first place from `at` to `last` that does not divide concurrent launches.
std::size_t boundary(const std::vector<Launch>& launches, std::size_t at, std::size_t last) {
  while (at < last && (launches[at].concurrent || launches[at].fused_sequence)) ++at;
  return at;
}

// The elements of the output that a launch writes.
struct WrittenRange {
  std::size_t launch = 0;
  ElementRange range;
};
std::vector<WrittenRange> writers_of(const Program& program, const Port& port) {
  constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));
  std::vector<WrittenRange> writers;
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    if (!binds(launch, port.buffer, true)) continue;
    const std::vector<ByteRange> ranges = accessed_bytes(launch);
    for (std::size_t b = 0; b < ranges.size(); ++b) {
      if (launch.bindings[b].buffer != port.buffer) continue;
      const std::int64_t begin = (ranges[b].begin - port.offset) / kFloatBytes;
      writers.push_back({i, {begin, (ranges[b].end - port.offset) / kFloatBytes - begin}});
    }
  }
  return writers;
}

}  // namespace

void split_exchange(Program& program, const std::string& output, std::int64_t bucket_bytes) {
  const Port& port = port_of(program, output);
  const std::int64_t count = numel(port.shape);
  std::vector<Launch>& launches = program.launches;
  const auto writes = [&](const Launch& launch) { return binds(launch, port.buffer, true); };
  const auto writer = std::find_if(launches.begin(), launches.end(), writes);
  if (port.dtype != DType::kF32 || writer == launches.end() || !is_by_strides(*writer, count))
    return;
  if (std::any_of(launches.begin(), writer,
                  [&](const Launch& each) { return binds(each, port.buffer, false); }) ||
      std::any_of(writer + 1, launches.end(), writes)) {
    return;
  }
  const auto map = static_cast<std::size_t>(writer - launches.begin());
  const std::int64_t most =
      std::clamp<std::int64_t>(bucket_bytes / static_cast<std::int64_t>(sizeof(float)), 1,
                               std::max(count / kMinBuckets, kMinCut));
  const std::vector<Bucket> buckets =
      join_segments(segments_of(dependences(program, map, count), count), most);
  if (buckets.size() < 2) return;
  std::vector<Launch> ordered;
  auto bucket = buckets.begin();
  for (std::size_t i = 0; i < launches.size(); ++i) {
    bool inserted = false;
    for (; i <= map && bucket != buckets.end() && boundary(launches, bucket->ready, map) == i;
         ++bucket) {
      ordered.push_back(within_bucket(launches[map], count, *bucket));
      inserted = true;
    }
    if (i == map) {
      if (i + 1 < launches.size()) launches[i + 1].concurrent = false;
      continue;
    }
    if (inserted) launches[i].concurrent = false;
    // Launch `map` is still read for its later parts.
    ordered.push_back(launches[i]);
  }
  CHECK(bucket == buckets.end(), "a bucket has no place");
  launches = std::move(ordered);
}

std::vector<ElementRange> exchange_ranges(const Program& program, const std::string& output) {
  const Port& port = port_of(program, output);
  const std::int64_t count = numel(port.shape);
  std::vector<ElementRange> ranges;
  for (const WrittenRange& each : writers_of(program, port)) ranges.push_back(each.range);
  std::vector<ElementRange> sorted = ranges;
  std::sort(sorted.begin(), sorted.end(),
            [](const ElementRange& a, const ElementRange& b) { return a.first < b.first; });
  std::int64_t end = 0;
  for (const ElementRange& each : sorted) {
    if (each.first != end || each.count <= 0) return {{0, count}};
    end += each.count;
  }
  return end == count ? ranges : std::vector<ElementRange>{{0, count}};
}

ExchangeStops exchange_stops(const Program& program, const std::string& output,
                             const std::vector<ElementRange>& ranges) {
  const Port& port = port_of(program, output);
  const std::vector<Launch>& launches = program.launches;
  const auto reader = std::find_if(launches.begin(), launches.end(), [&](const Launch& launch) {
    return binds(launch, port.buffer, false);
  });
  auto first = reader;
  while (first != launches.begin() && first != launches.end() && first->concurrent) --first;
  CHECK(first == launches.end() || !first->fused_sequence, "a fused sequence spans the exchange");
  ExchangeStops stops;
  stops.resume = static_cast<std::size_t>(first - launches.begin());
  const std::vector<WrittenRange> writers = writers_of(program, port);
  std::size_t least = 0;
  for (const ElementRange& range : ranges) {
    for (const WrittenRange& each : writers) {
      CHECK(each.launch < stops.resume, "gradients are computed after their exchange");
      const bool overlaps = each.range.first < range.first + range.count &&
                            range.first < each.range.first + each.range.count;
      if (overlaps) least = std::max(least, each.launch + 1);
    }
    least = boundary(launches, least, stops.resume);
    stops.ready.push_back(least);
  }
  return stops;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
