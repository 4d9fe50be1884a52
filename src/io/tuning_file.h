// SPDX-License-Identifier: MIT
// The tuning cache: which form of a kernel a device runs fastest, a line each. docs/formats.md has
// the format. What a choice means is the device's matter.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {

struct TuningEntry {
  std::string device, driver;
  std::string kernel;  // what was chosen for
  std::string choice;
  std::string times;  // for people: of all that were tried
};

class TuningFile {
 public:
  // Reads the file; one that is not there, or is empty, has no entries. IoError where it cannot be
  // read or is damaged, with the line; and where its folder is not there.
  explicit TuningFile(std::string path);

  // The choice, or null. Valid until reload(), add() or save().
  [[nodiscard]] const std::string* find(const std::string& device, const std::string& driver,
                                        const std::string& kernel) const;
  // The error for an entry whose choice means nothing, with its line.
  [[noreturn]] void refuse(const std::string& device, const std::string& driver,
                           const std::string& kernel) const;

  // What other processes have written since.
  void reload();
  // An entry that find() does not know; in memory until save().
  void add(const TuningEntry& entry);
  // Writes what was added behind what the file has by now. Where another process was first, its
  // entry stays and counts from here on. IoError where the file cannot be written.
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
