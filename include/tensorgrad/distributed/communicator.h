// SPDX-License-Identifier: MIT
// Exchange between the ranks of data-parallel training: processes or threads that train the same
// model, each on its part of the data. CompileOptions::distributed takes one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Thrown by a call that all ranks make if another rank failed, did not answer in time, or
/// disagrees about what is trained. The trainer cannot be used any more.
class DistributedError : public UserError {
 public:
  using UserError::UserError;
};

/// Default size of the buckets in which gradients are exchanged, 25 MiB as in PyTorch's
/// DistributedDataParallel.
inline constexpr std::int64_t kDefaultBucketBytes = 25 << 20;

/// Group of ranks that exchange data in host memory. Derive from it to use another engine than MPI.
///
/// All ranks make the same calls in the same order, with the same sizes. A call blocks until its
/// result is known. If a rank does not answer within the group's timeout, the call fails: it throws
/// DistributedError or ends all processes with an error message. A group serves one trainer. Calls
/// are made one at a time, but possibly by different threads: that of the trainer's call, and on
/// the CPU one that exchanges gradients during the backward pass.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  /// Returns the number of this rank, from 0.
  [[nodiscard]] virtual int rank() const = 0;

  /// Returns the number of ranks, at least 1.
  [[nodiscard]] virtual int size() const = 0;

  /// Replaces each element by its sum over all ranks. Every rank gets the same bits, and the order
  /// of the additions does not depend on timing.
  virtual void all_reduce_sum(std::span<float> values) = 0;

  /// Overwrites the bytes with those of rank 0.
  virtual void broadcast(std::span<std::byte> bytes) = 0;

  /// Collects the bytes of all ranks in the order of their numbers. `all` has the size of `mine`
  /// times the number of ranks.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;

  /// Sets `sum` to the sum of `mine` over all ranks, as all_reduce_sum() does. `sum` is the same
  /// memory as `mine`, or does not overlap it. It may be slow to read, such as mapped memory of a
  /// GPU, and should only be written. If one rank calls this function, all do. By default, calls
  /// all_reduce_sum() with a copy of `mine`.
  virtual void all_reduce_sum_into(std::span<const float> mine, std::span<float> sum);

  /// Returns the maximum bytes of the buckets in which a trainer exchanges gradients and sharded
  /// parameters, at least 1.
  [[nodiscard]] virtual std::int64_t bucket_bytes() const { return kDefaultBucketBytes; }

  /// Returns when all ranks have called it.
  void barrier();
};

/// Options of make_thread_group().
struct ThreadGroupOptions {
  double timeout_seconds = 300;  ///< Longest wait for another rank, in (0, 1e8].
  /// Maximum bytes of a bucket of gradients, at least 1. Each bucket is exchanged as soon as the
  /// backward pass has computed its gradients. A bucket can exceed the maximum, because gradients
  /// are divided only into parts of at least 1 MiB.
  std::int64_t bucket_bytes = kDefaultBucketBytes;
};

/// Creates a group whose ranks are threads of this process, and returns its members in the order of
/// their numbers. Each thread compiles and runs a trainer of its own with its member. A call throws
/// DistributedError if another member is destroyed, makes a different call or does not answer in
/// time. Sums are added in the order of the ranks, as with Mpi. Throws UserError if `size` is less
/// than 1 or an option is out of range.
std::vector<std::shared_ptr<Communicator>> make_thread_group(
    int size, const ThreadGroupOptions& options = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI
