// SPDX-License-Identifier: MIT
// Options for recovering from a lost device, e.g. after a driver reset.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tensorgrad/train/host_tensor.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Report of one recovery.
struct Recovery {
  std::string reason;              ///< Message of the DeviceLostError.
  std::int64_t snapshot_step = 0;  ///< Number of steps at the snapshot, of all objectives together.
  std::int64_t repeated_steps = 0;  ///< Number of steps that were repeated from there.
  double seconds = 0;               ///< Time to reopen the device and repeat the steps, in seconds.
};

/// Returns a sentence such as "the device was lost and opened again; repeated 12 steps from step
/// 300 in 1.4 s (webgpu: the device ... was lost: ...)".
std::string to_string(const Recovery& recovery);

/// Options for recovering from a lost device, e.g. after a driver reset, or if a browser drops the
/// GPU of the tab. The trainer copies everything that the next step depends on to host memory (a
/// snapshot) before every `snapshot_steps`-th step. After a loss it opens the same device again,
/// restores the snapshot and repeats the steps since then. The results equal those of an
/// uninterrupted run bit for bit on the same device. Attached functions continue as well.
///
/// Host memory holds one snapshot, the inputs of the steps since then, and a copy of each dataset
/// entry (see `dataset`). CompileReport::snapshot_bytes is the sum. A DeviceTensor that is passed
/// to a step is downloaded for this purpose, and does not survive a loss itself.
///
/// DeviceLostError is thrown if no device comes back in time, if the device is the application's
/// (DeviceOptions::external), or if it is lost three times in a row during the same call.
/// TrainerBase::save() then writes the snapshot. Later calls try again to open the device.
struct RecoveryOptions {
  /// Default of `snapshot_steps`: 100 in a web page, and 0 elsewhere.
#ifdef __EMSCRIPTEN__
  static constexpr int kDefaultSteps = 100;
#else
  static constexpr int kDefaultSteps = 0;
#endif

  /// Number of steps from one snapshot to the next; at most this many are repeated. 0: no
  /// snapshots, so that a loss ends the run.
  int snapshot_steps = kDefaultSteps;

  double snapshot_seconds = 0;  ///< Also takes a snapshot after this many seconds; 0: never.

  /// Limit in bytes of the inputs that are kept. A snapshot is taken if it is reached; with 0,
  /// before every step.
  std::int64_t max_input_bytes = std::int64_t{256} << 20;

  double wait_seconds = 30;  ///< Time within which the device must come back; 0: tries once.

  /// Returns the samples of a dataset entry, to be uploaded again after a loss. If it is set, the
  /// trainer keeps no copy of what TrainerBase::upload_data() uploads.
  std::function<HostTensor(const std::string& entry)> dataset = {};

  /// Called after each recovery, by the call that noticed the loss. It may use the trainer.
  std::function<void(const Recovery&)> on_recovery = {};
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
