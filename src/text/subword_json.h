// SPDX-License-Identifier: MIT
// Normalizers and decoders of a tokenizer.json.
#pragma once

#include "text/definition.h"
#include "text/json_part.h"

namespace tensorgrad::text {

// Returns at which texts Metaspace prepends its replacement.
Stage::Prefix prepend_scheme(const Part& part);
void take_normalizer(const Part& part, Definition& definition);
void take_subword_decoder(const Part& part, Subword& subword);

}  // namespace tensorgrad::text
