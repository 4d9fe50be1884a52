// SPDX-License-Identifier: MIT
// The tg runs command and its subcommands: lists runs, compares them and prints their metrics.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runs/table.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the name is CLI11's
class App;
}

namespace tensorgrad::cli {

// Prints a table of the runs in a folder. Returns 1 if one of them is damaged, after naming it.
int list_runs(const std::string& folder, TableFormat format);

struct CompareArguments {
  std::vector<std::string> runs;  // folders
  std::string svg;                // file to write; none if empty
  TableFormat format = TableFormat::kText;
};
// Prints the options in which the runs differ, and their results.
int compare_runs(const CompareArguments& arguments);

// Prints the metrics of a run, a row for each line of metrics.jsonl that has numbers.
int print_metrics(const std::string& folder, TableFormat format);

// Adds the runs command and its subcommands. Parsing sets `action` to the selected one.
void add_runs(CLI::App& app, std::function<int()>& action);

}  // namespace tensorgrad::cli
