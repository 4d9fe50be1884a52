// SPDX-License-Identifier: MIT
// Device selection, and the list of available devices.
#include <charconv>
#include <chrono>
#include <mutex>

#include "base/env.h"
#include "base/numbers.h"
#include "compile/runtime/instance.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

WebGpuOptions webgpu_options(const DeviceOptions& options) {
  WebGpuOptions out;
  out.adapter = options.adapter;
  out.allow_software = options.allow_software;
  out.default_limits = options.default_limits;
  out.checked = options.checked;
  out.library = options.webgpu_library;
  out.tuning_cache = options.tuning_cache;
  out.submit_milliseconds = options.submit_milliseconds;
  out.f16x3 = options.matmul_precision == MatmulPrecision::kF16x3;
  return out;
}

// Returns the number of threads set by the options or the environment; 0: one per core.
int thread_count(const DeviceOptions& options) {
  if (options.threads < 0 || options.threads > kMaxCpuThreads) {
    throw UserError("device: expected 1 to " + std::to_string(kMaxCpuThreads) +
                    " threads, or 0 for one per core, got " + std::to_string(options.threads));
  }
  if (options.threads != 0) return options.threads;
  const std::string text = env("TENSORGRAD_THREADS");
  if (text.empty()) return 0;
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc() || end != text.data() + text.size() || threads < 1 ||
      threads > kMaxCpuThreads) {
    refuse_env("TENSORGRAD_THREADS", text, "a number from 1 to " + std::to_string(kMaxCpuThreads));
  }
  return threads;
}

// Returns the adapter that `auto` selects, or -1.
int best_adapter(const std::vector<AdapterInfo>& adapters) {
  int best = -1;
  for (int i = 0; i < static_cast<int>(adapters.size()); ++i) {
    const AdapterInfo& each = adapters[static_cast<size_t>(i)];
    if (!each.usable) continue;
    const bool better = best < 0 || (each.kind == "discrete" &&
                                     adapters[static_cast<size_t>(best)].kind != "discrete");
    if (better) best = i;
  }
  return best;
}

std::shared_ptr<Device> open_cpu(const DeviceOptions& options) {
  return make_cpu_device({.threads = thread_count(options)});
}

std::shared_ptr<Device> open_webgpu(const WebGpuOptions& options) {
  std::shared_ptr<Device> device = make_webgpu_device(options);
  device->reopen = [options] { return open_webgpu(options); };
  return device;
}

std::shared_ptr<Device> open_auto(const DeviceOptions& options, std::string& reason) {
  std::string note;
  const std::vector<AdapterInfo> adapters = list_webgpu_adapters(webgpu_options(options), note);
  const int best = best_adapter(adapters);
  if (best < 0) {
    reason = "cpu: " + (note.empty() ? std::string("found no usable GPU") : note);
    return open_cpu(options);
  }
  WebGpuOptions webgpu = webgpu_options(options);
  webgpu.adapter = best;
  reason = "webgpu: " + adapters[static_cast<size_t>(best)].reason;
  return open_webgpu(webgpu);
}

// True if programs compiled for one device run on the other with the same results.
bool alike(const DeviceInfo& a, const DeviceInfo& b) {
  return a.backend == b.backend && a.name == b.name && a.driver == b.driver &&
         a.features == b.features && a.stores_f16 == b.stores_f16 && a.limits == b.limits;
}

DeviceDescription describe(const DeviceInfo& info, const std::string& type) {
  DeviceDescription out;
  out.kind = info.backend;
  out.name = info.name;
  out.driver = info.driver;
  out.type = type;
  out.features = info.features;
  const DeviceLimits& limits = info.limits;
  out.limits = {{"storage buffers per launch", limits.max_storage_bindings},
                {"bytes per binding", limits.max_binding_bytes},
                {"bytes per buffer", limits.max_buffer_bytes},
                {"invocations per workgroup", limits.max_workgroup_invocations},
                {"workgroup memory bytes", limits.max_workgroup_bytes}};
  return out;
}

// Returns the features of the opened device, which include subgroup matrices.
std::vector<std::string> features_when_open(const DeviceOptions& options, int number,
                                            const AdapterInfo& adapter) {
  WebGpuOptions webgpu = webgpu_options(options);
  webgpu.adapter = number;
  try {
    return make_webgpu_device(webgpu)->info().features;
  } catch (const DeviceError&) {  // the adapter is listed anyway
    return adapter.device.features;
  }
}

}  // namespace

std::shared_ptr<Device> open_device(const DeviceOptions& options, std::string& reason) {
  if (options.opened) {
    reason = "shared with another program";
    return options.opened;
  }
  std::shared_ptr<Device> device;
  reason = options.kind + ": requested";
  thread_count(options);  // validated for every kind of device
  if (!(options.submit_milliseconds >= 0)) {
    throw UserError("device: expected submit_milliseconds of at least 0, got " +
                    number_text(options.submit_milliseconds));
  }
  if (options.external != ExternalDevice{}) {
    if (options.kind != "webgpu" && options.kind != "auto")
      throw UserError("device: an external device requires kind webgpu or auto, got '" +
                      options.kind + "'");
    device = adopt_webgpu_device(options.external, webgpu_options(options));
    reason = "webgpu: provided by the application";
  } else if (options.kind == "auto") {
    device = open_auto(options, reason);
  } else if (options.kind == "cpu") {
    device = open_cpu(options);
  } else if (options.kind == "webgpu") {
    device = open_webgpu(webgpu_options(options));
  } else if (options.kind == "null") {
    device = make_null_device({.max_buffer_bytes = kAnySize});
  } else {
    throw UserError("device: expected auto, cpu, webgpu or null, got '" + options.kind + "'");
  }
  if (debug_level() >= 1) debug_print("device " + device->info().name + " (" + reason + ")");
  return device;
}

std::shared_ptr<Device> replace_lost(const std::shared_ptr<Device>& lost, double wait_seconds) {
  constexpr std::chrono::milliseconds kPause{100};
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (auto next = lost->successor.lock()) return next;
  if (!lost->reopen)
    throw DeviceLostError("it belongs to the application and cannot be opened again");
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    std::string reason;
    try {
      std::shared_ptr<Device> next = lost->reopen();
      if (alike(next->info(), lost->info())) {
        lost->successor = next;
        return next;
      }
      reason = "found another one, " + next->info().name;
    } catch (const DeviceError& error) {
      reason = error.message();
    }
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
    if (waited.count() >= wait_seconds) {
      const std::string within =
          wait_seconds > 0 ? "it did not come back within " + number_text(wait_seconds) + " s"
                           : "it has not come back";
      throw DeviceLostError(within + ": " + reason);
    }
    pause_for(kPause);
  }
}

std::vector<DeviceDescription> devices(const DeviceOptions& options, std::string& note) {
  std::vector<DeviceDescription> list;
  const std::vector<AdapterInfo> adapters = list_webgpu_adapters(webgpu_options(options), note);
  const int best = best_adapter(adapters);
  const auto cpu = open_cpu(options);
  list.push_back(describe(cpu->info(), "cpu"));
  list.back().usable = true;
  list.back().chosen_by_auto = best < 0;
  list.back().reason = best < 0 ? "found no usable GPU" : "a GPU is available";
  for (int i = 0; i < static_cast<int>(adapters.size()); ++i) {
    const AdapterInfo& adapter = adapters[static_cast<size_t>(i)];
    list.push_back(describe(adapter.device, adapter.kind));
    if (adapter.offers_subgroup_matrix)
      list.back().features = features_when_open(options, i, adapter);
    list.back().usable = adapter.usable;
    list.back().chosen_by_auto = i == best;
    list.back().reason = adapter.reason;
  }
  return list;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
