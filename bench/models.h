// SPDX-License-Identifier: MIT
// Whole training steps of small models, which tg_bench times and tests count the launches of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tensorgrad/tensorgrad.h>

namespace tensorgrad::bench {

enum class Feeding {
  kHost,    // the host passes a batch and waits for the loss at every step: mode `step`
  kDevice,  // the device holds the data and draws the batches: mode `run`
  kStream,  // the host passes a new batch at every step and reads the losses later: mode `stream`
};

// Other sizes than the workload's own; 0: its own. Only decoders have layers and a length.
struct Variant {
  std::int64_t batch = 0, layers = 0, length = 0;
  bool stored_attention = false;             // materializes attention weights, for comparison
  bool joint_projection = false;             // one product for queries, keys and values
  bool whole_logits = false;                 // Mamba: all logits at once
  bool mixed = false;                        // mixed precision
  int snapshot_steps = 0;                    // steps between snapshots; 0: no snapshots
  std::shared_ptr<Communicator> ranks = {};  // of distributed training
  std::string shard = {};                    // "optimizer", "parameters", or empty
};

// A table of data, with a column for each input.
struct Column {
  InputSpec spec;  // of one row
  std::vector<float> floats;
  std::vector<std::int32_t> ints;
  // Returns rows `first` to `first + rows`.
  [[nodiscard]] HostView slice(std::int64_t first, std::int64_t rows) const;
  [[nodiscard]] InputSpec shaped(std::int64_t rows) const;
};

class Workload {
 public:
  std::string name;
  AnyTrainer trainer;
  std::vector<Column> columns;
  std::int64_t batch;
  Feeding feeding;
  std::int64_t rows;
  int steps_at_once;    // steps per go(), so that a call takes neither too short nor too long
  double milliseconds;  // time of the compilation: tracing, passes, kernels

  // Runs one step in mode `step`, otherwise steps_at_once of them.
  void go();
  // Returns batch `number` of the inputs that the host passes to steps.
  [[nodiscard]] FeedView feed(std::int64_t number = 0) const;
  [[nodiscard]] std::int64_t parameters() const;
};

// Returns mlp-sin, fashion-mlp, fashion-cnn, mnist-cnn, addition, char-gpt, char-gpt-small and
// mamba1. mamba-130m, gpt2, gpt2-50k and gpt-long also exist, for GPUs only.
const std::vector<std::string>& workload_names();

// Returns the network of fashion-cnn and mnist-cnn.
nn::Sequential mnist_cnn();

// Return the shapes of Gu and Dao's Mamba with a tied head: two narrow layers, and their smallest
// model.
nn::LanguageModelConfig small_mamba();
nn::LanguageModelConfig mamba_130m();

// Compiles a workload for the device and uploads its data. Throws std::invalid_argument if the name
// is unknown.
Workload make_workload(const std::string& name, Feeding feeding, const DeviceOptions& device,
                       const Variant& variant = {});

}  // namespace tensorgrad::bench
