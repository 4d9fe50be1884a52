// SPDX-License-Identifier: MIT
// zlib, with inputs that are const. Files that are compiled together must agree on this.
#pragma once

#define ZLIB_CONST
#include <zlib.h>
