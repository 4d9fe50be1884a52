// SPDX-License-Identifier: MIT
// Implementation of DataLoader: an ordered queue of batches, filled by worker threads.
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

  // Returns the position and everything it depends on, as text for a checkpoint.
  [[nodiscard]] std::string text() const;
  // Parses the result of text(). Throws UserError if it is malformed or from a different loader.
  [[nodiscard]] LoaderState parse(const std::string& text) const;

 private:
  using Order = std::shared_ptr<const std::vector<std::int32_t>>;
  // A batch that is ready or being made. While it is being made, other threads read only `done`.
  struct Job {
    LoaderState place;
    Order order;  // of the epoch's samples; null: sequential
    Batch batch;
    std::exception_ptr error;
    bool done = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  // Returns the size of the batches of all parts together.
  [[nodiscard]] std::int64_t all_parts() const { return options_.batch * options_.num_shards; }
  [[nodiscard]] LoaderState after(LoaderState place) const;
  void check(const LoaderState& state) const;
  void work();
  // Appends a job to the queue and makes its batch. Unlocks the mutex meanwhile.
  void produce(Lock& lock);
  void set_order(Job& job);
  void make(Job& job) const;
  [[nodiscard]] NamedTensors sample(std::int64_t index, std::int64_t epoch) const;
  void restart(const LoaderState& from);

  const DataLoader::Get get_;
  const std::int64_t size_;
  const LoaderOptions options_;
  const std::int64_t batches_;

  mutable std::mutex mutex_;          // guards all members below
  std::condition_variable room_;      // signaled when the queue gets shorter or the loader stops
  std::condition_variable finished_;  // signaled when a job is done
  LoaderState given_;                 // position of the batch that next() returns
  LoaderState begun_;                 // position of the next job
  std::deque<std::shared_ptr<Job>> jobs_;
  std::exception_ptr failure_;  // kept a worker from adding a job; next() throws it
  Order order_;                 // order for the epoch and seed in order_of_
  LoaderState order_of_;
  std::atomic<bool> stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::detail
