// SPDX-License-Identifier: MIT
// A new run is written to a temporary folder. If the target does not exist, that folder is renamed
// to it. Otherwise the target may be a mount point or the working folder, and has files of others:
// the temporary folder is in it, and is renamed to kReplacement. From then on the folder has the
// new run, and whoever opens it first moves the files to their places.
#include "run/run_folder.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "os/process.h"
#include "tensorgrad/error.h"

namespace tensorgrad::cli {
namespace {

namespace fs = std::filesystem;

// In the order of RunFile.
constexpr std::array<const char*, 9> kNames = {
    "run.json",       "model.safetensors",     "checkpoint.safetensors",
    "tokenizer.json", "tokenizer_config.json", "metrics.jsonl",
    "curves.svg",     "confusion.svg",         "predictions.png"};
static_assert(kNames.size() == static_cast<std::size_t>(RunFile::kPredictions) + 1);
constexpr const char* kLock = ".lock";
constexpr const char* kReplacement = ".replacement";
constexpr const char* kEvents = "events.out.tfevents.";  // how names of event files begin

[[noreturn]] void fail(const std::string& path, const std::string& what,
                       const std::error_code& reason) {
  throw IoError(fmt::format("{}: {}: {}", path, what, reason.message()));
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

void check_target(const std::string& target, bool force) {
  std::error_code error;
  const fs::path folder = os::utf8_path(target);
  const fs::file_status status = fs::status(folder, error);
  if (status.type() == fs::file_type::not_found) return;
  if (error) fail(target, "cannot be accessed", error);
  if (!fs::is_directory(status)) throw IoError(target + ": not a directory");
  const bool empty = fs::is_empty(folder, error);
  if (error) fail(target, "cannot be read", error);
  if (empty || force) return;
  if (is_there(folder / kNames[0]) || is_there(folder / kReplacement)) {
    throw IoError(target +
                  ": already contains a run; use --resume to resume it or --force to replace it");
  }
  throw IoError(target + ": the folder is not empty; use --force to write the run into it");
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) fail(os::utf8_text(path), "cannot be removed", error);
}

std::vector<fs::path> event_files(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    if (os::utf8_text(entry->path().filename()).starts_with(kEvents))
      found.push_back(entry->path());
  }
  return found;
}

// Throws IoError if a folder is where a file of the new run, or of the one that it replaces, is to
// be: the replacement could not be completed.
void check_replaceable(const fs::path& target, const fs::path& made) {
  const bool replaces = is_there(target / kNames[0]);
  for (const char* const name : kNames) {
    std::error_code ignored;
    if (!replaces && !is_there(made / name)) continue;
    if (fs::is_directory(fs::symlink_status(target / name, ignored)))
      throw IoError(os::utf8_text(target / name) + ": cannot be replaced: is a directory");
  }
}

// Moves the files of the replacement to their places. Can be repeated after a kill at any point:
// the old run.json is removed after the other old files, and the new one is moved last.
void move_replacement(const fs::path& target) {
  const fs::path made = target / kReplacement;
  if (!is_there(made)) return;
  const bool all_moved = !is_there(made / kNames[0]);
  if (!all_moved && is_there(target / kNames[0])) {
    for (const fs::path& file : event_files(target)) remove_file(file);
    for (std::size_t i = kNames.size(); i-- > 0;) remove_file(target / kNames[i]);
  }
  for (std::size_t i = kNames.size(); i-- > 0;) {
    std::error_code error;
    if (!is_there(made / kNames[i])) continue;
    fs::rename(made / kNames[i], target / kNames[i], error);
    if (error) fail(os::utf8_text(target / kNames[i]), "cannot be replaced", error);
  }
  std::error_code error;
  fs::remove_all(made, error);
  if (error) fail(os::utf8_text(made), "cannot be removed", error);
}

}  // namespace

const char* name_of(RunFile file) { return kNames.at(static_cast<std::size_t>(file)); }

std::string run_path(const std::string& folder, RunFile file) {
  return os::utf8_text(os::utf8_path(folder) / name_of(file));
}

bool has_event_files(const std::string& folder) {
  return !event_files(os::utf8_path(folder)).empty();
}

namespace {

FileLock hold(const std::string& folder) {
  FileLock lock(os::utf8_text(os::utf8_path(folder) / kLock), folder);
  move_replacement(os::utf8_path(folder));
  remove_stale_temporaries(folder, [](const std::string& name) {
    return name.empty() || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
  });
  return lock;
}

}  // namespace

bool is_run_folder(const std::string& folder) {
  return is_there(os::utf8_path(run_path(folder, RunFile::kRun))) ||
         is_there(os::utf8_path(folder) / kReplacement);
}

FileLock lock_run(const std::string& folder) {
  if (!is_run_folder(folder)) throw IoError(folder + ": not a run folder: it has no run.json");
  return hold(folder);
}

bool is_locked(const std::string& folder) {
  return os::is_locked(os::utf8_text(os::utf8_path(folder) / kLock));
}

void finish_replacement(const std::string& folder) {
  if (is_there(os::utf8_path(folder) / kReplacement)) (void)hold(folder);
}

NewRunFolder::NewRunFolder(std::string target, bool force) : target_(std::move(target)) {
  while (target_.size() > 1 && target_.ends_with('/')) target_.pop_back();
  check_target(target_, force);
  std::error_code error;
  // Resolves "." and symbolic links.
  const fs::path whole = fs::weakly_canonical(fs::absolute(os::utf8_path(target_)), error);
  if (error) fail(target_, "cannot be accessed", error);
  exists_ = fs::exists(whole, error);
  if (!exists_ && whole.has_parent_path()) fs::create_directories(whole.parent_path(), error);
  if (error) fail(os::utf8_text(whole.parent_path()), "cannot be created", error);
  if (exists_) lock_.emplace(hold(target_));
  made_.emplace(exists_ ? target_ + "/" : os::utf8_text(whole));
}

std::string NewRunFolder::path(RunFile file) const { return run_path(made_->path(), file); }

void NewRunFolder::publish() {
  if (exists_) {
    check_replaceable(os::utf8_path(target_), os::utf8_path(made_->path()));
    made_->rename(os::utf8_text(os::utf8_path(target_) / kReplacement));
    move_replacement(os::utf8_path(target_));
  } else {
    made_->rename(target_);
    lock_.emplace(hold(target_));
  }
}

std::string path_in(const std::optional<NewRunFolder>& folder, RunFile file) {
  return folder ? folder->path(file) : name_of(file);
}

std::string free_run_name(const std::string& data_path) {
  fs::path data = os::utf8_path(data_path).lexically_normal();
  if (!data.has_filename()) data = data.parent_path();
  std::string name = os::utf8_text(data.filename());
  name.resize(std::min(name.find('.'), name.size()));
  if (name.empty()) name = "run";
  std::error_code ignored;
  for (int i = 1;; ++i) {
    const std::string path = i == 1 ? "runs/" + name : fmt::format("runs/{}-{}", name, i);
    if (!fs::exists(os::utf8_path(path), ignored)) return path;
  }
}

}  // namespace tensorgrad::cli
