// SPDX-License-Identifier: MIT
#include "run/mpi.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "mpi/interface.h"
#include "os/process.h"
#include "tensorgrad/error.h"

namespace tensorgrad::cli {
namespace {

std::optional<int> positive_number(std::string_view text) {
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

// The group of the library as a Communicator.
class MpiRanks final : public Communicator {
 public:
  explicit MpiRanks(const MpiGroup& group) : group_(group) {}
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;
  ~MpiRanks() override { group_.leave(group_.state); }

  [[nodiscard]] int rank() const override { return group_.rank; }
  [[nodiscard]] int size() const override { return group_.size; }
  void all_reduce_sum(std::span<float> values) override { all_reduce_sum_into(values, values); }
  void all_reduce_sum_into(std::span<const float> mine, std::span<float> sum) override {
    group_.all_reduce_sum_into(group_.state, mine.data(), sum.data(), mine.size());
  }
  [[nodiscard]] std::int64_t bucket_bytes() const override { return group_.bucket_bytes; }
  void broadcast(std::span<std::byte> bytes) override {
    group_.broadcast(group_.state, bytes.data(), bytes.size());
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    group_.all_gather(group_.state, mine.data(), mine.size(), all.data());
  }

 private:
  MpiGroup group_;
};

// Returns the function of the library, or null and why it cannot be loaded.
MpiJoin load_mpi(std::string& reason) {
  std::vector<std::string> paths = {kMpiLibrary};  // in the rpath of tg
#ifdef TENSORGRAD_TG_MPI_PATH
  paths.emplace_back(TENSORGRAD_TG_MPI_PATH);
#endif
  for (const std::string& path : paths) {
    std::string error;
    if (void* const library = os::open_library(path, error)) {
      if (void* const found = os::find_symbol(library, kMpiJoin))
        return reinterpret_cast<MpiJoin>(found);
      error = path + ": has no " + kMpiJoin + ": it is of another version of tg";
    }
    if (reason.empty()) reason = error;
  }
  return nullptr;
}

// Throws UserError if this process cannot have others among which states or parameters are divided.
void check_sharding(const RankOptions& options, const std::optional<Launcher>& launcher) {
  const char* const option = options.sharding();
  if (option == nullptr) return;
  if (options.mode == "off") {
    throw UserError(fmt::format(
        "{}: not supported with --distributed off, where each process trains a run of its own",
        option));
  }
  if (options.mode == "auto" && !launcher) {
    throw UserError(fmt::format(
        "{}: divides {} among the processes of mpirun, but no launcher of MPI started this "
        "process; use it as in: mpirun -n 4 tg ... {}",
        option, options.shard_parameters ? "the parameters" : "the optimizer's states", option));
  }
}

}  // namespace

std::optional<Launcher> find_launcher() {
  // Of Open MPI; of MPICH and Intel MPI, and of srun for them; of MVAPICH.
  const std::pair<const char*, const char*> sizes[] = {
      {"OMPI_COMM_WORLD_SIZE", std::getenv("OMPI_COMM_WORLD_SIZE")},
      {"PMI_SIZE", std::getenv("PMI_SIZE")},
      {"MV2_COMM_WORLD_SIZE", std::getenv("MV2_COMM_WORLD_SIZE")}};
  for (const auto& [name, value] : sizes) {
    if (value == nullptr) continue;
    if (const auto size = positive_number(value))
      return Launcher{fmt::format("{}={}", name, value), size};
  }
  const char* const rank = std::getenv("PMIX_RANK");
  if (rank == nullptr) return std::nullopt;
  const char* const tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return Launcher{fmt::format("PMIX_RANK={}", rank),
                  tasks == nullptr ? std::nullopt : positive_number(tasks)};
}

std::shared_ptr<Communicator> join_mpi(const RankOptions& options) {
  const std::optional<Launcher> launcher = find_launcher();
  check_sharding(options, launcher);
  if (options.mode == "off") return nullptr;
  if (options.mode == "auto" && (!launcher || launcher->size == 1)) return nullptr;
  std::string reason;
  const MpiJoin join = load_mpi(reason);
  if (join == nullptr) {
    const std::string wish =
        launcher ? fmt::format("a launcher of MPI started this process ({})", launcher->variable)
                 : "--distributed mpi";
    throw UserError(fmt::format(
        "{}, but this tg cannot use MPI: {}; build tg with -DTENSORGRAD_MPI=ON, or train a run of "
        "its own in each process with --distributed off",
        wish, reason));
  }
  MpiGroup group;
  std::array<char, 1024> error{};
  if (!join(options.timeout_seconds, &group, error.data(), error.size()))
    throw UserError(error.data());
  auto ranks = std::make_shared<MpiRanks>(group);
  if (launcher && launcher->size && *launcher->size != group.size) {
    throw UserError(fmt::format(
        "the launcher started {} processes ({}), but MPI finds {}: tg was built with another MPI "
        "than that of the launcher",
        *launcher->size, launcher->variable, group.size));
  }
  return group.size > 1 ? ranks : nullptr;
}

}  // namespace tensorgrad::cli
