// SPDX-License-Identifier: MIT
// Creates run folders atomically. All files are first written to a temporary folder next to the
// target, which is then renamed. If the target exists, the temporary folder is a hidden folder
// inside it, and each file is renamed over the old one.
#pragma once

#include <string>

namespace tensorgrad::cli {

// A run folder under construction. The destructor removes it unless publish() was called.
class NewRunFolder {
 public:
  // Throws IoError if `target` is not an empty folder and `force` is false, or if it cannot be
  // written. If `force` is true, a run in the target is replaced; other files are kept.
  NewRunFolder(std::string target, bool force);
  ~NewRunFolder();
  NewRunFolder(const NewRunFolder&) = delete;
  NewRunFolder& operator=(const NewRunFolder&) = delete;

  // Returns the path to write a file of the run to, before publish().
  [[nodiscard]] std::string path(const std::string& name) const;
  // Moves the files to the target. Throws IoError if a file cannot be replaced.
  void publish();

 private:
  std::string target_;
  std::string made_;
  bool inside_ = false;  // made_ is inside the target
};

// Returns the first path that does not exist: "runs/NAME", "runs/NAME-2", ...
std::string free_run_name(const std::string& data_path);

}  // namespace tensorgrad::cli
