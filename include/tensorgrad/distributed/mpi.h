// SPDX-License-Identifier: MIT
// Data-parallel training over MPI. Link the target tensorgrad::mpi, which is built with
// TENSORGRAD_MPI=ON.
#pragma once

#include <memory>

#include "tensorgrad/distributed/communicator.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Makes the processes of `mpirun` the ranks of a group, in the order of MPI_COMM_WORLD. A process
/// that runs without `mpirun` is the only rank.
/// ```cpp
/// auto trainer = tg::compile(net, loss, {.optimizer = tg::optim::Adam{},
///                                        .distributed = tg::Mpi{.timeout_seconds = 60}});
/// ```
/// Sums are added in the order of the ranks. If a rank ends or does not answer in time, the others
/// write an error that names it to stderr and end all processes with MPI_Abort.
struct Mpi {
  double timeout_seconds = 300;  ///< Longest wait for another rank, in (0, 1e8].
  /// Maximum bytes of a bucket of gradients, at least 1. Each bucket is exchanged as soon as the
  /// backward pass has computed its gradients. A bucket can exceed the maximum, because gradients
  /// are divided only into parts of at least 1 MiB.
  std::int64_t bucket_bytes = kDefaultBucketBytes;

  /// Creates the communicator. All ranks must do this, in the same order. Initializes MPI if the
  /// program has not, and then finalizes it at exit. Throws UserError if an option is out of
  /// range or MPI was initialized without support for calls from several threads
  /// (MPI_THREAD_SERIALIZED).
  operator std::shared_ptr<Communicator>() const;  // NOLINT(google-explicit-constructor)
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
