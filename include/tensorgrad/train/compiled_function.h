// SPDX-License-Identifier: MIT
// Compiled functions: programs that run a model without training it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensorgrad/data/file_source.h"
#include "tensorgrad/train/async.h"
#include "tensorgrad/train/device_tensor.h"
#include "tensorgrad/train/export_options.h"
#include "tensorgrad/train/graph_view.h"
#include "tensorgrad/train/handle.h"
#include "tensorgrad/train/options.h"
#include "tensorgrad/train/profile.h"

namespace tensorgrad::inline TENSORGRAD_ABI {

namespace detail {
class CompiledFunctionImpl;
}

/// A compiled function of a model, without training. Created by compile_function(), or by
/// `Trainer::attach()` to read a trainer's parameters. Movable. Any thread can call it; concurrent
/// calls run sequentially.
class CompiledFunction {
 public:
  /// Wraps an implementation; called by compile_function() and `attach()`.
  explicit CompiledFunction(std::shared_ptr<detail::CompiledFunctionImpl> impl)
      : impl_(std::move(impl), "CompiledFunction") {}

  /// Runs the function and returns its outputs and the requested captures. An output bound to a
  /// buffer is not returned (see bind_output()). If the inputs have a dynamic size that is not
  /// compiled yet, compiles the function for it first. The first run with captures compiles a
  /// second program, whose results can differ in the last bits.
  ///
  /// Throws UserError if an input is missing, unknown or has the wrong type or shape, or if a
  /// requested capture does not exist. Also throws whatever compiling throws.
  NamedTensors run(const FeedView& inputs = {}, const StepOptions& options = {},
                   Loc loc = Loc::current());

  /// Queues run() and returns its future outputs. Details are under Stepper::step_async(). Calls of
  /// a function without a trainer are queued on a separate thread.
  [[nodiscard]] Future<NamedTensors> run_async(const FeedView& inputs = {},
                                               const StepOptions& options = {},
                                               Executor* executor = nullptr,
                                               Loc loc = Loc::current());

  /// Like run(), but returns device tensors and does not wait for the results. They can be passed
  /// to this function, and to any other function or step on the same device. Throws the errors of
  /// run().
  /// ```cpp
  /// for (int i = 0; i < n; ++i) state = step.run_on_device({{"state", state}}).at("output");
  /// ```
  NamedDeviceTensors run_on_device(const FeedView& inputs = {}, const StepOptions& options = {},
                                   Loc loc = Loc::current());

  /// Like run(), but returns errors as part of the result instead of throwing them.
  RunOutcome try_run(const FeedView& inputs = {}, const StepOptions& options = {},
                     Loc loc = Loc::current());

  /// Stops runs and calls of profile() and graph() in other threads that wait for their turn, and
  /// runs that are compiling for a dynamic size or captures. They throw AbortedError. Cancels
  /// asynchronous calls that have not begun. Programs compiled so far are kept. Does not affect
  /// other functions, or the trainer that the function is attached to.
  void abort();

  /// Runs the function ProfileOptions::steps times on the same inputs and returns the median cost
  /// of each launch. The runs take effect like those of run(). Throws the errors of run(), and
  /// UserError if `steps` is less than 1.
  Profile profile(const FeedView& inputs = {}, const ProfileOptions& options = {},
                  Loc loc = Loc::current());

  /// Returns the names of all captures in the function.
  [[nodiscard]] std::vector<std::string> captures() const;

  /// Binds an input or output to a WebGPU buffer of the application's device (see
  /// DeviceOptions::external). Later runs read the input from the buffer, or write the output to
  /// it. A null buffer restores the function's own, zero-filled buffer.
  ///
  /// The buffer needs the usages Storage and CopySrc, and the size of the tensor rounded up to a
  /// multiple of 256 bytes. Elements are row-major. f16 elements are stored as f32 if the device
  /// does not support f16. Indices in a bound input are not checked.
  ///
  /// A bound input must not be passed to run(), and a bound output is not returned by it. If all
  /// outputs are bound, run() returns without waiting. Work that the application submits afterwards
  /// runs after it.
  ///
  /// Throws UserError if the name is unknown, the buffer is too small or lacks a usage, the
  /// function has a dynamic size, or the buffer of an output is bound to another name as well.
  void bind_input(const NameRef& input, WGPUBufferImpl* buffer);
  void bind_output(const NameRef& output, WGPUBufferImpl* buffer);

  /// Runs the function and returns its output. Throws the errors of run(), and UserError unless
  /// run() returns exactly one output.
  HostTensor operator()(const FeedView& inputs = {}, Loc loc = Loc::current());

  /// Queues operator() and returns its future output; see run_async().
  [[nodiscard]] Future<HostTensor> call_async(const FeedView& inputs = {},
                                              Executor* executor = nullptr,
                                              Loc loc = Loc::current());

  /// Returns a function that reads the same parameters and buffers, without a copy, and has its own
  /// working memory. Calls of one function run one after another; those of replicas run
  /// concurrently. On the CPU, calls that find the device's threads busy compute on the thread that
  /// makes them, so that clients with a replica each do not wait. Results are the same. Calls that
  /// set parameters set those of all replicas, and wait for their runs. Recompiles the function,
  /// and its random numbers begin anew.
  ///
  /// Throws UserError if the function is attached to a trainer, or sets a state.
  [[nodiscard]] CompiledFunction replica(Loc loc = Loc::current()) const;

  /// Sets parameters and buffers of the model by name. All parameters are required unless
  /// UploadOptions::partial is set; buffers are always optional. f32 values are rounded for an f16
  /// buffer. Throws UserError if a name is missing or unknown, a shape or dtype does not match, or
  /// the function reads averages (WeightSource::kEma). Nothing is changed if it throws.
  void upload_params(const std::map<std::string, HostTensor>& params,
                     const UploadOptions& options = {}, Loc loc = Loc::current());

  /// Returns copies of the parameters by name, or of the averages if the function reads those.
  [[nodiscard]] std::map<std::string, HostTensor> download_params(Loc loc = Loc::current()) const;

  /// Returns copies of the model's buffers and states by name. Includes those that the function
  /// uses.
  [[nodiscard]] std::map<std::string, HostTensor> download_buffers(Loc loc = Loc::current()) const;

  /// Queues download_params() and returns its future result; see run_async().
  [[nodiscard]] Future<std::map<std::string, HostTensor>> download_params_async(
      Executor* executor = nullptr, Loc loc = Loc::current()) const;

  /// Loads the parameters and states of a checkpoint of TrainerBase::save() or of a file of
  /// TrainerBase::save_weights(), or the parameters of any safetensors file with the same names.
  /// With WeightSource::kEma, loads the averages that the file has instead of those parameters.
  /// Throws IoError if the file cannot be read. Throws UserError naming the file if a parameter or
  /// state is missing, unknown or does not match, or if averages are requested and the file has
  /// none. Nothing is changed if it throws.
  void load_params(const FileSource& source, WeightSource weights = WeightSource::kTrained,
                   Loc loc = Loc::current());

  /// Loads parameters and buffers from a safetensors file of another library, such as PyTorch, or
  /// from a checkpoint, whose optimizer states are ignored. The file must have all of them, unless
  /// ImportOptions::partial is set, and no other tensors. Throws the errors of read_weights(), and
  /// UserError if a tensor is missing, unknown or has the wrong type; the message names the file,
  /// the tensor and both types. Nothing is changed if it throws.
  void import_weights(const FileSource& source, const ImportOptions& options = {},
                      Loc loc = Loc::current());

  /// Exports the function to an ONNX file (opset 18), with the current values of the parameters.
  /// States become constants with their current values. Inputs, outputs and parameters keep their
  /// names and shapes. A dynamic size stays dynamic in the file (see OnnxOptions). Retraces the
  /// function.
  ///
  /// Throws UserError if the function contains random numbers, a CustomOp, a bitcast between f32
  /// and integers, or a value that cannot be computed from a dynamic size. The message names the op
  /// and its source line. Also throws UserError if the function changes a state, or if two inputs,
  /// outputs, parameters or states have the same name. Throws IoError if the file would exceed 2
  /// GiB or cannot be written.
  void export_onnx(const FileSink& sink, const OnnxOptions& options = {},
                   Loc loc = Loc::current()) const;

  /// Exports the function for web pages, with the current values of the parameters and states.
  /// Writes `model.json` (kernels and buffers), `weights.bin`, and a JavaScript module that runs
  /// them, `runner.js` with its types `runner.d.ts`, into the folder. The folder is created if it
  /// does not exist; other files in it are kept. Retraces and compiles the function, for WebGPU's
  /// default limits.
  ///
  /// The page runs the kernels of the WebGPU device. States keep their values from run to run.
  /// Random ops draw the numbers that run() draws with the same seed, counted from the first run.
  /// A dynamic size is fixed: the file has a program for each of WebOptions::sizes.
  ///
  /// Throws UserError if the function contains a CustomOp without WGSL, if WebOptions::sizes are
  /// invalid, or if a name is not UTF-8. Also throws whatever compiling throws. Throws IoError if a
  /// file cannot be written.
  void export_web(const std::string& folder, const WebOptions& options = {},
                  Loc loc = Loc::current()) const;

  /// Returns the files that export_web() writes, by name, for programs without a file system.
  /// Throws the errors of export_web(), except IoError.
  [[nodiscard]] std::map<std::string, std::vector<std::byte>> web_files(
      const WebOptions& options = {}, Loc loc = Loc::current()) const;

  /// Returns the graph of the function. GraphStage::kTraced retraces the function without compiling
  /// it. GraphStage::kSimplified returns the graph of the compiled program, and compiles one first
  /// if the size has none yet. If the inputs have a dynamic size, `dynamic_size` selects it
  /// (default: FunctionOptions::dynamic_size). Throws UserError if a size is given but no input is
  /// dynamic, or if it is less than 1. Also throws whatever the traced function throws.
  [[nodiscard]] GraphView graph(GraphStage stage = GraphStage::kTraced,
                                std::optional<std::int64_t> dynamic_size = {},
                                Loc loc = Loc::current()) const;

  /// Returns statistics of the compiled program; with a dynamic size, of the program for
  /// FunctionOptions::dynamic_size.
  [[nodiscard]] CompileReport report() const;

  /// Returns a text with the launch table (kernels, fused ops, shapes, bytes, source lines) and the
  /// memory plan of the same program.
  [[nodiscard]] std::string explain() const;

  /// Returns the device's kind and name and why it was chosen.
  [[nodiscard]] std::string device() const;

  /// Returns options that compile another function or trainer for the same device.
  [[nodiscard]] DeviceOptions same_device() const;

  /// Returns the dynamic sizes with a compiled program: FunctionOptions::dynamic_size, then the
  /// others, most recently used first. Empty if no input is dynamic.
  [[nodiscard]] std::vector<std::int64_t> compiled_sizes() const;

 private:
  detail::Handle<detail::CompiledFunctionImpl> impl_;
};

}  // namespace tensorgrad::inline TENSORGRAD_ABI
