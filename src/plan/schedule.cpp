// SPDX-License-Identifier: MIT
// List scheduling. Small work off the critical path (weight gradients, bias gradients) is delayed
// until it can be concurrent with work of similar duration, or until much of it is ready. Delayed
// work keeps its operands in memory.
#include "plan/schedule.h"

#include <algorithm>
#include <map>

#include "base/visits.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Work that takes up to this many times as long as the lead of a step may join it.
constexpr double kLonger = 1.25;
constexpr std::size_t kMaxConcurrent = 20;

class Scheduler {
 public:
  Scheduler(const std::vector<GroupWork>& groups, int max_bindings, const GpuModel& gpu)
      : groups_(groups),
        max_bindings_(max_bindings),
        launch_microseconds_(gpu.launch_microseconds),
        waiting_(groups.size()) {
    feeds_.resize(groups.size());
    for (std::size_t g = 0; g < groups.size(); ++g) {
      waiting_[g] = groups[g].before.size();
      for (const int from : groups[g].before) feeds_[index(from)].push_back(static_cast<int>(g));
      if (waiting_[g] == 0) add_ready(static_cast<int>(g));
    }
  }

  std::vector<std::vector<int>> run() {
    if (!measure()) return {};
    std::vector<std::vector<int>> stages;
    while (!separate_.empty() || !small_.empty()) {
      stages.push_back(next_stage());
      for (const int g : stages.back()) finish(g);
    }
    return stages;
  }

 private:
  static std::size_t index(int g) { return static_cast<std::size_t>(g); }
  [[nodiscard]] const GroupWork& work(int g) const { return groups_[index(g)]; }
  [[nodiscard]] bool is_small(int g) const { return max_bindings_ > 0 && work(g).concurrent != 0; }

  void add_ready(int g) {
    (is_small(g) ? small_ : separate_).insert(g);
    if (is_small(g)) ++ready_[work(g).concurrent];
  }

  void finish(int g) {
    if (small_.erase(g) > 0) --ready_[work(g).concurrent];
    separate_.erase(g);
    for (const int user : feeds_[index(g)]) {
      if (--waiting_[index(user)] == 0) add_ready(user);
    }
  }

  // Computes left_[g], the time from the start of g to the end of everything that depends on it.
  // Returns false if there is a cycle.
  bool measure() {
    left_.assign(groups_.size(), 0);
    std::vector<std::size_t> users(groups_.size());
    std::vector<int> done;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      users[g] = feeds_[g].size();
      if (users[g] == 0) done.push_back(static_cast<int>(g));
    }
    for (std::size_t i = 0; i < done.size(); ++i) {
      const int g = done[i];
      left_[index(g)] += work(g).microseconds + launch_microseconds_;
      for (const int from : work(g).before) {
        left_[index(from)] = std::max(left_[index(from)], left_[index(g)]);
        if (--users[index(from)] == 0) done.push_back(from);
      }
    }
    return done.size() == groups_.size();
  }

  [[nodiscard]] std::size_t count_ready(int kind) const {
    const auto at = ready_.find(kind);
    return at == ready_.end() ? 0 : at->second;
  }

  // Returns the lead of the next step.
  [[nodiscard]] int pick() const {
    int urgent = -1;
    visit(1 + static_cast<std::int64_t>(small_.size()));
    for (const int g : small_) {
      if (count_ready(work(g).concurrent) >= kMaxConcurrent) return g;
      if (urgent < 0 || left_[index(g)] > left_[index(urgent)]) urgent = g;
    }
    if (urgent < 0) return *separate_.begin();
    if (separate_.empty()) return urgent;
    const int other = *separate_.begin();
    if (max_bindings_ == 0) return std::min(urgent, other);
    // Delayed work keeps waiting while large work runs, since that leaves no room for it.
    return other < urgent || left_[index(other)] > left_[index(urgent)] ? other : urgent;
  }

  std::vector<int> next_stage() {
    const int lead = pick();
    if (!is_small(lead)) return {lead};
    const bool many = count_ready(work(lead).concurrent) >= kMaxConcurrent;
    std::vector<int> found;
    visit(static_cast<std::int64_t>(small_.size()));
    for (const int g : small_) {
      if (g == lead || work(g).concurrent != work(lead).concurrent) continue;
      const bool free = work(g).microseconds <= kLonger * work(lead).microseconds;
      const bool urgent = left_[index(g)] + launch_microseconds_ > left_[index(lead)];
      if (many || free || urgent) found.push_back(g);
    }
    std::stable_sort(found.begin(), found.end(),
                     [&](int a, int b) { return left_[index(a)] > left_[index(b)]; });
    std::vector<int> stage = {lead};
    std::set<std::int64_t> buffers = work(lead).buffers;
    for (const int g : found) {
      if (stage.size() == kMaxConcurrent) break;
      std::set<std::int64_t> all = buffers;
      all.insert(work(g).buffers.begin(), work(g).buffers.end());
      if (static_cast<int>(all.size()) > max_bindings_) continue;
      buffers = std::move(all);
      stage.push_back(g);
    }
    // Longest first, so that the last to start is not the last to finish.
    std::stable_sort(stage.begin(), stage.end(),
                     [&](int a, int b) { return work(a).microseconds > work(b).microseconds; });
    return stage;
  }

  const std::vector<GroupWork>& groups_;
  int max_bindings_;
  double launch_microseconds_;
  std::vector<std::size_t> waiting_;
  std::vector<std::vector<int>> feeds_;
  std::vector<double> left_;
  std::set<int> separate_, small_;    // ready to run
  std::map<int, std::size_t> ready_;  // number of groups of small_ per class
};

}  // namespace

std::vector<std::vector<int>> order_schedule(const std::vector<GroupWork>& groups, int max_bindings,
                                             const GpuModel& gpu) {
  return Scheduler(groups, max_bindings, gpu).run();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
