// SPDX-License-Identifier: MIT
// Tables of named columns, as aligned text, CSV or JSON lines.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace tensorgrad::cli {

enum class TableFormat { kText, kCsv, kJson };

struct Cell {
  nlohmann::ordered_json value;  // null if there is none
  std::string shown = {};        // in text, instead of the value; if empty, the value
};

struct Table {
  std::vector<std::string> names;       // of the columns, as keys in JSON: "best_loss"
  std::vector<std::vector<Cell>> rows;  // each with a cell per column
};

// Returns the table with a line break at the end of each line. Text is aligned: numbers to the
// right, with five digits; "-" stands for null, and columns without values are left out. CSV
// follows RFC 4180 with a header, line feeds and numbers in full; null is empty. JSON has an object
// per row, in which null is left out.
std::string formatted(const Table& table, TableFormat format);

}  // namespace tensorgrad::cli
