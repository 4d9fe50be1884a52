// SPDX-License-Identifier: MIT
// Sort launches:
//   out[p, i, q] = body(t), where element t is the i-th of line (p, q) in sorted order
// Computes all elements first. Then sorts each line by 32-bit keys whose unsigned order is the
// requested order, with a stable radix sort from the lowest digit, or by comparison if it is short.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "backend/cpu/block_size.h"
#include "backend/cpu/vector_program.h"

namespace tensorgrad::cpu {
namespace {

// Shorter lines are sorted by comparison.
constexpr std::int64_t kMinByDigits = 192;
constexpr int kDigitBits = 8, kDigits = 4, kBuckets = 1 << kDigitBits;

struct Entry {
  Word key, place;
};

// Returns a key that is smaller if the element comes first. NaN is the largest; -0 equals 0.
Word key_of(Word bits, DType dtype, bool descending) {
  constexpr Word kSign = Word{1} << 31;
  Word key = bits;
  if (dtype == DType::kI32) key = bits ^ kSign;
  if (dtype == DType::kF32) {
    const Word size = bits & ~kSign;
    if (size > 0x7f800000u) {
      key = ~Word{0};
    } else {
      key = size == 0 || bits == size ? size | kSign : ~bits;
    }
  }
  return descending ? ~key : key;
}

void sort_by_digits(Entry* entries, Entry* other, std::int64_t n) {
  std::array<std::array<Word, kBuckets>, kDigits> counts{};
  for (std::int64_t i = 0; i < n; ++i) {
    for (int d = 0; d < kDigits; ++d) {
      ++counts[static_cast<std::size_t>(d)][entries[i].key >> (d * kDigitBits) & (kBuckets - 1)];
    }
  }
  Entry *from = entries, *to = other;
  for (int d = 0; d < kDigits; ++d) {
    auto& start = counts[static_cast<std::size_t>(d)];
    const auto digit = [&](Word key) { return key >> (d * kDigitBits) & (kBuckets - 1); };
    if (start[digit(from[0].key)] == static_cast<Word>(n)) continue;  // all digits are equal
    Word total = 0;
    for (Word& each : start) total += std::exchange(each, total);
    for (std::int64_t i = 0; i < n; ++i) to[start[digit(from[i].key)]++] = from[i];
    std::swap(from, to);
  }
  if (from != entries) std::copy_n(from, n, entries);
}

void sort_line(Entry* entries, Entry* other, std::int64_t n) {
  if (n >= kMinByDigits) return sort_by_digits(entries, other, n);
  std::sort(entries, entries + n, [](const Entry& l, const Entry& r) {
    return l.key != r.key ? l.key < r.key : l.place < r.place;
  });
}

class SortStep final : public Step {
 public:
  explicit SortStep(const Prepare& prepare)
      : l_(prepare.launch),
        elements_(l_.pre * l_.count * l_.post),
        keys_(prepare, operand_spec(l_.b, elements_)),
        epilogue_(prepare, epilogue_spec(l_, elements_)) {
    for (VectorProgram* vector_program : {&keys_, &epilogue_}) {
      vector_program->lay_out(block_elements(vector_program->element_registers()), 0);
      worker_bytes = std::max(worker_bytes, vector_program->scratch_bytes());
    }
    const auto line_bytes = static_cast<std::size_t>(2 * l_.count) * sizeof(Entry);
    worker_bytes = std::max(worker_bytes, line_bytes);
    shared_bytes = static_cast<std::size_t>(round_up(elements_, 16)) * sizeof(Word);
  }

  // The shared words contain the elements first. Sorting a line replaces them by indices.
  void run(const RunContext& context) override {
    for (VectorProgram* vector_program : {&keys_, &epilogue_})
      vector_program->start(context.runtime_scalars);
    auto* words = reinterpret_cast<Word*>(context.shared);
    in_blocks(context, keys_, [&](Frame& frame) {
      keys_.run(keys_.ops, frame);
      std::memcpy(words + frame.first, keys_.result(frame),
                  static_cast<std::size_t>(frame.count) * sizeof(Word));
    });
    const std::int64_t lines = l_.pre * l_.post;
    const std::int64_t tasks = task_count(static_cast<double>(elements_) * 10, lines);
    context.pool.parallel_for(tasks, [&](std::int64_t task, int worker) {
      auto* entries = reinterpret_cast<Entry*>(context.scratch(worker));
      const std::int64_t each = ceil_div(lines, tasks);
      const std::int64_t end = std::min(lines, (task + 1) * each);
      for (std::int64_t line = task * each; line < end; ++line) order_line(words, line, entries);
    });
    in_blocks(context, epilogue_, [&](Frame& frame) {
      frame.acc = words + frame.first;
      epilogue_.run(epilogue_.ops, frame);
    });
  }

 private:
  template <class Body>
  void in_blocks(const RunContext& context, const VectorProgram& vector_program,
                 const Body& body) const {
    const std::int64_t block = vector_program.capacity(), blocks = ceil_div(elements_, block);
    const std::int64_t tasks =
        task_count(static_cast<double>(elements_) * vector_program.element_cost(), blocks);
    const std::int64_t each = ceil_div(blocks, tasks);
    context.pool.parallel_for(tasks, [&](std::int64_t task, int worker) {
      Frame frame = vector_program.frame(context.scratch(worker));
      for (std::int64_t b = task * each; b < std::min(blocks, (task + 1) * each); ++b) {
        frame.first = b * block;
        frame.count = std::min(block, elements_ - frame.first);
        body(frame);
      }
    });
  }

  void order_line(Word* words, std::int64_t line, Entry* entries) const {
    Word* at = words + line / l_.post * l_.count * l_.post + line % l_.post;
    const DType dtype = l_.b.instrs.back().dtype;
    for (std::int64_t t = 0; t < l_.count; ++t) {
      entries[t] = {key_of(at[t * l_.post], dtype, l_.descending), static_cast<Word>(t)};
    }
    sort_line(entries, entries + l_.count, l_.count);
    for (std::int64_t t = 0; t < l_.count; ++t) at[t * l_.post] = entries[t].place;
  }

  const Launch& l_;
  std::int64_t elements_;
  VectorProgram keys_, epilogue_;
};

}  // namespace

std::unique_ptr<Step> make_sort(const Prepare& prepare) {
  return std::make_unique<SortStep>(prepare);
}

}  // namespace tensorgrad::cpu
