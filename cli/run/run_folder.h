// SPDX-License-Identifier: MIT
// Run folders: the names of their files, their lock, and how a new run takes the place of another.
#pragma once

#include <optional>
#include <string>

#include "tensorgrad/data/files.h"

namespace tensorgrad::cli {

constexpr double kCheckpointSeconds = 300;  // default time between two checkpoints of a run

// Files of a run. All are written through run_path(), so none can be missing in the list.
enum class RunFile {
  kRun,  // marks a run folder; appears last
  kModel,
  kCheckpoint,
  kTokenizer,
  kTokenizerConfig,
  kMetrics,
  kCurves,
  kConfusion,
  kPredictions,
};

// Returns the name of a file, such as "run.json".
const char* name_of(RunFile file);
// Returns its path in a folder.
std::string run_path(const std::string& folder, RunFile file);

// Returns true if the folder has a run, or a replacement that was killed.
bool is_run_folder(const std::string& folder);

// Returns true if the folder has event files for TensorBoard.
bool has_event_files(const std::string& folder);

// Holds a run folder, so that no other process trains in it. Completes a replacement that was
// killed, and removes temporary files of processes that were killed. Throws IoError if it is not a
// run folder, or, naming the process, if another one holds it.
FileLock lock_run(const std::string& folder);

// Returns true if a process trains in the folder. Takes the lock for a moment if there is a lock
// file without a holder, as a killed process leaves it.
bool is_locked(const std::string& folder);

// Completes a replacement by `--force` that was killed. For commands that only read a run.
void finish_replacement(const std::string& folder);

// A run folder under construction. publish() switches to it by one rename: if the process is killed
// before, the folder has the old run, else the new one. The destructor removes what was not
// published.
class NewRunFolder {
 public:
  // Throws IoError if `target` is not an empty folder and `force` is false, if it cannot be
  // written, or if another process trains in it. If `force` is true, a run in the target is
  // replaced; other files are kept.
  NewRunFolder(std::string target, bool force);

  // Returns the path to write a file of the run to, before publish().
  [[nodiscard]] std::string path(RunFile file) const;
  // Moves the files to the target, which stays locked until the destructor. Throws IoError if a
  // file cannot be replaced.
  void publish();

 private:
  std::string target_;
  bool exists_ = false;  // the target
  std::optional<FileLock> lock_;
  std::optional<TemporaryFolder> made_;
};

// Returns the path to write a file of a new run to. Of several ranks, the first one has the folder
// and writes; for the others, returns the name of the file.
std::string path_in(const std::optional<NewRunFolder>& folder, RunFile file);

// Returns the first path that does not exist: "runs/NAME", "runs/NAME-2", ...
std::string free_run_name(const std::string& data_path);

}  // namespace tensorgrad::cli
