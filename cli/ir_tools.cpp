// SPDX-License-Identifier: MIT
// tg env, opt, run, bisect: what the debug ladder offers beside the library's own switches.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "commands.h"
#include "tensorgrad/debug.h"
#include "tensorgrad/error.h"
#include "tensorgrad/io.h"

namespace tensorgrad::cli {
namespace {

constexpr std::size_t kShown = 8;

std::string text_of(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

DType dtype_of(const std::string& path, const std::string& name, const std::string& stored) {
  if (stored == "F32") return f32;
  if (stored == "I32") return i32;
  if (stored == "U32") return u32;
  throw UserError(path + ": tensor '" + name + "': F32, I32 or U32 expected, got " + stored);
}

ir::LeafOptions leaf_options(const IrArguments& arguments) {
  ir::LeafOptions options;
  options.seed = arguments.seed;
  if (arguments.inputs.empty()) return options;
  for (const auto& [name, tensor] : read_safetensors(arguments.inputs).tensors) {
    options.given[name] = {dtype_of(arguments.inputs, name, tensor.dtype), tensor.shape,
                           tensor.data};
  }
  return options;
}

std::vector<double> numbers(const HostTensor& tensor) {
  std::vector<double> values;
  if (tensor.dtype == f32) {
    for (const float value : tensor.floats()) values.push_back(value);
  } else {
    for (const std::int32_t value : tensor.ints()) {
      values.push_back(tensor.dtype == u32 ? static_cast<std::uint32_t>(value) : value);
    }
  }
  return values;
}

std::string summary(const std::string& name, const HostTensor& tensor) {
  const std::vector<double> values = numbers(tensor);
  double least = INFINITY, most = -INFINITY, sum = 0;
  std::size_t finite = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
    ++finite;
  }
  std::string text =
      fmt::format("{}  {}{}", name, to_string(tensor.dtype), to_string(tensor.shape));
  if (finite > 0) {
    text += fmt::format("  min {:.6g}  max {:.6g}  mean {:.6g}", least, most,
                        sum / static_cast<double>(finite));
  }
  if (finite < values.size()) {
    text += fmt::format("  ({} of {} are not finite)", values.size() - finite, values.size());
  }
  text += "\n   ";
  for (std::size_t i = 0; i < std::min(kShown, values.size()); ++i) {
    text += fmt::format(" {:.6g}", values[i]);
  }
  return text + (values.size() > kShown ? " ...\n" : "\n");
}

StoredTensor stored(const HostTensor& tensor) {
  if (tensor.dtype != boolean) {
    const char* name = tensor.dtype == f32 ? "F32" : tensor.dtype == i32 ? "I32" : "U32";
    return {name, tensor.shape, tensor.bytes};
  }
  StoredTensor out{"BOOL", tensor.shape, {}};  // a byte each in a file, a word on a device
  for (const std::int32_t value : tensor.ints()) out.data.push_back(std::byte(value != 0));
  return out;
}

}  // namespace

int print_environment() {
  std::size_t width = 0;
  for (const EnvironmentSwitch& each : environment()) width = std::max(width, each.name.size());
  for (const EnvironmentSwitch& each : environment()) {
    fmt::print("{:<{}}  {}\n    {}\n", each.name, width,
               each.value.empty() ? "(not set)" : each.value, each.meaning);
  }
  return 0;
}

int optimize_ir(const OptArguments& arguments) {
  const std::vector<std::string> names = arguments.passes.empty() ? ir::passes() : arguments.passes;
  const std::string text = ir::optimize(text_of(arguments.file), arguments.file, names);
  if (arguments.out.empty()) {
    fmt::print("{}", text);
  } else {
    write_file_atomically(arguments.out, text);
  }
  return 0;
}

int run_ir(const IrArguments& arguments) {
  const ir::RunResult result =
      ir::run(text_of(arguments.file), arguments.file, leaf_options(arguments), arguments.device);
  fmt::print("device  {}\n", result.device);
  StoredFile file;
  for (const auto& [name, tensor] : result.values) {
    fmt::print("{}", summary(name, tensor));
    if (!arguments.out.empty()) file.tensors[name] = stored(tensor);
  }
  if (!arguments.out.empty()) write_safetensors(arguments.out, file);
  return 0;
}

int bisect_ir(const BisectArguments& arguments) {
  DeviceOptions a = arguments.ir.device, b = arguments.ir.device;
  a.kind = arguments.a;
  b.kind = arguments.b;
  const ir::BisectResult result = ir::bisect(text_of(arguments.ir.file), arguments.ir.file,
                                             leaf_options(arguments.ir), a, b, arguments.tolerance);
  fmt::print("a  {}\nb  {}\n", result.a, result.b);
  for (const std::string& line : result.checked) fmt::print("{}\n", line);
  if (result.pass.empty()) {
    fmt::print("no difference\n");
    return 0;
  }
  fmt::print("\nfirst difference: {}\n{}\n", result.pass, result.what);
  if (result.site.known()) fmt::print("  at {}\n", to_string(result.site));
  return 1;
}

}  // namespace tensorgrad::cli
