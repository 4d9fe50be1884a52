// SPDX-License-Identifier: MIT
// Where the host's time goes while a GPU computes.
#pragma once

namespace tensorgrad {

// What the host did on a GPU so far, for all that runs there; microseconds, to be compared before
// and after some steps. All 0 on the CPU, which runs steps as they are handed over.
struct HostTimes {
  double encoding = 0;    // writing launches into command buffers
  double submitting = 0;  // giving these to the driver
  double waiting = 0;     // until the device is done, or takes more

  HostTimes operator-(const HostTimes& earlier) const {
    return {encoding - earlier.encoding, submitting - earlier.submitting,
            waiting - earlier.waiting};
  }
};

}  // namespace tensorgrad
