// SPDX-License-Identifier: MIT
#include "plan/binding_limits.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "base/overloaded.h"
#include "ir/max_elements.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::int64_t kBindingAlignment = 256;  // bytes; alignment of the start of a binding
// Maximum number of launches that one is split into. If each part needs almost all of a buffer (a
// transposing copy), repeated halving would create thousands.
constexpr std::size_t kMaxCuts = 256;

struct Span {  // linear indices of a domain
  std::int64_t first = 0, count = 1;
};

// The elements of each binding that a launch accesses within its window.
class Touched {
 public:
  explicit Touched(const Launch& launch)
      : launch_(launch),
        spans_(launch.bindings.size()),
        element_bytes_(launch.bindings.size(), static_cast<std::int64_t>(kWordBytes)) {
    const Window w = window_of(launch);
    const Span outer{w.outer_first, w.outer_count};
    const Span rows{w.first_row(), w.rows()};
    const Span elements = times(rows, w.columns);
    std::visit(Overloaded{
                   [](const MapLaunch&) {},
                   [](const RowLaunch&) {},
                   [&](const ContractionLaunch& p) {
                     const bool split = p.parts > 1;
                     program(p.a, split ? Span{0, p.m * p.k} : times(rows, p.k), rows);
                     program(p.b, split ? Span{0, p.k * p.n} : times(outer, p.k * p.n), {});
                     if (p.has_bias_grad())
                       store(p.bias_grad_store, p.bias_grad_row ? Span{0, p.n} : rows);
                   },
                   [&](const ScatterLaunch& scatter) {
                     const Span sources = times(outer, scatter.count * scatter.post);
                     program(scatter.index, sources, {});
                     program(scatter.source, sources, {});
                   },
                   [&](const ScanLaunch& scan) {
                     program(scan.a, elements, {});
                     program(scan.b, elements, {});
                   },
                   [&](const SortLaunch& sort) { program(sort.keys, elements, {}); },
                   [&](const OpaqueLaunch& each) { opaque(each, rows); },
               },
               launch.kind);
    if (launch.is<OpaqueLaunch>()) return;
    program(launch.body, elements, rows);
    for (const Store& s : launch.stores) store(s, s.level == Level::kRow ? rows : elements);
  }

  // Returns the offsets accessed through a binding; low > high if there are none.
  [[nodiscard]] const OffsetSpan& of(std::size_t binding) const { return spans_[binding]; }
  // Returns the size of the elements accessed through a binding.
  [[nodiscard]] std::int64_t element_bytes_of(std::size_t binding) const {
    return element_bytes_[binding];
  }

 private:
  static Span times(Span span, std::int64_t factor) {
    return {span.first * factor, span.count * factor};
  }

  void opaque(const OpaqueLaunch& launch, Span rows) {
    const OpaqueKernel& kernel = *launch.kernel;
    for (std::size_t i = 0; i < kernel.inputs.size(); ++i) {
      const OpaqueInput& input = kernel.inputs[i];
      const Span elements =
          input.by_row ? times(rows, input.size / kernel.rows) : Span{0, input.size};
      program(launch.inputs[i], elements, {});
    }
    for (const Store& each : launch_.stores) {
      const OpaqueResult& result = kernel.results[static_cast<std::size_t>(each.value)];
      store(each, times(rows, result.size / kernel.rows));
    }
  }

  // Marks the instructions to compute. A map that stores only some of its values skips the others.
  [[nodiscard]] std::vector<bool> needed(const ScalarProgram& program) const {
    const bool all = !launch_.is<MapLaunch>();
    std::vector<bool> marks(program.instrs.size(), all);
    if (all) return marks;
    for (const Store& s : launch_.stores) {
      marks[static_cast<std::size_t>(s.value)] = true;
      if (s.at >= 0) marks[static_cast<std::size_t>(s.at)] = true;
    }
    for (std::size_t i = marks.size(); i-- > 0;) {
      if (!marks[i]) continue;
      for (const int o : program.instrs[i].operands) marks[static_cast<std::size_t>(o)] = true;
    }
    return marks;
  }

  void program(const ScalarProgram& program, Span elements, Span rows) {
    const std::vector<bool> marks = needed(program);
    for (std::size_t i = 0; i < program.instrs.size(); ++i) {
      const Instr& instr = program.instrs[i];
      if (!marks[i]) continue;
      if (instr.kind != InstrKind::kLoad && instr.kind != InstrKind::kLoadAt) continue;
      const Access& access = program.accesses[static_cast<std::size_t>(instr.index)];
      const Span domain = access.level == Level::kRow ? rows : elements;
      OffsetSpan span = offset_span(access.map, domain.first, domain.count);
      if (span.low > span.high) continue;
      if (instr.kind == InstrKind::kLoadAt) {
        const std::int64_t reach = access.at_stride * std::max<std::int64_t>(access.at_size - 1, 0);
        (reach > 0 ? span.high : span.low) += reach;
      }
      add(access.binding, access.dtype, span);
    }
  }

  void store(const Store& store, Span domain) {
    const Binding& binding = launch_.bindings[static_cast<std::size_t>(store.binding)];
    const auto each = static_cast<std::int64_t>(element_bytes(store.dtype));
    OffsetSpan span = store.ring_word >= 0 ? OffsetSpan{0, binding.bytes / each - 1}
                                           : offset_span(store.map, domain.first, domain.count);
    if (store.at >= 0) span.high += store.at_stride * (store.at_size - 1);
    add(store.binding, store.dtype, span);
  }

  void add(int binding, DType dtype, OffsetSpan span) {
    element_bytes_[static_cast<std::size_t>(binding)] =
        static_cast<std::int64_t>(element_bytes(dtype));
    OffsetSpan& all = spans_[static_cast<std::size_t>(binding)];
    if (all.low > all.high) {
      all = span;
    } else {
      all = {std::min(all.low, span.low), std::max(all.high, span.high)};
    }
  }

  const Launch& launch_;
  std::vector<OffsetSpan> spans_;
  std::vector<std::int64_t> element_bytes_;
};

// The accessed range of a binding, in bytes from the start of the launch's binding.
struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t element_bytes = static_cast<std::int64_t>(kWordBytes);
  [[nodiscard]] std::int64_t bytes() const { return end - begin; }
};

std::vector<Range> ranges_of(const Launch& launch) {
  const Touched touched(launch);
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < launch.bindings.size(); ++i) {
    const OffsetSpan& span = touched.of(i);
    // A binding that is used only for in-bounds tests is never read.
    Range range{0, std::min(kBindingAlignment, launch.bindings[i].bytes)};
    if (span.low <= span.high) {
      const std::int64_t each = touched.element_bytes_of(i);
      const std::int64_t end = (span.high + 1) * each;
      range = {span.low * each / kBindingAlignment * kBindingAlignment, (end + 3) / 4 * 4, each};
      CHECK(range.begin >= 0 && range.end <= launch.bindings[i].bytes, launch.name);
    }
    ranges.push_back(range);
  }
  return ranges;
}

void shift(std::vector<Access>& accesses, int binding, std::int64_t elements) {
  for (Access& access : accesses) {
    if (access.binding == binding) access.map.views.back().offset -= elements;
  }
}

void narrow(Launch& launch, const std::vector<Range>& ranges) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    Binding& binding = launch.bindings[i];
    const std::int64_t elements = ranges[i].begin / ranges[i].element_bytes;
    const int number = static_cast<int>(i);
    binding.offset += ranges[i].begin;
    binding.bytes = ranges[i].bytes();
    for (ScalarProgram* program : programs_of(launch)) {
      shift(program->accesses, number, elements);
    }
    for (Store* store : stores_of(launch)) {
      if (store->binding == number) store->map.views[0].offset -= elements;
    }
  }
}

[[noreturn]] void refuse(const Program& program, const Launch& launch, const Binding& binding,
                         std::int64_t bytes, std::int64_t most) {
  std::string ops;
  for (const std::string& op : launch.ops) ops += (ops.empty() ? "" : ", ") + op;
  throw UserError(launch.name + ": " + std::to_string(bytes) + " bytes of " +
                      buffer_text(program.buffers[static_cast<std::size_t>(binding.buffer)]) +
                      " are needed at once, the device can bind at most " + std::to_string(most) +
                      " (in " + ops + ")",
                  launch.locations.empty() ? SourceLocation() : launch.locations.front());
}

// Returns the launch with a separate binding for each distant range that it reads of the buffer
// (two parameters of a large model). Returns nullopt if there is only one range, or if the launch
// would exceed the binding count.
std::optional<Launch> separated(const Launch& launch, std::size_t wide, const BindingLimits& most) {
  if (launch.bindings[wide].mode != BindMode::kRead) return std::nullopt;
  Launch apart = launch;
  std::vector<Access*> accesses;  // each gets a binding of its own, from number `first` on
  const std::size_t first = launch.bindings.size();
  for (ScalarProgram* program : programs_of(apart)) {
    for (Access& access : program->accesses) {
      if (access.binding != static_cast<int>(wide)) continue;
      access.binding = static_cast<int>(apart.bindings.size());
      apart.bindings.push_back(launch.bindings[wide]);
      accesses.push_back(&access);
    }
  }
  const std::vector<Range> ranges = ranges_of(apart);
  std::vector<std::size_t> order(accesses.size());
  std::iota(order.begin(), order.end(), first);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return ranges[a].begin < ranges[b].begin; });
  std::size_t parts = 0;
  Range part;
  for (const std::size_t i : order) {
    const std::int64_t end = std::max(part.end, ranges[i].end);
    const bool joins = parts > 0 && end - part.begin <= most.bytes;
    part = joins ? Range{part.begin, end} : ranges[i];
    if (!joins) ++parts;
    // The first range keeps the original binding.
    accesses[i - first]->binding = static_cast<int>(parts == 1 ? wide : first + parts - 2);
  }
  if (parts < 2) return std::nullopt;
  apart.bindings.resize(first + parts - 1);
  if (most.count > 0 && static_cast<int>(apart.bindings.size()) > most.count) return std::nullopt;
  return apart;
}

// Returns total * rows / all without overflow. Approximate if all is above 2^31.
std::int64_t share(std::int64_t total, std::int64_t rows, std::int64_t all) {
  for (; all > kMaxTensorElements; all /= 2) rows /= 2;
  return total / all * rows + total % all * rows / all;
}

// Appends launches that together compute the launch's window and respect the byte limit. Returns
// false if that is impossible; `out` then contains some of them.
bool fit(const Program& program, const Launch& launch, const BindingLimits& most, bool must,
         std::vector<Launch>& out) {
  const std::vector<Range> ranges = ranges_of(launch);
  std::size_t widest = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].bytes() > ranges[widest].bytes()) widest = i;
  }
  if (ranges[widest].bytes() <= most.bytes) {
    out.push_back(launch);
    narrow(out.back(), ranges);
    return true;
  }
  if (const auto apart = separated(launch, widest, most))
    return fit(program, *apart, most, must, out);
  const Window w = window_of(launch);
  if (w.rows() == 1 || out.size() >= kMaxCuts) {
    if (!must) return false;
    if (most.strict)
      refuse(program, launch, launch.bindings[widest], ranges[widest].bytes(), most.bytes);
    out.push_back(launch);
    narrow(out.back(), ranges);
    return true;
  }
  // Splits between whole batches if there are several.
  const std::int64_t step = w.outer_count > 1 ? w.count : 1;
  const std::int64_t half = w.rows() / step / 2 * step;
  Launch front = launch, back = launch;
  front.first_row = w.first_row();
  front.row_count = half;
  back.first_row = front.first_row + half;
  back.row_count = w.rows() - half;
  if (auto* const product = std::get_if<ContractionLaunch>(&back.kind))
    product->bias_grad_row = false;  // the first half sums all columns
  front.bytes_moved = share(launch.bytes_moved, half, w.rows());
  front.flops = share(launch.flops, half, w.rows());
  back.bytes_moved = launch.bytes_moved - front.bytes_moved;
  back.flops = launch.flops - front.flops;
  return fit(program, front, most, must, out) && fit(program, back, most, must, out);
}

// Returns one launch per store, because the stores of a map may be far apart in one buffer, as may
// be the values read for them. Maps that update in place are not split, since another store may
// read the old value.
std::vector<Launch> by_stores(const Launch& launch) {
  const bool in_place =
      std::any_of(launch.bindings.begin(), launch.bindings.end(),
                  [](const Binding& b) { return b.mode == BindMode::kReadWrite; });
  if (!launch.is<MapLaunch>() || in_place) return {launch};
  std::vector<Launch> launches;
  for (const Store& store : launch.stores) {
    launches.push_back(launch);
    launches.back().stores = {store};
  }
  return launches;
}

}  // namespace

std::vector<ByteRange> accessed_bytes(const Launch& launch) {
  const Touched touched(launch);
  std::vector<ByteRange> ranges;
  for (std::size_t i = 0; i < launch.bindings.size(); ++i) {
    const OffsetSpan& span = touched.of(i);
    const std::int64_t each = touched.element_bytes_of(i), start = launch.bindings[i].offset;
    ranges.push_back(span.low > span.high
                         ? ByteRange{}
                         : ByteRange{start + span.low * each, start + (span.high + 1) * each});
  }
  return ranges;
}

void fit_bindings(Program& program, const BindingLimits& most) {
  std::vector<Launch> launches;
  for (Launch& launch : program.launches) {
    const bool fits = std::all_of(launch.bindings.begin(), launch.bindings.end(),
                                  [&](const Binding& b) { return b.bytes <= most.bytes; });
    if (fits) {
      launches.push_back(std::move(launch));
    } else {
      std::vector<Launch> parts;
      const std::vector<Launch> single = by_stores(launch);
      if (!fit(program, launch, most, single.size() == 1, parts)) {
        parts.clear();
        for (const Launch& each : single) {
          std::vector<Launch> some;
          fit(program, each, most, true, some);
          std::move(some.begin(), some.end(), std::back_inserter(parts));
        }
      }
      if (parts.size() > 1) {  // they write the same buffer
        for (Launch& part : parts) part.concurrent = part.fused_sequence = false;
      }
      std::move(parts.begin(), parts.end(), std::back_inserter(launches));
    }
  }
  program.launches = std::move(launches);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
