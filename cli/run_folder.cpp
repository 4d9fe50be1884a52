// SPDX-License-Identifier: MIT
// A run folder is told by its run.json, which is removed first and comes last.
#include "run_folder.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "tensorgrad/error.h"

namespace tensorgrad::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "run.json";
constexpr const char* kFiles[] = {kMark,        "model.safetensors", "metrics.jsonl",
                                  "curves.svg", "confusion.svg",     "predictions.png"};

[[noreturn]] void fail(const std::string& path, const std::string& what,
                       const std::error_code& why) {
  throw IoError(fmt::format("{}: {}: {}", path, what, why.message()));
}

void check_target(const std::string& target, bool force) {
  std::error_code error;
  const fs::file_status status = fs::status(target, error);
  if (status.type() == fs::file_type::not_found) return;
  if (error) fail(target, "cannot be looked at", error);
  if (!fs::is_directory(status)) throw IoError(target + ": is no folder");
  const bool empty = fs::is_empty(target, error);
  if (error) fail(target, "cannot be read", error);
  if (empty || force) return;
  if (fs::exists(fs::path(target) / kMark, error)) {
    throw IoError(target + ": holds a run already; --force replaces it, --resume goes on with it");
  }
  throw IoError(target + ": is a folder with other things in it; --force puts the run among them");
}

}  // namespace

NewRunFolder::NewRunFolder(std::string target, bool force) : target_(std::move(target)) {
  while (target_.size() > 1 && target_.ends_with('/')) target_.pop_back();
  check_target(target_, force);
  std::error_code error;
  // Beside the target, also where that is "." or a link.
  fs::path whole = fs::weakly_canonical(fs::absolute(target_), error);
  if (error) fail(target_, "cannot be looked at", error);
  if (whole.has_parent_path()) fs::create_directories(whole.parent_path(), error);
  if (error) fail(whole.parent_path().string(), "cannot be made", error);
  made_ = fmt::format("{}.tmp.{}", whole.string(), ::getpid());
  fs::remove_all(made_, error);  // left by a process of the same number
  if (!fs::create_directory(made_, error)) {
    const std::string made = std::exchange(made_, "");
    fail(target_, "cannot be made", error);
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
  if (!fs::exists(target_, error)) {
    fs::rename(made_, target_, error);
    if (error) fail(target_, "cannot be made", error);
    made_.clear();
    return;
  }
  for (const char* name : kFiles) {
    fs::remove(fs::path(target_) / name, error);
    if (error) fail((fs::path(target_) / name).string(), "cannot be replaced", error);
  }
  for (auto name = std::rbegin(kFiles); name != std::rend(kFiles); ++name) {
    if (!fs::exists(path(*name), error)) continue;
    fs::rename(path(*name), fs::path(target_) / *name, error);
    if (error) fail((fs::path(target_) / *name).string(), "cannot be written", error);
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
