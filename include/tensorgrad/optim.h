// SPDX-License-Identifier: MIT
// Optimizers, learning-rate schedules and parameter groups.
#pragma once

#include "tensorgrad/optim/optimizers.h"
#include "tensorgrad/optim/param_groups.h"
#include "tensorgrad/optim/schedule.h"
