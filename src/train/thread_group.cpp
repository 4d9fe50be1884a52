// SPDX-License-Identifier: MIT
// Ranks that are threads of one process.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>

#include "base/numbers.h"
#include "tensorgrad/distributed/communicator.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr double kLongestTimeout = 1e8;  // seconds; clocks count nanoseconds in 64 bits

// What a member passes to the call that it makes.
struct Contribution {
  const char* call = "";
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
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
  // Ends a round: what the members read or wrote in it is complete.
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
    if (!changed_.wait_for(lock, std::chrono::duration<double>(timeout_),
                           [&] { return over() || !failure_.empty(); })) {
      fail(missing() + " did not answer within " + number_text(timeout_) + " seconds");
    }
    if (!over()) check(call);
    if (compare) check(call);
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
  ThreadMember(std::shared_ptr<ThreadRanks> group, int rank)
      : group_(std::move(group)), rank_(rank) {}
  ThreadMember(const ThreadMember&) = delete;
  ThreadMember& operator=(const ThreadMember&) = delete;
  ~ThreadMember() override { group_->leave(rank_); }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return group_->size(); }

  // Each member adds one part of the elements. All then copy the parts of the others.
  void all_reduce_sum(std::span<float> values) override {
    constexpr const char* kCall = "all_reduce_sum";
    const std::size_t part = (values.size() + members() - 1) / members();
    const auto begin_of = [&](std::size_t rank) { return std::min(rank * part, values.size()); };
    const std::size_t begin = begin_of(static_cast<std::size_t>(rank_));
    const std::size_t count = begin_of(static_cast<std::size_t>(rank_) + 1) - begin;
    sum_.resize(count);  // may throw, which others must not wait for
    group_->begin(rank_,
                  {kCall, reinterpret_cast<const std::byte*>(values.data()), values.size_bytes()});
    std::copy_n(floats_of(0) + begin, count, sum_.begin());
    for (int rank = 1; rank < size(); ++rank) {
      const float* other = floats_of(rank) + begin;
      for (std::size_t i = 0; i < count; ++i) sum_[i] += other[i];
    }
    group_->next(rank_, kCall);
    group_->begin(rank_, {kCall, reinterpret_cast<const std::byte*>(sum_.data()), 0});
    for (std::size_t rank = 0; rank < members(); ++rank) {
      std::copy_n(floats_of(static_cast<int>(rank)), begin_of(rank + 1) - begin_of(rank),
                  values.begin() + static_cast<std::ptrdiff_t>(begin_of(rank)));
    }
    group_->next(rank_, kCall);
  }

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

  std::shared_ptr<ThreadRanks> group_;
  int rank_;
  std::vector<float> sum_;  // of this member's part
};

}  // namespace

void Communicator::barrier() {
  const std::byte mine{1};
  std::vector<std::byte> all(static_cast<std::size_t>(size()));
  all_gather({&mine, 1}, all);
}

std::vector<std::shared_ptr<Communicator>> make_thread_group(int size,
                                                             const ThreadGroupOptions& options) {
  if (size < 1) {
    throw UserError("make_thread_group: expected at least 1 rank, got " + std::to_string(size));
  }
  if (!(options.timeout_seconds > 0 && options.timeout_seconds <= kLongestTimeout)) {
    throw UserError("make_thread_group: timeout_seconds: expected more than 0 and at most " +
                    number_text(kLongestTimeout) + ", got " + number_text(options.timeout_seconds));
  }
  const auto group = std::make_shared<ThreadRanks>(size, options.timeout_seconds);
  std::vector<std::shared_ptr<Communicator>> members;
  for (int rank = 0; rank < size; ++rank)
    members.push_back(std::make_shared<ThreadMember>(group, rank));
  return members;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
