// SPDX-License-Identifier: MIT
// A canvas as text.
#pragma once

#include <string>

#include "ui/canvas.h"

namespace tensorgrad::cli {

// Returns the rows of a canvas without their styles.
inline std::string plain_rows(const Canvas& canvas) {
  std::string text;
  for (int y = 0; y < canvas.rows(); ++y) {
    const std::string row = canvas.row(y, false);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i] == '\x1b')
        i = row.find_first_of("mG", i);
      else
        text += row[i];
    }
    text += '\n';
  }
  return text;
}

}  // namespace tensorgrad::cli
