// SPDX-License-Identifier: MIT
// Compiling, training and running models: trainers, compiled functions, data loaders, host and
// device tensors, devices and profiles.
#pragma once

#include "tensorgrad/train/compile.h"
#include "tensorgrad/train/compiled_function.h"
#include "tensorgrad/train/data_loader.h"
#include "tensorgrad/train/debug.h"
#include "tensorgrad/train/device.h"
#include "tensorgrad/train/device_tensor.h"
#include "tensorgrad/train/export_options.h"
#include "tensorgrad/train/external_device.h"
#include "tensorgrad/train/fit.h"
#include "tensorgrad/train/graph_view.h"
#include "tensorgrad/train/host_tensor.h"
#include "tensorgrad/train/host_times.h"
#include "tensorgrad/train/inputs.h"
#include "tensorgrad/train/metrics.h"
#include "tensorgrad/train/monitor.h"
#include "tensorgrad/train/options.h"
#include "tensorgrad/train/profile.h"
#include "tensorgrad/train/single_flight.h"
#include "tensorgrad/train/trainer.h"
