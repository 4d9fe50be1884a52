// SPDX-License-Identifier: MIT
// What the ranks of a run exchange, on threads, and how a launcher of MPI is recognized.
#include "run/ranks.h"

#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "run/interrupt.h"
#include "tensorgrad/error.h"

namespace tensorgrad::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// How the work of a rank ended: "", "reported", "interrupted" or the message of an error.
using Endings = std::vector<std::string>;

// Calls `work` on the ranks of a group, each on a thread of its own.
Endings on_rank_threads(int size, const std::function<void(Ranks&)>& work) {
  std::vector<std::shared_ptr<Communicator>> members =
      make_thread_group(size, {.timeout_seconds = 30});
  Endings endings(members.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < members.size(); ++i) {
    threads.emplace_back([&, i, member = members[i]] {
      Ranks ranks(member);
      try {
        work(ranks);
      } catch (const ReportedByFirst&) {
        endings[i] = "reported";
      } catch (const Interrupted&) {
        endings[i] = "interrupted";
      } catch (const std::exception& error) {
        endings[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return endings;
}

std::string of_rank(const Ranks& ranks, const std::string& first, const std::string& others) {
  return ranks.first() ? first : others;
}

TEST(Ranks, gather_texts_of_different_lengths_and_sums_in_order) {
  const Endings endings = on_rank_threads(3, [](Ranks& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    EXPECT_THAT(ranks.gather(std::string(rank * 3, 'x')), ElementsAre("", "xxx", "xxxxxx"));
    EXPECT_THAT(ranks.gather(""), ElementsAre("", "", ""));
    EXPECT_THAT(ranks.sum({1, static_cast<double>(rank)}), ElementsAre(3, 3));
    std::vector<float> all(3);
    ranks.gather(std::vector<float>{static_cast<float>(rank)}, all);
    EXPECT_THAT(all, ElementsAre(0, 1, 2));
  });
  EXPECT_THAT(endings, ElementsAre("", "", ""));
}

TEST(Ranks, of_one_process_exchange_nothing) {
  Ranks ranks;
  EXPECT_FALSE(ranks.several());
  EXPECT_EQ(ranks.communicator(), nullptr);
  EXPECT_THAT(ranks.gather("text"), ElementsAre("text"));
  EXPECT_THAT(ranks.sum({2}), ElementsAre(2));
  EXPECT_THROW(ranks.together([] { throw IoError("no file"); }), IoError);
  EXPECT_EQ(batch_per_rank(7, ranks), 7);
  EXPECT_EQ(device_of_rank(ranks, {.kind = "cpu", .threads = 3}).threads, 3);
  EXPECT_EQ(ranks_text(ranks, 8, "rows"), "");
}

TEST(Ranks, of_different_versions_are_refused_with_one_error) {
  const Endings endings = on_rank_threads(3, [](Ranks& ranks) {
    check_versions(ranks, ranks.rank() == 2 ? "9.8.7" : "1.2.3", "tg train");
  });
  EXPECT_THAT(endings,
              ElementsAre("rank 2 of 3 differs from rank 0: the version of tg: 9.8.7, not 1.2.3",
                          "reported", "reported"));
}

TEST(Ranks, report_the_first_error_once) {
  const auto failing = [](const std::function<bool(int)>& fails) {
    return on_rank_threads(3, [&](Ranks& ranks) {
      ranks.together([&] {
        if (fails(ranks.rank())) throw IoError("no file " + std::to_string(ranks.rank()));
      });
    });
  };
  EXPECT_THAT(failing([](int) { return false; }), ElementsAre("", "", ""));
  EXPECT_THAT(failing([](int) { return true; }), ElementsAre("no file 0", "reported", "reported"));
  EXPECT_THAT(failing([](int rank) { return rank > 0; }),
              ElementsAre("rank 1 of 3: no file 1", "reported", "reported"));
  // An error that a call of the library passed on says less than the one of the rank that failed.
  const Endings passed_on = on_rank_threads(2, [](Ranks& ranks) {
    ranks.together([&] {
      if (ranks.first()) throw DistributedError("load: failed on rank 1");
      throw IoError("damaged");
    });
  });
  EXPECT_THAT(passed_on, ElementsAre("rank 1 of 2: damaged", "reported"));
}

TEST(Ranks, follow_the_orders_of_the_first) {
  const Endings endings = on_rank_threads(2, [](Ranks& ranks) {
    if (ranks.first()) {
      ranks.order(Order::kTrain, 5);
      ranks.keep_waiting();
      ranks.order(Order::kWait);
      ranks.order(Order::kEnd, 3);
      return ranks.order(Order::kFail);
    }
    const GivenOrder trains = ranks.next_order();
    EXPECT_EQ(trains.order, Order::kTrain);
    EXPECT_EQ(trains.number, 5);
    const GivenOrder ends = ranks.next_order();
    EXPECT_EQ(ends.order, Order::kEnd);
    EXPECT_EQ(ends.number, 3);
    (void)ranks.next_order();
  });
  EXPECT_THAT(endings, ElementsAre("", "reported"));
}

TEST(Ranks, that_divide_states_save_together) {
  const Endings endings = on_rank_threads(2, [](const Ranks& group) {
    Ranks ranks(group.communicator(), {.shard_optimizer = true});
    EXPECT_TRUE(ranks.shards());
    // As save() of a trainer: all send their states, then the first one writes.
    const auto save = [&](bool fails) {
      EXPECT_THAT(ranks.sum({1}), ElementsAre(2));
      if (fails && ranks.first()) throw IoError("no space left");
    };
    if (!ranks.first()) {
      for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(ranks.next_order().order, Order::kSave);
        save(true);
      }
      (void)ranks.next_order();
      return;
    }
    ranks.lead_save([&] { save(false); });
    (void)ranks.lead_run([&] {
      ranks.lead_save([&] { save(true); });
      return 0;
    });
  });
  EXPECT_THAT(endings, ElementsAre("no space left", "reported"));
}

TEST(Ranks, that_divide_parameters_download_them_together) {
  for (const bool divide : {false, true}) {
    const Endings endings = on_rank_threads(2, [&](const Ranks& group) {
      Ranks ranks(group.communicator(), {.shard_optimizer = true, .shard_parameters = divide});
      EXPECT_EQ(ranks.shards_params(), divide);
      const auto download = [&] { return divide ? ranks.sum({2})[0] : 2; };
      if (!ranks.first()) {
        if (divide) {
          EXPECT_EQ(ranks.next_order().order, Order::kParams);
          (void)download();
        }
        EXPECT_EQ(ranks.next_order().order, Order::kEnd);
        return;
      }
      (void)ranks.lead_run([&] {
        EXPECT_EQ(ranks.lead_with_params(Order::kParams, download), divide ? 4 : 2);
        return 0;
      });
    });
    EXPECT_THAT(endings, ElementsAre("", ""));
  }
}

TEST(Ranks, with_whole_states_save_on_the_first_only) {
  const Endings endings = on_rank_threads(2, [](Ranks& ranks) {
    EXPECT_FALSE(ranks.shards());
    if (!ranks.first()) return;
    bool saved = false;
    ranks.lead_save([&] { saved = true; });
    EXPECT_TRUE(saved);
  });
  EXPECT_THAT(endings, ElementsAre("", ""));
}

TEST(Ranks, print_their_memory) {
  CompileReport report;
  report.peak_bytes = 5000;
  report.optimizer_bytes = 1000;
  report.unsharded_optimizer_bytes = 2000;
  report.parameter_bytes = 300;
  report.unsharded_parameter_bytes = 600;
  EXPECT_EQ(rank_memory_text({}, report), "");
  EXPECT_EQ(ranks_text(Ranks(nullptr, {.shard_optimizer = true}), 8, "rows"),
            "ranks   1: --shard-optimizer has no effect\n");
  EXPECT_EQ(ranks_text(Ranks(nullptr, {.shard_parameters = true}), 8, "rows"),
            "ranks   1: --shard-parameters has no effect\n");
  const Endings endings = on_rank_threads(2, [&](const Ranks& ranks) {
    EXPECT_EQ(rank_memory_text(ranks, report),
              "memory  per rank: 5000 bytes (5.0 kB), of which the optimizer has 1000 bytes "
              "(1.0 kB)\n");
    EXPECT_EQ(rank_memory_text(Ranks(ranks.communicator(), {.shard_optimizer = true}), report),
              "memory  per rank: 5000 bytes (5.0 kB), of which the optimizer has 1000 bytes "
              "(1.0 kB), 2000 bytes (2.0 kB) without --shard-optimizer\n");
    EXPECT_EQ(rank_memory_text(Ranks(ranks.communicator(), {.shard_parameters = true}), report),
              "memory  per rank: 5000 bytes (5.0 kB), of which the optimizer has 1000 bytes "
              "(1.0 kB), 2000 bytes (2.0 kB) without --shard-parameters, of which the parameters "
              "have 300 bytes (0.3 kB), 600 bytes (0.6 kB) without --shard-parameters\n");
  });
  EXPECT_THAT(endings, ElementsAre("", ""));
}

TEST(Ranks, are_all_interrupted_by_the_signal_of_one) {
  interrupt_by(15);
  const Endings endings = on_rank_threads(2, [](Ranks& ranks) { ranks.check_interrupted(); });
  EXPECT_THAT(endings, ElementsAre("interrupted", "interrupted"));
  EXPECT_EQ(interrupted_status(), 143);
  interrupt_by(0);
  EXPECT_THAT(on_rank_threads(2, [](Ranks& ranks) { ranks.check_interrupted(); }),
              ElementsAre("", ""));
}

TEST(Ranks, divide_a_batch_and_the_cores) {
  const Endings endings = on_rank_threads(2, [](Ranks& ranks) {
    EXPECT_EQ(batch_per_rank(8, ranks), 4);
    EXPECT_EQ(ranks_text(ranks, 8, "rows"), "ranks   2, each with 4 of the 8 rows of a batch\n");
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    const DeviceOptions device = device_of_rank(ranks, {.kind = "cpu"});
    EXPECT_GE(device.threads, 0);  // 0: TENSORGRAD_THREADS is set
    EXPECT_LE(device.threads, std::max(1, cores / 2));
    EXPECT_EQ(device_of_rank(ranks, {.kind = "cpu", .threads = 3}).threads, 3);
    (void)batch_per_rank(ranks.first() ? 9 : 8, ranks);
  });
  EXPECT_THAT(endings[0], HasSubstr("--batch 9: is that of all 2 ranks"));
}

TEST(Ranks, name_their_number_in_errors) {
  const Endings endings = on_rank_threads(2, [](Ranks& ranks) {
    run_rank(ranks, [&]() -> int { throw UserError(of_rank(ranks, "first", "other")); });
  });
  EXPECT_THAT(endings, ElementsAre("first", "rank 1 of 2: other"));
}

// Sets an environment variable during its lifetime.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;
  ~ScopedVariable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

void expect_refused(const RankOptions& options, const std::string& text) {
  try {
    (void)join_mpi(options);
    ADD_FAILURE() << "expected: " << text;
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

TEST(Launcher, is_recognized_by_its_variables) {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE",
                                 "PMIX_RANK", "SLURM_STEP_NUM_TASKS"})
    ::unsetenv(name);
  EXPECT_FALSE(find_launcher());
  EXPECT_EQ(join_mpi({}), nullptr);
  expect_refused({.shard_optimizer = true}, "no launcher of MPI started this process");
  expect_refused({.shard_optimizer = true, .shard_parameters = true},
                 "--shard-parameters: divides the parameters among the processes of mpirun, but");
  {
    const ScopedVariable rank("PMIX_RANK", "0");
    EXPECT_FALSE(find_launcher()->size);
    const ScopedVariable tasks("SLURM_STEP_NUM_TASKS", "3");
    EXPECT_EQ(find_launcher()->size, 3);
  }
  const ScopedVariable size("PMI_SIZE", "4");
  ASSERT_TRUE(find_launcher());
  EXPECT_EQ(find_launcher()->variable, "PMI_SIZE=4");
  EXPECT_EQ(find_launcher()->size, 4);
  EXPECT_EQ(join_mpi({.mode = "off"}), nullptr);
  expect_refused({.mode = "off", .shard_optimizer = true},
                 "--shard-optimizer: not supported with --distributed off");
  const ScopedVariable single("OMPI_COMM_WORLD_SIZE", "1");
  EXPECT_EQ(find_launcher()->size, 1);
  EXPECT_EQ(join_mpi({}), nullptr);
  EXPECT_EQ(join_mpi({.shard_optimizer = true}), nullptr);
}

}  // namespace
}  // namespace tensorgrad::cli
