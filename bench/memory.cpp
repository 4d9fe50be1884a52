// SPDX-License-Identifier: MIT
// Launches that memory bounds: what each moves in a second, by the launch's own clock, beside a
// copy of ours.
#include <functional>
#include <string>

#include <tensorgrad/tensorgrad.h>

#include "workloads.h"

namespace tensorgrad::bench {
namespace {

// What moves less may lie in a cache.
constexpr std::int64_t kLeastBytes = 16 << 20;
constexpr std::int64_t kColumns = 1024;
constexpr const char* kUpdate = "adamw update";

// Of f32: 64 MiB on the CPU. A GPU has larger caches: 128 MiB, the most that any may bind.
std::int64_t rows_on(const std::string& device) { return device == "cpu" ? 16384 : 32768; }

struct Rows {
  explicit Rows(std::int64_t rows)
      : x({rows, kColumns}, init::uniform(-1, 1)),
        dy({rows, kColumns}, 0.5),
        targets({rows}, 0, i32) {}
  Parameter x;
  Buffer dy, targets;
  TG_MODULE(x, dy, targets)
};

using Body = std::function<Tensor(const Rows&)>;

struct Case {
  const char* what;
  Body forward;   // or none
  Body training;  // a loss whose launches are measured, too; or none
};

// Times dy, so that all of it is read, as in a network.
Tensor weighted(const Tensor& y, const Rows& rows) { return mean(y * rows.dy.tensor()); }

std::vector<Case> cases() {
  const auto normed = [](const Rows& r) { return layer_norm(r.x); };
  const auto soft = [](const Rows& r) { return softmax(r.x); };
  const auto entropy = [](const Rows& r) { return cross_entropy(r.x, r.targets.tensor()); };
  return {{"copy", [](const Rows& r) { return r.x.tensor(); }, {}},
          {"layer_norm", normed, [=](const Rows& r) { return weighted(normed(r), r); }},
          {"softmax", soft, [=](const Rows& r) { return weighted(soft(r), r); }},
          {"cross_entropy", entropy, entropy},
          {kUpdate, {}, [](const Rows& r) { return mean(square(r.x.tensor())); }}};
}

void print_large(const std::string& what, const std::string& device, const Options& options,
                 const std::function<Profile(int steps)>& profiled) {
  constexpr int kWarm = 2, kTimes = 9;
  profiled(kWarm);
  const Profile profile = profiled(kTimes);
  for (const LaunchProfile& launch : profile.launches) {
    const bool update = launch.name.find("optimizer") != std::string::npos;
    if (launch.bytes < kLeastBytes || update != (what == kUpdate)) continue;
    Fields fields = {{"workload", text("memory")}, {"who", text("tensorgrad")}};
    append(fields, described_device(device));
    if (options.threads > 0) fields.emplace_back("threads", std::to_string(options.threads));
    append(fields,
           {{"what", text(what)},
            {"launch", text(launch.name)},
            {"domain", text(launch.domain)},
            {"bytes", std::to_string(launch.bytes)},
            {"us", number(launch.microseconds)},
            {"gb_per_s", number(static_cast<double>(launch.bytes) / launch.microseconds * 1e-3)},
            {"clock", text(profile.clock)}});
    print_line(fields);
  }
}

}  // namespace

void memory(const Options& options, const std::string& device) {
  const DeviceOptions on = {.kind = device,
                            .threads = device == "cpu" ? options.threads : 0,
                            .allow_software = options.allow_software};
  for (const Case& each : cases()) {
    const Rows rows(rows_on(device));
    const std::string what = each.what;
    if (each.forward) {
      auto forward = compile_forward(
          rows, [&](const Rows& r, const Inputs&) { return each.forward(r); }, {.device = on});
      print_large(what + (each.training ? " forward" : ""), forward.device(), options,
                  [&](int steps) { return forward.profile({}, {.steps = steps}); });
    }
    if (each.training) {
      CompileOptions compiling{.device = on};
      if (what == kUpdate) compiling.optimizer = optim::AdamW{.lr = 1e-6};
      if (what != kUpdate) compiling.optimizer = optim::SGD{.lr = 1e-6};
      auto trainer =
          compile(rows, [&](const Rows& r, const Inputs&) { return each.training(r); }, compiling);
      print_large(what + (what == kUpdate ? "" : " forward and backward"), trainer.device(),
                  options, [&](int steps) { return trainer.profile({}, {.steps = steps}); });
    }
  }
}

}  // namespace tensorgrad::bench
