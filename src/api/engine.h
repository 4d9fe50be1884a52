// SPDX-License-Identifier: MIT
// What a Trainer and a Forward have in common: a compiled program on a device, its run-time
// scalars, states and inputs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/device_value.h"
#include "api/feed.h"
#include "api/parameters.h"
#include "compile/compile.h"
#include "compile/instance.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A state leaf of a program, with its initial value.
struct StateEntry {
  std::string name;
  Type type;
  double initial = 0;
  std::shared_ptr<const HostTensor> values = {};  // instead of `initial`, if it is not null
};

// A traced function, ready to be compiled.
struct TracedFunction {
  Trace trace;
  std::map<std::string, Tensor> outputs;
};

// How a function is traced.
struct TraceMode {
  bool training = false;  // what is_training() says
  bool autocast = false;  // Trace::autocast
  bool exported = false;  // Trace::exported
  bool any_size = false;  // Trace::any_size
  bool captures = false;  // what it has given names to is an output too, named capture_output()
  WeightSource weights = WeightSource::kTrained;
  std::uint32_t first_stream = 0;  // of its random ops
};
// Runs `function` in a fresh trace of the model, with its inputs declared.
std::unique_ptr<TracedFunction> trace_function(
    const ParameterTable& parameters, const std::vector<InputSpec>& inputs,
    const std::vector<InputSpec>& dataset, std::int64_t batch,
    const detail::TraceFunction& function, const TraceMode& mode, const SourceLocation& location);
std::string capture_output(const std::string& name);
// Throws UserError where `name` is none of the known ones: "there is no input 'x'; there is a, b".
void check_known(const std::string& unknown, const std::string& name,
                 const std::vector<std::string>& known);
void check_captures(const std::vector<std::string>& names, const std::vector<std::string>& known);

class Engine {
 public:
  // Compiles. Before anything else, allocate() must be called.
  Engine(CompileRequest request, std::map<std::string, double> scalars,
         std::vector<InputSpec> inputs, std::vector<InputSpec> dataset,
         std::shared_ptr<Device> device, std::string why, bool check_indices);
  // Its own states get their initial values.
  void allocate(SharedMemory shared = {});
  // Of the same kind, in the place of one that was lost; allocate() comes next.
  void use(std::shared_ptr<Device> device) { device_ = std::move(device); }
  // Does a run change states?
  [[nodiscard]] bool changes_states() const { return !compiled_.graph.updates.empty(); }

  [[nodiscard]] const Compiled& compiled() const { return compiled_; }
  [[nodiscard]] Instance& instance() const { return *instance_; }
  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }
  [[nodiscard]] const std::vector<StateEntry>& states() const { return states_; }
  [[nodiscard]] std::map<std::string, double>& scalars() { return scalars_; }

  // The application's buffer, to stand for one of this program's; where that is null a fresh one,
  // or nothing if none is bound. `what` is what errors call it.
  [[nodiscard]] std::shared_ptr<Memory> memory_for(const std::string& buffer,
                                                   WGPUBufferImpl* native,
                                                   const std::string& what) const;
  // Takes it for this buffer, in which the host puts nothing any more where it is `native`'s.
  // Without one all stays.
  void bind(const std::string& buffer, std::shared_ptr<Memory> memory,
            const WGPUBufferImpl* native);
  // Steps on the inputs that lie on the device, timed launch by launch. `next` gives the scalars of
  // each. Throws UserError for fewer than one step.
  Profile profile(const ProfileOptions& options, const std::function<HyperValues()>& next);
  [[nodiscard]] bool bound(const std::string& buffer) const { return bound_.contains(buffer); }
  [[nodiscard]] bool all_inputs_bound() const;

  // Throws before anything is changed.
  void check(const FeedView& feed) const;
  // The part that is about tensors on devices.
  void check_devices(const FeedView& feed) const;
  // What lies on the device is read where it is, until the input is given anew.
  void upload_inputs(const FeedView& feed);
  // Its own memory again, for all inputs.
  void take_back_inputs();
  // Of a dataset entry, or of an input.
  [[nodiscard]] std::vector<std::uint32_t> download_data(const std::string& name,
                                                         const Type& type) const;
  // False where there is no dataset entry of that name; throws where the value does not fit it.
  [[nodiscard]] bool check_data(const std::string& name, const HostView& value) const;
  void upload_data(const std::string& name, const HostView& value);
  void mark_given(const std::string& name, bool given) { data_given_[name] = given; }
  [[nodiscard]] bool all_data_given(std::string& missing) const;

  void upload_params(const std::vector<float>& flat);
  [[nodiscard]] std::vector<float> download_floats(const std::string& buffer) const;
  [[nodiscard]] std::vector<std::uint32_t> download_state(const StateEntry& state) const;
  [[nodiscard]] std::vector<std::uint32_t> download_words(const std::string& buffer) const;
  // Writes captures of the last run to the standard error stream.
  void print(const std::vector<std::string>& captures) const;
  // An output of the last run. Of the name in the traced function, or capture_output().
  [[nodiscard]] HostTensor download_output(const std::string& name) const;
  // The same, in the memory where it lies.
  [[nodiscard]] std::shared_ptr<const detail::DeviceValue> output_value(
      const std::string& name) const;
  void upload_state(const std::string& name, const std::vector<float>& values);
  void upload_state(const std::string& name, const HostTensor& tensor);
  // Throws UserError, `what` in front, where one of them has another type than the state of its
  // name: f32 serves for f16. What there is no state for is left out.
  void check_states(const std::string& what,
                    const std::map<std::string, HostTensor>& tensors) const;
  void reset_state(const StateEntry& state);
  // Sets the initial values of states that are buffers of a model, by the names that these have.
  void set_initial(const std::map<const Buffer*, std::string>& buffers);

  // Values of the run-time scalars for one run.
  void put_hypers(HyperValues& values) const;

  [[nodiscard]] CompileReport report() const;
  [[nodiscard]] std::string explain() const;
  [[nodiscard]] std::string device_text() const;
  [[nodiscard]] DeviceOptions same_device() const;
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  template <class T>
  std::vector<T> download(const std::string& buffer) const;
  // What the host has, in the way in which the device keeps the type; and back.
  void upload(const std::string& buffer, DType dtype, const HostView& value);
  [[nodiscard]] std::vector<std::byte> download_stored(const std::string& buffer,
                                                       std::int64_t offset, const Type& type) const;
  [[nodiscard]] const Port& output(const std::string& name) const;
  void take_back_input(const std::string& buffer);

  std::map<std::string, double> scalars_;
  std::vector<InputSpec> inputs_, dataset_;
  std::vector<std::string> input_buffers_;  // of inputs_
  Compiled compiled_;
  std::map<std::string, std::vector<IndexBound>> bounds_;
  std::vector<StateEntry> states_;
  std::map<std::string, bool> data_given_;
  std::map<std::string, const WGPUBufferImpl*> bound_;
  std::map<std::string, std::shared_ptr<Memory>> own_inputs_;  // inputs' own, while others serve
  std::shared_ptr<Device> device_;
  std::string why_;
  PlanOptions plan_;
  std::unique_ptr<Instance> instance_;
};

std::uint32_t float_bits(double value);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
