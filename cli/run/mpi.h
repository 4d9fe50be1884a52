// SPDX-License-Identifier: MIT
// The processes that a launcher of MPI, such as mpirun, started.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tensorgrad/distributed/communicator.h"

namespace tensorgrad::cli {

constexpr double kRankTimeout = 300;  // default seconds, as of tg::Mpi

struct RankOptions {
  // auto: the processes of a launcher train together; mpi: also if no launcher is recognized;
  // off: each process trains a run of its own.
  std::string mode = "auto";
  double timeout_seconds = kRankTimeout;
  // As in CompileOptions, if there are several ranks.
  bool shard_optimizer = false, shard_parameters = false;

  // Returns the option that divides what one process has, or null.
  [[nodiscard]] const char* sharding() const {
    return shard_parameters  ? "--shard-parameters"
           : shard_optimizer ? "--shard-optimizer"
                             : nullptr;
  }
};

// The launcher that started this process, according to its environment.
struct Launcher {
  std::string variable;     // that says so, such as "OMPI_COMM_WORLD_SIZE=4"
  std::optional<int> size;  // number of processes, if the environment has it
};
// Returns the launcher, or nothing if there is none.
std::optional<Launcher> find_launcher();

// Makes this process a rank of those that the launcher started. Returns null if it is to train by
// itself. Throws UserError if this tg has no MPI, if MPI finds another number of processes than the
// launcher started, or if states or parameters are to be divided and there is no launcher.
std::shared_ptr<Communicator> join_mpi(const RankOptions& options);

}  // namespace tensorgrad::cli
