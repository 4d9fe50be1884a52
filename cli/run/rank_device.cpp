// SPDX-License-Identifier: MIT
// Which adapter or how many threads each rank of a host takes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "os/process.h"
#include "run/ranks.h"
#include "tensorgrad/distributed/adapters.h"
#include "tensorgrad/error.h"
#include "tensorgrad/ops.h"
#include "tensorgrad/train/compile.h"
#include "tensorgrad/train/debug.h"
#include "text.h"

namespace tensorgrad::cli {
namespace {

// Where a rank runs: the name of its host, and for each of its cores whether it may use it.
struct RankPlace {
  std::string host;
  std::string cores;  // "0110": cores 1 and 2
};

std::vector<RankPlace> places_of(const Ranks& ranks) {
  const std::vector<std::string> hosts = ranks.gather(os::host_name());
  const std::vector<std::string> cores = ranks.gather(os::allowed_cores());
  std::vector<RankPlace> places;
  for (std::size_t i = 0; i < hosts.size(); ++i) places.push_back({hosts[i], cores[i]});
  return places;
}

bool may_use(const RankPlace& place, std::size_t core) {
  return core < place.cores.size() && place.cores[core] == '1';
}

// Returns the number of threads of a rank: the cores that it may use, those that it shares with
// other ranks of its host in parts.
int threads_of(const std::vector<RankPlace>& places, std::size_t rank) {
  double share = 0;
  for (std::size_t core = 0; core < places[rank].cores.size(); ++core) {
    if (!may_use(places[rank], core)) continue;
    const auto users = std::count_if(places.begin(), places.end(), [&](const RankPlace& each) {
      return each.host == places[rank].host && may_use(each, core);
    });
    share += 1 / static_cast<double>(users);
  }
  constexpr double kRounding = 1e-6;
  return std::clamp(static_cast<int>(std::floor(share + kRounding)), 1, 256);
}

// Returns the number of the adapter for a rank: the ranks of a host take in turn those that equal
// the selected one. Returns -1 if there is none.
int adapter_of(const DeviceOptions& options, std::size_t rank_on_host) {
  std::string note;
  const std::vector<int> equal = equal_adapters(devices(options, note), options);
  return equal.empty() ? -1 : equal[rank_on_host % equal.size()];
}

// Opens the device and returns its kind. If a rank cannot open its device, this fails before all
// ranks compile.
std::string kind_of(const DeviceOptions& device) {
  const CompiledFunction probe = compile_function([](const Inputs& in) { return in["x"] * 2; },
                                                  {.inputs = {{"x", {1}}}, .device = device});
  const std::string text = probe.device();
  return text.substr(0, text.find(' '));
}

bool threads_are_set(const DeviceOptions& options) {
  if (options.threads > 0) return true;
  const std::vector<EnvironmentSwitch> all = tensorgrad::environment();
  return std::any_of(all.begin(), all.end(), [](const EnvironmentSwitch& each) {
    return each.name == "TENSORGRAD_THREADS" && !each.value.empty();
  });
}

}  // namespace

DeviceOptions device_of_rank(const Ranks& ranks, const DeviceOptions& options) {
  if (!ranks.several()) return options;
  const std::vector<RankPlace> places = places_of(ranks);
  const auto rank = static_cast<std::size_t>(ranks.rank());
  const auto on_host = static_cast<std::size_t>(
      std::count_if(places.begin(), places.begin() + ranks.rank(),
                    [&](const RankPlace& each) { return each.host == places[rank].host; }));
  DeviceOptions device = options;
  std::string kind;
  ranks.together([&] {
    if (!threads_are_set(device)) device.threads = threads_of(places, rank);
    if (device.kind != "cpu" && device.adapter < 0) {
      device.adapter = adapter_of(device, on_host);
      if (device.kind == "auto") device.kind = device.adapter < 0 ? "cpu" : "webgpu";
    }
    kind = kind_of(device);
  });
  ranks.check_same({{"the device", kind}});
  return device;
}

}  // namespace tensorgrad::cli
