// SPDX-License-Identifier: MIT
// Requests about tokenizers and language models.
#include "requests.h"

namespace tensorgrad::web {

HandlerTable text_handlers() { return {}; }

}  // namespace tensorgrad::web
