// SPDX-License-Identifier: MIT
// Functions for neural networks: activations, normalization, dropout, attention, losses, vision and
// state-space models.
#pragma once

#include "tensorgrad/functional/activations.h"
#include "tensorgrad/functional/attention.h"
#include "tensorgrad/functional/dropout.h"
#include "tensorgrad/functional/losses.h"
#include "tensorgrad/functional/normalization.h"
#include "tensorgrad/functional/state_space.h"
#include "tensorgrad/functional/vision.h"
