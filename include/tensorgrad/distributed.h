// SPDX-License-Identifier: MIT
// Data-parallel training on several processes or threads. `tensorgrad/distributed/mpi.h` needs the
// target `tensorgrad::mpi` and is not included.
#pragma once

#include "tensorgrad/distributed/adapters.h"
#include "tensorgrad/distributed/communicator.h"
