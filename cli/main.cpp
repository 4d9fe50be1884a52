// SPDX-License-Identifier: MIT
// The command-line tool: arguments, help and exit codes. 0: success, 1: error, 2: wrong usage,
// 128 + n: stopped by signal n.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <source_location>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "commands.h"
#include "lm/commands.h"
#include "options.h"
#include "os/process.h"
#include "run/ranks.h"
#include "runs/commands.h"
#include "tensorgrad/error.h"
#include "text.h"
#include "tokenizer/commands.h"
#include "usage.h"

namespace tensorgrad::cli {
namespace {

// Formats help without the lists of ranges and of mutually exclusive options.
class ShortFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (!option->get_option_text().empty()) return " " + option->get_option_text();
    if (option->get_type_size() == 0) return "";
    const std::string type = option->get_type_name();
    std::string out = " " + type.substr(0, type.find(':'));
    if (!option->get_default_str().empty()) out += " (" + option->get_default_str() + ")";
    return out;
  }
};

constexpr std::int64_t kMaxUnits = 1 << 20;  // per hidden layer
constexpr std::int64_t kMaxSide = 65'535;    // pixels of an image

// The selected subcommand. It is called after parsing and returns the exit code.
using Action = std::function<int()>;

// Returns the sizes of hidden layers in a text such as "256,128", without zeros. Throws
// CLI::ValidationError if the text is invalid.
std::vector<std::int64_t> layer_sizes(const std::string& text) {
  std::vector<std::int64_t> sizes;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;; ++at) {
    std::int64_t size = -1;
    const auto [stop, error] = std::from_chars(at, end, size);
    if (error != std::errc() || (stop != end && *stop != ',') || size < 0 || size > kMaxUnits) {
      throw CLI::ValidationError(
          "--hidden", fmt::format("expected sizes up to {}, separated by single commas, got '{}'",
                                  kMaxUnits, text));
    }
    if (size > 0) sizes.push_back(size);
    if (stop == end) return sizes;
    at = stop;
  }
}

// Sets height and width from a text such as "28x28". Throws CLI::ValidationError if it is invalid.
void take_size(const std::string& text, TrainSettings& settings) {
  const char* const end = text.data() + text.size();
  const auto [cross, first] = std::from_chars(text.data(), end, settings.height);
  const bool more = first == std::errc() && cross != end && *cross == 'x';
  const auto [stop, second] = std::from_chars(more ? cross + 1 : end, end, settings.width);
  if (more && second == std::errc() && stop == end &&
      std::min(settings.height, settings.width) > 0 &&
      std::max(settings.height, settings.width) <= kMaxSide) {
    return;
  }
  throw CLI::ValidationError(
      "--size",
      fmt::format("expected HEIGHTxWIDTH up to {}, such as 28x28, got '{}'", kMaxSide, text));
}

// Adds the settings of a new run and returns their options, so that --run and --resume can exclude
// them.
std::vector<CLI::Option*> add_settings(CLI::App& command, TrainSettings& s) {
  constexpr std::int64_t kMaxBatch = 1 << 24;
  return {
      command.add_option("--epochs", s.epochs, "Number of passes over the training set")
          ->check(in_range(1, 1'000'000))
          ->capture_default_str(),
      command.add_option("--batch", s.batch, "Images or rows per training step")
          ->check(in_range(std::int64_t{1}, kMaxBatch))
          ->default_str(std::to_string(kDefaultBatch)),
      command.add_option("--lr", s.lr, "Initial learning rate; follows a cosine down to 0")
          ->check(kPositive)
          ->capture_default_str(),
      command
          .add_option_function<std::string>(
              "--hidden", [&s](const std::string& text) { s.hidden = layer_sizes(text); },
              "Sizes of the hidden layers, separated by commas; 0: none")
          ->option_text("SIZES (256,128)"),
      command
          .add_option("--optimizer", s.optimizer, "Optimizer: adamw, adam or sgd (momentum 0.9)")
          ->check(one_of({"adamw", "adam", "sgd"}))
          ->capture_default_str(),
      command
          .add_option("--weight-decay", s.weight_decay,
                      "Weight decay (default: 0.01 for adamw, 0 for others)")
          ->check(kFromZero),
      command
          .add_option("--seed", s.seed, "Random seed for initial weights, data order and holdout")
          ->capture_default_str(),
      command.add_flag("--mixed-precision", s.mixed_precision,
                       "Matrix products and activations in f16, weights in f32, with dynamic "
                       "loss scaling"),
      command.add_option("--label", s.label,
                         "CSV: label column, by name or index (default: the last one)"),
      command.add_option("--header", s.header, "CSV: whether line 1 is a header; auto detects it")
          ->check(one_of({"auto", "yes", "no"}))
          ->option_text("auto|yes|no (auto)"),
      command
          .add_option("--holdout", s.holdout,
                      "CSV, class folders: fraction of the rows or of each class held out for "
                      "testing")
          ->check(kShare)
          ->capture_default_str(),
      add_max_expansion(command, s.max_expansion, "CSV, gzipped"),
      command
          .add_option_function<std::string>(
              "--size", [&s](const std::string& text) { take_size(text, s); },
              "Class folders: resize all images to this size (default: all must have one size)")
          ->option_text("HEIGHTxWIDTH"),
      command
          .add_option("--channels", s.channels,
                      "Class folders: 1: grayscale, 3: RGB (default: as in the first image)")
          ->check(one_of({"1", "3"}))
          ->option_text("1|3")};
}

void finish_settings(TrainSettings& settings, bool decay_given) {
  if (!decay_given && settings.optimizer != "adamw") settings.weight_decay = 0;
}

// Throws CLI::ValidationError if one of the options is set: a resumed run keeps its settings.
void refuse_settings(const std::vector<CLI::Option*>& options) {
  for (const CLI::Option* const option : options) {
    if (option->empty()) continue;
    throw CLI::ValidationError(
        option->get_name(),
        "cannot be used with --resume: a run keeps its settings (its length is part of its "
        "schedule); start a new run to change them");
  }
}

void add_train(CLI::App& app, Action& action) {
  auto args = std::make_shared<TrainArguments>();
  CLI::App& command = *app.add_subcommand("train", "Train a classifier on images or a table");
  CLI::Option* const data = command.add_option(
      "--data", args->data,
      "Folder with one subfolder of images per class, folder of IDX files (as of MNIST), or CSV "
      "file with a label column");
  CLI::Option* const resume = command.add_option(
      "--resume", args->resume, "Run folder to resume; --data overrides the path of its data");
  std::vector<CLI::Option*> fixed = add_settings(command, args->settings);
  CLI::Option* const decay = command.get_option("--weight-decay");
  fixed.push_back(command.add_option("--out", args->out,
                                     "Run folder to create (default: a new folder, runs/NAME)"));
  fixed.push_back(command.add_flag("--force", args->force,
                                   "Replace an existing run; other files in the folder are kept"));
  command.add_option("--stop-after", args->stop_after, "Stop after this step, as with Ctrl-C")
      ->check(in_range(std::int64_t{1}, std::int64_t{1} << 40));
  add_checkpoint_every(command, args->checkpoint_seconds);
  add_tensorboard(command, args->tensorboard);
  add_ui(command, args->ui);
  add_device_options(command, args->device);
  add_rank_options(command, args->ranks);
  command.footer(
      "Examples:\n"
      "  tg train --data /usr/share/datasets/fashion-mnist --device cpu\n"
      "  tg train --data iris.csv --label species --hidden 32 --epochs 100 --batch 16\n"
      "  tg train --data images --size 64x64  (images/cat/1.jpg, images/dog/1.png ...)\n"
      "  tg train --resume runs/fashion-mnist\n"
      "  mpirun -n 4 tg train --data /usr/share/datasets/fashion-mnist\n"
      "Ctrl-C finishes the current step, saves the run and prints how to resume it.");
  command.callback([=, &action] {
    if (data->empty() && resume->empty()) throw CLI::RequiredError("--data or --resume");
    if (!resume->empty()) refuse_settings(fixed);
    finish_settings(args->settings, !decay->empty());
    action = [args] { return train(*args); };
  });
}

void add_eval(CLI::App& app, Action& action) {
  auto args = std::make_shared<EvalArguments>();
  CLI::App& command = *app.add_subcommand("eval", "Evaluate a trained classifier");
  command.add_option("--run", args->run, "Run folder")->required();
  command.add_option(
      "--data", args->data,
      "Test data (default: that of the run): a folder (its test set, or all images if it has none) "
      "or a CSV file (all rows)");
  command.add_flag("--json", args->json, "Print one JSON object");
  add_device_options(command, args->device);
  command.footer(
      "Examples:\n"
      "  tg eval --run runs/fashion-mnist\n"
      "  tg eval --run runs/iris --data more.csv --json");
  command.callback([=, &action] { action = [args] { return eval(*args); }; });
}

void add_predict(CLI::App& app, Action& action) {
  auto args = std::make_shared<PredictArguments>();
  CLI::App& command = *app.add_subcommand("predict", "Predict the classes of images or rows");
  command.add_option("--run", args->run, "Run folder")->required();
  command
      .add_option("FILE", args->files, "PNG or JPEG images, IDX images, or CSV rows without labels")
      ->required();
  command.add_option("--label", args->label, "CSV: label column to ignore");
  command.add_flag("--json", args->json, "Print one JSON object per line, with all probabilities");
  add_device_options(command, args->device);
  command.footer(
      "Examples:\n"
      "  tg predict --run runs/fashion-mnist t10k-images-idx3-ubyte.gz | head\n"
      "  tg predict --run runs/iris --json flowers.csv\n"
      "  tg predict --run runs/images new/*.jpg\n"
      "Prints index, class and probability, separated by tabs.");
  command.callback([=, &action] { action = [args] { return predict(*args); }; });
}

void add_export(CLI::App& app, Action& action) {
  auto args = std::make_shared<ExportArguments>();
  CLI::App& command =
      *app.add_subcommand("export", "Export a trained classifier to ONNX, or for web pages");
  command.add_option("--run", args->run, "Run folder")->required();
  command.add_option("--out", args->out, "File to write; with --web, a folder")->required();
  command.add_flag("--web", args->web,
                   "Write a folder with kernels, weights and a JavaScript module that runs them");
  command
      .add_option("--batch", args->batch,
                  "Batch size, in images or rows (default: dynamic; with --web, 1). With --web, "
                  "several: --batch 1,32")
      ->delimiter(',')
      ->check(in_range(std::int64_t{1}, std::int64_t{1} << 20));
  command.footer(
      "Examples:\n  tg export --run runs/fashion-mnist --out fashion.onnx\n"
      "  tg export --run runs/fashion-mnist --web --out site/model");
  command.callback([=, &action] { action = [args] { return export_model(*args); }; });
}

void add_devices(CLI::App& app, Action& action) {
  auto options = std::make_shared<DeviceOptions>();
  auto json = std::make_shared<bool>(false);
  CLI::App& command =
      *app.add_subcommand("devices", "List the available devices, and which one `auto` selects");
  command.add_flag("--json", *json, "Print one JSON object");
  command.footer("Example:\n  tg devices");
  command.callback(
      [=, &action] { action = [options, json] { return list_devices(*options, *json); }; });
}

// Adds the options for a run, or for data with settings. The returned function must be called after
// parsing. It throws CLI::RequiredError if neither is set.
std::function<void()> add_model(CLI::App& command, ExplainArguments& args,
                                const std::vector<std::string>& more_devices) {
  CLI::Option* const run = command.add_option("--run", args.run, "Run folder");
  CLI::Option* const data = command.add_option(
      "--data", args.data, "Data, with the settings of `tg train`, instead of a run");
  for (CLI::Option* const option : add_settings(command, args.settings)) run->excludes(option);
  run->excludes(data);
  CLI::Option* const decay = command.get_option("--weight-decay");
  add_device_options(command, args.device, more_devices);
  return [=, &args] {
    if (data->empty() && run->empty()) throw CLI::RequiredError("--run or --data");
    finish_settings(args.settings, !decay->empty());
  };
}

void add_explain(CLI::App& app, Action& action) {
  auto args = std::make_shared<ExplainArguments>();
  CLI::App& command = *app.add_subcommand(
      "explain", "Show the kernel launches of a training step, their fused ops and the memory");
  const auto finish = add_model(command, *args, {"null"});  // null only compiles
  command.footer(
      "Examples:\n"
      "  tg explain --run runs/fashion-mnist\n"
      "  tg explain --data /usr/share/datasets/fashion-mnist --hidden 512 --device webgpu");
  command.callback([=, &action] {
    finish();
    action = [args] { return explain(*args); };
  });
}

void add_profile(CLI::App& app, Action& action) {
  auto args = std::make_shared<ProfileArguments>();
  CLI::App& command = *app.add_subcommand(
      "profile", "Time each launch of a training step and compare it with the device's roofline");
  const auto finish = add_model(command, args->model, {});
  command.add_option("--steps", args->steps, "Steps to time; the median is reported")
      ->check(in_range(1, 10'000))
      ->capture_default_str();
  command.add_flag_callback(
      "--no-roofline", [args] { args->roofline = false; },
      "Do not measure the peak rates of the device");
  command.add_option("--html", args->html,
                     "HTML page to write, with a timeline and a roofline plot");
  command.add_option("--trace", args->trace,
                     "Trace file to write, for ui.perfetto.dev or chrome://tracing");
  command.footer(
      "Examples:\n"
      "  tg profile --run runs/fashion-mnist\n"
      "  tg profile --data /usr/share/datasets/fashion-mnist --batch 512 --html profile.html\n"
      "Uses synthetic data: the cost of a launch does not depend on the values.");
  command.callback([=, &action] {
    finish();
    action = [args] { return profile(*args); };
  });
}

void add_dump(CLI::App& app, Action& action) {
  auto path = std::make_shared<std::string>();
  CLI::App& command = *app.add_subcommand("dump", "List the tensors of a safetensors file");
  command.add_option("FILE", *path, "Safetensors file")->required();
  command.footer("Example:\n  tg dump runs/fashion-mnist/model.safetensors");
  command.callback([=, &action] { action = [path] { return dump(*path); }; });
}

void add_env(CLI::App& app, Action& action) {
  CLI::App& command =
      *app.add_subcommand("env", "List the environment variables that tg reads, with their values");
  command.footer("Example:\n  TENSORGRAD_DEBUG=1 tg env");
  command.callback([&action] { action = [] { return print_environment(); }; });
}

void add_opt(CLI::App& app, Action& action) {
  auto args = std::make_shared<OptArguments>();
  CLI::App& command =
      *app.add_subcommand("opt", "Run optimization passes on a graph: IR text in, IR text out");
  command.add_option("FILE", args->file, "IR text, as written by TENSORGRAD_DUMP")->required();
  command
      .add_option(
          "--passes", args->passes,
          "Passes to run, such as simplify,fold,cse,dce,fuse (default: all, in compiler order)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--out", args->out, "File to write (default: standard output)");
  command.footer("Example:\n  tg opt --passes simplify,dce 01_autodiff.ir");
  command.callback([=, &action] { action = [args] { return optimize_ir(*args); }; });
}

void add_ir_options(CLI::App& command, IrArguments& args) {
  command.add_option("FILE", args.file, "IR text, as written by TENSORGRAD_DUMP")->required();
  command.add_option("--inputs", args.inputs,
                     "Safetensors file with inputs, parameters, states, data or scalars by name, "
                     "or a checkpoint");
  command.add_option("--seed", args.seed, "Random seed for values not in --inputs")
      ->capture_default_str();
  command.add_option("--max-bytes", args.max_bytes, "Limit on the memory of the graph")
      ->capture_default_str();
}

void add_run(CLI::App& app, Action& action) {
  auto args = std::make_shared<IrArguments>();
  CLI::App& command = *app.add_subcommand("run", "Run a graph once and print its outputs");
  add_ir_options(command, *args);
  command.add_option("--out", args->out, "Safetensors file to write, with all outputs and updates");
  add_device_options(command, args->device, {"reference"});
  command.footer("Example:\n  tg run --device cpu --seed 3 01_autodiff.ir");
  command.callback([=, &action] { action = [args] { return run_ir(*args); }; });
}

void add_bisect(CLI::App& app, Action& action) {
  auto args = std::make_shared<BisectArguments>();
  CLI::App& command = *app.add_subcommand(
      "bisect", "Find the first pass after which the results of two devices differ");
  add_ir_options(command, args->ir);
  command.add_option("--a", args->a, "First device: reference, cpu or webgpu")
      ->check(one_of({"reference", "cpu", "webgpu"}))
      ->option_text("DEVICE (reference)");
  command.add_option("--b", args->b, "Second device: cpu or webgpu")
      ->check(one_of({"cpu", "webgpu"}))
      ->option_text("DEVICE (cpu)");
  command.add_option("--tolerance", args->tolerance, "Maximum relative error of one op")
      ->check(kPositive)
      ->capture_default_str();
  add_adapter_options(command, args->ir.device);
  command.footer(
      "Example:\n  tg bisect --b webgpu 01_autodiff.ir\n"
      "Exits with code 1 if the results differ.");
  command.callback([=, &action] { action = [args] { return bisect_ir(*args); }; });
}

// Returns a message without control characters, which file names may have, except line breaks.
std::string printable_lines(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += printable(text.substr(at, end - at));
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

int parse_and_run(int argc, char** argv) {
  CLI::App app("Train neural networks. Whole training steps are compiled to fused kernels.", "tg");
  app.set_version_flag("--version", std::string("tg ") + TENSORGRAD_VERSION_STRING);
  app.require_subcommand(0, 1);
  app.formatter(std::make_shared<ShortFormatter>());
  app.get_formatter()->column_width(34);
  app.footer("See `tg COMMAND --help` for details and examples.");
  Action action;
  add_train(app, action);
  add_eval(app, action);
  add_predict(app, action);
  add_export(app, action);
  add_runs(app, action);
  add_devices(app, action);
  add_explain(app, action);
  add_profile(app, action);
  add_dump(app, action);
  add_env(app, action);
  add_opt(app, action);
  add_run(app, action);
  add_bisect(app, action);
  add_tokenizer(app, action);
  add_lm(app, action);
  try {
    app.parse(argc, argv);
    check_adapter(app);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help or --version
    fmt::print(stderr, "error: {}\n", printable_lines(usage_message(app, error)));
    return 2;
  }
  if (!action) {
    fmt::print(stderr, "{}", app.help());
    return 2;
  }
  const int code = action();
  // What a command could not print is an error, unless a signal ended it.
  const bool failed = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (failed && code == 0) throw IoError("standard output: cannot be written");
  return code;
}

// Returns the message of an error, without a location in the sources of tg: locations are for
// programs that use the library.
std::string without_own_line(const Error& error) {
  constexpr std::string_view kThisFile = "cli/main.cpp";
  std::string_view root = std::source_location::current().file_name();
  root.remove_suffix(std::min(root.size(), kThisFile.size()));
  std::string text = error.what();
  const std::string line = "\n  at " + to_string(error.location());
  const std::size_t at = text.find(line);
  const std::string file = error.location().file;
  for (const char* folder : {"cli/", "src/", "include/"}) {
    if (at != std::string::npos && file.starts_with(std::string(root) + folder))
      return text.erase(at, line.size());
  }
  return text;
}

int fail(const char* what) {
  std::fflush(stdout);
  fmt::print(stderr, "error: {}\n", printable_lines(what));
  return 1;
}

}  // namespace
}  // namespace tensorgrad::cli

int main(int argc, char** argv) {
  using tensorgrad::cli::fail;
  // Otherwise one of Mesa's Vulkan layers prints an error about a missing Wayland display.
  if (std::getenv("XDG_RUNTIME_DIR") == nullptr)
    tensorgrad::cli::os::set_if_unset("NODEVICE_SELECT", "1");
  try {
    argv = tensorgrad::cli::os::arguments(argc, argv);
    return tensorgrad::cli::parse_and_run(argc, argv);
  } catch (const tensorgrad::cli::ReportedByFirst&) {
    return 1;
  } catch (const std::bad_alloc&) {
    return fail("out of memory");
  } catch (const tensorgrad::Error& error) {
    return fail(tensorgrad::cli::without_own_line(error).c_str());
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
