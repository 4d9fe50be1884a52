// SPDX-License-Identifier: MIT
// Makes a run folder: everything is written beside it first, then it appears as a whole. Where the
// folder is there already everything is written in a hidden folder inside it, then each file is
// renamed over the old one.
#pragma once

#include <string>

namespace tensorgrad::cli {

// A new run folder that is not there yet. Goes away unless published.
class NewRunFolder {
 public:
  // IoError: `target` holds something and `force` is not given, or cannot be written. With `force`
  // a run there is replaced; files that are none of ours stay.
  NewRunFolder(std::string target, bool force);
  ~NewRunFolder();
  NewRunFolder(const NewRunFolder&) = delete;
  NewRunFolder& operator=(const NewRunFolder&) = delete;

  // Where a file of the run is to be written before publish().
  [[nodiscard]] std::string path(const std::string& name) const;
  void publish();

 private:
  std::string target_;
  std::string made_;
  bool inside_ = false;  // made_ lies in the target
};

// A folder that is free: "runs/NAME", "runs/NAME-2", ...
std::string free_run_name(const std::string& data_path);

}  // namespace tensorgrad::cli
