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
#include "base/json_writer.h"
#include "base/path.h"
#include "codegen/wgsl/join.h"
#include "compile/runtime/element_codec.h"
#include "compile/runtime/host_random.h"
#include "io/atomic_file.h"
#include "io/const_zlib.h"

namespace tensorgrad::web {
namespace {

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

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

class ModelWriter {
 public:
  ModelWriter(bool f16, const Contents& contents) : f16_(f16), contents_(contents) {}

  Files write(const ModelText& text, const std::vector<SizedProgram>& programs) {
    JsonWriter all;
    all.begin_array();
    for (const SizedProgram& sized : programs) write_program(sized, all);
    all.end_array();
    kernels_.end_array();
    JsonWriter manifest;
    manifest.begin_object().member("format", "tensorgrad-web").member("version", kFormatVersion);
    manifest.member("producer", "tensorgrad " TENSORGRAD_VERSION_STRING);
    manifest.member("name", text.name).member("doc", text.doc).member("f16", f16_);
    manifest.key("features").begin_array();
    if (f16_) manifest.value("shader-f16");
    manifest.end_array().key("limits").begin_object();
    for (const auto& [limit, value] : limits_) manifest.member(limit, value);
    manifest.end_object().key("weights").begin_object();
    manifest.member("file", kWeightsFile).member("bytes", weights_.size());
    manifest.member("checksum",
                    crc32_z(0, reinterpret_cast<const Bytef*>(weights_.data()), weights_.size()));
    manifest.end_object().key("buffers").begin_array();
    for (const StoredBuffer& each : buffers_) write_buffer(each, manifest);
    manifest.end_array().key("kernels").json(kernels_);
    manifest.key("programs").json(all).end_object();
    return {{kManifestFile, bytes_of(manifest.text())}, {kWeightsFile, std::move(weights_)}};
  }

 private:
  struct StoredBuffer {
    std::string name;
    std::int64_t bytes = 0;
    bool state = false;
    std::size_t data = 0, data_bytes = 0;  // range of the weights; empty: all zeros
  };

  static void write_buffer(const StoredBuffer& buffer, JsonWriter& json) {
    json.begin_object().member("name", buffer.name).member("bytes", buffer.bytes);
    if (buffer.state) json.member("state", true);
    if (buffer.data_bytes > 0) json.member("data", std::array{buffer.data, buffer.data_bytes});
    json.end_object();
  }

  void write_program(const SizedProgram& sized, JsonWriter& json) {
    const Program& program = sized.program;
    numbers_.clear();
    for (const BufferDecl& decl : program.buffers) numbers_.push_back(buffer(decl));
    json.begin_object();
    if (sized.size) json.member("size", *sized.size);
    json.key("inputs").begin_array();
    for (const Port& port : program.inputs) {
      begin_port(port, json);
      const auto bounds = sized.bounds.find(port.name);
      if (bounds != sized.bounds.end() && !bounds->second.empty()) {
        json.key("indices").begin_array();
        for (const IndexBound& bound : bounds->second) write_index(bound, json);
        json.end_array();
      }
      json.end_object();
    }
    json.end_array();
    // Outputs are contiguous in the read-back buffer.
    std::int64_t at = 0;
    json.key("outputs").begin_array();
    for (const Port& port : program.outputs) {
      const DType stored = dtype_in_memory(port.dtype, f16_);
      const auto bytes = static_cast<std::int64_t>(
          stored_bytes(static_cast<std::size_t>(numel(port.shape)), stored));
      begin_port(port, json);
      json.member("offset", port.offset).member("bytes", bytes).member("at", at).end_object();
      at += bytes;
    }
    json.end_array().member("bytes", at);
    write_scalars(sized, json);
    json.key("launches").begin_array();
    const DeviceLimits limits = portable_device(f16_).limits;
    const WgslOptions options{.max_threads = limits.max_workgroup_invocations,
                              .max_workgroup_bytes = limits.max_workgroup_bytes};
    for (const Dispatch& dispatch : write_dispatches(program, options, limits.max_storage_bindings))
      write_launch(program, dispatch, json);
    json.end_array().end_object();
  }

  void begin_port(const Port& port, JsonWriter& json) const {
    json.begin_object().member("name", port.name).member("dtype", to_string(port.dtype));
    json.member("shape", port.shape);
    json.member("buffer", numbers_[static_cast<std::size_t>(port.buffer)]);
  }

  static void write_index(const IndexBound& bound, JsonWriter& json) {
    json.begin_object().member("size", bound.size).member("op", bound.op);
    if (!bound.columns.empty()) json.member("columns", bound.columns).member("row", bound.row);
    if (bound.except) json.member("except", *bound.except);
    json.end_object();
  }

  // Writes the runtime scalars, and the indices of those that the runner sets.
  static void write_scalars(const SizedProgram& sized, JsonWriter& json) {
    const RuntimeScalars row = make_runtime_scalars(sized.program, sized.scalars);
    const std::vector<std::string>& names = sized.program.scalars;
    json.member("row", std::span(row.words).first(names.size() + 2));
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == kSeedScalar) json.member("seed", i + 2);
      if (names[i] == kStepScalar) json.member("step", i + 2);
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
      buffers_.push_back({decl.name, decl.bytes, decl.kind == BufferKind::kState});
      const auto found = contents_.find(decl.name);
      if (constant) {
        keep(std::as_bytes(std::span(decl.data)));
      } else if (found != contents_.end()) {
        CHECK(static_cast<std::int64_t>(found->second.size()) <= decl.bytes, decl.name);
        keep(found->second);
      }
    }
    std::int64_t& bytes = buffers_[known->second].bytes;
    bytes = std::max(bytes, decl.bytes);
    need("maxBufferSize", bytes);
    return known->second;
  }

  // Sets the contents of the last buffer. Drops trailing zeros, since buffers are zero-initialized.
  void keep(std::span<const std::byte> bytes) {
    const auto last = std::find_if(bytes.rbegin(), bytes.rend(),
                                   [](std::byte each) { return each != std::byte{}; });
    const auto count = static_cast<std::size_t>(bytes.rend() - last);
    if (count == 0) return;
    const std::size_t padded = (count + kWordBytes - 1) / kWordBytes * kWordBytes;
    buffers_.back().data = weights_.size();
    buffers_.back().data_bytes = padded;
    weights_.insert(weights_.end(), bytes.begin(),
                    bytes.begin() + static_cast<std::ptrdiff_t>(count));
    weights_.resize((weights_.size() + kWordBytes - 1) / kWordBytes * kWordBytes);
  }

  void write_launch(const Program& program, const Dispatch& dispatch, JsonWriter& json) {
    const WgslKernel& written = dispatch.kernel;
    json.begin_object().member("kernel", kernel(program, dispatch));
    json.member("groups", std::array{written.groups_x, written.groups_y});
    json.key("bindings").begin_array();
    for (const Binding& binding : dispatch.bindings) {
      const std::int64_t bytes =
          std::max(kMinBinding, (binding.bytes + 3) / 4 * 4);  // as in the WebGPU backend
      json.begin_array().value(numbers_[static_cast<std::size_t>(binding.buffer)]);
      json.value(binding.offset).value(bytes).end_array();
      need("maxStorageBufferBindingSize", bytes);
    }
    json.end_array().end_object();
    need("maxStorageBuffersPerShaderStage", static_cast<std::int64_t>(dispatch.bindings.size()));
    need("maxComputeWorkgroupsPerDimension", std::max(written.groups_x, written.groups_y));
  }

  // Returns the index of a kernel among the kernels of all programs.
  std::size_t kernel(const Program& program, const Dispatch& dispatch) {
    const WgslKernel& written = dispatch.kernel;
    const auto [known, fresh] = by_body_.try_emplace(written.body, by_body_.size());
    if (!fresh) return known->second;
    std::string name = program.launches[dispatch.first].name;
    if (dispatch.count > 1) name += "_and_" + std::to_string(dispatch.count - 1);
    kernels_.begin_object().member("name", name).member("modes", dispatch.binding_modes());
    kernels_.member("scalars", written.uses_scalars);
    kernels_.member("code", without_indentation(written.body)).end_object();
    need("maxComputeInvocationsPerWorkgroup", written.threads);
    need("maxComputeWorkgroupSizeX", written.threads);
    need("maxComputeWorkgroupStorageSize", written.workgroup_bytes);
    return known->second;
  }

  void need(const char* limit, std::int64_t value) {
    const auto known = std::find_if(limits_.begin(), limits_.end(),
                                    [&](const auto& each) { return each.first == limit; });
    if (known == limits_.end()) {
      limits_.emplace_back(limit, value);
    } else {
      known->second = std::max(known->second, value);
    }
  }

  const bool f16_;
  const Contents& contents_;
  std::vector<StoredBuffer> buffers_;
  JsonWriter kernels_ = JsonWriter().begin_array();
  std::vector<std::pair<std::string_view, std::int64_t>> limits_;
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
  Files files = {{"runner.js", bytes_of(runner_script())},
                 {"runner.d.ts", bytes_of(runner_types())}};
  try {
    files.merge(ModelWriter(f16, contents).write(text, programs));
  } catch (const nlohmann::json::type_error&) {
    throw UserError("export_web: a name or WebOptions::doc is not valid UTF-8");
  }
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
