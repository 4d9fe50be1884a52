// SPDX-License-Identifier: MIT
// A folder with a run.json is a run folder. That file is written last.
#include "run_folder.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "tensorgrad/error.h"

namespace tensorgrad::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "run.json";
// Files that a run may have written: replacing a run removes those that the new one lacks.
constexpr const char* kFiles[] = {kMark,
                                  "model.safetensors",
                                  "metrics.jsonl",
                                  "checkpoint.safetensors",
                                  "tokenizer.json",
                                  "tokenizer_config.json",
                                  "curves.svg",
                                  "confusion.svg",
                                  "predictions.png"};

[[noreturn]] void fail(const std::string& path, const std::string& what,
                       const std::error_code& why) {
  throw IoError(fmt::format("{}: {}: {}", path, what, why.message()));
}

void check_target(const std::string& target, bool force) {
  std::error_code error;
  const fs::file_status status = fs::status(target, error);
  if (status.type() == fs::file_type::not_found) return;
  if (error) fail(target, "cannot be accessed", error);
  if (!fs::is_directory(status)) throw IoError(target + ": not a directory");
  const bool empty = fs::is_empty(target, error);
  if (error) fail(target, "cannot be read", error);
  if (empty || force) return;
  if (fs::exists(fs::path(target) / kMark, error)) {
    throw IoError(target +
                  ": already contains a run; use --resume to resume it or --force to replace it");
  }
  throw IoError(target + ": the folder is not empty; use --force to write the run into it");
}

// Removes the files of an old run that the new one, with these files, lacks.
void remove_old(const fs::path& target, const std::vector<std::string>& names) {
  for (const char* const file : kFiles) {
    std::error_code error;
    if (std::find(names.begin(), names.end(), file) != names.end()) continue;
    if (fs::is_directory(target / file, error)) continue;
    fs::remove(target / file, error);
    if (error) fail((target / file).string(), "cannot be removed", error);
  }
}

}  // namespace

NewRunFolder::NewRunFolder(std::string target, bool force) : target_(std::move(target)) {
  while (target_.size() > 1 && target_.ends_with('/')) target_.pop_back();
  check_target(target_, force);
  std::error_code error;
  // Resolves "." and symbolic links.
  fs::path whole = fs::weakly_canonical(fs::absolute(target_), error);
  if (error) fail(target_, "cannot be accessed", error);
  inside_ = fs::exists(whole, error);
  if (!inside_ && whole.has_parent_path()) fs::create_directories(whole.parent_path(), error);
  if (error) fail(whole.parent_path().string(), "cannot be created", error);
  // An existing target may be a mount point: its parent is then on another file system, from which
  // files cannot be renamed.
  const std::string name = fmt::format(".tmp.{}", ::getpid());
  made_ = inside_ ? (whole / name).string() : whole.string() + name;
  fs::remove_all(made_, error);  // left by an earlier process with the same id
  if (!fs::create_directory(made_, error)) {
    made_.clear();
    fail(target_, "cannot be created", error);
  }
}

NewRunFolder::~NewRunFolder() {
  std::error_code ignored;
  if (!made_.empty()) fs::remove_all(made_, ignored);
}

std::string NewRunFolder::path(const std::string& name) const {
  return (fs::path(made_) / name).string();
}

void NewRunFolder::publish() {
  std::error_code error;
  if (!inside_) {
    fs::rename(made_, target_, error);
    if (error) fail(target_, "cannot be created", error);
    made_.clear();
    return;
  }
  const fs::path target(target_);
  const bool replaces = fs::exists(target / kMark, error);
  std::vector<std::string> names;
  for (fs::directory_iterator entry(made_, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) fail(made_, "cannot be read", error);
  // In reverse order of kFiles, so that the model is replaced late and run.json last.
  const auto rank = [](const std::string& name) {
    return std::find(std::begin(kFiles), std::end(kFiles), name) - std::begin(kFiles);
  };
  std::sort(names.begin(), names.end(),
            [&](const std::string& a, const std::string& b) { return rank(a) > rank(b); });
  for (const std::string& name : names) {
    if (name == kMark && replaces) remove_old(target, names);
    fs::rename(path(name), target / name, error);
    if (error) fail((target / name).string(), "cannot be replaced", error);
  }
  fs::remove(made_, error);
  made_.clear();
}

std::string free_run_name(const std::string& data_path) {
  fs::path data = fs::path(data_path).lexically_normal();
  if (!data.has_filename()) data = data.parent_path();
  std::string name = data.filename().string();
  name.resize(std::min(name.find('.'), name.size()));
  if (name.empty()) name = "run";
  std::error_code ignored;
  for (int i = 1;; ++i) {
    const std::string path = i == 1 ? "runs/" + name : fmt::format("runs/{}-{}", name, i);
    if (!fs::exists(path, ignored)) return path;
  }
}

}  // namespace tensorgrad::cli
