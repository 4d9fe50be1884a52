// SPDX-License-Identifier: MIT
// The pictures of a run: curves.svg, confusion.svg, predictions.png.
#pragma once

#include <string>

#include "dataset.h"
#include "evaluation.h"
#include "metrics.h"
#include "settings.h"

namespace tensorgrad::cli {

// Writes those that make sense into `folder` and gives their names.
std::vector<std::string> write_pictures(const std::string& folder, const Run& run,
                                        const History& history, const Samples& test,
                                        const Evaluation& evaluation);

}  // namespace tensorgrad::cli
