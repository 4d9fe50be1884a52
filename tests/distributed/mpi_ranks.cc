// SPDX-License-Identifier: MIT
// One rank of the tests of MPI, started by mpirun: mpi_ranks TEST [TIMEOUT_SECONDS].
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/numbers.h"
#include "distributed/ranks.h"
#include "tensorgrad/distributed/mpi.h"

namespace tensorgrad::testing {
namespace {

using Ranks = std::shared_ptr<Communicator>;

void print(const Ranks& ranks, std::uint64_t hash) {
  std::printf("rank %d of %d: %016llx\n", ranks->rank(), ranks->size(),
              static_cast<unsigned long long>(hash));
}

// Trains until rank 1 ends its process, throws or hangs.
void fail(const Ranks& ranks, const std::string& how) {
  auto trainer = classifier(classifier_options(ranks));
  trainer.run(3);
  if (ranks->rank() == 1 && how == "exit") std::_Exit(7);
  if (ranks->rank() == 1 && how == "throw") throw UserError("rank 1 is out of data");
  if (ranks->rank() == 1 && how == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
  trainer.run(100);
}

int run(const std::string& test, double timeout_seconds) {
  const Ranks ranks = Mpi{.timeout_seconds = timeout_seconds};
  if (test == "exchange") print(ranks, exchanged_hash(ranks));
  if (test == "classifier") print(ranks, train_classifier(ranks).hash());
  if (test == "language_model") print(ranks, train_language_model(ranks).hash());
  if (test == "sharded") print(ranks, train_language_model(ranks, true).hash());
  if (test == "sharded_parameters") print(ranks, train_language_model(ranks, false, true).hash());
  if (test == "exit" || test == "throw" || test == "hang") fail(ranks, test);
  if (test == "differ") {
    CompileOptions options = classifier_options(ranks);
    if (ranks->rank() == 1) options.seed = 9;
    classifier(options);
  }
  if (test == "sizes") {
    std::vector<float> values(ranks->rank() == 0 ? 8 : 6);
    ranks->all_reduce_sum(values);
  }
  return 0;
}

}  // namespace
}  // namespace tensorgrad::testing

int main(int argc, char** argv) {
  const std::optional<double> timeout = tensorgrad::parse_finite(argc > 2 ? argv[2] : "60");
  if (argc < 2 || argc > 3 || !timeout) {
    std::fputs("usage: mpi_ranks TEST [TIMEOUT_SECONDS]\n", stderr);
    return 2;
  }
  try {
    return tensorgrad::testing::run(argv[1], *timeout);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
