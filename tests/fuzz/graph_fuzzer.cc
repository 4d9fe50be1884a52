// SPDX-License-Identifier: MIT
// ./dev fuzz graphs: compares random training graphs until a limit. Prints each shrunken graph with
// a finding and saves it as a file. Prints the seed to continue with at the end.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "support/graph_fuzz.h"

namespace tensorgrad::testing {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::uint64_t seed = 1000, count = 1'000'000, jobs = 1;
  std::uint64_t webgpu = 0;  // every webgpu-th graph also runs on WebGPU; 0: none
  double minutes = 0;        // 0: no limit
  std::string out = ".";
};

constexpr const char* kUsage =
    "usage: graph_fuzzer [--count N] [--seed FIRST] [--minutes M] [--jobs N] [--webgpu EVERY] "
    "[--out FOLDER]\n";

volatile std::sig_atomic_t interrupted = 0;

class Soak {
 public:
  explicit Soak(Options options) : options_(std::move(options)) {}

  int run() {
    std::vector<std::thread> workers;
    for (std::uint64_t i = 0; i < options_.jobs; ++i) workers.emplace_back([this] { work(); });
    while (!stopped() && done_ < options_.count) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      if (ticks_++ % 4 == 0) report('\r');
    }
    stop_ = true;
    for (std::thread& worker : workers) worker.join();
    report('\n');
    std::printf("the costliest compile: seed %llu, %.0f visits per node\n",
                static_cast<unsigned long long>(costliest_), cost_);
    // Graphs are started in the order of their seeds, and all that are started are finished.
    std::printf("go on with --seed %llu\n", static_cast<unsigned long long>(next()));
    return findings_ == 0 ? 0 : 1;
  }

 private:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }
  [[nodiscard]] bool stopped() const {
    const bool late = options_.minutes > 0 && seconds() > 60 * options_.minutes;
    return stop_ || interrupted != 0 || late;
  }
  [[nodiscard]] std::uint64_t next() const {
    return options_.seed + std::min<std::uint64_t>(taken_, options_.count);
  }

  void work() {
    const std::shared_ptr<Device> cpu = make_cpu_device({.threads = 1});
    while (!stopped()) {
      const std::uint64_t number = taken_++;
      if (number >= options_.count) return;
      one(options_.seed + number, cpu);
      ++done_;
    }
  }

  void one(std::uint64_t seed, const std::shared_ptr<Device>& cpu) {
    std::vector<Way> ways = ways_on_cpu(cpu, seed);
    Verdict verdict = fuzz(seed, ways);
    if (options_.webgpu > 0 && seed % options_.webgpu == 0 && !verdict.finding) {
      const std::lock_guard lock(gpu_);
      ways = {way_on_webgpu(seed)};
      verdict = fuzz(seed, ways);
    }
    note_cost(seed, verdict.cost);
    elements_ += verdict.elements;
    sharp_ += verdict.sharp;
    if (!verdict.finding) return;
    ++findings_;
    const Finding& finding = *verdict.finding;
    say("seed " + std::to_string(seed) + ": " + finding.way + ": " + finding.what);
    const std::string small = shrunken(seed, ways, finding);
    const auto path =
        std::filesystem::path(options_.out) / ("graph-" + std::to_string(seed) + ".ir");
    std::ofstream(path) << small;
    say(small + "kept as " + path.string());
  }

  void note_cost(std::uint64_t seed, double cost) {
    const std::lock_guard lock(print_);
    if (cost <= cost_) return;
    cost_ = cost;
    costliest_ = seed;
  }

  void say(const std::string& text) {
    const std::lock_guard lock(print_);
    std::printf("\n%s\n", text.c_str());
    std::fflush(stdout);
  }

  void report(char end) {
    const std::lock_guard lock(print_);
    const auto done = static_cast<double>(done_), rate = done / seconds();
    const double left = rate > 0 ? (static_cast<double>(options_.count) - done) / rate / 60 : 0;
    const double sharp = elements_ > 0 ? 100.0 * static_cast<double>(sharp_) / elements_ : 0;
    std::printf(
        "%.0f of %llu graphs, %.1f a second, %.1f minutes left, %d disagree, %.1f%% of the "
        "elements bounded sharply %c",
        done, static_cast<unsigned long long>(options_.count), rate, left,
        static_cast<int>(findings_), sharp, end);
    std::fflush(stdout);
  }

  Options options_;
  Clock::time_point start_ = Clock::now();
  std::atomic<std::uint64_t> taken_ = 0, done_ = 0;
  std::atomic<std::int64_t> elements_ = 0, sharp_ = 0;
  std::atomic<int> findings_ = 0;
  double cost_ = 0;
  std::uint64_t costliest_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex gpu_, print_;
  int ticks_ = 0;
};

bool read(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--out") {
      options.out = value;
      continue;
    }
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' || !(number >= 0 && number < 9e15)) return false;
    const auto whole = static_cast<std::uint64_t>(number);
    if (name == "--minutes") {
      options.minutes = number;
    } else if (name == "--count") {
      options.count = whole;
    } else if (name == "--seed") {
      options.seed = whole;
    } else if (name == "--webgpu") {
      options.webgpu = whole;
    } else if (name == "--jobs" && whole >= 1 && whole <= 256) {
      options.jobs = whole;
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

int main_of(int argc, char** argv) {
  Options options;
  if (!read(argc, argv, options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  std::signal(SIGINT, [](int) { interrupted = 1; });
  return Soak(std::move(options)).run();
}

}  // namespace
}  // namespace tensorgrad::testing

int main(int argc, char** argv) { return tensorgrad::testing::main_of(argc, argv); }
