// SPDX-License-Identifier: MIT
// Ranks that are threads of one process.
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>

#include "base/numbers.h"
#include "base/parallel.h"
#include "tensorgrad/distributed/communicator.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr double kLongestTimeout = 1e8;  // seconds; clocks count nanoseconds in 64 bits

// What a member passes to the call that it makes.
struct Contribution {
  const char* call = "";
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  float* sum = nullptr;  // where sums are written
};

// State that the members share. Each call has rounds; a round ends when every member has arrived.
class ThreadRanks {
 public:
  ThreadRanks(int size, double timeout_seconds)
      : timeout_(timeout_seconds),
        contributions_(static_cast<std::size_t>(size)),
        arrived_(contributions_.size(), false) {}

  [[nodiscard]] int size() const { return static_cast<int>(contributions_.size()); }
  // What member `rank` passed. Valid between two rounds of a call.
  [[nodiscard]] const Contribution& of(int rank) const {
    return contributions_[static_cast<std::size_t>(rank)];
  }

  // Begins a call: publishes what this member passes and waits for the others. Throws
  // DistributedError, also in all other members, if they make different calls.
  void begin(int rank, const Contribution& mine) {
    std::unique_lock lock(mutex_);
    contributions_[static_cast<std::size_t>(rank)] = mine;
    arrive(lock, rank, mine.call, true);
  }
  // Ends a round: what the members read or wrote in it is complete. Waits without a limit, because
  // all members are in the call and the others may still access the memory of this one.
  void next(int rank, const char* call) {
    std::unique_lock lock(mutex_);
    arrive(lock, rank, call, false);
  }
  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    fail("rank " + std::to_string(rank) + " has ended");
  }

 private:
  void arrive(std::unique_lock<std::mutex>& lock, int rank, const char* call, bool compare) {
    check(call);
    arrived_[static_cast<std::size_t>(rank)] = true;
    if (std::find(arrived_.begin(), arrived_.end(), false) == arrived_.end()) {
      arrived_.assign(arrived_.size(), false);
      if (compare) compare_calls();
      ++round_;
      changed_.notify_all();
      return check(call);
    }
    const std::uint64_t round = round_;
    const auto over = [&] { return round_ != round; };
    if (!compare) return changed_.wait(lock, over);
    if (!changed_.wait_for(lock, std::chrono::duration<double>(timeout_),
                           [&] { return over() || !failure_.empty(); })) {
      fail(missing() + " did not answer within " + number_text(timeout_) + " seconds");
    }
    check(call);
  }

  void check(const char* call) const {
    if (!failure_.empty()) throw DistributedError(std::string(call) + ": " + failure_);
  }
  void fail(const std::string& what) {
    if (failure_.empty()) failure_ = what;
    changed_.notify_all();
  }

  void compare_calls() {
    for (int rank = 1; rank < size(); ++rank) {
      const Contribution &first = of(0), &other = of(rank);
      if (std::strcmp(first.call, other.call) == 0 && first.bytes == other.bytes) continue;
      const auto text = [](const Contribution& each) {
        return std::string(each.call) + " of " + std::to_string(each.bytes) + " bytes";
      };
      fail("rank " + std::to_string(rank) + " makes another call than rank 0: " + text(other) +
           ", not " + text(first));
      return;
    }
  }

  [[nodiscard]] std::string missing() const {
    std::string text;
    for (std::size_t rank = 0; rank < arrived_.size(); ++rank) {
      if (!arrived_[rank]) text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank);
    }
    return text;
  }

  const double timeout_;
  std::mutex mutex_;  // guards all members below; between rounds, contributions_ is only read
  std::condition_variable changed_;
  std::vector<Contribution> contributions_;
  std::vector<bool> arrived_;
  std::uint64_t round_ = 0;
  std::string failure_;  // why no further call can succeed
};

class ThreadMember final : public Communicator {
 public:
  ThreadMember(std::shared_ptr<ThreadRanks> group, int rank, std::int64_t bucket_bytes)
      : group_(std::move(group)), rank_(rank), bucket_bytes_(bucket_bytes) {}
  ThreadMember(const ThreadMember&) = delete;
  ThreadMember& operator=(const ThreadMember&) = delete;
  ~ThreadMember() override { group_->leave(rank_); }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return group_->size(); }

  void all_reduce_sum(std::span<float> values) override { all_reduce_sum_into(values, values); }

  // Each member adds one part of the elements and writes the sums to the memory of all members.
  void all_reduce_sum_into(std::span<const float> mine, std::span<float> sum) override {
    constexpr const char* kCall = "all_reduce_sum";
    const std::size_t part = (mine.size() + members() - 1) / members();
    const std::size_t begin = std::min(static_cast<std::size_t>(rank_) * part, mine.size());
    const std::size_t count = std::min(part, mine.size() - begin);
    group_->begin(rank_, {kCall, std::as_bytes(mine).data(), mine.size_bytes(), sum.data()});
    const std::size_t helpers = std::clamp<std::size_t>(count / kSumPerThread, 1, most_helpers());
    if (helpers == 1) {
      add(begin, count);
    } else {
      threads_.run(helpers, [&](std::size_t i) {
        const std::size_t from = count * i / helpers, to = count * (i + 1) / helpers;
        add(begin + from, to - from);
      });
    }
    group_->next(rank_, kCall);
  }

  [[nodiscard]] std::int64_t bucket_bytes() const override { return bucket_bytes_; }

  void broadcast(std::span<std::byte> bytes) override {
    group_->begin(rank_, {"broadcast", bytes.data(), bytes.size()});
    if (rank_ != 0 && !bytes.empty()) std::memcpy(bytes.data(), group_->of(0).data, bytes.size());
    group_->next(rank_, "broadcast");
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    group_->begin(rank_, {"all_gather", mine.data(), mine.size()});
    for (std::size_t rank = 0; rank < members() && !mine.empty(); ++rank) {
      std::memcpy(all.data() + rank * mine.size(), group_->of(static_cast<int>(rank)).data,
                  mine.size());
    }
    group_->next(rank_, "all_gather");
  }

 private:
  [[nodiscard]] std::size_t members() const { return static_cast<std::size_t>(size()); }
  [[nodiscard]] const float* floats_of(int rank) const {
    return reinterpret_cast<const float*>(group_->of(rank).data);
  }

  [[nodiscard]] std::size_t most_helpers() const {
    const std::size_t cores = static_cast<std::size_t>(usable_cores()) / members();
    return std::clamp<std::size_t>(cores, 1, kMaxHelpers);
  }

  // Adds elements of all members in the order of their numbers. The sums are gathered in the cache,
  // because the memory that they are written to may be slow to read.
  void add(std::size_t begin, std::size_t count) {
    std::array<float, kExchangeBlock> sums;
    for (const std::size_t end = begin + count; begin < end;) {
      const std::size_t some = std::min(kExchangeBlock, end - begin);
      std::copy_n(floats_of(0) + begin, some, sums.begin());
      for (int rank = 1; rank < size(); ++rank) {
        const float* other = floats_of(rank) + begin;
        for (std::size_t i = 0; i < some; ++i) sums[i] += other[i];
      }
      for (int rank = 0; rank < size(); ++rank)
        std::copy_n(sums.begin(), some, group_->of(rank).sum + begin);
      begin += some;
    }
  }

  static constexpr std::size_t kExchangeBlock = 2048;      // elements
  static constexpr std::size_t kSumPerThread = 128 << 10;  // elements that are worth a thread
  static constexpr std::size_t kMaxHelpers = 8;

  std::shared_ptr<ThreadRanks> group_;
  int rank_;
  std::int64_t bucket_bytes_;
  ThreadGroup threads_;  // add parts of long sums
};

}  // namespace

std::vector<std::shared_ptr<Communicator>> make_thread_group(int size,
                                                             const ThreadGroupOptions& options) {
  if (size < 1) {
    throw UserError("make_thread_group: expected at least 1 rank, got " + std::to_string(size));
  }
  if (!(options.timeout_seconds > 0 && options.timeout_seconds <= kLongestTimeout)) {
    throw UserError("make_thread_group: timeout_seconds: expected more than 0 and at most " +
                    number_text(kLongestTimeout) + ", got " + number_text(options.timeout_seconds));
  }
  if (options.bucket_bytes < 1) {
    throw UserError("make_thread_group: bucket_bytes: expected at least 1, got " +
                    std::to_string(options.bucket_bytes));
  }
  const auto group = std::make_shared<ThreadRanks>(size, options.timeout_seconds);
  std::vector<std::shared_ptr<Communicator>> members;
  for (int rank = 0; rank < size; ++rank)
    members.push_back(std::make_shared<ThreadMember>(group, rank, options.bucket_bytes));
  return members;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
