// SPDX-License-Identifier: MIT
// tg train and tg lm train on the processes of mpirun: the run of one process, resumed by another
// number of them, stopped by signals, and ended by one error if a rank differs or fails.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <sys/types.h>
#include <csignal>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <regex>
#include <sstream>
#include <thread>

#include "cli/tool.h"
#include "distributed/mpirun.h"

namespace tensorgrad::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::read_text;
using test::TestFolder;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kTool = TENSORGRAD_TG;
std::string images_command(const std::string& epochs = "6", const std::string& data = "images") {
  return " train --data " + data + " --epochs " + epochs +
         " --device cpu --hidden 16,8 --batch 8 --lr 0.02 --seed 5";
}
const std::string kImages = images_command();
const std::string kText =
    " lm train book.txt --device cpu --arch hybrid --layers 2 --width 16 --steps 24 --batch 4"
    " --length 16 --eval-every 8 --warmup 2 --seed 3 --sample-tokens 5";

// Runs mpirun in a folder, again from the same state if it hangs at its end.
Finished mpirun(const TestFolder& folder, const std::string& programs) {
  const TestFolder before;
  fs::copy(folder.path(), before.path(), fs::copy_options::recursive);
  return mpirun_retried(programs, folder.path(), [&] {
    for (const auto& entry : fs::directory_iterator(folder.path())) fs::remove_all(entry);
    fs::copy(before.path(), folder.path(), fs::copy_options::recursive);
  });
}

Finished tg(const TestFolder& folder, int ranks, const std::string& arguments) {
  return mpirun(folder, "-n " + std::to_string(ranks) + " " + kTool + arguments);
}

// As tg(), with other arguments for rank 1.
Finished tg_each(const TestFolder& folder, const std::string& first, const std::string& second) {
  return mpirun(folder, "-n 1 " + kTool + first + " : -n 1 " + kTool + second);
}

void write_book(const TestFolder& folder) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "the " + std::to_string(i * i) + " quick brown foxes jump\n";
  test::write_text(folder / "book.txt", text);
}

// Returns the lines of metrics.jsonl without what depends on the clock.
std::vector<json> metrics_of(const TestFolder& folder, const std::string& run) {
  std::vector<json> lines;
  std::istringstream in(read_text(folder.path() / run / "metrics.jsonl"));
  for (std::string line; std::getline(in, line);) {
    json parsed = json::parse(line);
    for (const char* key : {"seconds", "images_per_second", "tokens_per_second", "checksum"})
      parsed.erase(key);
    lines.push_back(std::move(parsed));
  }
  return lines;
}

// Compares the metrics of two runs, except for rounding. Generated texts may differ.
void expect_near(const std::vector<json>& a, const std::vector<json>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].size(), b[i].size()) << a[i] << b[i];
    for (const auto& [key, value] : a[i].items()) {
      ASSERT_TRUE(b[i].contains(key)) << a[i] << b[i];
      if (value.is_number()) {
        const double tolerance = key == "test_accuracy" ? 0.05 : 1e-3;
        EXPECT_NEAR(value.get<double>(), b[i][key].get<double>(), tolerance) << a[i] << b[i];
      }
    }
  }
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

// Expects one error of tg with this text, and no run folder.
void expect_one_error(const TestFolder& folder, const Finished& result, const std::string& text) {
  EXPECT_EQ(result.status, 1) << result.text;
  EXPECT_THAT(result.text, HasSubstr("error: " + text));
  EXPECT_EQ(count_of(result.text, "error: "), 1U) << result.text;
  EXPECT_FALSE(fs::exists(folder.path() / "run"));
}

// Trains on two processes, twice, and on one. The output of two has both texts, `once` one time.
void expect_as_one_process(const TestFolder& folder, const std::string& arguments,
                           const std::string& text, const std::string& once) {
  const Finished two = tg(folder, 2, arguments + " --out two");
  ASSERT_EQ(two.status, 0) << two.text;
  EXPECT_THAT(two.text, HasSubstr(text));
  EXPECT_EQ(count_of(two.text, once), 1U) << two.text;
  ASSERT_EQ(tg(folder, 2, arguments + " --out again").status, 0);
  ASSERT_EQ(tg(folder, 1, arguments + " --out one").status, 0);
  EXPECT_EQ(files_in(folder.path() / "two"), files_in(folder.path() / "one"));
  EXPECT_EQ(read_text(folder / "two/model.safetensors"),
            read_text(folder / "again/model.safetensors"));
  EXPECT_EQ(metrics_of(folder, "two"), metrics_of(folder, "again"));
  expect_near(metrics_of(folder, "two"), metrics_of(folder, "one"));
}

TEST(MpiTool, trains_a_classifier_as_one_process_does) {
  const TestFolder folder;
  test::write_image_folder(folder.path() / "images");
  expect_as_one_process(folder, kImages, "ranks   2, each with 4 of the 8 images of a batch\n",
                        "epoch 6/6");
}

TEST(MpiTool, trains_a_language_model_as_one_process_does) {
  const TestFolder folder;
  write_book(folder);
  expect_as_one_process(folder, kText, "ranks   2, each with 2 of the 4 windows of a batch\n",
                        "best validation loss");
}

const std::string kShard = " --shard-optimizer", kShardParameters = " --shard-parameters";

std::string memory_line(const std::string& text) {
  const std::size_t begin = text.find("memory  per rank: ");
  return begin == std::string::npos ? text : text.substr(begin, text.find('\n', begin) - begin);
}

// Compares the memory that was printed of two ranks, with and without sharded states.
void expect_less_memory(const std::string& sharded, const std::string& whole) {
  const std::string head = R"(memory  per rank: \d+ bytes \(.*\), of which the optimizer has )";
  const std::regex with(head +
                        R"((\d+) bytes \(.*\), (\d+) bytes \(.*\) without --shard-optimizer)");
  const std::regex without(head + R"((\d+) bytes \(.*\))");
  std::smatch bytes, bytes_of_whole;
  ASSERT_TRUE(std::regex_match(sharded, bytes, with)) << sharded;
  ASSERT_TRUE(std::regex_match(whole, bytes_of_whole, without)) << whole;
  const std::int64_t unsharded = std::stoll(bytes[2]);  // with the padding of the shards
  EXPECT_EQ(unsharded, 2 * std::stoll(bytes[1]));
  EXPECT_LE(std::stoll(bytes_of_whole[1]), unsharded);
  EXPECT_GT(std::stoll(bytes_of_whole[1]), unsharded / 2);
}

// Expects that each of two ranks has half of the states and half of the parameters.
void expect_half_of_the_parameters(const std::string& line) {
  const std::string part = R"( (\d+) bytes \(.*\), (\d+) bytes \(.*\) without --shard-parameters)";
  const std::regex both(R"(memory  per rank: \d+ bytes \(.*\), of which the optimizer has)" + part +
                        ", of which the parameters have" + part);
  std::smatch bytes;
  ASSERT_TRUE(std::regex_match(line, bytes, both)) << line;
  EXPECT_EQ(std::stoll(bytes[2]), 2 * std::stoll(bytes[1]));
  EXPECT_EQ(std::stoll(bytes[4]), 2 * std::stoll(bytes[3]));
}

// Trains with whole and with sharded states, or parameters, and compares all bits.
void expect_same_files_sharded(const TestFolder& folder, const std::string& arguments,
                               const std::string& option = kShard) {
  const Finished whole = tg(folder, 2, arguments + " --out whole");
  ASSERT_EQ(whole.status, 0) << whole.text;
  const Finished sharded = tg(folder, 2, arguments + option + " --out sharded");
  ASSERT_EQ(sharded.status, 0) << sharded.text;
  EXPECT_EQ(files_in(folder.path() / "whole"), files_in(folder.path() / "sharded"));
  for (const std::string& file : files_in(folder.path() / "whole")) {
    if (!file.ends_with(".safetensors")) continue;
    EXPECT_EQ(read_text(folder / ("whole/" + file)), read_text(folder / ("sharded/" + file)));
  }
  EXPECT_EQ(metrics_of(folder, "whole"), metrics_of(folder, "sharded"));
  const std::string with = memory_line(sharded.text), without = memory_line(whole.text);
  if (option == kShardParameters) return expect_half_of_the_parameters(with);
  expect_less_memory(with, without);
}

TEST(MpiTool, sharded_parameters_of_a_classifier_make_the_same_files) {
  const TestFolder folder;
  test::write_image_folder(folder.path() / "images");
  expect_same_files_sharded(folder, kImages, kShardParameters);
}

// Rounding differs, since the norm for clipping is added in another order.
TEST(MpiTool, sharded_parameters_of_a_language_model_train_alike) {
  const TestFolder folder;
  write_book(folder);
  ASSERT_EQ(tg(folder, 2, kText + " --out whole").status, 0);
  const Finished sharded = tg(folder, 2, kText + kShardParameters + " --out sharded");
  ASSERT_EQ(sharded.status, 0) << sharded.text;
  EXPECT_EQ(files_in(folder.path() / "whole"), files_in(folder.path() / "sharded"));
  expect_near(metrics_of(folder, "whole"), metrics_of(folder, "sharded"));
  expect_half_of_the_parameters(memory_line(sharded.text));
}

TEST(MpiTool, sharded_states_of_a_classifier_make_the_same_files) {
  for (const char* const optimizer : {"adamw", "sgd"}) {
    const TestFolder folder;
    test::write_image_folder(folder.path() / "images");
    expect_same_files_sharded(folder, kImages + " --optimizer " + optimizer);
  }
}

TEST(MpiTool, sharded_states_of_a_language_model_make_the_same_files) {
  const TestFolder folder;
  write_book(folder);
  expect_same_files_sharded(folder, kText);
}

// Trains with two, one and four processes, and compares with one process. `of_several` are further
// options of several processes.
void expect_resumed_by_others(const TestFolder& folder, const std::string& arguments,
                              const std::string& command, const std::string& of_several = "") {
  ASSERT_EQ(tg(folder, 1, arguments + " --out one").status, 0);
  const Finished begun = tg(folder, 2, arguments + of_several + " --out run --stop-after 9");
  EXPECT_EQ(begun.status, 130) << begun.text;
  EXPECT_EQ(count_of(begun.text, "stopped after step 9 of"), 1U) << begun.text;
  const Finished one_process =
      tg(folder, 1, command + " --resume run --device cpu --stop-after 11");
  EXPECT_EQ(one_process.status, 130) << one_process.text;
  EXPECT_THAT(one_process.text, HasSubstr("resuming after step 9 of"));
  const Finished four = tg(folder, 4, command + " --resume run --device cpu" + of_several);
  EXPECT_EQ(four.status, 0) << four.text;
  EXPECT_EQ(count_of(four.text, "resuming after step 11 of"), 1U) << four.text;
  expect_near(metrics_of(folder, "run"), metrics_of(folder, "one"));
}

TEST(MpiTool, resumes_a_classifier_with_another_number_of_processes) {
  const TestFolder folder;
  test::write_image_folder(folder.path() / "images");
  expect_resumed_by_others(folder, kImages, " train");
}

TEST(MpiTool, resumes_a_language_model_with_another_number_of_processes) {
  const TestFolder folder;
  write_book(folder);
  expect_resumed_by_others(folder, kText, " lm train");
}

TEST(MpiTool, resumes_a_sharded_classifier_with_another_number_of_processes) {
  const TestFolder folder;
  test::write_image_folder(folder.path() / "images");
  expect_resumed_by_others(folder, kImages, " train", kShard);
}

TEST(MpiTool, resumes_a_sharded_language_model_with_another_number_of_processes) {
  const TestFolder folder;
  write_book(folder);
  expect_resumed_by_others(folder, kText, " lm train", kShard);
}

TEST(MpiTool, resumes_sharded_parameters_with_another_number_of_processes) {
  {
    const TestFolder folder;
    test::write_image_folder(folder.path() / "images");
    expect_resumed_by_others(folder, kImages, " train", kShardParameters);
  }
  const TestFolder folder;
  write_book(folder);
  expect_resumed_by_others(folder, kText, " lm train", kShardParameters);
}

TEST(MpiTool, sharding_with_one_process_has_no_effect) {
  const TestFolder folder;
  test::write_image_folder(folder.path() / "images");
  const Finished one = tg(folder, 1, kImages + kShard + " --out run --stop-after 1");
  EXPECT_EQ(one.status, 130) << one.text;
  EXPECT_THAT(one.text, HasSubstr("\nranks   1: --shard-optimizer has no effect\n"));
}

// Returns the process that is a rank in the folder, or 0 if there is none.
pid_t find_rank(const TestFolder& folder, int rank) {
  const std::string variable =
      std::string(1, '\0') + "OMPI_COMM_WORLD_RANK=" + std::to_string(rank) + '\0';
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || stop != name.data() + name.size()) continue;
    std::error_code ignored;
    if (fs::read_symlink(entry.path() / "cwd", ignored) != folder.path()) continue;
    if (read_text(entry.path() / "environ").find(variable) != std::string::npos) return pid;
  }
  return 0;
}

// Starts a long run on two processes, calls a function after some steps, and returns how mpirun
// ended.
Finished disturb(const TestFolder& folder, const std::string& options,
                 const std::function<void()>& disturbance) {
  test::write_image_folder(folder.path() / "images");
  const std::string programs =
      "-n 2 " + kTool + images_command("1000000") + " --out run --checkpoint-every 1s" + options;
  auto finished =
      std::async(std::launch::async, [&] { return mpirun_once(programs, folder.path()); });
  const auto metrics = folder.path() / "run/metrics.jsonl";
  for (int i = 0; i < 1000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::error_code ignored;
    if (fs::exists(metrics, ignored) && fs::file_size(metrics, ignored) > 2000) break;
  }
  disturbance();
  return finished.get();
}

// Sends a signal to one of the processes.
Finished signal_a_rank(const TestFolder& folder, int rank, int signal,
                       const std::string& options = "") {
  return disturb(folder, options, [&] {
    const pid_t pid = find_rank(folder, rank);
    EXPECT_GT(pid, 0);
    if (pid > 0) ::kill(pid, signal);
  });
}

// Expects that one process resumes the run, after at least one step.
void expect_resumable(const TestFolder& folder) {
  const test::ToolResult resumed =
      folder.tg({"train", "--resume", "run", "--device", "cpu", "--stop-after", "1"});
  EXPECT_EQ(resumed.code, 130) << resumed.err;
  EXPECT_TRUE(std::regex_search(resumed.out, std::regex("resuming after step [1-9]")))
      << resumed.out;
}

TEST(MpiTool, a_signal_to_one_process_saves_the_run_and_ends_all) {
  for (int rank = 0, tries = 1; rank < 2;) {
    const TestFolder folder;
    const Finished result = signal_a_rank(folder, rank, SIGTERM, rank == 1 ? kShard : "");
    // Its status is unknown then.
    if (mpirun_hung(result) && tries++ < kMaxTries) continue;
    ++rank;
    EXPECT_EQ(result.status, 128 + SIGTERM) << result.text;
    EXPECT_EQ(count_of(result.text, "saved; resume with: tg train --resume run"), 1U)
        << result.text;
    EXPECT_THAT(result.text, Not(HasSubstr("error: ")));
    expect_resumable(folder);
  }
}

TEST(MpiTool, a_killed_process_ends_all_and_the_run_can_be_resumed) {
  const TestFolder folder;
  const Finished result = signal_a_rank(folder, 1, SIGKILL);
  EXPECT_NE(result.status, 0);
  EXPECT_EQ(find_rank(folder, 0), 0);
  expect_resumable(folder);
}

class MpiToolSharded : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Options, MpiToolSharded, ::testing::Values(kShard, kShardParameters));

TEST_P(MpiToolSharded, one_error_says_that_a_run_cannot_be_saved) {
  const TestFolder folder;
  const Finished result = disturb(folder, GetParam(), [&] {
    const fs::path model = folder.path() / "run/model.safetensors";
    std::error_code ignored;
    for (int i = 0; i < 1000 && !fs::is_directory(model, ignored); ++i) {  // tg may be faster
      fs::remove(model, ignored);
      fs::create_directories(model / "in_the_way", ignored);
    }
  });
  EXPECT_EQ(result.status, 1) << result.text;
  EXPECT_THAT(result.text, HasSubstr("error: run/model.safetensors: "));
  EXPECT_EQ(count_of(result.text, "error: "), 1U) << result.text;
  EXPECT_THAT(result.text, Not(HasSubstr("ended while this rank waited")));
}

TEST(MpiTool, a_process_that_hangs_ends_all_within_the_timeout) {
  const TestFolder folder;
  const Finished result = signal_a_rank(folder, 1, SIGSTOP, " --distributed-timeout 5s");
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.text, HasSubstr("rank 0 of 2: "));
  EXPECT_THAT(result.text, HasSubstr("rank 1 did not answer within 5 seconds"));
  EXPECT_LT(result.seconds, 40);
  expect_resumable(folder);
}

TEST(MpiTool, one_error_names_an_option_that_differs) {
  const TestFolder folder;
  test::write_image_folder(folder.path() / "images");
  write_book(folder);
  expect_one_error(
      folder, tg_each(folder, kImages + " --out run", kImages + " --out run --weight-decay 0.5"),
      "rank 1 of 2 differs from rank 0: --weight-decay: 0.5, not 0.01\n");
  expect_one_error(folder, tg_each(folder, kImages + " --out run", kImages + kShard + " --out run"),
                   "rank 1 of 2 differs from rank 0: --shard-optimizer: true, not false\n");
  expect_one_error(folder, tg_each(folder, kImages + " --out run", kText + " --out run"),
                   "rank 1 of 2 differs from rank 0: the command: tg lm train, not tg train\n");
  expect_one_error(folder, tg_each(folder, kText + " --out run", kText + " --out run --heads 2"),
                   "rank 1 of 2 differs from rank 0: attention of the model: {\"heads\":2,");
}

TEST(MpiTool, one_error_says_that_the_data_differ_or_are_missing_on_a_rank) {
  const TestFolder folder;
  test::write_image_folder(folder.path() / "images");
  fs::copy(folder.path() / "images", folder.path() / "others");
  const std::string image(25, '\7');
  std::fstream file(folder / "others/train-images-idx3-ubyte",
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(16);
  file << image;
  file.close();
  const auto with_data = [](const std::string& name) {
    return images_command("6", name) + " --out run";
  };
  expect_one_error(folder, tg_each(folder, with_data("images"), with_data("others")),
                   "rank 1 of 2 differs from rank 0: fingerprint of the data: ");
  expect_one_error(folder, tg_each(folder, with_data("images"), with_data("nowhere")),
                   "rank 1 of 2: " + (folder / "nowhere") + ": no such file or directory\n");
  expect_one_error(folder, tg(folder, 2, with_data("nowhere")),
                   folder / "nowhere" + ": no such file or directory\n");
}

TEST(MpiTool, one_error_refuses_a_batch_or_a_folder) {
  const TestFolder folder;
  test::write_image_folder(folder.path() / "images");
  expect_one_error(folder, tg(folder, 3, kImages + " --out run"),
                   "--batch 8: is that of all 3 ranks and must be a multiple of their number, "
                   "such as 6\n");
  fs::create_directory(folder.path() / "taken");
  test::write_text(folder / "taken/run.json", "{}");
  expect_one_error(folder, tg(folder, 2, kImages + " --out taken"),
                   "taken: already contains a run; use --resume to resume it or --force to "
                   "replace it\n");
}

TEST(MpiTool, one_error_says_that_training_diverges) {
  const TestFolder folder;
  test::write_image_folder(folder.path() / "images");
  write_book(folder);
  const Finished images = tg(folder, 2, kImages + " --out a --optimizer sgd --weight-decay 1e30");
  EXPECT_EQ(images.status, 1) << images.text;
  EXPECT_THAT(images.text, HasSubstr("holds the last good model, of step "));
  EXPECT_EQ(count_of(images.text, "error: "), 1U) << images.text;
  const Finished text = tg(folder, 2, kText + " --out b --lr 1e30 --clip-grad-norm 0");
  EXPECT_EQ(text.status, 1) << text.text;
  EXPECT_THAT(text.text, HasSubstr("holds the last good state, of step "));
  EXPECT_EQ(count_of(text.text, "error: "), 1U) << text.text;
}

TEST(MpiTool, without_mpi_refuses_to_train_the_same_run_several_times) {
  const TestFolder folder;
  test::write_image_folder(folder.path() / "images");
  fs::copy_file(kTool, folder.path() / "tg");  // libtg_mpi.so is not next to it
  const Finished refused = mpirun(folder, "-n 2 ./tg" + kImages + " --out run");
  EXPECT_EQ(refused.status, 1) << refused.text;
  EXPECT_THAT(refused.text, HasSubstr("error: a launcher of MPI started this process "
                                      "(OMPI_COMM_WORLD_SIZE=2), but this tg cannot use MPI: "
                                      "libtg_mpi.so"));
  EXPECT_FALSE(fs::exists(folder.path() / "run"));
  const std::string separate = "-n 1 ./tg" + kImages + " --distributed off --out ";
  const Finished each = mpirun(folder, separate + "a : " + separate + "b");
  EXPECT_EQ(each.status, 0) << each.text;
  EXPECT_EQ(read_text(folder / "a/model.safetensors"), read_text(folder / "b/model.safetensors"));
}

}  // namespace
}  // namespace tensorgrad::testing
