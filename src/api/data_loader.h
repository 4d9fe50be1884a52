// SPDX-License-Identifier: MIT
// The machinery behind DataLoader: a queue of batches in order, filled by threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tensorgrad/train/data_loader.h"

namespace tensorgrad::inline TENSORGRAD_ABI::detail {

class LoaderImpl {
 public:
  LoaderImpl(DataLoader::Get get, std::int64_t size, const LoaderOptions& options);
  ~LoaderImpl();
  LoaderImpl(const LoaderImpl&) = delete;
  LoaderImpl& operator=(const LoaderImpl&) = delete;

  Batch next();
  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] std::int64_t batches_per_epoch() const { return batches_; }
  [[nodiscard]] LoaderState state() const;
  void load_state(const LoaderState& state);
  void reset() { load_state({0, 0, options_.seed}); }

  // The place and what it depends on, for a checkpoint.
  [[nodiscard]] std::string text() const;
  // What text() of such a loader wrote. Throws UserError where it is another's or none.
  [[nodiscard]] LoaderState parse(const std::string& text) const;

 private:
  using Order = std::shared_ptr<const std::vector<std::int32_t>>;
  // A batch that is made or being made. Only `done` is read while it is being made.
  struct Job {
    LoaderState place;
    Order order;  // of its epoch; none: as they are counted
    Batch batch;
    std::exception_ptr error;
    bool done = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  [[nodiscard]] LoaderState after(LoaderState place) const;
  void check(const LoaderState& state) const;
  void work();
  // Makes the batch after those in the queue, at the queue's end. Unlocks while it does.
  void produce(Lock& lock);
  void set_order(Job& job);
  void make(Job& job) const;
  [[nodiscard]] NamedTensors sample(std::int64_t index, std::int64_t epoch) const;
  void restart(const LoaderState& from);

  const DataLoader::Get get_;
  const std::int64_t size_;
  const LoaderOptions options_;
  const std::int64_t batches_;

  mutable std::mutex mutex_;          // of all below
  std::condition_variable room_;      // the queue is shorter, or the end has come
  std::condition_variable finished_;  // a job is done
  LoaderState given_;                 // what next() gives next
  LoaderState begun_;                 // what the next job is
  std::deque<std::shared_ptr<Job>> jobs_;
  Order order_;  // of the epoch and seed below
  LoaderState order_of_;
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
