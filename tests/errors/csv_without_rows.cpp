// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(csv_without_rows, IoError) {
  // throws: data.csv: has a header but no rows
  static_cast<void>(read_csv(FileSource::text("a,b,label\n", "data.csv")));
}

}  // namespace tensorgrad::testing
