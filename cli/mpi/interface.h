// SPDX-License-Identifier: MIT
// What the tool calls of MPI. The library libtg_mpi implements it, and tg loads that library only
// if it trains over MPI: so tg starts, and can be installed, without MPI. The functions are those
// of a Communicator, which explains them, with the linkage of C: tg and the library may be linked
// to different copies of tensorgrad.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorgrad::cli {

#ifdef __APPLE__
constexpr const char* kMpiLibrary = "@rpath/libtg_mpi.so";
#else
constexpr const char* kMpiLibrary = "libtg_mpi.so";
#endif
// The name of the function below. Its number changes with the interface.
constexpr const char* kMpiJoin = "tg_mpi_join_2";

struct MpiGroup {
  void* state = nullptr;  // the first argument of the functions
  int rank = 0, size = 1;
  std::int64_t bucket_bytes = 0;
  void (*all_reduce_sum_into)(void* state, const float* mine, float* sum,
                              std::size_t count) = nullptr;
  void (*broadcast)(void* state, std::byte* data, std::size_t bytes) = nullptr;
  void (*all_gather)(void* state, const std::byte* mine, std::size_t bytes,
                     std::byte* all) = nullptr;
  void (*leave)(void* state) = nullptr;  // frees the state
};

// Makes this process a rank, as tg::Mpi does. Returns true, or false and sets `error`, a text of
// less than `error_size` bytes.
using MpiJoin = bool (*)(double timeout_seconds, MpiGroup* group, char* error,
                         std::size_t error_size);

}  // namespace tensorgrad::cli
