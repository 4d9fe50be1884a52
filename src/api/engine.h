// SPDX-License-Identifier: MIT
// What a Trainer and a Forward have in common: a compiled program on a device, its run-time
// scalars, states and inputs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/feed.h"
#include "api/parameters.h"
#include "compile/compile.h"
#include "compile/instance.h"

namespace tensorgrad {

// A state leaf of a program, with its initial value.
struct StateEntry {
  std::string name;
  Type type;
  double initial = 0;
};

// A traced function, ready to be compiled.
struct TracedFunction {
  Trace trace;
  std::map<std::string, Tensor> outputs;
};

// Runs `function` in a fresh trace of the model, with its inputs declared. `training`: see
// is_training().
std::unique_ptr<TracedFunction> trace_function(const ParameterTable& parameters,
                                               const std::vector<InputSpec>& inputs,
                                               const std::vector<InputSpec>& dataset,
                                               std::int64_t batch,
                                               const detail::TraceFunction& function, bool training,
                                               const Site& site);

class Engine {
 public:
  // Compiles and allocates; parameters live in `owner`'s buffers where one is given.
  Engine(CompileRequest request, std::map<std::string, double> scalars,
         std::vector<InputSpec> inputs, std::vector<InputSpec> dataset,
         std::shared_ptr<Device> device, std::string why, bool check_indices,
         const std::shared_ptr<Instance>& owner = {});

  [[nodiscard]] const Compiled& compiled() const { return compiled_; }
  [[nodiscard]] Instance& instance() const { return *instance_; }
  [[nodiscard]] const std::shared_ptr<Instance>& shared_instance() const { return instance_; }
  [[nodiscard]] const std::vector<StateEntry>& states() const { return states_; }
  [[nodiscard]] std::map<std::string, double>& scalars() { return scalars_; }

  // Throws before anything is changed.
  void check(const Feed& feed) const;
  void upload_inputs(const Feed& feed);
  void upload_data(const std::string& name, const HostView& value);
  [[nodiscard]] bool all_data_given(std::string& missing) const;

  void upload_params(const std::vector<float>& flat);
  [[nodiscard]] std::vector<float> download_floats(const std::string& buffer) const;
  [[nodiscard]] std::vector<std::uint32_t> download_words(const std::string& buffer) const;
  void reset_states();  // those that are not its owner's

  // Values of the run-time scalars for one run.
  [[nodiscard]] HyperValues hypers() const;

  [[nodiscard]] CompileReport report() const;
  [[nodiscard]] std::string explain() const;
  [[nodiscard]] std::string device_text() const;

 private:
  template <class T>
  std::vector<T> download(const std::string& buffer) const;

  std::map<std::string, double> scalars_;
  std::vector<InputSpec> inputs_, dataset_;
  Compiled compiled_;
  std::map<std::string, std::vector<IndexBound>> bounds_;
  std::vector<StateEntry> states_;
  std::map<std::string, bool> data_given_;
  std::string why_;
  std::shared_ptr<Instance> instance_;
};

std::uint32_t float_bits(double value);

}  // namespace tensorgrad
