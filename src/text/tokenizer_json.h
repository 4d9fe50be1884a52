// SPDX-License-Identifier: MIT
// Parts of a tokenizer.json that readers of other files express themselves in.
#pragma once

#include <string>

#include "text/definition.h"
#include "text/json_part.h"

namespace tensorgrad::text {

// Reads the normalizer, pre_tokenizer, decoder and post_processor of `root`, and finishes a
// definition whose subword model and added tokens are set.
void take_pipeline(const Json& root, const std::string& file, Definition& definition);

}  // namespace tensorgrad::text
