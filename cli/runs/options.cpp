// SPDX-License-Identifier: MIT
// The options of tg runs.
#include <memory>

#include <CLI/CLI.hpp>

#include "runs/commands.h"

namespace tensorgrad::cli {
namespace {

using RunsAction = std::function<int()>;

void add_format(CLI::App& command, TableFormat& format) {
  CLI::Option* const json = command.add_flag_callback(
      "--json", [&format] { format = TableFormat::kJson; }, "Print one JSON object per row");
  command
      .add_flag_callback(
          "--csv", [&format] { format = TableFormat::kCsv; }, "Print CSV with a header")
      ->excludes(json);
}

void add_compare(CLI::App& app, RunsAction& action) {
  auto args = std::make_shared<CompareArguments>();
  CLI::App& command = *app.add_subcommand(
      "compare", "Compare runs: the options in which they differ, and their results");
  command.add_option("RUN", args->runs, "Run folders, at least two")->required()->expected(2, -1);
  command.add_option("--svg", args->svg, "SVG file to write, with the curves of all runs");
  add_format(command, args->format);
  command.footer("Example:\n  tg runs compare runs/iris runs/iris-2 --svg compared.svg");
  command.callback([=, &action] { action = [args] { return compare_runs(*args); }; });
}

void add_metrics(CLI::App& app, RunsAction& action) {
  auto run = std::make_shared<std::string>();
  auto format = std::make_shared<TableFormat>(TableFormat::kText);
  CLI::App& command = *app.add_subcommand("metrics", "Print the metrics of a run");
  command.add_option("RUN", *run, "Run folder")->required();
  add_format(command, *format);
  command.footer("Example:\n  tg runs metrics runs/iris --csv > iris.csv");
  command.callback([=, &action] { action = [=] { return print_metrics(*run, *format); }; });
}

}  // namespace

void add_runs(CLI::App& app, std::function<int()>& action) {
  auto folder = std::make_shared<std::string>("runs");
  auto format = std::make_shared<TableFormat>(TableFormat::kText);
  CLI::App& command = *app.add_subcommand(
      "runs", "List the runs in a folder, compare them and print their metrics");
  command.require_subcommand(0, 1);
  command.add_option("FOLDER", *folder, "Folder with run folders, or one run folder")
      ->capture_default_str();
  add_format(command, *format);
  add_compare(command, action);
  add_metrics(command, action);
  command.footer(
      "Examples:\n"
      "  tg runs\n"
      "  tg runs compare runs/iris runs/iris-2 --svg compared.svg\n"
      "  tg runs metrics runs/iris --csv > iris.csv\n"
      "Lists runs of `tg train` and `tg lm train`. Write ./compare for a folder named compare.");
  command.callback([=, &command, &action] {
    if (command.get_subcommands().empty()) {
      action = [=] { return list_runs(*folder, *format); };
      return;
    }
    const std::string& name = command.get_subcommands().front()->get_name();
    for (const char* const option : {"FOLDER", "--json", "--csv"}) {
      if (!command.get_option(option)->empty())
        throw CLI::ValidationError(option, "cannot precede " + name);
    }
  });
}

}  // namespace tensorgrad::cli
