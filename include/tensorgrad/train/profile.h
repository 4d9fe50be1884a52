// SPDX-License-Identifier: MIT
// Profile of a step or run: cost of each kernel launch, compared with the device's roofline.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tensorgrad/error.h"
#include "tensorgrad/train/host_times.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Options of Stepper::profile() and CompiledFunction::profile().
struct ProfileOptions {
  int steps = 1;          ///< Number of steps or runs to time; at least 1.
  bool roofline = false;  ///< Also measures the device's peak rates: under a second, up to 512 MiB.
};

/// Cost of one kernel launch. If a GPU runs several small launches as one kernel, they share one
/// entry: names and domains are joined with " | ", as are kinds that differ. Bytes and flops are
/// sums.
struct LaunchProfile {
  std::string name;              ///< As in explain() and dumps.
  std::string kind;              ///< "map", "row", "contraction" ...
  std::string domain;            ///< Iteration sizes: "1024", "64x10", "64x128x784" (m, n, k) ...
  std::vector<std::string> ops;  ///< Fused ops with their result types: "add f32[256,64]".

  std::vector<SourceLocation> locations;  ///< Source lines of the ops.

  std::int64_t bytes = 0;   ///< Bytes read and written according to the plan.
  std::int64_t flops = 0;   ///< Floating-point operations; a multiply-add counts as two.
  double microseconds = 0;  ///< Median time over the profiled steps.
};

/// Duration of one compiler pass.
struct PassProfile {
  std::string name;         ///< Name of the pass, as in CompileReport::passes.
  double begin = 0;         ///< Start in milliseconds since the compile began.
  double milliseconds = 0;  ///< Duration.
};

/// Progress of a compile; see CompileOptions::progress.
struct CompileProgress {
  std::string pass;         ///< The pass that runs, as in CompileReport::passes.
  double milliseconds = 0;  ///< Time since the compile began.
  std::int64_t visits = 0;  ///< Number of nodes, views and launches visited so far.
};

/// Watches a compile, in the thread that compiles. Returns false to stop it.
using CompileWatcher = std::function<bool(const CompileProgress& progress)>;

/// Rates that the library's own kernels reach on a device; 0 if not measured.
struct DevicePeaks {
  double bytes_per_second = 0;  ///< Bytes read plus bytes written, by a copy.
  double flops_per_second = 0;  ///< By an f32 matrix product.
  std::string method;           ///< Sizes of the copies and products.
};

/// Profile of a step or a run.
struct Profile {
  std::string device;                   ///< Kind and name of the device: "cpu (...)".
  std::string clock;                    ///< Source of the times: "GPU timestamps" or "host clock".
  int steps = 0;                        ///< Number of profiled steps.
  std::int64_t peak_bytes = 0;          ///< Device memory of all buffers.
  std::vector<LaunchProfile> launches;  ///< In the order of execution.
  std::vector<PassProfile> passes;      ///< Compiler passes, then the time to build the kernels.
  DevicePeaks peaks;                    ///< Measured if ProfileOptions::roofline is set.

  /// Returns the total time of all launches.
  [[nodiscard]] double microseconds() const;

  /// Returns the roofline time of a launch divided by its measured time. The roofline time is the
  /// minimum that `peaks` allow for its bytes and flops. The share exceeds 1 if the data is in a
  /// cache. Returns 0 if the peak rates or the time are unknown.
  [[nodiscard]] double roofline_share(const LaunchProfile& launch) const;

  /// Returns true if the flops of a launch, not its bytes, determine its roofline time.
  [[nodiscard]] bool compute_bound(const LaunchProfile& launch) const;

  /// Returns a table for a terminal: one line per launch with its ops, totals, peak rates and pass
  /// times.
  [[nodiscard]] std::string table() const;

  /// Returns a self-contained HTML page with the table, a timeline and a roofline plot.
  [[nodiscard]] std::string html(const std::string& title = "profile") const;

  /// Returns the passes and launches as Chrome trace events (JSON), for https://ui.perfetto.dev and
  /// `chrome://tracing`.
  [[nodiscard]] std::string trace_events() const;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
