// SPDX-License-Identifier: MIT
// Appends entries to a copy that replaces the file, while holding a lock on the file. Concurrent
// processes thus do not lose each other's entries.
#include "io/tuning_file.h"

#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/os/files.h"
#include "base/path.h"
#include "io/text.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {
namespace {

constexpr std::string_view kTuningVersion = "tensorgrad tuning 1";
constexpr std::string_view kTuningColumns =
    "# device\tdriver\tcontraction\tchoice\tmicroseconds of each candidate\n";
constexpr std::uint64_t kMaxTuningBytes = std::uint64_t{64} << 20;
constexpr std::size_t kTuningFields = 5;

// Replaces control characters, such as separators and line ends, by spaces.
std::string one_field(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

std::string tuning_key(const std::string& device, const std::string& driver,
                       const std::string& kernel) {
  return one_field(device) + '\t' + one_field(driver) + '\t' + one_field(kernel);
}

std::string tuning_line(const TuningEntry& entry) {
  return tuning_key(entry.device, entry.driver, entry.kernel) + '\t' + one_field(entry.choice) +
         '\t' + one_field(entry.times) + '\n';
}

std::vector<std::string> tuning_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == '\t') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

std::string tuning_text(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(utf8_path(path), ignored)) return {};
  return read_text_file(path, kMaxTuningBytes);
}

}  // namespace

TuningFile::TuningFile(std::string path) : path_(std::move(path)) {
  const std::filesystem::path folder = utf8_path(path_).parent_path();
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
    throw IoError(path_ + ": cannot be written: no such folder: " + utf8_text(folder));
  parse(tuning_text(path_));
}

const std::string* TuningFile::find(const std::string& device, const std::string& driver,
                                    const std::string& kernel) const {
  const auto at = known_.find(tuning_key(device, driver, kernel));
  return at == known_.end() ? nullptr : &at->second.choice;
}

void TuningFile::refuse(const std::string& device, const std::string& driver,
                        const std::string& kernel) const {
  const Known& known = known_.at(tuning_key(device, driver, kernel));
  fail(known.line, in_quotes(known.choice) + " is not a valid choice for this contraction");
}

void TuningFile::fail(int line, const std::string& what) const {
  throw IoError(path_ + ": line " + std::to_string(line) + ": " + what);
}

// Replaces the entries in memory. If a kernel has two entries, the first one wins.
void TuningFile::parse(std::string_view text) {
  known_.clear();
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (number == 1 && line != kTuningVersion) {
      fail(1, "expected \"" + std::string(kTuningVersion) + "\", got " + in_quotes(line));
    }
    if (end == std::string_view::npos) fail(number, "the line is truncated");
    text.remove_prefix(end + 1);
    if (number == 1 || line.empty() || line.front() == '#') continue;
    const std::vector<std::string> fields = tuning_fields(line);
    if (fields.size() != kTuningFields) {
      fail(number, "expected " + std::to_string(kTuningFields) + " tab-separated fields, got " +
                       std::to_string(fields.size()));
    }
    if (fields[3].empty()) fail(number, "the choice is missing");
    known_.try_emplace(tuning_key(fields[0], fields[1], fields[2]), Known{fields[3], number});
  }
}

void TuningFile::reload() {
  parse(tuning_text(path_));
  for (const TuningEntry& entry : added_)
    known_.try_emplace(tuning_key(entry.device, entry.driver, entry.kernel),
                       Known{entry.choice, 0});
}

void TuningFile::add(const TuningEntry& entry) {
  const bool fresh =
      known_
          .try_emplace(tuning_key(entry.device, entry.driver, entry.kernel), Known{entry.choice, 0})
          .second;
  if (fresh) added_.push_back(entry);
}

void TuningFile::save() {
  if (added_.empty()) return;
  const os::WaitingLock lock(path_);
  if (lock.failed()) throw IoError(path_ + ": cannot be written: " + system_error_text(errno));
  std::string text = tuning_text(path_);
  parse(text);
  if (text.empty()) text = std::string(kTuningVersion) + '\n' + std::string(kTuningColumns);
  for (const TuningEntry& entry : added_) {
    if (find(entry.device, entry.driver, entry.kernel) == nullptr) text += tuning_line(entry);
  }
  write_file_atomically(path_, text);
  added_.clear();
  parse(text);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
