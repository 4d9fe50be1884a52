// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(csv_with_a_short_row, IoError) {
  // throws: data.csv: line 3: has 2 columns; expected 3, as in the first line
  static_cast<void>(read_csv(FileSource::text("a,b,label\n1,2,cat\n3,dog\n", "data.csv")));
}

}  // namespace tensorgrad::testing
