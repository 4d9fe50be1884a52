// SPDX-License-Identifier: MIT
#include "steps.h"

namespace tensorgrad::bench {
namespace {

void profile(const Options& options, const std::string& workload, TrainerBase& trainer) {
  if (!options.profile) return;
  for (const auto& [launch, us] : trainer.profile()) {
    print_line({{"workload", text(workload)}, {"launch", text(launch)}, {"us", number(us)}});
  }
}

}  // namespace

DeviceOptions device_options(const Options& options, const std::string& device) {
  DeviceOptions out;
  out.kind = device;
  out.threads = options.threads;
  out.allow_software = options.allow_software;
  return out;
}

void report(const std::string& workload, const std::string& mode, const TrainerBase& trainer,
            double us) {
  const CompileReport compiled = trainer.report();
  print_line({{"workload", text(workload)},
              {"mode", text(mode)},
              {"who", text("tensorgrad")},
              {"device", text(trainer.device())},
              {"us_per_step", number(us)},
              {"launches", std::to_string(compiled.launches)},
              {"peak_bytes", std::to_string(compiled.peak_bytes)},
              {"compile_ms", number(compiled.milliseconds)}});
}

void in_a_go(const Options& options, const std::string& workload, TrainerBase& trainer, int steps) {
  const double us = median_microseconds(options.seconds, steps, [&] { trainer.run(steps); });
  report(workload, "run", trainer, us);
  profile(options, workload, trainer);
}

}  // namespace tensorgrad::bench
