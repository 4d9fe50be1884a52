// SPDX-License-Identifier: MIT
#include "train/program_session.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "base/numbers.h"
#include "base/text.h"
#include "compile/debug/dump.h"
#include "compile/debug/profile.h"
#include "compile/runtime/element_codec.h"
#include "ops/registry.h"
#include "tensorgrad/ops/autocast.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

std::vector<StateEntry> states_of(const Graph& graph) {
  std::vector<StateEntry> states;
  for (const Node& node : graph.nodes) {
    if (node.op != &ops::state) continue;
    states.push_back({node.attrs.text("name"), node.type, node.attrs.number("init"), {}});
  }
  return states;
}

// True for inputs and dataset entries, which no launch writes.
bool is_input(const std::string& buffer) {
  return buffer.starts_with(input_buffer("")) || buffer.starts_with(data_buffer(""));
}

}  // namespace

std::uint32_t float_bits(double value) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

std::unique_ptr<TracedFunction> trace_function(
    const ParameterTable& parameters, const std::vector<InputSpec>& inputs,
    const std::vector<InputSpec>& dataset, std::int64_t batch,
    const detail::TraceFunction& function, const TraceMode& mode, const SourceLocation& location) {
  auto traced = std::make_unique<TracedFunction>();
  traced->trace.training = mode.training;
  traced->trace.exported = mode.exported;
  traced->trace.any_size = mode.any_size;
  traced->trace.random_ops = mode.first_stream;
  const TraceScope scope(traced->trace);
  parameters.declare(traced->trace, mode.weights);
  const Inputs declared = declare_inputs(traced->trace, inputs, dataset, batch, location);
  {
    const Autocast autocast(mode.autocast);
    traced->outputs = function(declared);
  }
  for (const auto& [name, tensor] : traced->outputs) {
    traced->trace.graph.outputs.push_back(
        {name, traced->trace.value(tensor, "output '" + name + "'", location)});
  }
  if (!mode.captures) return traced;
  for (const auto& [name, id] : traced->trace.captures)
    traced->trace.graph.outputs.push_back({capture_output(name), id});
  return traced;
}

std::string capture_output(const std::string& name) { return "capture " + name; }

void check_known(const std::string& unknown, const std::string& name,
                 const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  std::string all;
  for (const std::string& each : known) all += (all.empty() ? "" : ", ") + each;
  throw UserError(unknown + " '" + name + "'; available: " + (all.empty() ? "none" : all));
}

void check_captures(const std::vector<std::string>& names, const std::vector<std::string>& known) {
  for (const std::string& name : names) check_known("unknown capture", name, known);
}

ProgramSession::ProgramSession(CompileRequest request, std::map<std::string, double> scalars,
                               std::vector<InputSpec> inputs, std::vector<InputSpec> dataset,
                               std::shared_ptr<Device> device, std::string reason,
                               bool check_indices)
    : scalars_(std::move(scalars)),
      inputs_(std::move(inputs)),
      dataset_(std::move(dataset)),
      device_(std::move(device)),
      why_(std::move(reason)) {
  compile_for(device_->info(), request);
  plan_ = request.plan;
  compiled_ = compile_graph(std::move(request));
  if (check_indices) bounds_ = index_bounds(compiled_.graph);
  states_ = states_of(compiled_.graph);
  for (const InputSpec& spec : inputs_) input_buffers_.push_back(input_buffer(spec.name));
  for (const InputSpec& spec : dataset_) data_given_[spec.name] = false;
}

void ProgramSession::allocate(SharedMemory shared) {
  instance_ = std::make_unique<Instance>(device_, compiled_.program, std::move(shared));
  own_inputs_.clear();
  instance_->inspect(compiled_, plan_);
  for (const StateEntry& state : states_) {
    if (!instance_->shares(state_buffer(state.name))) reset_state(state);
  }
}

std::shared_ptr<Memory> ProgramSession::memory_for(const std::string& buffer,
                                                   WGPUBufferImpl* native,
                                                   const std::string& what) const {
  if (native == nullptr && !bound(buffer)) return nullptr;
  const std::int64_t bytes = instance_->buffer_bytes(buffer);
  if (native == nullptr) return std::make_shared<Memory>(device_, bytes, buffer);
  for (const auto& [other, theirs] : bound_) {
    const bool read = is_input(other) && is_input(buffer);
    if (theirs == native && other != buffer && !read) {
      throw UserError(what + ": the buffer is already bound to \"" + other +
                      "\"; a written buffer can be bound only once");
    }
  }
  return std::make_shared<Memory>(device_, native, bytes, what);
}

void ProgramSession::bind(const std::string& buffer, std::shared_ptr<Memory> memory,
                          const WGPUBufferImpl* native) {
  if (memory == nullptr) return;
  instance_->bind(buffer, std::move(memory));
  own_inputs_.erase(buffer);
  bound_.erase(buffer);
  if (native != nullptr) bound_[buffer] = native;
}

bool ProgramSession::all_inputs_bound() const {
  return std::all_of(inputs_.begin(), inputs_.end(),
                     [&](const InputSpec& spec) { return bound(input_buffer(spec.name)); });
}

void ProgramSession::check_devices(const FeedView& feed) const {
  for (const auto& [name, value] : feed) {
    if (!value.on_device || value.on_device->memory->device() == device_) continue;
    if (!value.on_device->memory->device()->successor.expired())
      throw DeviceError("input '" + name + "': the tensor was lost with its device");
    throw UserError("input '" + name + "': the tensor is on another device, " +
                    value.on_device->memory->device()->info().name +
                    "; use same_device() to compile both for one device");
  }
}

void ProgramSession::check(const FeedView& feed) const {
  for (const InputSpec& spec : dataset_) {
    if (feed.contains(spec.name))
      throw UserError("'" + spec.name + "' is an entry of the dataset; each step draws its rows");
  }
  check_devices(feed);
  if (bound_.empty()) return check_feed(inputs_, feed, bounds_);
  std::vector<InputSpec> given;
  for (const InputSpec& spec : inputs_) {
    if (!bound(input_buffer(spec.name))) {
      given.push_back(spec);
    } else if (feed.contains(spec.name)) {
      throw UserError("input '" + spec.name + "' is bound to an application buffer");
    }
  }
  check_feed(given, feed, bounds_);
}

void ProgramSession::upload(const std::string& buffer, DType dtype, const HostView& value,
                            std::size_t set) {
  const std::size_t bytes = value.count * element_bytes(value.dtype);
  const DType stored = dtype_in_memory(dtype, plan_.stores_f16);
  if (value.dtype == dtype && dtype == stored && dtype != DType::kBool && bytes % kWordBytes == 0) {
    instance_->upload(buffer, 0, {static_cast<const std::byte*>(value.data), bytes}, set);
    return;
  }
  std::vector<std::uint32_t> words = encode_elements(value);
  if (dtype == DType::kBool) {
    for (std::uint32_t& word : words) word = word != 0 ? 1 : 0;  // kernels rely on 0 and 1
  }
  if (value.dtype != dtype) {
    for (std::uint32_t& word : words)
      word = encode_element(decode_element(word, value.dtype), dtype);
  }
  instance_->upload(buffer, 0, to_stored(words, stored), set);
}

std::vector<std::byte> ProgramSession::download_stored(const std::string& buffer,
                                                       std::int64_t offset,
                                                       const Type& type) const {
  const auto count = static_cast<std::size_t>(numel(type.shape));
  std::vector<std::byte> bytes(stored_bytes(count, dtype_in_memory(type.dtype, plan_.stores_f16)));
  instance_->download(buffer, offset, bytes);
  return bytes;
}

std::size_t ProgramSession::make_input_sets(std::size_t most) {
  take_back_inputs();
  std::vector<std::string> own;
  for (const std::string& buffer : input_buffers_) {
    if (!bound(buffer)) own.push_back(buffer);
  }
  return instance_->make_sets(own, most);
}

void ProgramSession::upload_inputs(const FeedView& feed, std::size_t set) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const InputSpec& spec = inputs_[i];
    const auto given = feed.find(spec.name);
    if (given == feed.end()) continue;
    const std::string& buffer = input_buffers_[i];
    if (given->second.on_device) {
      own_inputs_.emplace(buffer, instance_->memory(buffer));
      instance_->bind(buffer, given->second.on_device->memory);
    } else {
      take_back_input(buffer);
      upload(buffer, spec.dtype, given->second, set);
    }
  }
}

void ProgramSession::take_back_input(const std::string& buffer) {
  const auto own = own_inputs_.find(buffer);
  if (own == own_inputs_.end()) return;
  instance_->bind(buffer, own->second);
  own_inputs_.erase(own);
}

void ProgramSession::take_back_inputs() {
  for (const std::string& buffer : input_buffers_) take_back_input(buffer);
}

bool ProgramSession::check_data(const std::string& name, const HostView& value) const {
  const auto spec = std::find_if(dataset_.begin(), dataset_.end(),
                                 [&](const InputSpec& each) { return each.name == name; });
  if (spec == dataset_.end()) return false;
  check_value(*spec, value, bounds_);
  return true;
}

void ProgramSession::upload_data(const std::string& name, const HostView& value) {
  for (const InputSpec& spec : dataset_) {
    if (spec.name == name) return upload(data_buffer(name), spec.dtype, value);
  }
  upload(data_buffer(name), value.dtype, value);  // internal: the order of the rows
}

std::vector<std::uint32_t> ProgramSession::download_data(const std::string& name,
                                                         const Type& type) const {
  const bool input = !instance_->has_buffer(data_buffer(name));
  return from_stored(download_stored(input ? input_buffer(name) : data_buffer(name), 0, type),
                     static_cast<std::size_t>(numel(type.shape)),
                     dtype_in_memory(type.dtype, plan_.stores_f16));
}

bool ProgramSession::all_data_given(std::string& missing) const {
  for (const auto& [name, given] : data_given_) {
    if (given) continue;
    missing = name;
    return false;
  }
  return true;
}

void ProgramSession::upload_params(const std::vector<float>& flat) {
  if (!flat.empty() && instance_->has_buffer("params")) {
    instance_->upload("params", 0, std::as_bytes(std::span(flat)));
  }
}

template <class T>
std::vector<T> ProgramSession::download(const std::string& buffer) const {
  std::vector<T> flat(static_cast<size_t>(instance_->buffer_bytes(buffer)) / sizeof(T));
  instance_->download(buffer, 0, std::as_writable_bytes(std::span(flat)));
  return flat;
}

std::vector<float> ProgramSession::download_floats(const std::string& buffer) const {
  return download<float>(buffer);
}

std::vector<std::uint32_t> ProgramSession::download_words(const std::string& buffer) const {
  return download<std::uint32_t>(buffer);
}

std::vector<std::uint32_t> ProgramSession::download_state(const StateEntry& state) const {
  return from_stored(download_stored(state_buffer(state.name), 0, state.type),
                     static_cast<std::size_t>(numel(state.type.shape)),
                     dtype_in_memory(state.type.dtype, plan_.stores_f16));
}

const Port& ProgramSession::output(const std::string& name) const {
  for (const Port& port : compiled_.program.outputs) {
    if (port.name == name) return port;
  }
  UNREACHABLE("no output '" + name + "'");
}

void ProgramSession::print(const std::vector<std::string>& captures) const {
  for (const std::string& name : captures) {
    const std::string line = name + " = " + text_of(download_output(capture_output(name))) + "\n";
    std::fputs(line.c_str(), stderr);  // written immediately
  }
}

HostTensor ProgramSession::download_output(const std::string& name) const {
  const Port& port = output(name);
  const Type type{port.dtype, port.shape};
  return host_tensor(type, dtype_in_memory(port.dtype, plan_.stores_f16),
                     download_stored(output_buffer(name), port.offset, type));
}

std::shared_ptr<const detail::DeviceValue> ProgramSession::output_value(
    const std::string& name) const {
  const Port& port = output(name);
  CHECK(port.offset == 0, "output '" + name + "' is not the whole of its buffer");
  return std::make_shared<const detail::DeviceValue>(Type{port.dtype, port.shape},
                                                     dtype_in_memory(port.dtype, plan_.stores_f16),
                                                     instance_->memory(output_buffer(name)));
}

void ProgramSession::upload_state(const std::string& name, const std::vector<float>& values) {
  instance_->upload(state_buffer(name), 0, std::as_bytes(std::span(values)));
}

void ProgramSession::upload_state(const std::string& name, const HostTensor& tensor) {
  for (const StateEntry& state : states_) {
    if (state.name == name) upload(state_buffer(name), state.type.dtype, tensor);
  }
}

void ProgramSession::check_states(const std::string& what,
                                  const std::map<std::string, HostTensor>& tensors) const {
  for (const StateEntry& state : states_) {
    const auto given = tensors.find(state.name);
    if (given == tensors.end()) continue;
    const DType dtype = given->second.dtype;
    const bool fits = dtype == state.type.dtype || (dtype == f32 && state.type.dtype == f16);
    if (fits && given->second.shape == state.type.shape) continue;
    throw UserError(what + ": buffer '" + state.name + "' is " + to_string(state.type) + ", got " +
                    to_string(Type{dtype, given->second.shape}));
  }
}

void ProgramSession::set_initial(const std::map<const Buffer*, std::string>& buffers) {
  for (const auto& [buffer, name] : buffers) {
    if (buffer->values() == nullptr) continue;
    for (StateEntry& state : states_) {
      if (state.name == name) state.values = buffer->values();
    }
  }
}

void ProgramSession::reset_state(const StateEntry& state) {
  if (!device_->info().computes) return;
  if (state.values != nullptr)
    return upload(state_buffer(state.name), state.type.dtype, *state.values);
  if (state.type.dtype == DType::kF16) {
    const std::vector<float> values(static_cast<std::size_t>(numel(state.type.shape)),
                                    static_cast<float>(state.initial));
    return upload(state_buffer(state.name), DType::kF16, values);
  }
  std::uint32_t bits = float_bits(state.initial);
  if (state.type.dtype != DType::kF32) {
    bits = static_cast<std::uint32_t>(static_cast<std::int64_t>(state.initial));
  }
  const std::vector<std::uint32_t> words(static_cast<size_t>(numel(state.type.shape)), bits);
  instance_->upload(state_buffer(state.name), 0, std::as_bytes(std::span(words)));
}

Profile ProgramSession::profile(const ProfileOptions& options,
                                const std::function<ScalarValues()>& next) {
  if (options.steps < 1) {
    throw UserError("profile: expected at least 1 step, got " + std::to_string(options.steps));
  }
  DevicePeaks peaks;
  if (options.roofline) peaks = measure_peaks(device_);
  std::vector<std::vector<LaunchTiming>> runs;
  for (int i = 0; i < options.steps; ++i) runs.push_back(instance_->profile(next()));
  Profile profile = instance_->profile_of_runs(runs);
  profile.peaks = std::move(peaks);
  return profile;
}

void ProgramSession::set_scalars(ScalarValues& values) const {
  for (const auto& [name, value] : scalars_) values[name] = float_bits(value);
}

std::int64_t ProgramSession::exchange_bytes() const {
  if (!plan_.buckets.empty()) {  // of run_sharded()
    std::int64_t largest = 0;
    for (const ParameterBucket& bucket : plan_.buckets)
      largest = std::max(largest, bucket.elements);
    return (plan_.buckets.back().end() / plan_.shards + largest) *
           static_cast<std::int64_t>(sizeof(float));
  }
  if (plan_.exchange.empty() || !device_->info().asynchronous) return 0;
  const std::int64_t elements = numel(output(plan_.exchange).shape);
  return 2 * elements * static_cast<std::int64_t>(sizeof(float));  // to the host and back
}

CompileReport ProgramSession::report() const {
  CompileReport report;
  report.milliseconds = compiled_.milliseconds;
  report.launches = static_cast<int>(count_dispatches(compiled_.program));
  report.peak_bytes = compiled_.program.peak_bytes;
  report.exchange_bytes = exchange_bytes();
  for (const PassProfile& pass : compiled_.passes)
    report.passes.emplace_back(pass.name, pass.milliseconds);
  return report;
}

std::string ProgramSession::device_text() const {
  const DeviceInfo& info = device_->info();
  return info.backend + " (" + info.name + "); " + why_;
}

DeviceOptions ProgramSession::same_device() const {
  DeviceOptions options;
  options.kind = device_->info().backend;
  options.opened = device_;
  return options;
}

namespace {

void explain_notes(const std::vector<FuseNote>& notes, TextBuilder& out) {
  if (!notes.empty()) out << "\nbounds on the size of kernels\n";
  for (const FuseNote& note : notes) {
    out << "    " << note.op << ": " << note.count << (note.count == 1 ? " value" : " values")
        << ", as " << note.bound << '\n';
    if (note.location.line > 0) out << "    at " << to_string(note.location) << '\n';
  }
}

void explain_passes(const Compiled& compiled, TextBuilder& out) {
  out << "\ncompile   " << number_text(compiled.milliseconds) << " ms\n";
  for (std::size_t i = 0; i < compiled.passes.size(); ++i) {
    const PassProfile& pass = compiled.passes[i];
    const PassCost& cost = compiled.costs[i];
    out << "    " << pass.name << "  " << number_text(pass.milliseconds) << " ms, " << cost.visits
        << " visits, " << cost.left << (pass.name == "plan" ? " launches\n" : " nodes\n");
  }
}

}  // namespace

std::string ProgramSession::explain(const std::string& lines) const {
  const Program& program = compiled_.program;
  TextBuilder out;
  out << "device    " << device_text() << "\nlaunches  " << count_dispatches(program)
      << "\npeak      " << program.peak_bytes << " bytes (" << bytes_text(program.peak_bytes)
      << ") in " << program.buffers.size() << " buffers\n";
  if (!program.host_steps.empty()) {
    const auto gathers =
        std::count_if(program.host_steps.begin(), program.host_steps.end(),
                      [](const auto& step) { return step.kind == HostStep::Kind::kGather; });
    out << "exchange  " << plan_.buckets.size() << " buckets in " << gathers
        << " gathers of parameters, " << exchange_bytes() << " bytes on the host ("
        << bytes_text(exchange_bytes()) << ")\n";
  } else if (!plan_.exchange.empty()) {
    out << "exchange  " << exchange_ranges(program, plan_.exchange).size() << " buckets, "
        << exchange_bytes() << " bytes on the host (" << bytes_text(exchange_bytes()) << ")\n";
  }
  out << lines << '\n';
  int number = 0;
  for (const Launch& launch : program.launches) {
    out << (launch.concurrent       ? "  concurrent "
            : launch.fused_sequence ? "  fused "
                                    : "launch ")
        << number++ << "  " << launch.name << "  moves " << bytes_text(launch.bytes_moved);
    if (launch.flops > 0) {
      out << ", " << launch.flops << " operations ("
          << intensity_text(launch.flops, launch.bytes_moved) << " per byte)";
    }
    out << '\n';
    for (const std::string& op : launch.ops) out << "    " << op << '\n';
    for (const SourceLocation& location : launch.locations)
      out << "    at " << to_string(location) << '\n';
  }
  out << "\nmemory\n";
  for (const BufferDecl& buffer : program.buffers) {
    out << "    " << bytes_text(buffer.bytes) << "  " << buffer.name << '\n';
  }
  explain_notes(compiled_.notes, out);
  explain_passes(compiled_, out);
  return out.str();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
