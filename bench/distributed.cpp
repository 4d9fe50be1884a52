// SPDX-License-Identifier: MIT
// Training on several ranks that are threads of this process, each on a GPU of its own if there are
// several, compared with one rank.
#include <tensorgrad/distributed/adapters.h>
#include <tensorgrad/distributed/communicator.h>
#include <tensorgrad/tensorgrad.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>

#include "models.h"
#include "workloads.h"

namespace tensorgrad::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Ranks = std::shared_ptr<Communicator>;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Forwards all calls, and measures those that exchange gradients and, if `parameters` is set, also
// those that exchange sharded parameters.
class Measured final : public Communicator {
 public:
  Measured(Ranks inner, bool parameters) : inner_(std::move(inner)), parameters_(parameters) {}

  [[nodiscard]] int rank() const override { return inner_->rank(); }
  [[nodiscard]] int size() const override { return inner_->size(); }
  void all_reduce_sum(std::span<float> values) override {
    measure(parameters_ && values.size_bytes() >= kMinMeasured, values.size_bytes(),
            [&] { inner_->all_reduce_sum(values); });
  }
  void all_reduce_sum_into(std::span<const float> mine, std::span<float> sum) override {
    measure(true, mine.size_bytes(), [&] { inner_->all_reduce_sum_into(mine, sum); });
  }
  void broadcast(std::span<std::byte> bytes) override { inner_->broadcast(bytes); }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    measure(parameters_ && all.size() >= kMinMeasured, all.size(),
            [&] { inner_->all_gather(mine, all); });
  }
  [[nodiscard]] std::int64_t bucket_bytes() const override { return inner_->bucket_bytes(); }

  struct Spent {
    double seconds = 0, bytes = 0, buckets = 0;
  };
  Spent spent;  // read it between steps

 private:
  template <class Call>
  void measure(bool counts, std::size_t bytes, const Call& call) {
    const Clock::time_point start = Clock::now();
    call();
    if (!counts) return;
    spent.seconds += seconds_since(start);
    spent.bytes += static_cast<double>(bytes);
    spent.buckets += 1;
  }

  // Smaller exchanges are losses or checks of the ranks.
  static constexpr std::size_t kMinMeasured = 1024;

  Ranks inner_;
  bool parameters_;
};

// Returns the numbers of all adapters that equal the one that `auto` selects, or only -1 if it
// selects no GPU.
std::vector<int> adapters_of(const Options& options) {
  std::string note;
  std::vector<int> equal;
  if (!options.allow_software) equal = equal_adapters(devices({}, note));
  if (equal.empty()) equal.push_back(-1);
  return equal;
}

struct Result {
  std::string device;
  std::int64_t parameters = 0;
  CompileReport report;
  std::vector<double> seconds;  // of each call
  double steps = 0;             // of all calls
  HostTimes host;
  Measured::Spent spent;
};

// Runs steps on one rank for as long as rank 0 decides. `control` is a second group of the ranks.
Result run_rank(const Options& options, const std::string& name, const DeviceOptions& device,
                const Ranks& ranks, Communicator& control) {
  const auto measured =
      ranks->size() > 1 ? std::make_shared<Measured>(ranks, !options.shard.empty()) : nullptr;
  Workload made = make_workload(name, Feeding::kDevice, device,
                                {.batch = options.batch,
                                 .length = options.length,
                                 .mixed = options.mixed,
                                 .ranks = measured,
                                 .shard = options.shard});
  const auto rank0_continues = [&](bool more) {
    auto decided = static_cast<std::byte>(more);
    control.broadcast({&decided, 1});
    return decided != std::byte{0};
  };
  const Clock::time_point warm = Clock::now();
  do {
    made.go();
  } while (rank0_continues(seconds_since(warm) < options.seconds * 0.2));
  Result result;
  if (measured) measured->spent = {};
  const HostTimes before = made.trainer.host_times();
  const Clock::time_point start = Clock::now();
  do {
    const Clock::time_point begin = Clock::now();
    made.go();
    control.barrier();
    result.seconds.push_back(seconds_since(begin));
  } while (rank0_continues(seconds_since(start) < options.seconds || result.seconds.size() < 5));
  result.steps = static_cast<double>(result.seconds.size()) * made.steps_at_once;
  result.host = made.trainer.host_times() - before;
  if (measured) result.spent = measured->spent;
  result.device = made.trainer.device();
  result.parameters = made.parameters();
  result.report = made.trainer.report();
  std::sort(result.seconds.begin(), result.seconds.end());
  for (double& each : result.seconds) each /= made.steps_at_once;
  return result;
}

// Returns the result of rank 0.
Result run_ranks(const Options& options, const std::string& device, const std::string& name,
                 int count, const std::vector<int>& adapters) {
  ThreadGroupOptions group;
  if (options.bucket_bytes > 0) group.bucket_bytes = options.bucket_bytes;
  std::vector<Ranks> ranks = make_thread_group(count, group), control = make_thread_group(count);
  std::vector<Result> results(ranks.size());
  std::vector<std::exception_ptr> errors(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i, own = std::move(ranks[i]), steering = std::move(control[i])]() {
      DeviceOptions chosen;
      chosen.kind = device;
      chosen.allow_software = options.allow_software;
      chosen.tuning_cache = options.tuning_cache;
      chosen.threads = options.threads;
      if (device == "webgpu") chosen.adapter = adapters[i % adapters.size()];
      try {
        results[i] = run_rank(options, name, chosen, own, *steering);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
    // The thread keeps the last references, so that the others end if it fails.
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return std::move(results.front());
}

}  // namespace

void distributed(const Options& options, const std::string& device, const std::string& workload) {
  const std::vector<int> adapters =
      device == "webgpu" ? adapters_of(options) : std::vector<int>{-1};
  const auto median = [](const Result& result) {
    return result.seconds[result.seconds.size() / 2] * 1e6;
  };
  const Result one = run_ranks(options, device, workload, 1, adapters);
  const Result all = run_ranks(options, device, workload, options.ranks, adapters);
  const double ranks = options.ranks;
  const double exchanging = all.spent.seconds * 1e6 / all.steps;
  Fields fields = {{"measure", text("distributed")},
                   {"workload", text(workload + (options.mixed ? " (mixed precision)" : ""))},
                   {"mode", text(options.shard.empty() ? "run" : "run, sharded " + options.shard)},
                   {"who", text("tensorgrad")}};
  append(fields, described_device(all.device));
  append(fields, {{"parameters", std::to_string(all.parameters)},
                  {"ranks", std::to_string(options.ranks)},
                  {"gpus", std::to_string(std::min<std::size_t>(
                               adapters.size(), static_cast<std::size_t>(options.ranks)))},
                  {"us_per_step", number(median(all))},
                  {"us_of_one_rank", number(median(one))},
                  {"throughput", number(ranks * median(one) / median(all))},
                  {"exchanged_bytes", std::to_string(std::llround(all.spent.bytes / all.steps))},
                  {"buckets", number(all.spent.buckets / all.steps)},
                  {"us_exchanging", number(exchanging)},
                  {"peak_bytes", std::to_string(all.report.peak_bytes)},
                  {"staging_bytes", std::to_string(all.report.exchange_bytes)}});
  if (device == "webgpu") {
    append(fields, {{"us_exchanging_hidden", number(all.host.exchanging_hidden / all.steps)},
                    {"us_encoding", number(all.host.encoding / all.steps)},
                    {"us_submitting", number(all.host.submitting / all.steps)},
                    {"us_waiting", number(all.host.waiting / all.steps)}});
  }
  print_line(fields);
}

}  // namespace tensorgrad::bench
