// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(csv_without_its_label_column, IoError) {
  CsvOptions options;
  options.label = "species";
  // throws: data.csv: has no column named "species": the first line is "a", "b"
  static_cast<void>(read_csv(FileSource::text("a,b\n1,2\n", "data.csv"), options));
}

}  // namespace tensorgrad::testing
