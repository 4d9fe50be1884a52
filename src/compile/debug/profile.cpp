// SPDX-License-Identifier: MIT
// The cost of the launches of a step, as numbers, as a table and as trace events.
#include "compile/debug/profile.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/json_writer.h"
#include "base/numbers.h"
#include "compile/debug/dump.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Returns the rate in units of 1e9 per second.
std::string rate_text(std::int64_t count, double microseconds) {
  if (count == 0 || microseconds <= 0) return "-";
  return format_text("%.2f", static_cast<double>(count) / microseconds / 1000);
}

std::string percent_text(double share) {
  return format_text("%.*f%%", share < 0.0995 ? 1 : 0, 100 * share);
}

// Returns the first location without folders ("mlp.cpp:41"), and the number of further ones.
std::string first_line(const std::vector<SourceLocation>& locations) {
  if (locations.empty()) return "";
  std::string text = to_string(locations.front());
  text.erase(0, text.find_last_of("/\\") + 1);
  return locations.size() == 1 ? text : text + " +" + std::to_string(locations.size() - 1);
}

std::string table_line(const std::string& number, const LaunchProfile& launch, double total,
                       const std::string& roof, const std::string& rest) {
  const std::string text = format_text(
      "%5s %10.1f %6s %10s %9s %9s %8s ", number.c_str(), launch.microseconds,
      percent_text(total > 0 ? launch.microseconds / total : 0).c_str(),
      bytes_text(launch.bytes).c_str(), rate_text(launch.bytes, launch.microseconds).c_str(),
      rate_text(launch.flops, launch.microseconds).c_str(),
      intensity_text(launch.flops, launch.bytes).c_str());
  return text + roof + " " + rest + "\n";
}

std::string roof_text(const Profile& profile, const LaunchProfile& launch) {
  const double share = profile.roofline_share(launch);
  return format_text("%5s %-5s", share > 0 ? percent_text(share).c_str() : "-",
                     share <= 0                      ? ""
                     : profile.compute_bound(launch) ? "flops"
                                                     : "bytes");
}

double seconds_of_bytes(const DevicePeaks& peaks, const LaunchProfile& launch) {
  if (peaks.bytes_per_second <= 0) return 0;
  return static_cast<double>(launch.bytes) / peaks.bytes_per_second;
}

double seconds_of_flops(const DevicePeaks& peaks, const LaunchProfile& launch) {
  if (peaks.flops_per_second <= 0) return 0;
  return static_cast<double>(launch.flops) / peaks.flops_per_second;
}

// Merges `other`, which ran in the same kernel, into `launch`.
void take_in(LaunchProfile& launch, LaunchProfile other) {
  launch.name += " | " + other.name;
  const std::string kinds = " | " + launch.kind + " | ";
  if (kinds.find(" | " + other.kind + " | ") == std::string::npos)
    launch.kind += " | " + other.kind;
  launch.domain += " | " + other.domain;
  std::move(other.ops.begin(), other.ops.end(), std::back_inserter(launch.ops));
  for (const SourceLocation& location : other.locations) {
    const auto same = [&](const SourceLocation& known) {
      return to_string(known) == to_string(location);
    };
    if (std::none_of(launch.locations.begin(), launch.locations.end(), same))
      launch.locations.push_back(location);
  }
  launch.bytes += other.bytes;
  launch.flops += other.flops;
}

}  // namespace

std::string intensity_text(std::int64_t flops, std::int64_t bytes) {
  if (flops == 0 || bytes == 0) return "";
  return format_text("%.1f", static_cast<double>(flops) / static_cast<double>(bytes));
}

Profile make_profile(const DeviceInfo& device, const Program& program,
                     const std::vector<PassProfile>& passes,
                     const std::vector<std::vector<LaunchTiming>>& runs) {
  Profile profile;
  profile.device = device.backend + " (" + device.name + ")";
  profile.steps = static_cast<int>(runs.size());
  profile.peak_bytes = program.peak_bytes;
  profile.passes = passes;
  if (runs.empty()) return profile;
  bool by_device = !program.launches.empty();
  for (std::size_t i = 0; i < program.launches.size(); ++i) {
    const Launch& launch = program.launches[i];
    std::vector<double> times;
    for (const std::vector<LaunchTiming>& run : runs) {
      CHECK(run.size() == program.launches.size());
      times.push_back(run[i].microseconds);
      by_device = by_device && run[i].by_device;
    }
    LaunchProfile one{launch.name,  kind_name(launch),          domain_text(launch),
                      launch.ops,   launch.locations,           launch.bytes_moved,
                      launch.flops, median_of(std::move(times))};
    if (runs.front()[i].concurrent) {
      take_in(profile.launches.back(), std::move(one));
    } else {
      profile.launches.push_back(std::move(one));
    }
  }
  profile.clock = by_device ? "GPU timestamps" : "host clock";
  return profile;
}

double Profile::microseconds() const {
  double sum = 0;
  for (const LaunchProfile& launch : launches) sum += launch.microseconds;
  return sum;
}

double Profile::roofline_share(const LaunchProfile& launch) const {
  if (launch.microseconds <= 0) return 0;
  return std::max(seconds_of_bytes(peaks, launch), seconds_of_flops(peaks, launch)) * 1e6 /
         launch.microseconds;
}

bool Profile::compute_bound(const LaunchProfile& launch) const {
  return seconds_of_flops(peaks, launch) > seconds_of_bytes(peaks, launch);
}

std::string launch_table(const Profile& profile, bool ops,
                         const std::function<bool(const std::string& name)>& wanted) {
  const bool roof = profile.peaks.bytes_per_second > 0;
  LaunchProfile sum;
  sum.microseconds = profile.microseconds();
  std::string text = "launch         us  share      bytes      GB/s   GFLOP/s   flop/B " +
                     std::string(roof ? "of roofline" : "") + " name\n";
  for (std::size_t i = 0; i < profile.launches.size(); ++i) {
    const LaunchProfile& launch = profile.launches[i];
    sum.bytes += launch.bytes;
    sum.flops += launch.flops;
    if (wanted && !wanted(launch.name)) continue;
    text += table_line(std::to_string(i), launch, sum.microseconds,
                       roof ? roof_text(profile, launch) : "", launch.name);
    if (!ops) continue;
    text += "      = " + launch.kind + " " + launch.domain + ":";
    for (const std::string& op : launch.ops) text += (&op == launch.ops.data() ? " " : "; ") + op;
    const std::string at = first_line(launch.locations);
    text += at.empty() ? "\n" : "  at " + at + "\n";
  }
  return text + table_line("all", sum, sum.microseconds, roof ? roof_text(profile, sum) : "", "");
}

std::string Profile::table() const {
  std::string text = launch_table(*this, true);
  if (peaks.bytes_per_second > 0) {
    text += format_text("\nroofline  %.1f GB/s, %.1f GFLOP/s, measured just now: ",
                        peaks.bytes_per_second / 1e9, peaks.flops_per_second / 1e9) +
            peaks.method + "\n";
  }
  double all = 0;
  for (const PassProfile& pass : passes) all += pass.milliseconds;
  text += format_text("\ncompile   %.2f ms in passes\n", all);
  for (const PassProfile& pass : passes) {
    text += format_text("%14.3f ms  ", pass.milliseconds) + pass.name + "\n";
  }
  return text;
}

std::string Profile::trace_events() const {
  JsonWriter json(InvalidUtf8::kReplace);
  json.begin_object().member("displayTimeUnit", "ms").key("traceEvents").begin_array();
  const auto begin = [&](const char* phase, int thread, const std::string& name) {
    json.begin_object().member("ph", phase).member("pid", 1).member("tid", thread);
    json.member("name", name);
  };
  const auto name_thread = [&](int thread, const char* name) {
    begin("M", thread, "thread_name");
    json.key("args").begin_object().member("name", name).end_object().end_object();
  };
  name_thread(1, "compile");
  double end = 0;
  for (const PassProfile& pass : passes) {
    begin("X", 1, pass.name);
    json.member("ts", pass.begin * 1000).member("dur", pass.milliseconds * 1000).end_object();
    end = std::max(end, (pass.begin + pass.milliseconds) * 1000);
  }
  if (!launches.empty()) name_thread(2, "launches of one run");
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const LaunchProfile& launch = launches[i];
    begin("X", 2, launch.name);
    json.member("ts", end).member("dur", launch.microseconds).key("args").begin_object();
    json.member("launch", i).member("kind", launch.kind).member("domain", launch.domain);
    json.member("bytes", launch.bytes).member("flops", launch.flops).member("ops", launch.ops);
    json.key("at").begin_array();
    for (const SourceLocation& location : launch.locations) json.value(to_string(location));
    json.end_array();
    if (peaks.bytes_per_second > 0) json.member("share of roofline", roofline_share(launch));
    json.end_object().end_object();
    end += launch.microseconds;
  }
  return json.end_array().end_object().text() + "\n";
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
