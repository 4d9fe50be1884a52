// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(csv_with_a_cell_that_is_no_number, IoError) {
  // throws: data.csv: line 3, column 2 ("b"): "x" is not a finite number
  static_cast<void>(read_csv(FileSource::text("a,b,label\n1,2,cat\n3,x,dog\n", "data.csv")));
}

}  // namespace tensorgrad::testing
