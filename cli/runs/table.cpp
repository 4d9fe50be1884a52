// SPDX-License-Identifier: MIT
#include "runs/table.h"

#include <algorithm>

#include <fmt/format.h>

#include "text.h"

namespace tensorgrad::cli {
namespace {

using TableJson = nlohmann::ordered_json;

// File names need not be UTF-8.
std::string json_text(const TableJson& value) {
  return value.dump(-1, ' ', false, TableJson::error_handler_t::replace);
}

std::string text_of(const Cell& cell) {
  if (!cell.shown.empty()) return printable(cell.shown);
  if (cell.value.is_null()) return "-";
  if (cell.value.is_string()) return printable(cell.value.get<std::string>());
  if (cell.value.is_number_float()) return fmt::format("{:.5g}", cell.value.get<double>());
  return json_text(cell.value);
}

std::string csv_field(const Cell& cell) {
  if (cell.value.is_null()) return "";
  std::string text = cell.value.is_string() ? cell.value.get<std::string>() : json_text(cell.value);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string as_text(const Table& table) {
  std::string out;
  std::vector<std::vector<std::string>> lines(table.rows.size() + 1);
  for (const std::string& name : table.names) {
    lines[0].push_back(printable(name));
    std::replace(lines[0].back().begin(), lines[0].back().end(), '_', ' ');
  }
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    for (const Cell& cell : table.rows[r]) lines[r + 1].push_back(text_of(cell));
  }
  std::vector<bool> shown(table.names.size());
  for (std::size_t c = 0; c < table.names.size(); ++c) {
    std::size_t width = 0;
    shown[c] = c == 0 || std::any_of(table.rows.begin(), table.rows.end(),
                                     [&](const auto& row) { return !row[c].value.is_null(); });
    for (const std::vector<std::string>& line : lines) width = std::max(width, columns_of(line[c]));
    const bool numbers = std::all_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
      return row[c].value.is_number() || row[c].value.is_null();
    });
    for (std::vector<std::string>& line : lines) {
      const std::size_t room = width - columns_of(line[c]);
      line[c] = numbers ? std::string(room, ' ') + line[c] : padded(line[c], width);
    }
  }
  for (const std::vector<std::string>& line : lines) {
    std::string text;
    for (std::size_t c = 0; c < line.size(); ++c) {
      if (shown[c]) text += (c == 0 ? "" : "  ") + line[c];
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  }
  return out;
}

std::string as_csv(const Table& table) {
  std::vector<Cell> names;
  for (const std::string& name : table.names) names.push_back({name});
  std::string out;
  const auto add = [&](const std::vector<Cell>& row) {
    for (const Cell& cell : row) out += (&cell == row.data() ? "" : ",") + csv_field(cell);
    out += '\n';
  };
  add(names);
  for (const std::vector<Cell>& row : table.rows) add(row);
  return out;
}

std::string as_json(const Table& table) {
  std::string out;
  for (const std::vector<Cell>& row : table.rows) {
    TableJson object = TableJson::object();
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (!row[c].value.is_null()) object[table.names[c]] = row[c].value;
    }
    out += json_text(object) + '\n';
  }
  return out;
}

}  // namespace

std::string formatted(const Table& table, TableFormat format) {
  if (format == TableFormat::kText) return as_text(table);
  return format == TableFormat::kCsv ? as_csv(table) : as_json(table);
}

}  // namespace tensorgrad::cli
