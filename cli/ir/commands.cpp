// SPDX-License-Identifier: MIT
// tg env, opt, run and bisect: debugging tools in addition to the environment variables.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/data/safetensors.h"
#include "tensorgrad/error.h"
#include "tensorgrad/train/debug.h"
#include "text.h"

namespace tensorgrad::cli {
namespace {

constexpr std::size_t kShownNames = 8;

std::string text_of(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

ir::LeafOptions leaf_options(const IrArguments& arguments) {
  ir::LeafOptions options;
  options.seed = arguments.seed;
  options.max_bytes = arguments.max_bytes;
  if (arguments.inputs.empty()) return options;
  for (const auto& [name, tensor] : read_safetensors(arguments.inputs).tensors) {
    options.values[name] = {element_type(arguments.inputs, name, tensor), tensor.shape,
                            tensor.data};
  }
  return options;
}

StoredTensor stored(const HostTensor& tensor) {
  StoredTensor out{std::string(stored_dtype(tensor.dtype)), tensor.shape, tensor.bytes};
  if (tensor.dtype != boolean) return out;
  out.data.clear();  // booleans are bytes in files and words on devices
  for (const std::int32_t value : tensor.ints()) out.data.push_back(std::byte(value != 0));
  return out;
}

std::string first_values(const HostTensor& tensor) {
  std::string text;
  const std::size_t shown =
      std::min(kShownNames, tensor.bytes.size() / element_bytes(tensor.dtype));
  if (tensor.dtype == f32 || tensor.dtype == f16) {
    const std::vector<float> values = tensor.floats();
    for (std::size_t i = 0; i < shown; ++i) text += fmt::format(" {:.6g}", values[i]);
  } else {
    const std::vector<std::int32_t> values = tensor.ints();
    for (std::size_t i = 0; i < shown; ++i) {
      text += tensor.dtype == u32 ? fmt::format(" {}", static_cast<std::uint32_t>(values[i]))
                                  : fmt::format(" {}", values[i]);
    }
  }
  return text + (shown < tensor.bytes.size() / element_bytes(tensor.dtype) ? " ..." : "");
}

std::string summary(const std::string& name, const HostTensor& tensor) {
  const StoredRange range = stored_range(stored(tensor));
  std::string text =
      fmt::format("{}  {}{}", name, to_string(tensor.dtype), to_string(tensor.shape));
  if (range.finite > 0) {
    text += fmt::format("  min {:.6g}  max {:.6g}  mean {:.6g}", range.min, range.max, range.mean);
  }
  if (range.finite < range.count) {
    text += fmt::format("  ({} of {} are not finite)", range.count - range.finite, range.count);
  }
  return text + "\n   " + first_values(tensor) + "\n";
}

// Prints the tensors of --inputs that the graph does not use.
void print_ignored(const IrArguments& arguments, const std::vector<std::string>& names) {
  if (names.empty()) return;
  const std::size_t shown = std::min(kShownNames, names.size());
  std::string text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  fmt::print(stderr, "{}: ignored, not in the graph: {}\n", arguments.inputs, printable(text));
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
  print_ignored(arguments, result.ignored);
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
  print_ignored(arguments.ir, result.ignored);
  fmt::print("a  {}\nb  {}\n", result.a, result.b);
  for (const std::string& line : result.checked) fmt::print("{}\n", line);
  if (result.pass.empty()) {
    fmt::print("no difference\n");
    return 0;
  }
  fmt::print("\nfirst difference: {}\n{}\n", result.pass, result.difference);
  if (result.location.known()) fmt::print("  at {}\n", to_string(result.location));
  return 1;
}

}  // namespace tensorgrad::cli
