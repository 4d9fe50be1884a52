// SPDX-License-Identifier: MIT
// Added tokens and special tokens as JSON: in tokenizer.json, in tokenizer_config.json and in
// added_tokens.json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/definition.h"
#include "text/json_part.h"

namespace tensorgrad::text {

// Reads an added token without its id.
AddedToken read_added_token(const Part& item);
// Reads the tokens of an added_tokens_decoder, an object with ids as keys. Null: none.
std::vector<AddedToken> added_by_id(const Part& decoder);
// Adds tokens. Converts errors to IoError, since the file is at fault.
void add_tokens_of_file(Definition& definition, const std::vector<AddedToken>& tokens,
                        const std::string& where);
// Returns the token in a field such as eos_token, a string or an object; nullopt if null.
std::optional<std::string> read_special_token(const Part& part);
// Reads the bos, eos and pad tokens. Ignores null and unknown tokens.
void take_marks(const Part& root, Definition& definition);

// Returns a post-processor that adds a token before a text and one behind it. Null: neither.
Json template_part(const Definition& definition, std::optional<Id> before,
                   std::optional<Id> behind);

}  // namespace tensorgrad::text
