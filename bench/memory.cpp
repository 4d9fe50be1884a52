// SPDX-License-Identifier: MIT
// Memory-bound launches: bytes per second of each, by the launch's own clock, and of our copy.
#include <functional>
#include <string>

#include <tensorgrad/tensorgrad.h>

#include "workloads.h"

namespace tensorgrad::bench {
namespace {

// Smaller launches are not measured: each of these reads a whole matrix.
constexpr std::int64_t kMinBytes = 16 << 20;
constexpr std::int64_t kColumns = 1024;
constexpr std::int64_t kRowBytes = kColumns * 4;
constexpr const char* kUpdate = "adamw update";

// Returns the bytes of the f32 matrices: one that fits in caches at least in part, and one that
// does not. On a GPU the latter is 128 MiB, the largest binding that every device supports. Copies
// have the same sizes.
std::vector<std::int64_t> sizes_on(const std::string& device) {
  return {16 << 20, (device == "cpu" ? 64 : 128) << 20};
}

struct Rows {
  explicit Rows(std::int64_t rows)
      : x({rows, kColumns}, init::uniform(-1, 1)),
        dy({rows, kColumns}, 0.5),
        targets({rows}, 0, i32) {}
  Parameter x;
  Buffer dy, targets;
  TG_MODULE(x, dy, targets)
};

// Adds a norm as models have it, whose weight (and bias) get gradients as well as x.
template <class Norm>
struct Normed {
  explicit Normed(std::int64_t rows) : in(rows), norm(kColumns) {}
  Rows in;
  Norm norm;
  TG_MODULE(in, norm)
};

template <class Model>
using Body = std::function<Tensor(const Model&)>;

template <class Model>
struct Case {
  const char* what;
  Body<Model> forward;   // optional
  Body<Model> training;  // optional loss, whose launches are also measured
};

// Multiplies by dy, so that all of y is read, as in a network.
Tensor weighted(const Tensor& y, const Rows& rows) { return mean(y * rows.dy.tensor()); }

std::vector<Case<Rows>> cases() {
  const auto normed = [](const Rows& r) { return layer_norm(r.x); };
  const auto soft = [](const Rows& r) { return softmax(r.x); };
  const auto entropy = [](const Rows& r) { return cross_entropy(r.x, r.targets.tensor()); };
  return {{"copy", [](const Rows& r) { return r.x.tensor(); }, {}},
          {"layer_norm", normed, [=](const Rows& r) { return weighted(normed(r), r); }},
          {"softmax", soft, [=](const Rows& r) { return weighted(soft(r), r); }},
          {"cross_entropy", entropy, entropy},
          {kUpdate, {}, [](const Rows& r) { return mean(square(r.x.tensor())); }}};
}

template <class Norm>
Case<Normed<Norm>> norm_case(const char* what) {
  const auto normed = [](const Normed<Norm>& m) { return m.norm(m.in.x); };
  return {what, normed, [=](const Normed<Norm>& m) { return weighted(normed(m), m.in); }};
}

struct Measured {
  const Options& options;
  DeviceOptions on;
  std::int64_t bytes;  // per matrix
};

void print_large(const Measured& of, const std::string& what, const std::string& device,
                 const std::function<Profile(int steps)>& profiled) {
  constexpr int kWarm = 2, kTimes = 9;
  profiled(kWarm);
  const Profile profile = profiled(kTimes);
  for (const LaunchProfile& launch : profile.launches) {
    const bool update = launch.name.find("optimizer") != std::string::npos;
    if (launch.bytes < kMinBytes || update != (what == kUpdate)) continue;
    Fields fields = {{"workload", text("memory")}, {"who", text("tensorgrad")}};
    append(fields, described_device(device));
    if (of.options.threads > 0) fields.emplace_back("threads", std::to_string(of.options.threads));
    append(fields,
           {{"what", text(what)},
            {"matrix", text(std::to_string(of.bytes >> 20) + " MiB")},
            {"launch", text(launch.name)},
            {"domain", text(launch.domain)},
            {"bytes", std::to_string(launch.bytes)},
            {"us", number(launch.microseconds)},
            {"gb_per_s", number(static_cast<double>(launch.bytes) / launch.microseconds * 1e-3)},
            {"clock", text(profile.clock)}});
    print_line(fields);
  }
}

template <class Model>
void measure(const Measured& of, const Case<Model>& each) {
  const Model model(of.bytes / kRowBytes);
  const std::string what = each.what;
  if (each.forward) {
    auto forward = compile_function(
        model, [&](const Model& m, const Inputs&) { return each.forward(m); }, {.device = of.on});
    print_large(of, what + (each.training ? " forward" : ""), forward.device(),
                [&](int steps) { return forward.profile({}, {.steps = steps}); });
  }
  if (each.training) {
    CompileOptions compiling{.device = of.on};
    if (what == kUpdate) compiling.optimizer = optim::AdamW{.lr = 1e-6};
    if (what != kUpdate) compiling.optimizer = optim::SGD{.lr = 1e-6};
    auto trainer =
        compile(model, [&](const Model& m, const Inputs&) { return each.training(m); }, compiling);
    print_large(of, what + (what == kUpdate ? "" : " forward and backward"), trainer.device(),
                [&](int steps) { return trainer.profile({}, {.steps = steps}); });
  }
}

}  // namespace

void memory(const Options& options, const std::string& device) {
  const DeviceOptions on = {.kind = device,
                            .threads = device == "cpu" ? options.threads : 0,
                            .allow_software = options.allow_software};
  for (const std::int64_t bytes : sizes_on(device)) {
    const Measured of{options, on, bytes};
    for (const Case<Rows>& each : cases()) measure(of, each);
    measure(of, norm_case<nn::LayerNorm>("layer_norm with weight and bias"));
    measure(of, norm_case<nn::RMSNorm>("rms_norm with weight"));
  }
}

}  // namespace tensorgrad::bench
