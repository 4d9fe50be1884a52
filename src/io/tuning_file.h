// SPDX-License-Identifier: MIT
// The tuning cache: the fastest variant of each kernel on a device, one per line. docs/formats.md
// describes the format. Choices are interpreted by the device.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

struct TuningEntry {
  std::string device, driver;
  std::string kernel;  // the kernel that was tuned
  std::string choice;
  std::string times;  // times of all candidates, for people
};

class TuningFile {
 public:
  // Reads the file. A missing or empty file has no entries. Throws IoError, with the line, if it is
  // unreadable or damaged, or if its folder does not exist.
  explicit TuningFile(std::string path);

  // Returns the choice, or null. Valid until reload(), add() or save().
  [[nodiscard]] const std::string* find(const std::string& device, const std::string& driver,
                                        const std::string& kernel) const;
  // Throws the error for an entry with an invalid choice, with its line.
  [[noreturn]] void refuse(const std::string& device, const std::string& driver,
                           const std::string& kernel) const;

  // Reads what other processes have written since.
  void reload();
  // Adds an entry that find() does not know. It stays in memory until save().
  void add(const TuningEntry& entry);
  // Appends the added entries to the current contents of the file. If another process has written
  // an entry for the same kernel, that entry is kept and used from now on. Throws IoError if the
  // file is not writable.
  void save();

 private:
  struct Known {
    std::string choice;
    int line = 0;  // 0: not written yet
  };

  void parse(std::string_view text);
  [[noreturn]] void fail(int line, const std::string& what) const;

  std::string path_;
  std::map<std::string, Known> known_;  // by device, driver and kernel
  std::vector<TuningEntry> added_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
