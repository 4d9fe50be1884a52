// SPDX-License-Identifier: MIT
#include "run/ranks.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tensorgrad/error.h"
#include "tensorgrad/version.h"
#include "text.h"

namespace tensorgrad::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kKeepWaiting{1};
constexpr std::size_t kLongestValue = 200;  // characters of a value in an error

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::vector<T> gather_values(Communicator& group, const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(group.size()));
  group.all_gather(bytes_of(mine), std::as_writable_bytes(std::span(all)));
  return all;
}

std::string value_text(const std::string& text) {
  if (text.empty()) return "''";
  return text.size() <= kLongestValue ? text : text.substr(0, kLongestValue) + "...";
}

// What a rank says of its work: an error, the error of another rank that a call of the library
// passed on, or nothing.
constexpr char kOwnError = '!', kErrorOfAnother = '?';

}  // namespace

// The same in all versions of the tool, so that different versions can compare theirs.
struct Ranks::Message {
  std::int32_t order = 0;
  std::int32_t signal = 0;
  std::int64_t number = 0;
};

std::vector<std::string> Ranks::gather(std::string_view text) const {
  if (!several()) return {std::string(text)};
  const std::vector<std::uint64_t> sizes =
      gather_values(*group_, static_cast<std::uint64_t>(text.size()));
  const std::size_t longest = *std::max_element(sizes.begin(), sizes.end());
  if (longest == 0) return std::vector<std::string>(sizes.size());
  std::string mine(text);
  mine.resize(longest);
  std::string all(longest * sizes.size(), '\0');
  group_->all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < sizes.size(); ++i) texts.push_back(all.substr(i * longest, sizes[i]));
  return texts;
}

void Ranks::gather(std::span<const float> mine, std::span<float> all) const {
  if (several()) {
    group_->all_gather(std::as_bytes(mine), std::as_writable_bytes(all));
  } else {
    std::copy(mine.begin(), mine.end(), all.begin());
  }
}

std::vector<double> Ranks::sum(const std::vector<double>& values) const {
  if (!several()) return values;
  std::vector<double> all(values.size() * static_cast<std::size_t>(size()));
  group_->all_gather(std::as_bytes(std::span(values)), std::as_writable_bytes(std::span(all)));
  std::vector<double> sums(values.size());
  for (std::size_t i = 0; i < all.size(); ++i) sums[i % values.size()] += all[i];
  return sums;
}

void Ranks::check_same(const std::vector<SharedText>& all) const {
  if (!several()) return;
  for (const SharedText& each : all) {
    const std::vector<std::string> texts = gather(each.text);
    const auto other = std::find_if(texts.begin(), texts.end(),
                                    [&](const std::string& text) { return text != texts.front(); });
    if (other == texts.end()) continue;
    if (!first()) throw ReportedByFirst();  // NOLINT(bugprone-std-exception-baseclass)
    throw UserError(fmt::format("rank {} of {} differs from rank 0: {}: {}, not {}",
                                other - texts.begin(), size(), each.what, value_text(*other),
                                value_text(texts.front())));
  }
}

void Ranks::together(const std::function<void()>& work) const {
  if (!several()) return work();
  std::exception_ptr error;
  std::string text;
  try {
    work();
  } catch (const DistributedError& failure) {
    error = std::current_exception();
    text = kErrorOfAnother + failure.message();
  } catch (const Error& failure) {
    error = std::current_exception();
    text = kOwnError + failure.message();
  } catch (const std::exception& failure) {
    error = std::current_exception();
    text = kOwnError + std::string(failure.what());
  }
  const std::vector<std::string> texts = gather(text);
  const auto begins_with = [&](char mark) {
    return std::find_if(texts.begin(), texts.end(),
                        [&](const std::string& each) { return each.starts_with(mark); });
  };
  auto failed = begins_with(kOwnError);
  if (failed == texts.end()) failed = begins_with(kErrorOfAnother);
  if (failed == texts.end()) return;
  if (!first()) throw ReportedByFirst();  // NOLINT(bugprone-std-exception-baseclass)
  if (failed == texts.begin()) std::rethrow_exception(error);
  throw UserError(
      fmt::format("rank {} of {}: {}", failed - texts.begin(), size(), failed->substr(1)));
}

void Ranks::check_interrupted() const {
  if (!several()) return cli::check_interrupted();
  // What was exchanged, not the flag, decides: it can change on one rank at any time.
  if (exchange(Order::kWait, 0).signal != 0)
    throw Interrupted();  // NOLINT(bugprone-std-exception-baseclass)
}

Ranks::Message Ranks::exchange(Order order, std::int64_t number) const {
  const Message mine = {
      .order = static_cast<std::int32_t>(order), .signal = interrupted(), .number = number};
  const std::vector<Message> all = gather_values(*group_, mine);
  Message result = all.front();
  for (const Message& each : all) {
    if (result.signal == 0) result.signal = each.signal;
  }
  if (result.signal != 0 && interrupted() == 0) interrupt_by(result.signal);
  return result;
}

void Ranks::order(Order order, std::int64_t number) const {
  if (several()) exchange(order, number);
}

int Ranks::lead_run(const std::function<int()>& work) {
  try {
    const int code = work();
    order(Order::kEnd, code);
    return code;
  } catch (...) {
    if (!leads_) order(Order::kFail);
    throw;
  }
}

void Ranks::lead_save(const std::function<void()>& save) {
  if (!shards()) return save();
  try {
    lead(Order::kSave, 0, [&] {
      save();
      return 0;
    });
  } catch (const IoError&) {  // the file is written after all states were gathered
    failed_on_all_ranks();
    throw;
  }
}

void Ranks::keep_waiting() {
  const auto now = std::chrono::steady_clock::now();
  if (!several() || now - told_ < kKeepWaiting) return;
  told_ = now;
  order(Order::kWait);
}

GivenOrder Ranks::next_order() const {
  for (;;) {
    const Message message = exchange(Order::kWait, 0);
    const GivenOrder given = {static_cast<Order>(message.order), message.number};
    if (given.order == Order::kFail)
      throw ReportedByFirst();  // NOLINT(bugprone-std-exception-baseclass)
    if (given.order != Order::kWait) return given;
  }
}

Ranks join_ranks(const RankOptions& options, const std::string& command) {
  Ranks ranks(join_mpi(options), options);
  check_versions(ranks, TENSORGRAD_VERSION_STRING, command);
  ranks.check_same({{"--shard-optimizer", options.shard_optimizer ? "true" : "false"},
                    {"--shard-parameters", options.shard_parameters ? "true" : "false"}});
  return ranks;
}

void check_versions(const Ranks& ranks, const std::string& version, const std::string& command) {
  ranks.check_same({{"the version of tg", version}, {"the command", command}});
}

std::vector<SharedText> shared_settings(const std::string& run_json) {
  const Json run = Json::parse(run_json);
  std::vector<SharedText> shared;
  for (const auto& [name, value] : run.at("settings").items()) {
    std::string option = "--" + name;
    std::replace(option.begin(), option.end(), '_', '-');
    shared.push_back({option, value.dump()});
  }
  // Which fields there are depends on the model and on the data.
  const auto add = [&](const Json& fields, const char* what) {
    std::string names;
    for (const auto& [name, value] : fields.items()) names += name + " ";
    shared.push_back({std::string("the fields of the ") + what, names});
    for (const auto& [name, value] : fields.items())
      shared.push_back({name + " of the " + what, value.dump()});
  };
  if (run.contains("config")) add(run["config"], "model");
  if (run.contains("task")) {
    add(run["task"], "data");
  } else {
    shared.push_back({"fingerprint of the data", run.at("fingerprint").dump()});
  }
  return shared;
}

std::int64_t batch_per_rank(std::int64_t batch, const Ranks& ranks) {
  const std::int64_t size = ranks.size();
  if (batch % size == 0) return batch / size;
  const std::int64_t below = batch / size * size;
  throw UserError(fmt::format(
      "--batch {}: is that of all {} ranks and must be a multiple of their number, such as {}",
      batch, size, below > 0 ? below : size));
}

int run_rank(const Ranks& ranks, const std::function<int()>& work) {
  if (ranks.first()) return work();
  try {
    return work();
  } catch (const Error& error) {
    throw UserError(fmt::format("rank {} of {}: {}", ranks.rank(), ranks.size(), error.message()));
  } catch (const std::exception& error) {
    throw UserError(fmt::format("rank {} of {}: {}", ranks.rank(), ranks.size(), error.what()));
  }
}

std::string ranks_text(const Ranks& ranks, std::int64_t batch, std::string_view unit) {
  if (!ranks.several()) {
    return ranks.sharding() == nullptr
               ? ""
               : fmt::format("ranks   1: {} has no effect\n", ranks.sharding());
  }
  return fmt::format("ranks   {}, each with {} of the {} {} of a batch\n", ranks.size(),
                     batch / ranks.size(), batch, unit);
}

std::string rank_memory_text(const Ranks& ranks, const CompileReport& report) {
  if (!ranks.several()) return "";
  const auto text = [](std::int64_t bytes) {
    return fmt::format("{} bytes ({})", bytes, bytes_text(bytes));
  };
  const auto part = [&](const char* what, std::int64_t bytes, std::int64_t unsharded) {
    return fmt::format(
        ", of which {} {}{}", what, text(bytes),
        ranks.shards() ? fmt::format(", {} without {}", text(unsharded), ranks.sharding()) : "");
  };
  return fmt::format(
      "memory  per rank: {}{}{}\n", text(report.peak_bytes),
      part("the optimizer has", report.optimizer_bytes, report.unsharded_optimizer_bytes),
      ranks.shards_params()
          ? part("the parameters have", report.parameter_bytes, report.unsharded_parameter_bytes)
          : "");
}

}  // namespace tensorgrad::cli
