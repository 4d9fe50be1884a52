// SPDX-License-Identifier: MIT
// tg runs, tg runs compare and tg runs metrics.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "os/process.h"
#include "plot/svg_plot.h"
#include "run/progress.h"
#include "run/run_folder.h"
#include "runs/commands.h"
#include "runs/summary.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/error.h"
#include "text.h"

namespace tensorgrad::cli {
namespace {

namespace fs = std::filesystem;
using RunsJson = nlohmann::ordered_json;

template <typename T>
Cell cell_of(const std::optional<T>& value) {
  return {value ? RunsJson(*value) : RunsJson()};
}

Cell number_cell(double value) { return {std::isfinite(value) ? RunsJson(value) : RunsJson()}; }

Cell text_cell(const std::string& text) { return {text.empty() ? RunsJson() : RunsJson(text)}; }

std::vector<std::string> run_folders(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(os::utf8_path(folder), error)) throw IoError(folder + ": not a folder");
  if (is_run_folder(folder)) return {folder};
  std::vector<std::string> found;
  for (fs::directory_iterator entry(os::utf8_path(folder), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = os::utf8_text(entry->path());
    // A folder whose name has this part is not yet a run.
    if (path.find(".tmp.", folder.size()) == std::string::npos && is_run_folder(path))
      found.push_back(path);
  }
  if (error) throw IoError(folder + ": cannot be read: " + error.message());
  if (found.empty()) throw IoError(folder + ": no runs: expected folders that contain a run.json");
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<Cell> row_of(const RunSummary& run) {
  return {{run.name},
          {run.is_lm ? "lm" : "classifier"},
          {run.model},
          text_cell(run.device),
          {run.steps, fmt::format("{}/{}", run.steps, run.total_steps)},
          {run.total_steps},
          cell_of(run.train_loss),
          cell_of(run.last_loss),
          cell_of(run.best_loss),
          cell_of(run.accuracy),
          cell_of(run.perplexity),
          {run.seconds, clock_time(run.seconds)},
          {run.state}};
}

void print_table(const Table& table, TableFormat format) {
  const std::string text = formatted(table, format);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// Returns a name for each run: that of its folder, or its path if another run has that name.
std::vector<std::string> curve_names(const std::vector<RunSummary>& runs) {
  std::set<std::string> distinct;
  for (const RunSummary& run : runs) distinct.insert(run.name);
  std::vector<std::string> names;
  for (const RunSummary& run : runs)
    names.push_back(distinct.size() == runs.size() ? run.name : run.folder);
  return names;
}

template <typename Line>
Curve curve_of(const std::string& name, const std::vector<Line>& lines, double Line::* value,
               double per_epoch) {
  Curve curve{.name = name, .x = {}, .y = {}};
  for (const Line& line : lines) {
    curve.x.push_back(static_cast<double>(line.step) / std::max(per_epoch, 1.0));
    curve.y.push_back(line.*value);
  }
  return curve;
}

std::string comparison_svg(const std::vector<RunSummary>& runs,
                           const std::vector<std::string>& names) {
  const bool is_lm = runs.front().is_lm;
  const std::string x_label = is_lm ? "step" : "epoch";
  const std::string unit = is_lm ? " (nats per token)" : "";
  CurvePanel training{"training loss" + unit, x_label, {}};
  CurvePanel testing{(is_lm ? "validation loss" : "test loss") + unit, x_label, {}};
  CurvePanel accuracy{"test accuracy", x_label, {}, true};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const History& history = runs[i].history;
    const double per_epoch = runs[i].steps_per_epoch;
    training.curves.push_back(curve_of(names[i], history.steps, &StepLine::loss, per_epoch));
    training.curves.back().smooth = true;
    if (runs[i].has_validation)
      testing.curves.push_back(
          curve_of(names[i], history.validations, &ValidationLine::loss, per_epoch));
    if (is_lm) continue;
    testing.curves.push_back(curve_of(names[i], history.epochs, &EpochLine::test_loss, per_epoch));
    accuracy.curves.push_back(
        curve_of(names[i], history.epochs, &EpochLine::test_accuracy, per_epoch));
  }
  std::vector<CurvePanel> panels = {training};
  for (CurvePanel* const panel : {&testing, &accuracy}) {
    for (Curve& curve : panel->curves) curve.marks = true;
    if (!panel->curves.empty()) panels.push_back(*panel);
  }
  std::string title;
  for (const std::string& name : names) title += (title.empty() ? "" : ", ") + name;
  return curves_svg(title, panels);
}

// Returns the value of an option, or null if the run does not have it.
RunsJson option_of(const RunSummary& run, const std::string& name) {
  for (const auto& [key, value] : run.options) {
    if (key == name) return value;
  }
  return {};
}

// Returns a row for each option in which the runs differ, in the order of the files.
std::vector<std::vector<Cell>> differing_options(const std::vector<RunSummary>& runs) {
  std::vector<std::string> names;
  for (const RunSummary& run : runs) {
    for (const auto& [name, value] : run.options) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::vector<std::vector<Cell>> rows;
  for (const std::string& name : names) {
    std::vector<Cell> row = {{name}};
    for (const RunSummary& run : runs) row.push_back({option_of(run, name)});
    const bool equal = std::all_of(row.begin() + 1, row.end(),
                                   [&](const Cell& cell) { return cell.value == row[1].value; });
    if (!equal) rows.push_back(std::move(row));
  }
  return rows;
}

// Appends a row for each result that one of the runs has.
void add_results(const std::vector<RunSummary>& runs, std::vector<std::vector<Cell>>& rows) {
  const auto add = [&](const char* name, const auto& cell) {
    std::vector<Cell> row = {{name}};
    for (const RunSummary& run : runs) row.push_back(cell(run));
    if (std::any_of(row.begin() + 1, row.end(), [](const Cell& c) { return !c.value.is_null(); }))
      rows.push_back(std::move(row));
  };
  add("state", [](const RunSummary& run) { return Cell{run.state}; });
  add("steps_done", [](const RunSummary& run) { return Cell{run.steps}; });
  add("train_loss", [](const RunSummary& run) { return cell_of(run.train_loss); });
  add("last_loss", [](const RunSummary& run) { return cell_of(run.last_loss); });
  add("best_loss", [](const RunSummary& run) { return cell_of(run.best_loss); });
  add("accuracy", [](const RunSummary& run) { return cell_of(run.accuracy); });
  add("perplexity", [](const RunSummary& run) { return cell_of(run.perplexity); });
  add("seconds", [](const RunSummary& run) { return Cell{run.seconds}; });
}

}  // namespace

int list_runs(const std::string& folder, TableFormat format) {
  Table table{{"name", "kind", "model", "device", "steps", "total_steps", "train_loss", "last_loss",
               "best_loss", "accuracy", "perplexity", "seconds", "state"},
              {}};
  std::vector<std::string> errors;
  for (const std::string& path : run_folders(folder)) {
    try {
      table.rows.push_back(row_of(read_summary(path)));
    } catch (const Error& error) {
      errors.push_back(error.message());
      std::vector<Cell> row(table.names.size());
      row.front() = {os::utf8_text(os::utf8_path(path).filename())};
      row.back() = {"damaged"};
      table.rows.push_back(std::move(row));
    }
  }
  if (format == TableFormat::kText) {  // total_steps are shown with the steps
    table.names[11] = "time";
    table.names.erase(table.names.begin() + 5);
    for (std::vector<Cell>& row : table.rows) row.erase(row.begin() + 5);
  }
  print_table(table, format);
  std::fflush(stdout);
  for (const std::string& error : errors) fmt::print(stderr, "error: {}\n", printable(error));
  return errors.empty() ? 0 : 1;
}

int compare_runs(const CompareArguments& arguments) {
  std::vector<RunSummary> runs;
  for (const std::string& folder : arguments.runs) runs.push_back(read_summary(folder));
  for (const RunSummary& run : runs) {
    if (run.is_lm == runs[0].is_lm) continue;
    const auto tool = [](bool is_lm) { return is_lm ? "tg lm train" : "tg train"; };
    throw UserError(fmt::format("{} is a run of {}, {} of {}; expected runs of one kind",
                                runs[0].folder, tool(runs[0].is_lm), run.folder, tool(run.is_lm)));
  }
  const std::vector<std::string> names = curve_names(runs);
  Table table{{"option"}, differing_options(runs)};
  table.names.insert(table.names.end(), names.begin(), names.end());
  add_results(runs, table.rows);
  if (arguments.format == TableFormat::kText) {
    for (std::vector<Cell>& row : table.rows) {
      for (Cell& cell : row) {
        if (cell.value.is_array()) cell.shown = cell.value.dump();
      }
    }
  }
  if (!arguments.svg.empty()) write_file_atomically(arguments.svg, comparison_svg(runs, names));
  print_table(table, arguments.format);
  return 0;
}

int print_metrics(const std::string& folder, TableFormat format) {
  const RunSummary run = read_summary(folder);
  Table table;
  table.names = {"kind", "step", "epoch", "loss", "lr", "train_loss"};
  const std::vector<std::string> others =
      run.is_lm
          ? std::vector<std::string>{"tokens_per_second", "seconds"}
          : std::vector<std::string>{"test_loss", "test_accuracy", "images_per_second", "seconds"};
  table.names.insert(table.names.end(), others.begin(), others.end());
  // Rows by step; a step precedes the epoch or validation that it ends.
  std::vector<std::pair<std::int64_t, std::vector<Cell>>> rows;
  const auto add = [&](std::int64_t step, const std::map<std::string, Cell>& cells) {
    std::vector<Cell> row;
    for (const std::string& name : table.names) {
      const auto cell = cells.find(name);
      row.push_back(cell == cells.end() ? Cell{} : cell->second);
    }
    rows.emplace_back(step, std::move(row));
  };
  for (const StepLine& line : run.history.steps) {
    add(line.step, {{"kind", {"step"}},
                    {"step", {line.step}},
                    {"epoch", {line.epoch}},
                    {"loss", number_cell(line.loss)},
                    {"lr", number_cell(line.lr)},
                    {"seconds", number_cell(line.seconds)}});
  }
  for (const ValidationLine& line : run.history.validations) {
    add(line.step, {{"kind", {"validation"}},
                    {"step", {line.step}},
                    {"loss", number_cell(line.loss)},
                    {"train_loss", number_cell(line.train_loss)},
                    {"tokens_per_second", number_cell(line.tokens_per_second)},
                    {"seconds", number_cell(line.seconds)}});
  }
  for (const EpochLine& line : run.history.epochs) {
    add(line.step, {{"kind", {"epoch"}},
                    {"step", {line.step}},
                    {"epoch", {line.epoch}},
                    {"train_loss", number_cell(line.train_loss)},
                    {"test_loss", number_cell(line.test_loss)},
                    {"test_accuracy", number_cell(line.test_accuracy)},
                    {"images_per_second", number_cell(line.images_per_second)},
                    {"seconds", number_cell(line.seconds)}});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [step, row] : rows) table.rows.push_back(std::move(row));
  print_table(table, format);
  return 0;
}

}  // namespace tensorgrad::cli
