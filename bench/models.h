// SPDX-License-Identifier: MIT
// What is measured, and what tests count the launches of: whole training steps of small models.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tensorgrad/tensorgrad.h>

namespace tensorgrad::bench {

enum class Feeding {
  kHost,    // the host gives a batch and waits for the loss at every step: mode `step`
  kDevice,  // the data lie on the device, which draws the batches: mode `run`
};

// Other sizes than the workload's own; 0: its own. Only decoders have layers and a length.
struct Variant {
  std::int64_t batch = 0, layers = 0, length = 0;
  bool stored_attention = false;  // its weights in memory, to compare with
  bool joint_projection = false;  // queries, keys and values by one product
  bool whole_logits = false;      // of a Mamba: not a piece at a time
  bool mixed = false;             // in mixed precision
  int snapshot_steps = 0;         // steps from one snapshot to the next; 0: none are taken
};

// A table of data: a column for each input.
struct Column {
  InputSpec spec;  // of one row
  std::vector<float> floats;
  std::vector<std::int32_t> ints;
  // The first rows of it.
  [[nodiscard]] HostView first(std::int64_t rows) const;
  [[nodiscard]] InputSpec shaped(std::int64_t rows) const;
};

class Workload {
 public:
  std::string name;
  AnyTrainer trainer;
  std::vector<Column> columns;
  std::int64_t batch;
  Feeding feeding;
  int steps_at_once;    // of run(), so that a call takes neither too short nor too long
  double milliseconds;  // that the compile took: tracing, passes, kernels

  // One step, or steps_at_once of them where the data lie on the device.
  void go();
  // What a step is given by the host.
  [[nodiscard]] FeedView feed() const;
  [[nodiscard]] std::int64_t parameters() const;
};

// mlp-sin, fashion-mlp, fashion-cnn, mnist-cnn, addition, char-gpt, char-gpt-small, mamba1. There
// is mamba-130m, too, which is for GPUs alone.
const std::vector<std::string>& workload_names();

// The shapes of Gu and Dao's Mamba, with the head's weight tied: two narrow layers, and their
// smallest model.
nn::LanguageModelConfig small_mamba();
nn::LanguageModelConfig mamba_130m();

// Compiled for the device, with its data there. Throws std::invalid_argument for an unknown name.
Workload make_workload(const std::string& name, Feeding feeding, const DeviceOptions& device,
                       const Variant& variant = {});

}  // namespace tensorgrad::bench
