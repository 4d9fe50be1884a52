// SPDX-License-Identifier: MIT
// A compiled program on a device with its runtime scalars, states and inputs. Used by Trainer and
// CompiledFunction.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "compile/runtime/instance.h"
#include "train/device_value.h"
#include "train/feed.h"
#include "train/parameters.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

// A state leaf of a program, with its initial value.
struct StateEntry {
  std::string name;
  Type type;
  double initial = 0;
  std::shared_ptr<const HostTensor> values = {};  // replaces `initial` if not null
};

// A traced function, ready to compile.
struct TracedFunction {
  Trace trace;
  std::map<std::string, Tensor> outputs;
};

// Options for tracing a function.
struct TraceMode {
  bool training = false;  // result of is_training()
  bool autocast = false;  // Trace::autocast
  bool exported = false;  // Trace::exported
  bool any_size = false;  // Trace::any_size
  bool captures = false;  // captures are outputs too, named capture_output()
  WeightSource weights = WeightSource::kTrained;
  std::uint32_t first_stream = 0;  // stream of its first random op
};
// Runs `function` in a new trace of the model with its inputs declared.
std::unique_ptr<TracedFunction> trace_function(
    const ParameterTable& parameters, const std::vector<InputSpec>& inputs,
    const std::vector<InputSpec>& dataset, std::int64_t batch,
    const detail::TraceFunction& function, const TraceMode& mode, const SourceLocation& location);
std::string capture_output(const std::string& name);
// Throws UserError if `name` is not one of the known names: "unknown input 'x'; available: a, b".
void check_known(const std::string& unknown, const std::string& name,
                 const std::vector<std::string>& known);
void check_captures(const std::vector<std::string>& names, const std::vector<std::string>& known);

class ProgramSession {
 public:
  // Compiles. Call allocate() before any other member.
  ProgramSession(CompileRequest request, std::map<std::string, double> scalars,
                 std::vector<InputSpec> inputs, std::vector<InputSpec> dataset,
                 std::shared_ptr<Device> device, std::string reason, bool check_indices);
  // Allocates the buffers and sets the states that are not shared to their initial values.
  void allocate(SharedMemory shared = {});
  // Replaces a lost device by one of the same kind. Call allocate() next.
  void use(std::shared_ptr<Device> device) { device_ = std::move(device); }
  // True if a run changes states.
  [[nodiscard]] bool changes_states() const { return !compiled_.graph.updates.empty(); }

  [[nodiscard]] const Compiled& compiled() const { return compiled_; }
  [[nodiscard]] Instance& instance() const { return *instance_; }
  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }
  [[nodiscard]] const std::vector<StateEntry>& states() const { return states_; }
  [[nodiscard]] std::map<std::string, double>& scalars() { return scalars_; }

  // Wraps the application's buffer `native` for a buffer of this program. If `native` is null,
  // returns new memory if the buffer is bound, otherwise null. `what` is the name in error
  // messages.
  [[nodiscard]] std::shared_ptr<Memory> memory_for(const std::string& buffer,
                                                   WGPUBufferImpl* native,
                                                   const std::string& what) const;
  // Binds a buffer to `memory`. If `native` is not null, the host no longer uploads to the buffer.
  // Does nothing if `memory` is null.
  void bind(const std::string& buffer, std::shared_ptr<Memory> memory,
            const WGPUBufferImpl* native);
  // Runs steps on the current inputs and times each launch. `next` returns the scalars of a step.
  // Throws UserError for fewer than one step.
  Profile profile(const ProfileOptions& options, const std::function<ScalarValues()>& next);
  [[nodiscard]] bool bound(const std::string& buffer) const { return bound_.contains(buffer); }
  [[nodiscard]] bool all_inputs_bound() const;

  // Throws if the inputs are wrong, before anything is changed.
  void check(const FeedView& feed) const;
  // Checks only that tensors on devices are on this device.
  void check_devices(const FeedView& feed) const;
  // Uploads host values to a set of the input buffers. Device tensors are read in place until the
  // input is set again; they require set 0.
  void upload_inputs(const FeedView& feed, std::size_t set = 0);
  // Makes up to `most` sets of the input buffers; see Instance::make_sets().
  std::size_t make_input_sets(std::size_t most);
  // Restores the program's own memory for all inputs.
  void take_back_inputs();
  // Downloads a dataset entry or an input.
  [[nodiscard]] std::vector<std::uint32_t> download_data(const std::string& name,
                                                         const Type& type) const;
  // Returns false if there is no dataset entry of that name. Throws if the value does not fit it.
  [[nodiscard]] bool check_data(const std::string& name, const HostView& value) const;
  void upload_data(const std::string& name, const HostView& value);
  void mark_given(const std::string& name, bool given) { data_given_[name] = given; }
  [[nodiscard]] bool all_data_given(std::string& missing) const;

  void upload_params(const std::vector<float>& flat);
  [[nodiscard]] std::vector<float> download_floats(const std::string& buffer) const;
  [[nodiscard]] std::vector<std::uint32_t> download_state(const StateEntry& state) const;
  [[nodiscard]] std::vector<std::uint32_t> download_words(const std::string& buffer) const;
  // Prints captures of the last run to stderr.
  void print(const std::vector<std::string>& captures) const;
  // Downloads an output of the last run, by its name in the traced function or capture_output().
  [[nodiscard]] HostTensor download_output(const std::string& name) const;
  // Returns an output of the last run in device memory.
  [[nodiscard]] std::shared_ptr<const detail::DeviceValue> output_value(
      const std::string& name) const;
  void upload_state(const std::string& name, const std::vector<float>& values);
  void upload_state(const std::string& name, const HostTensor& tensor);
  // Throws UserError, beginning with `what`, if the type of a tensor differs from that of the state
  // of the same name. f32 is accepted for f16. Tensors without a state are ignored.
  void check_states(const std::string& what,
                    const std::map<std::string, HostTensor>& tensors) const;
  void reset_state(const StateEntry& state);
  // Sets the initial values of states that are buffers of a model. `buffers` has their names.
  void set_initial(const std::map<const Buffer*, std::string>& buffers);

  // Sets the runtime scalars of one run.
  void set_scalars(ScalarValues& values) const;

  [[nodiscard]] CompileReport report() const;
  // Returns the size of the staging buffers of run_and_exchange().
  [[nodiscard]] std::int64_t exchange_bytes() const;
  // `lines` are added to those about the whole program.
  [[nodiscard]] std::string explain(const std::string& lines = "") const;
  [[nodiscard]] std::string device_text() const;
  [[nodiscard]] DeviceOptions same_device() const;
  [[nodiscard]] const std::string& reason() const { return why_; }

 private:
  template <class T>
  std::vector<T> download(const std::string& buffer) const;
  // Convert between host values and the element type that the device stores.
  void upload(const std::string& buffer, DType dtype, const HostView& value, std::size_t set = 0);
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
  // The own memory of inputs that are bound to device tensors.
  std::map<std::string, std::shared_ptr<Memory>> own_inputs_;
  std::shared_ptr<Device> device_;
  std::string why_;
  PlanOptions plan_;
  std::unique_ptr<Instance> instance_;
};

std::uint32_t float_bits(double value);

}  // namespace tensorgrad::inline TENSORGRAD_ABI
