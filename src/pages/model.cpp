// SPDX-License-Identifier: MIT
#include "pages/model.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/path.h"
#include "codegen/wgsl/join.h"
#include "compile/runtime/element_codec.h"
#include "compile/runtime/host_random.h"
#include "io/atomic_file.h"
#include "io/const_zlib.h"

namespace tensorgrad::web {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormatVersion = 1;
constexpr const char* kManifestFile = "model.json";
constexpr const char* kWeightsFile = "weights.bin";
constexpr std::int64_t kMinBinding = 16;  // vec4<f32>

// Kernels are only read by machines.
std::string without_indentation(const std::string& wgsl) {
  std::string text;
  bool begins = true;
  for (const char c : wgsl) {
    if (begins && (c == ' ' || c == '\n')) continue;
    begins = c == '\n';
    text += c;
  }
  return text;
}

std::string modes_of(const Dispatch& dispatch) {
  std::string modes;
  for (const Binding& binding : dispatch.bindings)
    modes += binding.mode == BindMode::kRead ? 'r' : 'w';
  return modes;
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class ModelWriter {
 public:
  ModelWriter(bool f16, const Contents& contents) : f16_(f16), contents_(contents) {}

  Files write(const ModelText& text, const std::vector<SizedProgram>& programs) {
    Json all = Json::array();
    for (const SizedProgram& sized : programs) all.push_back(program(sized));
    const auto checksum =
        crc32_z(0, reinterpret_cast<const Bytef*>(weights_.data()), weights_.size());
    const Json features = f16_ ? Json::array({"shader-f16"}) : Json::array();
    const Json manifest = {
        {"format", "tensorgrad-web"},
        {"version", kFormatVersion},
        {"producer", "tensorgrad " TENSORGRAD_VERSION_STRING},
        {"name", text.name},
        {"doc", text.doc},
        {"f16", f16_},
        {"features", features},
        {"limits", limits_},
        {"weights", {{"file", kWeightsFile}, {"bytes", weights_.size()}, {"checksum", checksum}}},
        {"buffers", buffers_},
        {"kernels", kernels_},
        {"programs", all}};
    try {
      return {{kManifestFile, bytes_of(manifest.dump())}, {kWeightsFile, std::move(weights_)}};
    } catch (const nlohmann::json::type_error&) {
      throw UserError("export_web: a name or WebOptions::doc is not valid UTF-8");
    }
  }

 private:
  Json program(const SizedProgram& sized) {
    const Program& program = sized.program;
    numbers_.clear();
    for (const BufferDecl& decl : program.buffers) numbers_.push_back(buffer(decl));
    Json json;
    if (sized.size) json["size"] = *sized.size;
    json["inputs"] = Json::array();
    for (const Port& port : program.inputs) {
      Json& input = json["inputs"].emplace_back(describe(port));
      const auto bounds = sized.bounds.find(port.name);
      if (bounds == sized.bounds.end()) continue;
      for (const IndexBound& bound : bounds->second) input["indices"].push_back(index(bound));
    }
    // Outputs are contiguous in the read-back buffer.
    std::int64_t at = 0;
    json["outputs"] = Json::array();
    for (const Port& port : program.outputs) {
      Json& output = json["outputs"].emplace_back(describe(port));
      const DType stored = dtype_in_memory(port.dtype, f16_);
      const auto bytes = static_cast<std::int64_t>(
          stored_bytes(static_cast<std::size_t>(numel(port.shape)), stored));
      output["offset"] = port.offset;
      output["bytes"] = bytes;
      output["at"] = at;
      at += bytes;
    }
    json["bytes"] = at;
    add_scalars(sized, json);
    json["launches"] = Json::array();
    const DeviceLimits limits = portable_device(f16_).limits;
    const WgslOptions options{.max_threads = limits.max_workgroup_invocations,
                              .max_workgroup_bytes = limits.max_workgroup_bytes};
    for (const Dispatch& dispatch :
         write_dispatches(program, options, limits.max_storage_bindings)) {
      json["launches"].push_back(launch(program, dispatch));
    }
    return json;
  }

  [[nodiscard]] Json describe(const Port& port) const {
    return {{"name", port.name},
            {"dtype", to_string(port.dtype)},
            {"shape", port.shape},
            {"buffer", numbers_[static_cast<std::size_t>(port.buffer)]}};
  }

  static Json index(const IndexBound& bound) {
    Json json = {{"size", bound.size}, {"op", bound.op}};
    if (!bound.columns.empty()) {
      json["columns"] = bound.columns;
      json["row"] = bound.row;
    }
    if (bound.except) json["except"] = *bound.except;
    return json;
  }

  // Adds the runtime scalars, and the indices of those that the runner sets.
  static void add_scalars(const SizedProgram& sized, Json& json) {
    const RuntimeScalars row = row_of(sized.program, sized.scalars);
    const std::vector<std::string>& names = sized.program.scalars;
    json["row"] = std::span(row.words).first(names.size() + 2);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == kSeedScalar) json["seed"] = i + 2;
      if (names[i] == kStepScalar) json["step"] = i + 2;
    }
  }

  // Returns the index of a buffer among the buffers of all programs.
  std::size_t buffer(const BufferDecl& decl) {
    const bool constant = decl.kind == BufferKind::kConstant;
    std::string key = decl.name;
    if (constant) {  // numbered separately in each program
      const auto bytes = std::as_bytes(std::span(decl.data));
      key.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      key.insert(0, "constant ");
    }
    const auto [known, fresh] = by_key_.try_emplace(key, buffers_.size());
    if (fresh) {
      buffers_.push_back({{"name", decl.name}, {"bytes", decl.bytes}});
      if (decl.kind == BufferKind::kState) buffers_.back()["state"] = true;
      const auto found = contents_.find(decl.name);
      if (constant) {
        keep(std::as_bytes(std::span(decl.data)));
      } else if (found != contents_.end()) {
        CHECK(static_cast<std::int64_t>(found->second.size()) <= decl.bytes, decl.name);
        keep(found->second);
      }
    }
    Json& bytes = buffers_[known->second]["bytes"];
    bytes = std::max(bytes.get<std::int64_t>(), decl.bytes);
    need("maxBufferSize", bytes.get<std::int64_t>());
    return known->second;
  }

  // Sets the contents of the last buffer. Drops trailing zeros, since buffers are zero-initialized.
  void keep(std::span<const std::byte> bytes) {
    const auto last = std::find_if(bytes.rbegin(), bytes.rend(),
                                   [](std::byte each) { return each != std::byte{}; });
    const auto count = static_cast<std::size_t>(bytes.rend() - last);
    if (count == 0) return;
    const std::size_t padded = (count + kWordBytes - 1) / kWordBytes * kWordBytes;
    buffers_.back()["data"] = {weights_.size(), padded};
    weights_.insert(weights_.end(), bytes.begin(),
                    bytes.begin() + static_cast<std::ptrdiff_t>(count));
    weights_.resize((weights_.size() + kWordBytes - 1) / kWordBytes * kWordBytes);
  }

  Json launch(const Program& program, const Dispatch& dispatch) {
    Json bindings = Json::array();
    for (const Binding& binding : dispatch.bindings) {
      const std::int64_t bytes =
          std::max(kMinBinding, (binding.bytes + 3) / 4 * 4);  // as in the WebGPU backend
      bindings.push_back(
          {numbers_[static_cast<std::size_t>(binding.buffer)], binding.offset, bytes});
      need("maxStorageBufferBindingSize", bytes);
    }
    need("maxStorageBuffersPerShaderStage", static_cast<std::int64_t>(bindings.size()));
    need("maxComputeWorkgroupsPerDimension",
         std::max(dispatch.kernel.groups_x, dispatch.kernel.groups_y));
    return {{"kernel", kernel(program, dispatch)},
            {"groups", {dispatch.kernel.groups_x, dispatch.kernel.groups_y}},
            {"bindings", bindings}};
  }

  // Returns the index of a kernel among the kernels of all programs.
  std::size_t kernel(const Program& program, const Dispatch& dispatch) {
    const WgslKernel& written = dispatch.kernel;
    const auto [known, fresh] = by_body_.try_emplace(written.body, kernels_.size());
    if (!fresh) return known->second;
    std::string name = program.launches[dispatch.first].name;
    if (dispatch.count > 1) name += "_and_" + std::to_string(dispatch.count - 1);
    kernels_.push_back({{"name", name},
                        {"modes", modes_of(dispatch)},
                        {"scalars", written.uses_scalars},
                        {"code", without_indentation(written.body)}});
    need("maxComputeInvocationsPerWorkgroup", written.threads);
    need("maxComputeWorkgroupSizeX", written.threads);
    need("maxComputeWorkgroupStorageSize", written.workgroup_bytes);
    return known->second;
  }

  void need(const char* limit, std::int64_t value) {
    if (!limits_.contains(limit) || limits_[limit].get<std::int64_t>() < value)
      limits_[limit] = value;
  }

  const bool f16_;
  const Contents& contents_;
  Json buffers_ = Json::array(), kernels_ = Json::array(), limits_ = Json::object();
  std::vector<std::byte> weights_;
  std::map<std::string, std::size_t> by_key_, by_body_;
  std::vector<std::size_t> numbers_;  // of the program's buffers, among those of all programs
};

}  // namespace

DeviceInfo portable_device(bool f16) {
  DeviceInfo device;
  device.backend = "webgpu";
  device.name = "a browser";
  device.joins_launches = true;
  device.stores_f16 = f16;
  return device;
}

Files make_files(const ModelText& text, bool f16, const std::vector<SizedProgram>& programs,
                 const Contents& contents) {
  Files files = ModelWriter(f16, contents).write(text, programs);
  files["runner.js"] = bytes_of(runner_script());
  files["runner.d.ts"] = bytes_of(runner_types());
  return files;
}

void write_files(const std::string& folder, const Files& files) {
  const std::filesystem::path to = utf8_path(folder);
  std::error_code error;
  std::filesystem::create_directories(to, error);
  if (error) throw IoError(folder + ": cannot create the folder: " + error.message());
  const auto write = [&](const std::string& name) {
    io::AtomicFile file(utf8_text(to / utf8_path(name)));
    file.write(files.at(name));
    file.commit();
  };
  for (const auto& [name, bytes] : files) {
    if (name != kManifestFile) write(name);
  }
  write(kManifestFile);  // last, since it refers to the weights
}

}  // namespace tensorgrad::web
