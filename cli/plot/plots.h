// SPDX-License-Identifier: MIT
// The plots of a run: curves.svg, confusion.svg and predictions.png.
#pragma once

#include <string>
#include <vector>

#include "classify/dataset.h"
#include "classify/evaluation.h"
#include "classify/settings.h"
#include "run/metrics.h"

namespace tensorgrad::cli {

// Writes the plots that apply to the run into `folder` and returns their names. Throws IoError if a
// file cannot be written.
std::vector<std::string> write_pictures(const std::string& folder, const Run& run,
                                        const History& history, const Samples& test,
                                        const Evaluation& evaluation);

// Returns true if the data is images that can be drawn.
bool drawable_images(const Task& task);

}  // namespace tensorgrad::cli
