// SPDX-License-Identifier: MIT
// CSV files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensorgrad/types.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

struct CsvOptions {
  enum class Header { kAuto, kYes, kNo };

  std::string label;  // name of the label column, or its index (-1 is the last); empty: the last
  bool unlabelled = false;  // every column is a feature
  std::string label_hint;   // ends errors about the label column: how a user names another one
  Header header = Header::kAuto;
  char delimiter = ',';
  // Fixes the meaning of the labels, as for a file that a trained model is to be tested on.
  std::vector<std::string> class_names;
  double holdout = 0.0;  // share of the rows that go to `test`, in [0,1)
  std::uint64_t seed = 0;
  std::uint64_t max_bytes = std::uint64_t{2} << 30;  // of text, after inflation
  int max_classes = 10'000;
};

struct CsvRows {
  std::int64_t count = 0;
  std::vector<float> features;  // [count, feature_names.size()], finite
  std::vector<std::int32_t>
      labels;  // [count], each in [0, class_names.size()); empty if unlabelled
};

struct CsvData {
  std::vector<std::string> feature_names;  // "column 0", ... where there is no header
  std::string label_name;
  std::vector<std::string> class_names;  // distinct labels, sorted: by value if all are integers
  bool had_header = false;
  CsvRows train;
  CsvRows test;  // empty without holdout; rows keep the order of the file in both
};

CsvData read_csv(const std::string& path, const CsvOptions& options = {});

// `text` is the file, inflated already.
CsvData parse_csv(std::string_view text, std::string_view name, const CsvOptions& options = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI
