// SPDX-License-Identifier: MIT
// Sort launches:
//   out[p, i, q] = body(t), where element t is the i-th of line (p, q) in sorted order
// Computes all elements first. Then sorts each line by 32-bit keys whose unsigned order is the
// requested order, with a stable radix sort from the lowest digit, or by comparison if it is short.
//
// topk() stores the first k of each line. It looks at the line once and keeps at most 2k entries
// and a block more: those below the k-th key so far.
#include <algorithm>
#include <array>
#include <utility>

#include "backend/cpu/in_blocks.h"
#include "backend/cpu/opaque.h"
#include "kernel/topk.h"

namespace tensorgrad::cpu {
namespace {

// Shorter lines are sorted by comparison.
constexpr std::int64_t kMinByDigits = 192;
// topk() sorts a line of fewer than this many times k elements as a whole.
constexpr std::int64_t kSortsUpTo = 16;
constexpr int kDigitBits = 8, kDigits = 4, kBuckets = 1 << kDigitBits;

constexpr Word kSign = Word{1} << 31;
constexpr std::int64_t kKeysAtOnce = 256;

struct Entry {
  Word key, place;
};

// Returns a key whose order is that of the floats. NaN is the largest; -0 equals 0.
Word float_key(Word bits) {
  const Word size = bits & ~kSign, negative = 0 - (bits >> 31);
  const Word key = size == 0 ? kSign : bits ^ (negative | kSign);
  return size > 0x7f800000u ? ~Word{0} : key;
}

// Writes the keys of elements that are `stride` words apart. A key is smaller if its element comes
// first. Without branches, which would be mispredicted.
void write_keys(const Word* at, std::int64_t stride, std::int64_t n, DType dtype, bool descending,
                Word* keys) {
  const Word flip = descending ? ~Word{0} : 0;
  if (dtype == DType::kF32) {
    for (std::int64_t i = 0; i < n; ++i) keys[i] = float_key(at[i * stride]) ^ flip;
  } else {
    const Word order = dtype == DType::kI32 ? flip ^ kSign : flip;
    for (std::int64_t i = 0; i < n; ++i) keys[i] = at[i * stride] ^ order;
  }
}

// Writes the keys and places of a line.
void write_entries(const Word* at, std::int64_t stride, std::int64_t n, DType dtype,
                   bool descending, Entry* entries) {
  std::array<Word, kKeysAtOnce> keys;
  for (std::int64_t first = 0; first < n; first += kKeysAtOnce) {
    const std::int64_t size = std::min(kKeysAtOnce, n - first);
    write_keys(at + first * stride, stride, size, dtype, descending, keys.data());
    for (std::int64_t i = 0; i < size; ++i) {
      entries[first + i] = {keys[static_cast<std::size_t>(i)], static_cast<Word>(first + i)};
    }
  }
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

bool comes_first(const Entry& l, const Entry& r) {
  return l.key != r.key ? l.key < r.key : l.place < r.place;
}

void sort_line(Entry* entries, Entry* other, std::int64_t n) {
  if (n >= kMinByDigits) return sort_by_digits(entries, other, n);
  std::sort(entries, entries + n, comes_first);
}

class SortRunner final : public LaunchRunner {
 public:
  SortRunner(const Prepare& prepare, const SortLaunch& sort)
      : l_(sort),
        elements_(l_.pre * l_.count * l_.post),
        keys_(prepare, l_.keys, elements_, *this),
        epilogue_(prepare, epilogue_spec(prepare.launch, elements_)) {
    epilogue_.lay_out(block_elements(epilogue_.element_registers()), 0);
    const auto line_bytes = static_cast<std::size_t>(2 * l_.count) * sizeof(Entry);
    worker_bytes = std::max({worker_bytes, epilogue_.scratch_bytes(), line_bytes});
  }

  // The shared words contain the elements first. Sorting a line replaces them by indices.
  void run(const RunContext& context) override {
    Word* words = keys_.compute(context);
    epilogue_.start(context.runtime_scalars);
    const std::int64_t lines = l_.pre * l_.post;
    const std::int64_t tasks = task_count(static_cast<double>(elements_) * 10, lines);
    context.pool.parallel_for(tasks, [&](std::int64_t task, int worker) {
      auto* entries = reinterpret_cast<Entry*>(context.scratch(worker));
      const std::int64_t each = ceil_div(lines, tasks);
      const std::int64_t end = std::min(lines, (task + 1) * each);
      for (std::int64_t line = task * each; line < end; ++line) order_line(words, line, entries);
    });
    in_blocks(context, epilogue_, elements_, [&](Frame& frame) {
      frame.acc = words + frame.first;
      epilogue_.run(epilogue_.ops, frame);
    });
  }

 private:
  void order_line(Word* words, std::int64_t line, Entry* entries) const {
    Word* at = words + line / l_.post * l_.count * l_.post + line % l_.post;
    const DType dtype = l_.keys.instrs.back().dtype;
    write_entries(at, l_.post, l_.count, dtype, l_.descending, entries);
    sort_line(entries, entries + l_.count, l_.count);
    for (std::int64_t t = 0; t < l_.count; ++t) at[t * l_.post] = entries[t].place;
  }

  const SortLaunch& l_;
  std::int64_t elements_;
  OperandElements keys_;
  VectorProgram epilogue_;
};

class TopkRunner final : public LaunchRunner {
 public:
  explicit TopkRunner(const Prepare& prepare)
      : kernel_(kernel_of<TopkKernel>(prepare.launch)),
        elements_(kernel_.inputs[0].size),
        values_(prepare, prepare.launch.as<OpaqueLaunch>().inputs[0], elements_, *this),
        dtype_(prepare.launch.as<OpaqueLaunch>().inputs[0].instrs.back().dtype) {
    const auto entry_bytes = static_cast<std::size_t>(capacity()) * sizeof(Entry);
    worker_bytes = std::max(worker_bytes, entry_bytes);
    const Store& store = prepare.launch.stores.at(0);
    places_ = prepare.data[static_cast<std::size_t>(store.binding)] + store.map.views[0].offset;
  }

  void run(const RunContext& context) override {
    const Word* words = values_.compute(context);
    const std::int64_t lines = kernel_.rows * kernel_.post;
    const std::int64_t tasks = task_count(static_cast<double>(elements_), lines);
    const std::int64_t each = ceil_div(lines, tasks);
    context.pool.parallel_for(tasks, [&](std::int64_t task, int worker) {
      auto* entries = reinterpret_cast<Entry*>(context.scratch(worker));
      const std::int64_t end = std::min(lines, (task + 1) * each);
      for (std::int64_t line = task * each; line < end; ++line) order_line(words, line, entries);
    });
  }

 private:
  [[nodiscard]] bool sorts_all() const { return kSortsUpTo * kernel_.k > kernel_.count; }
  [[nodiscard]] std::int64_t capacity() const {
    return sorts_all() ? 2 * kernel_.count : 2 * kernel_.k + kKeysAtOnce;
  }

  void order_line(const Word* words, std::int64_t line, Entry* entries) const {
    const std::int64_t n = kernel_.count, k = kernel_.k, post = kernel_.post;
    const Word* at = words + line / post * n * post + line % post;
    if (sorts_all()) {
      write_entries(at, post, n, dtype_, kernel_.descending, entries);
      sort_line(entries, entries + n, n);
    } else {
      select(at, entries);
    }
    Word* to = places_ + line / post * k * post + line % post;
    for (std::int64_t i = 0; i < k; ++i) to[i * post] = entries[i].place;
  }

  // Puts the first k entries of a line in front, in order.
  void select(const Word* at, Entry* entries) const {
    const std::int64_t n = kernel_.count, k = kernel_.k, post = kernel_.post;
    std::array<Word, kKeysAtOnce> keys;
    std::int64_t kept = 0;
    bool bounded = false;
    Word bound = 0;  // the k-th key so far. An equal key that comes later is not among the first k.
    for (std::int64_t first = 0; first < n; first += kKeysAtOnce) {
      const std::int64_t size = std::min(kKeysAtOnce, n - first);
      write_keys(at + first * post, post, size, dtype_, kernel_.descending, keys.data());
      Word least = ~Word{0};
      for (std::int64_t i = 0; i < size; ++i) {
        least = std::min(least, keys[static_cast<std::size_t>(i)]);
      }
      if (bounded && least >= bound) continue;
      for (std::int64_t i = 0; i < size; ++i) {
        const Word key = keys[static_cast<std::size_t>(i)];
        if (!bounded || key < bound) entries[kept++] = {key, static_cast<Word>(first + i)};
      }
      if (kept < 2 * k) continue;
      std::nth_element(entries, entries + k - 1, entries + kept, comes_first);
      kept = k;
      bound = entries[k - 1].key;
      bounded = true;
    }
    if (kept > k) std::nth_element(entries, entries + k - 1, entries + kept, comes_first);
    std::sort(entries, entries + k, comes_first);
  }

  const TopkKernel& kernel_;
  std::int64_t elements_;
  OperandElements values_;
  DType dtype_;
  Word* places_ = nullptr;
};

}  // namespace

std::unique_ptr<LaunchRunner> make_topk(const Prepare& prepare) {
  return std::make_unique<TopkRunner>(prepare);
}

std::unique_ptr<LaunchRunner> make_runner(const Prepare& prepare, const SortLaunch& sort) {
  return std::make_unique<SortRunner>(prepare, sort);
}

}  // namespace tensorgrad::cpu
