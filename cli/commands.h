// SPDX-License-Identifier: MIT
// The subcommands of tg, called with parsed arguments. Each returns the exit code or throws.
#pragma once

#include <string>
#include <vector>

#include "classify/settings.h"
#include "run/mpi.h"
#include "run/run_folder.h"
#include "tensorgrad/train/debug.h"
#include "tensorgrad/train/device.h"
#include "ui/view.h"

namespace tensorgrad::cli {

struct TrainArguments {
  std::string data;
  std::string out;
  std::string resume;           // run folder; if set, `out`, `force` and `settings` are ignored
  std::int64_t stop_after = 0;  // step to stop after; 0: train to the end
  double checkpoint_seconds = kCheckpointSeconds;
  bool force = false;
  bool tensorboard = false;  // write event files; a resumed run that has some continues to do so
  UiOptions ui;
  TrainSettings settings;
  DeviceOptions device;
  RankOptions ranks;
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
  bool web = false;                      // a folder for web pages, not ONNX
  std::vector<std::int64_t> batch = {};  // empty: dynamic (ONNX), 1 (web); only web takes several
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
// Returns the run in the folder if `run` is set, else a new run with these settings on the data.
// Throws IoError if the run or the data cannot be read.
Run described_run(const ExplainArguments& arguments);

struct ProfileArguments {
  ExplainArguments model;
  int steps = 20;
  bool roofline = true;
  std::string html, trace;  // files to write; none if empty
};
int profile(const ProfileArguments& arguments);

int dump(const std::string& path);

int print_environment();

struct OptArguments {
  std::string file;
  std::vector<std::string> passes;  // if empty, all passes in the order of the compiler
  std::string out;                  // if empty, standard output
};
int optimize_ir(const OptArguments& arguments);

struct IrArguments {
  std::string file;
  std::string inputs;  // safetensors file; missing values are generated from `seed`
  std::uint32_t seed = 0;
  std::uint64_t max_bytes = ir::LeafOptions().max_bytes;
  std::string out;  // run_ir() only: safetensors file to write
  DeviceOptions device;
};
int run_ir(const IrArguments& arguments);

struct BisectArguments {
  IrArguments ir;
  std::string a = "reference", b = "cpu";
  double tolerance = 1e-5;
};
// Returns 1 if the results of the two devices differ, else 0.
int bisect_ir(const BisectArguments& arguments);

}  // namespace tensorgrad::cli
