// SPDX-License-Identifier: MIT
// The processes that train one run together. Rank 0 has the run: it decides what is done next,
// writes all files and prints. The others follow its orders.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/interrupt.h"
#include "run/mpi.h"
#include "tensorgrad/distributed/communicator.h"
#include "tensorgrad/train/device.h"
#include "tensorgrad/train/options.h"

namespace tensorgrad::cli {

// Thrown on other ranks if rank 0 reports an error. No std::exception, so that handlers of errors
// let it pass.
struct ReportedByFirst {};

// What rank 0 tells the others to do.
enum class Order : std::int32_t {
  kWait,    // wait for the next order
  kTrain,   // run as many steps as the number of the order
  kTest,    // evaluate the model on the held-out data
  kSave,    // call save() of the trainer
  kParams,  // download the parameters
  kSample,  // generate a sample
  kEnd,     // end; the number is the exit code
  kFail,    // end: rank 0 reports an error
};
struct GivenOrder {
  Order order = Order::kWait;
  std::int64_t number = 0;
};

// Something that all ranks must have in common.
struct SharedText {
  std::string what;  // for errors, such as "--lr"
  std::string text;
};

class Ranks {
 public:
  // One process.
  Ranks() = default;
  // A rank of a group; null: one process. `options`: what the ranks divide.
  explicit Ranks(std::shared_ptr<Communicator> group, const RankOptions& options = {})
      : group_(std::move(group)), options_(options) {}

  [[nodiscard]] bool several() const { return group_ != nullptr && group_->size() > 1; }
  [[nodiscard]] int size() const { return group_ == nullptr ? 1 : group_->size(); }
  [[nodiscard]] int rank() const { return group_ == nullptr ? 0 : group_->rank(); }
  [[nodiscard]] bool first() const { return rank() == 0; }
  // For CompileOptions::distributed; null if there is one process.
  [[nodiscard]] std::shared_ptr<Communicator> communicator() const {
    return several() ? group_ : nullptr;
  }

  // For CompileOptions::shard_optimizer: whether there are several ranks, which divide the states.
  [[nodiscard]] bool shards() const { return options_.sharding() != nullptr && several(); }
  // For CompileOptions::shard_parameters: whether they divide the parameters as well. Downloads of
  // parameters and attached functions are then calls that all ranks make.
  [[nodiscard]] bool shards_params() const { return options_.shard_parameters && several(); }
  // Returns the option that divides something, or null.
  [[nodiscard]] const char* sharding() const { return options_.sharding(); }

  // All ranks call the following functions, in the same order.

  // Returns the texts of all ranks, in the order of their numbers.
  [[nodiscard]] std::vector<std::string> gather(std::string_view text) const;
  // Collects numbers of the same count from each rank in the order of their numbers.
  void gather(std::span<const float> mine, std::span<float> all) const;
  // Returns the sums over all ranks, added in the order of their numbers.
  [[nodiscard]] std::vector<double> sum(const std::vector<double>& values) const;
  // Throws on all ranks if a rank differs from rank 0: UserError, which names the rank and both
  // texts, on rank 0, and ReportedByFirst on the others. All pass the same number of elements.
  void check_same(const std::vector<SharedText>& all) const;
  // Does work that may fail on some ranks only. What it exchanges must come before that. If it
  // fails anywhere, rank 0 throws the error of the first rank that failed, and the others throw
  // ReportedByFirst.
  void together(const std::function<void()>& work) const;
  // As together(), for work that only rank 0 does. It exchanges nothing.
  void on_first(const std::function<void()>& work) const {
    together([&] {
      if (first()) work();
    });
  }
  // Throws Interrupted on all ranks if one has caught a signal.
  void check_interrupted() const;

  // The orders. Each exchanges the signals as well: interrupted() is then set on all ranks.

  // Rank 0: sends an order, for which the others wait.
  void order(Order order, std::int64_t number = 0) const;
  // Rank 0: sends an order and does the same work as the others. If `work` throws anything but
  // Interrupted, the others may still be in the call that failed.
  template <class Work>
  auto lead(Order order, std::int64_t number, const Work& work) {
    this->order(order, number);
    leads_ = true;
    try {
      auto result = work();
      leads_ = false;
      return result;
    } catch (const Interrupted&) {
      leads_ = false;
      throw;
    }
  }
  // Rank 0: as lead(), but the others do the work only if the parameters are divided.
  template <class Work>
  auto lead_with_params(Order order, const Work& work) {
    return shards_params() ? lead(order, 0, work) : work();
  }
  // Rank 0: called if the work of lead() threw the same error on all ranks, or if the others have
  // done theirs.
  void failed_on_all_ranks() { leads_ = false; }
  // Rank 0: calls save() of the trainer. If the states are divided, the others do so too.
  void lead_save(const std::function<void()>& save);
  // Rank 0: does work that sends orders, and returns its exit code. The others end with this code,
  // or after an error of rank 0.
  int lead_run(const std::function<int()>& work);
  // Rank 0: as order(kWait), at most once per second. Called during work that only rank 0 does, so
  // that the others know that it is alive and it hears of their signals.
  void keep_waiting();
  // Other ranks: waits for the next order and returns it.
  [[nodiscard]] GivenOrder next_order() const;

 private:
  struct Message;
  Message exchange(Order order, std::int64_t number) const;

  std::shared_ptr<Communicator> group_;
  RankOptions options_;
  bool leads_ = false;                               // in the work of lead()
  std::chrono::steady_clock::time_point told_ = {};  // of the last keep_waiting()
};

// Joins the processes of the launcher. Throws as join_mpi(), and if the ranks have different
// versions of tg, different commands, such as "tg train --resume", or if only some have
// --shard-optimizer or --shard-parameters.
Ranks join_ranks(const RankOptions& options, const std::string& command);
// Compares the version and the command.
void check_versions(const Ranks& ranks, const std::string& version, const std::string& command);

// Returns what run.json must have in common on all ranks: the settings, the configuration of the
// model, and what describes the data.
std::vector<SharedText> shared_settings(const std::string& run_json);

// Returns `batch`, that of all ranks, divided by their number. Throws UserError if there is a
// remainder.
std::int64_t batch_per_rank(std::int64_t batch, const Ranks& ranks);

// Opens the device of this rank. Of several equal adapters of a host, each rank takes another one.
// Ranks on the CPU divide the cores on which they may run, unless the number of threads is set.
// Throws as compile(), and if one rank would train on a GPU and another one on the CPU. With one
// process, returns the options.
DeviceOptions device_of_rank(const Ranks& ranks, const DeviceOptions& options);

// Calls `work`. Errors of other ranks than the first name the rank.
int run_rank(const Ranks& ranks, const std::function<int()>& work);

// Returns "", or how many ranks there are, as a line of the head that `tg train` prints.
std::string ranks_text(const Ranks& ranks, std::int64_t batch, std::string_view unit);
// Returns "", or the memory of each of several ranks, as such a line.
std::string rank_memory_text(const Ranks& ranks, const CompileReport& report);

}  // namespace tensorgrad::cli
