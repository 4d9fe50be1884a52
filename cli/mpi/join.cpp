// SPDX-License-Identifier: MIT
// libtg_mpi: tg::Mpi behind the interface that tg loads.
#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string_view>

#include "mpi/interface.h"
#include "tensorgrad/distributed/mpi.h"

namespace tensorgrad::cli {
namespace {

using MpiState = std::shared_ptr<Communicator>;

Communicator& communicator_of(void* state) { return **static_cast<MpiState*>(state); }

void put_error(std::string_view text, char* error, std::size_t size) {
  const std::size_t count = std::min(text.size(), size - 1);
  std::memcpy(error, text.data(), count);
  error[count] = '\0';
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] bool tg_mpi_join_2(double timeout_seconds, MpiGroup* group,
                                                  char* error, std::size_t error_size);

bool tg_mpi_join_2(double timeout_seconds, MpiGroup* group, char* error, std::size_t error_size) {
  try {
    auto state = std::make_unique<MpiState>(Mpi{.timeout_seconds = timeout_seconds});
    group->rank = (*state)->rank();
    group->size = (*state)->size();
    group->bucket_bytes = (*state)->bucket_bytes();
    group->all_reduce_sum_into = [](void* of, const float* mine, float* sum, std::size_t count) {
      communicator_of(of).all_reduce_sum_into({mine, count}, {sum, count});
    };
    group->broadcast = [](void* of, std::byte* data, std::size_t bytes) {
      communicator_of(of).broadcast({data, bytes});
    };
    group->all_gather = [](void* of, const std::byte* mine, std::size_t bytes, std::byte* all) {
      Communicator& ranks = communicator_of(of);
      ranks.all_gather({mine, bytes}, {all, bytes * static_cast<std::size_t>(ranks.size())});
    };
    group->leave = [](void* of) { delete static_cast<MpiState*>(of); };
    group->state = state.release();
    return true;
  } catch (const std::exception& failure) {
    put_error(failure.what(), error, error_size);
    return false;
  }
}

}  // extern "C"

}  // namespace tensorgrad::cli
