// SPDX-License-Identifier: MIT
// tg eval, predict, export, devices, explain and dump: read-only subcommands.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "classify/classifier.h"
#include "classify/evaluation.h"
#include "commands.h"
#include "run/run_folder.h"
#include "tensorgrad/data/safetensors.h"
#include "tensorgrad/error.h"
#include "text.h"

namespace tensorgrad::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string model_path(const std::string& folder) { return run_path(folder, RunFile::kModel); }

// What programs need that run the model: lists and shapes as JSON, by the names of run.json.
std::vector<std::pair<std::string, std::string>> onnx_metadata(const Task& task) {
  const auto json = [](const nlohmann::json& value) {
    return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  std::vector<std::pair<std::string, std::string>> metadata = {
      {"class_names", json(task.class_names)}};
  if (task.kind == Task::Kind::kImages) {
    metadata.emplace_back("image_shape", json(task.image_shape));
  } else {
    metadata.emplace_back("feature_names", json(task.feature_names));
    metadata.emplace_back("label_name", task.label_name);
  }
  return metadata;
}

void print_json(const Json& json) {
  fmt::print("{}\n", json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string confusion_table(const Evaluation& evaluation, std::size_t classes) {
  std::string out =
      "confusion matrix: rows are true classes, columns predicted classes, in the order above\n";
  for (std::size_t t = 0; t < classes; ++t) {
    for (std::size_t p = 0; p < classes; ++p) {
      out += fmt::format("{:>6}", evaluation.confusion->counts()[t * classes + p]);
    }
    out += '\n';
  }
  return out;
}

void print_prediction(const PredictArguments& arguments, const Run& run, const std::string& file,
                      std::int64_t index, std::span<const float> log_probabilities) {
  const auto best = static_cast<std::size_t>(best_class(log_probabilities));
  const std::string& name = run.task.class_names[best];
  if (arguments.json) {
    Json all = Json::array();
    for (const float value : log_probabilities) all.push_back(std::exp(value));
    print_json({{"file", file},
                {"index", index},
                {"class", name},
                {"class_index", best},
                {"probability", all[best]},
                {"probabilities", all}});
    return;
  }
  if (arguments.files.size() > 1) fmt::print("{}:", printable(file));
  fmt::print("{}\t{}\t{:.4f}\n", index, printable(name), std::exp(log_probabilities[best]));
}

Json device_json(const DeviceDescription& device) {
  Json limits = Json::object();
  for (const auto& [name, value] : device.limits) limits[name] = value;
  return {{"kind", device.kind},     {"name", device.name},         {"driver", device.driver},
          {"type", device.type},     {"usable", device.usable},     {"auto", device.chosen_by_auto},
          {"reason", device.reason}, {"features", device.features}, {"limits", limits}};
}

void print_device(const DeviceDescription& device, const std::string& label) {
  fmt::print("{}  {}{}\n", label, device.name, device.chosen_by_auto ? "  (selected by auto)" : "");
  const auto row = [](const std::string& name, const std::string& value) {
    if (!value.empty()) fmt::print("    {:<28}{}\n", name, value);
  };
  row("reason", device.reason);
  row("type", device.type);
  row("driver", device.driver);
  std::string features;
  for (const std::string& feature : device.features) {
    features += (features.empty() ? "" : ", ") + feature;
  }
  row("features", features);
  for (const auto& [name, value] : device.limits) {
    if (value < INT64_MAX / 2) row(name, fmt::format("{}", value));
  }
}

}  // namespace

int eval(const EvalArguments& arguments) {
  const Run run = read_run(arguments.run);
  const Samples test = read_test_data(run, arguments.data);
  Predictor predictor(model_path(arguments.run), run, arguments.device, test.count);
  const Evaluation result =
      evaluate(predictor.log_probabilities(test), test.labels, run.task.classes());
  if (arguments.json) {
    print_json({{"count", result.count},
                {"right", result.right},
                {"accuracy", result.accuracy()},
                {"loss", result.loss},
                {"class_names", run.task.class_names},
                {"confusion",
                 result.confusion ? result.confusion->counts() : std::vector<std::int64_t>()}});
    return 0;
  }
  fmt::print("device  {}\n", predictor.device());
  fmt::print("accuracy {:.2f} % ({} of {} {}), loss {:.4f}\n\n", result.accuracy() * 100,
             result.right, result.count, run.task.unit(), result.loss);
  fmt::print("{}", class_table(result, run.task.class_names));
  const std::size_t classes = run.task.class_names.size();
  if (classes <= 25) fmt::print("\n{}", confusion_table(result, classes));
  return 0;
}

// Reads all files before it prints the first prediction.
int predict(const PredictArguments& arguments) {
  const Run run = read_run(arguments.run);
  std::vector<Samples> all;
  std::int64_t most = 1;
  for (const std::string& file : arguments.files) {
    all.push_back(read_unlabeled(run, file, arguments.label));
    most = std::max(most, all.back().count);
  }
  Predictor predictor(model_path(arguments.run), run, arguments.device, most);
  const auto classes = static_cast<std::size_t>(run.task.classes());
  for (std::size_t f = 0; f < all.size(); ++f) {
    const std::vector<float> values = predictor.log_probabilities(all[f]);
    for (std::int64_t i = 0; i < all[f].count; ++i) {
      const auto row = std::span(values).subspan(static_cast<std::size_t>(i) * classes, classes);
      print_prediction(arguments, run, arguments.files[f], i, row);
    }
  }
  return 0;
}

int export_model(const ExportArguments& arguments) {
  if (!arguments.web && arguments.batch.size() > 1)
    throw UserError("export: expected one batch size without --web, got several");
  const Run run = read_run(arguments.run);
  const bool open = arguments.web || arguments.batch.empty();
  const CompiledFunction forward =
      outside_forward(model_path(arguments.run), run, open ? kDynamic : arguments.batch[0]);
  const std::string doc = fmt::format("Classes: {}", fmt::join(run.task.class_names, ", "));
  std::string batch = "batch";
  if (arguments.web) {
    forward.export_web(arguments.out, {.name = "classifier", .doc = doc, .sizes = arguments.batch});
    batch = arguments.batch.empty() ? "1" : fmt::format("{}", fmt::join(arguments.batch, "|"));
  } else {
    forward.export_onnx(arguments.out,
                        {.name = "classifier", .doc = doc, .metadata = onnx_metadata(run.task)});
    if (!open) batch = fmt::format("{}", arguments.batch[0]);
  }
  fmt::print(
      "wrote {}: x f32[{},{}] ({}) -> log_probabilities f32[{},{}]\n", arguments.out, batch,
      run.task.features(),
      run.task.kind == Task::Kind::kImages ? "pixels from 0 to 255" : "columns as in the table",
      batch, run.task.classes());
  return 0;
}

int list_devices(const DeviceOptions& options, bool json) {
  std::string note;
  const std::vector<DeviceDescription> found = devices(options, note);
  if (json) {
    Json list = Json::array();
    for (const DeviceDescription& device : found) list.push_back(device_json(device));
    print_json({{"devices", list}, {"note", note}});
    return 0;
  }
  int adapter = 0;
  for (const DeviceDescription& device : found) {
    const bool cpu = device.kind == "cpu";
    print_device(device, cpu ? "cpu" : fmt::format("{} adapter {}", device.kind, adapter++));
  }
  if (!note.empty()) fmt::print("note: {}\n", note);
  return 0;
}

Run described_run(const ExplainArguments& arguments) {
  if (!arguments.run.empty()) return read_run(arguments.run);
  Run run;
  run.data = arguments.data;
  run.settings = arguments.settings;
  run.task = read_training_data(run.data, run.settings).task;
  settle_batch(run);
  return run;
}

int explain(const ExplainArguments& arguments) {
  const Run run = described_run(arguments);
  const NetTrainer trainer = compile_training(run, arguments.device);
  fmt::print("model     {}: {} parameters, batch {}\n{}", model_text(run), parameter_count(run),
             run.settings.batch, trainer.explain());
  return 0;
}

int dump(const std::string& path) {
  fmt::print("{}", dump_safetensors(read_safetensors(path)));
  return 0;
}

}  // namespace tensorgrad::cli
