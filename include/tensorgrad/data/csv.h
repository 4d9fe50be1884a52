// SPDX-License-Identifier: MIT
// CSV files for training: f32 features and class labels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/data/files.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

/// Options of read_csv().
struct CsvOptions {
  /// Treatment of the first row.
  enum class Header {
    /// It is a header in these cases:
    /// - `label` names a column.
    /// - No feature of the first row is a number.
    /// - The label is text in the first row and a number in the second.
    /// - The label of the first row is a usual name of such a column ("label", "class", "target"
    ///   ...), and no other row has it.
    /// - The features of the first row are their numbers (0,1,2), no other row has its label, and
    ///   two other rows have the same label.
    kAuto,
    kYes,  ///< It is a header: the names of the columns.
    kNo    ///< It is a row of data. Columns are named "column 0", "column 1", ...
  };

  /// Label column by name or by index from 0; negative indices count from the end. Empty: the last
  /// column. A number is an index unless `header` is kYes and a column has that name.
  std::string label = {};

  bool unlabeled = false;         ///< All columns are features.
  std::string label_hint = {};    ///< Appended to errors about the label: how to set its column.
  Header header = Header::kAuto;  ///< Treatment of the first row.
  char delimiter = ',';           ///< Not a quote, a line break or a zero byte.

  /// Class names in the order of their numbers, for example those that a trained model knows.
  /// Empty: the labels in the file.
  std::vector<std::string> class_names = {};

  double holdout = 0.0;    ///< Fraction of the rows that go to CsvData::test, in [0, 1).
  std::uint64_t seed = 0;  ///< Seed of the choice of these rows.
  bool exact = false;      ///< Also fills CsvRows::exact.
  std::uint64_t max_bytes = std::uint64_t{2} << 30;  ///< Limit on the decompressed text.
  /// Limit on the expansion of a compressed file, unless the result has at most 64 MiB.
  double max_expansion = kMaxExpansion;
  int max_classes = 10'000;  ///< Limit on the number of classes, if `class_names` is empty.
};

/// Rows of a table.
struct CsvRows {
  std::int64_t count = 0;       ///< Number of rows.
  std::vector<float> features;  ///< [count, number of features], all finite.

  /// The features as doubles if CsvOptions::exact is set, else empty. Use them to standardize large
  /// numbers that differ little, such as times: f32 has 24 bits.
  std::vector<double> exact;

  /// Class numbers [count], each in [0, number of classes). Empty if the table is unlabeled.
  std::vector<std::int32_t> labels;
};

/// Table read from a CSV file.
struct CsvData {
  std::vector<std::string> feature_names;  ///< "column 0", "column 1", ... if there is no header.
  std::string label_name;                  ///< Empty if there is no label column.

  /// CsvOptions::class_names, or the distinct labels of the file: sorted by value if all are
  /// integers, else by bytes.
  std::vector<std::string> class_names;

  bool had_header = false;  ///< True if the first row was read as a header.
  CsvRows train;            ///< In the order of the file.
  CsvRows test;  ///< The held-out rows, in the order of the file; empty without `holdout`.
};

/// Reads a CSV file, plain or gzipped. Fields can be quoted with double quotes; a quote within is
/// doubled. Empty lines and a byte order mark are skipped, and white space around numbers and
/// labels is ignored.
///
/// Throws IoError naming the file, the line and the column if:
/// - the file cannot be read, is too large or has no rows,
/// - an option is out of range or the label column does not exist,
/// - rows differ in length or a quote is never closed,
/// - a feature is not a finite f32,
/// - a label is empty, NaN or not in `class_names`, or a name or label is not UTF-8,
/// - there are too many classes, only one class, or fractional numbers as labels,
/// - `holdout` would leave no rows for training or testing.
CsvData read_csv(const FileSource& source, const CsvOptions& options = {});

}  // namespace tensorgrad::inline TENSORGRAD_ABI
