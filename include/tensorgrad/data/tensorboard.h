// SPDX-License-Identifier: MIT
// Event files for TensorBoard.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Writes scalars, such as losses, to an event file that TensorBoard shows while it grows:
/// `tensorboard --logdir FOLDER`. The file is `events.out.tfevents.SECONDS.HOST.PROCESS` in a
/// folder, which TensorBoard shows as one run. Each scalar is passed to the system in one write, so
/// that a crash loses at most the one being written; readers ignore an incomplete one. Movable; not
/// safe for concurrent calls.
///
/// The format is that of tensorflow/core/util/event.proto, in records of TFRecord files
/// (tensorflow.org/tutorials/load_data/tfrecord).
class TensorBoardWriter {
 public:
  /// Creates a new file in a folder, and the folder. Its name is ordered after those of the event
  /// files that the folder has.
  ///
  /// If training resumes from a checkpoint, pass its next step as `first_step`: TensorBoard then
  /// drops what earlier files have of this and later steps.
  ///
  /// Throws UserError if `first_step` is negative, and IoError if the file cannot be created.
  explicit TensorBoardWriter(const std::string& folder,
                             std::optional<std::int64_t> first_step = std::nullopt);
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;
  TensorBoardWriter& operator=(const TensorBoardWriter&) = delete;

  /// Takes over the file of another writer.
  TensorBoardWriter(TensorBoardWriter&& other) noexcept;
  TensorBoardWriter& operator=(TensorBoardWriter&& other) noexcept;

  /// Adds a value, rounded to f32, which may be NaN or infinite. The part of `tag` before the first
  /// slash is the group in which TensorBoard shows it: `train/loss`. `seconds` is the time of the
  /// value since 1970, by default now.
  ///
  /// Throws UserError if `tag` is empty or not UTF-8, or if `step` is negative, and IoError if the
  /// file cannot be written.
  void add_scalar(std::string_view tag, double value, std::int64_t step,
                  std::optional<double> seconds = std::nullopt);

  [[nodiscard]] const std::string& path() const { return path_; }  ///< Path of the file.

 private:
  void write_record(std::string_view event);

  std::string path_;
  int fd_ = -1;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
