// SPDX-License-Identifier: MIT
// The commands of tg, once their arguments are parsed. Each gives the exit code; errors are thrown.
#pragma once

#include <string>
#include <vector>

#include "settings.h"
#include "tensorgrad/train/device.h"

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

struct ExportArguments {
  std::string run;
  std::string out;
  std::int64_t batch = 0;  // 0: any number at once
};
int export_model(const ExportArguments& arguments);

int list_devices(const DeviceOptions& options, bool json);

struct ExplainArguments {
  std::string run;
  std::string data;
  TrainSettings settings;
  DeviceOptions device;
};
int explain(const ExplainArguments& arguments);
// The run in the folder, or one with these settings over the data.
Run described_run(const ExplainArguments& arguments);

struct ProfileArguments {
  ExplainArguments model;
  int steps = 20;
  bool roofline = true;
  std::string html, trace;  // files to write; empty: none
};
int profile(const ProfileArguments& arguments);

int dump(const std::string& path);

int print_environment();

struct OptArguments {
  std::string file;
  std::vector<std::string> passes;  // none: all, in the order in which a model is compiled
  std::string out;                  // empty: standard output
};
int optimize_ir(const OptArguments& arguments);

struct IrArguments {
  std::string file;
  std::string inputs;  // a safetensors file; what it lacks is made up from `seed`
  std::uint32_t seed = 0;
  std::string out;  // run: a safetensors file
  DeviceOptions device;
};
int run_ir(const IrArguments& arguments);

struct BisectArguments {
  IrArguments ir;
  std::string a = "reference", b = "cpu";
  double tolerance = 1e-5;
};
// 1 where the two differ.
int bisect_ir(const BisectArguments& arguments);

}  // namespace tensorgrad::cli
