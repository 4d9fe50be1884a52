// SPDX-License-Identifier: MIT
#include "workloads.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "models.h"

namespace tensorgrad::bench {
namespace {

DeviceOptions device_options(const Options& options, const std::string& device) {
  DeviceOptions out;
  out.kind = device;
  out.threads = options.threads;
  out.allow_software = options.allow_software;
  out.tuning_cache = options.tuning_cache;
  out.matmul_precision = options.precision();
  return out;
}

const char* mode_name(Feeding feeding) {
  return feeding == Feeding::kHost ? "step" : feeding == Feeding::kDevice ? "run" : "stream";
}

Fields described(const Workload& workload) {
  const CompileReport compiled = workload.trainer.report();
  Fields fields = {{"workload", text(workload.name)},
                   {"mode", text(mode_name(workload.feeding))},
                   {"who", text("tensorgrad")}};
  append(fields, described_device(workload.trainer.device()));
  append(fields, {{"parameters", std::to_string(workload.parameters())},
                  {"launches", std::to_string(compiled.launches)},
                  {"peak_bytes", std::to_string(compiled.peak_bytes)},
                  {"passes_ms", number(compiled.milliseconds)},
                  {"compile_ms", number(workload.milliseconds)}});
  return fields;
}

// Returns the time of a step. Sets `host` to the host times of one step, on average.
double microseconds(const Options& options, Workload& workload, HostTimes& host) {
  const int units = workload.feeding == Feeding::kHost ? 1 : workload.steps_at_once;
  const HostTimes before = workload.trainer.host_times();
  double steps = 0;
  const double us = median_microseconds(options.seconds, units, [&] {
    workload.go();
    steps += units;
  });
  host = workload.trainer.host_times() - before;
  for (double* const each : {&host.encoding, &host.submitting, &host.waiting}) *each /= steps;
  return us;
}

void describe(const HostTimes& host, const std::string& device, Fields& fields) {
  if (device == "cpu") return;
  fields.emplace_back("us_encoding", number(host.encoding));
  fields.emplace_back("us_submitting", number(host.submitting));
  fields.emplace_back("us_waiting", number(host.waiting));
}

// Measures how long the host takes to submit a step whose batch the device draws, with an empty
// queue. The rest of the step is device time. The CPU is skipped, because it runs steps while they
// are submitted.
void handing_over(const Options& options, Workload& workload, const std::string& device,
                  Fields& fields) {
  constexpr int kSteps = 4;
  if (workload.feeding != Feeding::kDevice || device == "cpu") return;
  fields.emplace_back("us_handing_over",
                      number(median_microseconds(
                          options.seconds / 4, kSteps, [&] { workload.trainer.submit(kSteps); },
                          [&] { workload.trainer.losses(); })));
}

void launches(const Options& options, Workload& workload) {
  if (!options.profile && !options.scans) return;
  const Profile profile = workload.trainer.profile(workload.feed(), kProfiling);
  if (options.profile) print_launches(workload.name, mode_name(workload.feeding), profile);
  if (options.scans) print_scans(options, workload.name, profile);
}

}  // namespace

void print_launches(const std::string& workload, const std::string& mode, const Profile& profile) {
  for (const LaunchProfile& launch : profile.launches) {
    print_line({{"workload", text(workload)},
                {"mode", text(mode)},
                {"launch", text(launch.name)},
                {"kind", text(launch.kind)},
                {"domain", text(launch.domain)},
                {"us", number(launch.microseconds)},
                {"bytes", std::to_string(launch.bytes)},
                {"flops", std::to_string(launch.flops)},
                {"share_of_roofline", number(profile.roofline_share(launch))},
                {"clock", text(profile.clock)}});
  }
}

void print_scans(const Options& options, const std::string& workload, const Profile& profile) {
  for (const LaunchProfile& launch : profile.launches) {
    if (launch.kind.find("scan") == std::string::npos) continue;
    const auto bytes = static_cast<double>(launch.bytes);
    Fields fields = {
        {"measure", text("scan")}, {"workload", text(workload)}, {"who", text("tensorgrad")}};
    append(fields, described_device(profile.device));
    if (options.threads > 0) fields.emplace_back("threads", std::to_string(options.threads));
    // Prints the op instead of the launch: the backward pass of a scan is several launches of one
    // name.
    const std::string op = launch.ops.front().substr(0, launch.ops.front().find(' '));
    append(fields,
           {{"op", text(op)},
            {"domain", text(launch.domain)},
            {"us", number(launch.microseconds)},
            {"moved", std::to_string(launch.bytes)},
            {"gb_per_s", number(bytes / launch.microseconds * 1e-3)},
            {"of_copy", number(bytes / launch.microseconds * 1e6 / profile.peaks.bytes_per_second)},
            {"clock", text(profile.clock)}});
    print_line(fields);
  }
}

Fields described_device(const std::string& device) {
  Fields fields = {{"device", text(device)}};
  if (!device.starts_with("webgpu")) return fields;
  static const std::vector<DeviceDescription> known = [] {
    std::string note;
    return devices({}, note);
  }();
  for (const DeviceDescription& each : known) {
    if (each.kind != "webgpu" || device.find("(" + each.name + ")") == std::string::npos) continue;
    fields.emplace_back("driver", text(each.driver));
    break;
  }
  return fields;
}

std::vector<std::string> default_devices() {
  std::string note;
  for (const DeviceDescription& each : devices({}, note)) {
    if (each.kind == "webgpu" && each.chosen_by_auto) return {"cpu", "webgpu"};
  }
  return {"cpu"};
}

std::vector<std::string> measured_workloads(const std::string& device) {
  std::vector<std::string> names = workload_names();
  std::erase(names, device == "cpu" ? "char-gpt" : "char-gpt-small");
  if (device != "cpu") {
    for (const char* const large : {"mamba-130m", "gpt2", "gpt2-50k", "gpt-long"})
      names.emplace_back(large);
  }
  return names;
}

void steps(const Options& options, const std::string& device, const std::string& workload) {
  for (const Feeding feeding : {Feeding::kHost, Feeding::kDevice, Feeding::kStream}) {
    const std::string mode = mode_name(feeding);
    // The CPU runs a step inside submit(), as step() does.
    const bool wanted =
        options.modes.empty()
            ? device != "cpu" || feeding != Feeding::kStream
            : std::find(options.modes.begin(), options.modes.end(), mode) != options.modes.end();
    if (!wanted) continue;
    Workload made = make_workload(workload, feeding, device_options(options, device),
                                  {.stored_attention = options.stored_attention,
                                   .joint_projection = options.joint_projection,
                                   .whole_logits = options.whole_logits,
                                   .mixed = options.mixed,
                                   .snapshot_steps = options.snapshot_steps});
    HostTimes host;
    const double us = microseconds(options, made, host);
    Fields fields = described(made);
    fields.emplace_back("us_per_step", number(us));
    const std::int64_t snapshot = made.trainer.report().snapshot_bytes;
    if (snapshot > 0) {
      fields.emplace_back("snapshot_steps", std::to_string(options.snapshot_steps));
      fields.emplace_back("snapshot_bytes", std::to_string(snapshot));
    }
    describe(host, device, fields);
    handing_over(options, made, device, fields);
    print_line(fields);
    launches(options, made);
  }
}

void scaling(const Options& options, const std::string& device, const std::string& workload) {
  const auto measure = [&](const char* what, std::int64_t size, const Variant& variant) {
    Workload made =
        make_workload(workload, Feeding::kHost, device_options(options, device), variant);
    HostTimes host;
    const double us = microseconds(options, made, host);
    Fields fields = {
        {"measure", text("scaling")}, {"workload", text(workload)}, {"who", text("tensorgrad")}};
    append(fields, described_device(made.trainer.device()));
    append(fields, {{"what", text(what)},
                    {"size", std::to_string(size)},
                    {"us_per_step", number(us)},
                    {"peak_bytes", std::to_string(made.trainer.report().peak_bytes)},
                    {"launches", std::to_string(made.trainer.report().launches)}});
    print_line(fields);
    launches(options, made);
  };
  if (workload == "mamba1") {
    for (const std::int64_t length : {64, 512, 2048, 8192}) {
      measure("length", length, {.batch = 1, .length = length});
    }
    return;
  }
  for (const std::int64_t batch : {4, 8, 16}) measure("batch", batch, {.batch = batch});
  for (const std::int64_t layers : {2, 4, 8}) measure("layers", layers, {.layers = layers});
  for (const std::int64_t length : {64, 128, 256}) measure("length", length, {.length = length});
}

void compiling(const Options& options, const std::string& device, const std::string& workload) {
  const auto once = [&] {
    return make_workload(workload, Feeding::kHost, device_options(options, device));
  };
  const double first = once().milliseconds;
  const Workload made = once();
  const CompileReport report = made.trainer.report();
  Fields fields = {
      {"measure", text("compile")}, {"workload", text(made.name)}, {"who", text("tensorgrad")}};
  append(fields, described_device(made.trainer.device()));
  append(fields, {{"launches", std::to_string(report.launches)},
                  {"passes_ms", number(report.milliseconds)},
                  {"first_ms", number(first)},
                  {"again_ms", number(made.milliseconds)}});
  print_line(fields);
}

void probe(const Options& options, const std::string& device, const std::string& workload) {
  constexpr int kMoreSteps = 20;
  Workload made = make_workload(workload, Feeding::kHost, device_options(options, device),
                                {.batch = options.batch, .length = options.length});
  made.go();
  // Seconds since 1970, the clock that the parent process reads too.
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  for (int i = 0; i < kMoreSteps; ++i) made.go();
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  char done[32];
  std::snprintf(done, sizeof done, "%.6f", now.count());
  Fields fields = described(made);
  fields.insert(fields.begin(), {"measure", text("probe")});
  if (options.length > 0) fields.emplace_back("length", std::to_string(options.length));
  fields.emplace_back("first_step_done", done);
  fields.emplace_back("peak_rss_bytes", std::to_string(usage.ru_maxrss * 1024LL));
  print_line(fields);
}

}  // namespace tensorgrad::bench
