// SPDX-License-Identifier: MIT
// Time the host spends driving a GPU.
#pragma once

#include "tensorgrad/version.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Time that the host spent driving a GPU since the device was opened, in microseconds. Covers
/// every program on the device. Subtract two readings to measure the steps between them. All values
/// are 0 on the CPU, which runs each step inside the call.
struct HostTimes {
  double encoding = 0;    ///< Recording launches into command buffers.
  double submitting = 0;  ///< Submitting command buffers to the driver.
  double waiting = 0;     ///< Waiting for the device to finish, or to accept more work.
  double exchanging = 0;  ///< Exchanging gradients with other ranks, including the wait for them.
  double exchanging_hidden = 0;  ///< Part of `exchanging` that ended before the backward pass did.

  /// Returns the time spent since `earlier`.
  HostTimes operator-(const HostTimes& earlier) const {
    return {encoding - earlier.encoding, submitting - earlier.submitting, waiting - earlier.waiting,
            exchanging - earlier.exchanging, exchanging_hidden - earlier.exchanging_hidden};
  }
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
