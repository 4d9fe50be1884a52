// SPDX-License-Identifier: MIT
// The commands of tg, once their arguments are parsed. Each gives the exit code; errors are thrown.
#pragma once

#include <string>
#include <vector>

#include "settings.h"
#include "tensorgrad/device.h"

namespace tensorgrad::cli {

struct TrainArguments {
  std::string data;
  std::string out;
  std::string resume;           // a run folder; then `out`, `force` and `settings` do not count
  std::int64_t stop_after = 0;  // this step is the last for now; 0: go on to the end
  bool force = false;
  TrainSettings settings;
  DeviceOptions device;
};
int train(const TrainArguments& arguments);

struct EvalArguments {
  std::string run;
  std::string data;
  bool json = false;
  DeviceOptions device;
};
int eval(const EvalArguments& arguments);

struct PredictArguments {
  std::string run;
  std::vector<std::string> files;
  std::string label;
  bool json = false;
  DeviceOptions device;
};
int predict(const PredictArguments& arguments);

int list_devices(const DeviceOptions& options, bool json);

struct ExplainArguments {
  std::string run;
  std::string data;
  TrainSettings settings;
  DeviceOptions device;
};
int explain(const ExplainArguments& arguments);

int dump(const std::string& path);

}  // namespace tensorgrad::cli
