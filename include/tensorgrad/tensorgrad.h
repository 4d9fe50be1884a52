// SPDX-License-Identifier: MIT
// Includes the whole library.
#pragma once

#include "tensorgrad/core.h"
#include "tensorgrad/data.h"
#include "tensorgrad/lm.h"
