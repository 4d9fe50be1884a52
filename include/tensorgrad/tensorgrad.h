// SPDX-License-Identifier: MIT
// Includes all headers of the library except `tensorgrad/distributed/mpi.h`, which needs the target
// `tensorgrad::mpi`.
#pragma once

#include "tensorgrad/core.h"
#include "tensorgrad/data.h"
#include "tensorgrad/distributed.h"
#include "tensorgrad/lm.h"
