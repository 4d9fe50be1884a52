// SPDX-License-Identifier: MIT
// Data-parallel training over MPI. Uses only messages between two ranks: so the order of additions
// is fixed, and an error can name the rank that did not answer.
#include "tensorgrad/distributed/mpi.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/numbers.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLongestTimeout = 1e8;  // seconds; clocks count nanoseconds in 64 bits
// Elements that are summed at once. Bounds the memory for the numbers of the other ranks, and keeps
// counts within the int of MPI.
constexpr std::size_t kSlice = std::size_t{1} << 22;
constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 30;  // of one message
// Time for messages on their way after their sender has ended.
constexpr std::chrono::milliseconds kGrace{1000};
// A wait polls without a pause for the first of these times, then sleeps for the second.
constexpr std::chrono::microseconds kSpin{500}, kPause{50};

enum Tag : int { kData, kSums, kEnd };

// Ends the processes of all ranks.
[[noreturn]] void end_all(const std::string& error) {
  const std::string line = "tensorgrad: " + error + "\n";
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

std::string error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<std::size_t>(length)};
}

void finalize() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0) MPI_Finalize();
}

void initialize() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  int initialized = 0, support = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0) {
    if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &support);
        code != MPI_SUCCESS) {
      throw UserError("Mpi: MPI_Init_thread failed: " + error_text(code));
    }
    std::atexit(finalize);
  }
  MPI_Query_thread(&support);
  if (support < MPI_THREAD_SERIALIZED) {
    throw UserError(
        "Mpi: MPI was initialized for calls from one thread; expected MPI_Init_thread() with "
        "MPI_THREAD_SERIALIZED or more");
  }
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(double timeout_seconds, std::int64_t bucket_bytes)
      : timeout_(timeout_seconds), bucket_bytes_(bucket_bytes) {
    initialize();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    // Messages of the application cannot be mistaken for those of the group.
    std::vector<Request> one = {{.other = kAnyRank}};
    check(MPI_Comm_idup(MPI_COMM_WORLD, &comm_, &one[0].request), "Mpi");
    wait(one, "Mpi");
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  // Tells the other ranks, and waits until they end too. After an exception it does not wait: its
  // error should be written before the other ranks end this process.
  ~MpiCommunicator() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0) return;
    std::vector<Request> requests;
    // all_done() waits, with MPI_Test. NOLINTBEGIN(*-optin.mpi.MPI-Checker)
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      MPI_Isend(nullptr, 0, MPI_BYTE, other, kEnd, comm_, &add(requests, other).request);
      MPI_Irecv(nullptr, 0, MPI_BYTE, other, kEnd, comm_, &add(requests, other).request);
    }
    // NOLINTEND(*-optin.mpi.MPI-Checker)
    const Clock::time_point end = Clock::now() + seconds(timeout_);
    while (!all_done(requests, "Mpi")) {
      if (Clock::now() > end || std::uncaught_exceptions() > exceptions_) return;
      std::this_thread::sleep_for(kPause);
    }
    MPI_Comm_free(&comm_);
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  void all_reduce_sum(std::span<float> values) override { all_reduce_sum_into(values, values); }

  void all_reduce_sum_into(std::span<const float> mine, std::span<float> sum) override {
    for (std::size_t from = 0; from < mine.size(); from += kSlice) {
      const std::size_t count = std::min(kSlice, mine.size() - from);
      sum_slice(mine.subspan(from, count), sum.subspan(from, count));
    }
  }

  [[nodiscard]] std::int64_t bucket_bytes() const override { return bucket_bytes_; }

  void broadcast(std::span<std::byte> bytes) override {
    for (std::size_t from = 0; from < bytes.size(); from += kMaxMessageBytes) {
      const std::span<std::byte> part =
          bytes.subspan(from, std::min(kMaxMessageBytes, bytes.size() - from));
      std::vector<Request> requests;
      if (rank_ != 0) {
        receive(part, 0, kData, requests, "broadcast");
      } else {
        for (int other = 1; other < size_; ++other) send(part, other, kData, requests, "broadcast");
      }
      wait(requests, "broadcast");
    }
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const auto part_of = [&](int rank) {
      return all.subspan(static_cast<std::size_t>(rank) * mine.size(), mine.size());
    };
    if (!mine.empty()) std::memcpy(part_of(rank_).data(), mine.data(), mine.size());
    std::vector<Request> requests;
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      receive(part_of(other), other, kData, requests, "all_gather");
      send(mine, other, kData, requests, "all_gather");
    }
    wait(requests, "all_gather");
  }

 private:
  static constexpr int kAnyRank = -1;
  struct Request {
    MPI_Request request = MPI_REQUEST_NULL;
    int other = 0;
    int expected = -1;  // bytes to receive; -1: nothing is received
  };

  static Clock::duration seconds(double count) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
  }

  static Request& add(std::vector<Request>& requests, int other) {
    return requests.emplace_back(Request{.other = other});
  }

  // Each rank adds one part of the elements and sends the sums to the others.
  void sum_slice(std::span<const float> mine, std::span<float> sum) {
    constexpr const char* kCall = "all_reduce_sum";
    const std::size_t ranks = static_cast<std::size_t>(size_);
    const std::size_t part = (mine.size() + ranks - 1) / ranks;
    const auto part_of = [&](auto values, int rank) {
      const std::size_t begin = std::min(static_cast<std::size_t>(rank) * part, values.size());
      return values.subspan(begin, std::min(part, values.size() - begin));
    };
    const std::span<const float> own = part_of(mine, rank_);
    theirs_.resize(own.size() * ranks);
    const auto theirs = [&](int rank) {
      return std::span(theirs_).subspan(static_cast<std::size_t>(rank) * own.size(), own.size());
    };
    std::vector<Request> requests;
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      receive(std::as_writable_bytes(theirs(other)), other, kData, requests, kCall);
      send(std::as_bytes(part_of(mine, other)), other, kData, requests, kCall);
    }
    wait(requests, kCall);
    std::copy(own.begin(), own.end(), theirs(rank_).begin());
    const std::span<float> total = theirs(0);
    for (int other = 1; other < size_; ++other) {
      const std::span<const float> add = theirs(other);
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += add[i];
    }
    std::copy(total.begin(), total.end(), part_of(sum, rank_).begin());
    requests.clear();
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      receive(std::as_writable_bytes(part_of(sum, other)), other, kSums, requests, kCall);
      send(std::as_bytes(total), other, kSums, requests, kCall);
    }
    wait(requests, kCall);
  }

  // The callers wait for `requests`. NOLINTBEGIN(*-optin.mpi.MPI-Checker)
  void send(std::span<const std::byte> bytes, int other, Tag tag, std::vector<Request>& requests,
            const char* call) {
    check(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, other, tag, comm_,
                    &add(requests, other).request),
          call);
  }
  void receive(std::span<std::byte> bytes, int other, Tag tag, std::vector<Request>& requests,
               const char* call) {
    Request& added = add(requests, other);
    added.expected = static_cast<int>(bytes.size());
    check(MPI_Irecv(bytes.data(), added.expected, MPI_BYTE, other, tag, comm_, &added.request),
          call);
  }
  // NOLINTEND(*-optin.mpi.MPI-Checker)

  void check(int code, const char* call) const {
    if (code != MPI_SUCCESS) fail(std::string(call) + ": " + error_text(code));
  }
  [[noreturn]] void fail(const std::string& what) const {
    end_all("rank " + std::to_string(rank_) + " of " + std::to_string(size_) + ": " + what);
  }

  bool all_done(std::vector<Request>& requests, const char* call) const {
    bool done = true;
    for (Request& each : requests) {
      if (each.request == MPI_REQUEST_NULL) continue;
      int complete = 0;
      MPI_Status status;
      check(MPI_Test(&each.request, &complete, &status), call);
      done = done && complete != 0;
      if (complete != 0 && each.expected >= 0) check_received(status, each, call);
    }
    return done;
  }

  void check_received(const MPI_Status& status, const Request& request, const char* call) const {
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (bytes == request.expected) return;
    fail(std::string(call) + ": rank " + std::to_string(request.other) + " makes another call: " +
         std::to_string(bytes) + " bytes, not " + std::to_string(request.expected));
  }

  // Waits for all requests. Ends all processes if that takes too long, or if one of the ranks
  // waited for has ended.
  void wait(std::vector<Request>& requests, const char* call) const {
    const Clock::time_point start = Clock::now(), end = start + seconds(timeout_);
    Clock::time_point ended{};  // when a rank was found to have ended
    while (!all_done(requests, call)) {
      const Clock::time_point now = Clock::now();
      if (now > end) {
        fail(std::string(call) + ": " + waited_for(requests) + " did not answer within " +
             number_text(timeout_) + " seconds");
      }
      if (now - start < kSpin) continue;
      std::this_thread::sleep_for(kPause);
      if (ended == Clock::time_point{}) {
        if (has_ended(requests)) ended = now;
      } else if (now - ended > kGrace && !all_done(requests, call)) {
        fail(std::string(call) + ": " + waited_for(requests) +
             " ended while this rank waited for it");
      }
    }
  }

  static std::string waited_for(const std::vector<Request>& requests) {
    std::vector<int> ranks;
    for (const Request& each : requests) {
      if (each.request != MPI_REQUEST_NULL) ranks.push_back(each.other);
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    if (ranks.front() == kAnyRank) return "another rank";
    std::string text;
    for (const int rank : ranks)
      text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank);
    return text;
  }

  [[nodiscard]] bool has_ended(const std::vector<Request>& requests) const {
    return std::any_of(requests.begin(), requests.end(), [&](const Request& each) {
      int found = 0;
      if (each.request != MPI_REQUEST_NULL && each.other != kAnyRank)
        MPI_Iprobe(each.other, kEnd, comm_, &found, MPI_STATUS_IGNORE);
      return found != 0;
    });
  }

  double timeout_;
  std::int64_t bucket_bytes_;
  int exceptions_ = std::uncaught_exceptions();
  int rank_ = 0, size_ = 1;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<float> theirs_;  // numbers of all ranks for this rank's part
};

}  // namespace

Mpi::operator std::shared_ptr<Communicator>() const {
  if (!(timeout_seconds > 0 && timeout_seconds <= kLongestTimeout)) {
    throw UserError("Mpi: timeout_seconds: expected more than 0 and at most " +
                    number_text(kLongestTimeout) + ", got " + number_text(timeout_seconds));
  }
  if (bucket_bytes < 1) {
    throw UserError("Mpi: bucket_bytes: expected at least 1, got " + std::to_string(bucket_bytes));
  }
  return std::make_shared<MpiCommunicator>(timeout_seconds, bucket_bytes);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
