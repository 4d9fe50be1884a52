// SPDX-License-Identifier: MIT
// An application, such as a game, with its own WebGPU device. Its shader generates examples, the
// network learns from these buffers, and another shader draws the network's output. Only the final
// picture passes through the host. The network learns how five blobs move and melt: it maps
// position and time to brightness.
#include <webgpu/webgpu.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <numbers>
#include <stdexcept>
#include <utility>

#include "common/sample.h"

namespace tg = tensorgrad;

namespace {

constexpr std::int64_t kBatch = 1024, kSide = 64, kFrames = 6, kPixels = kFrames * kSide * kSide;
static_assert(kBatch == 1024 && kSide == 64 && kFrames == 6, "as the shaders say");

// ---- the application ---------------------------------------------------------------------------

template <auto kRelease>
struct Release {
  void operator()(auto* object) const { kRelease(object); }
};
template <class T, auto kRelease>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, Release<kRelease>>;
using Buffer = Owned<WGPUBuffer, wgpuBufferRelease>;
using Pipeline = Owned<WGPUComputePipeline, wgpuComputePipelineRelease>;

WGPUStringView text_of(const std::string& text) { return {text.data(), text.size()}; }

const std::string kScene = R"(
fn brightness(x: f32, y: f32, t: f32) -> f32 {
  var sum = 0.0;
  for (var i = 0u; i < 5u; i++) {
    let a = 6.2831853 * t * (1.0 + f32(i % 3u)) + 1.3 * f32(i);
    let dx = x - 0.6 * cos(a + f32(i));
    let dy = y - 0.6 * sin(a * 0.5 + 2.0 * f32(i));
    sum += 0.05 / (dx * dx + dy * dy + 0.01);
  }
  return 1.0 / (1.0 + exp(4.0 - 4.0 * sum));
}
)";

// Random positions and times, each between -1 and 1, and the brightness there.
const std::string kMakeExamples = kScene + R"(
@group(0) @binding(0) var<storage, read> round: array<u32>;
@group(0) @binding(1) var<storage, read_write> place: array<f32>;
@group(0) @binding(2) var<storage, read_write> light: array<f32>;

fn random(counter: u32) -> f32 {
  var x = counter * 747796405u + 2891336453u;
  x = ((x >> ((x >> 28u) + 4u)) ^ x) * 277803737u;
  return f32((x >> 22u) ^ (x & 0x3fffffu)) / 2097152.0 - 1.0;
}

@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = 3u * id.x;
  for (var k = 0u; k < 3u; k++) { place[i + k] = random(round[0] * 3072u + i + k); }
  light[id.x] = brightness(place[i], place[i + 1u], place[i + 2u]);
}
)";

// Positions and times of all pixels of the frames.
const std::string kAskForFrames = R"(
@group(0) @binding(0) var<storage, read_write> place: array<f32>;

@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let pixel = id.x % 4096u;
  place[3u * id.x] = (f32(pixel % 64u) + 0.5) / 32.0 - 1.0;
  place[3u * id.x + 1u] = (f32(pixel / 64u) + 0.5) / 32.0 - 1.0;
  place[3u * id.x + 2u] = f32(id.x / 4096u) / 6.0 - 0.5;
}
)";

// Draws the scene in the first half, and the network's output in the second.
const std::string kDraw = kScene + R"(
@group(0) @binding(0) var<storage, read> place: array<f32>;
@group(0) @binding(1) var<storage, read> light: array<f32>;
@group(0) @binding(2) var<storage, read_write> screen: array<f32>;

@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  screen[id.x] = brightness(place[3u * id.x], place[3u * id.x + 1u], place[3u * id.x + 2u]);
  screen[24576u + id.x] = light[id.x];
}
)";

class Application {
 public:
  Application() : instance_(wgpuCreateInstance(nullptr)) {
    WGPURequestAdapterCallbackInfo found = {};
    found.mode = WGPUCallbackMode_AllowProcessEvents;
    found.callback = [](WGPURequestAdapterStatus, WGPUAdapter adapter, WGPUStringView, void* app,
                        void*) { static_cast<Application*>(app)->adapter_.reset(adapter); };
    found.userdata1 = this;
    wgpuInstanceRequestAdapter(instance_.get(), nullptr, found);
    wgpuInstanceProcessEvents(instance_.get());
    if (!adapter_) throw std::runtime_error("there is no WebGPU adapter");
    WGPUDeviceDescriptor wanted = {};
    wanted.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowSpontaneous;
    wanted.deviceLostCallbackInfo.callback = [](WGPUDevice const*, WGPUDeviceLostReason,
                                                WGPUStringView, void* lost, void*) {
      *static_cast<std::atomic<bool>*>(lost) = true;
    };
    wanted.deviceLostCallbackInfo.userdata1 = &lost_;
    WGPURequestDeviceCallbackInfo opened = {};
    opened.mode = WGPUCallbackMode_AllowProcessEvents;
    opened.callback = [](WGPURequestDeviceStatus, WGPUDevice device, WGPUStringView, void* app,
                         void*) { static_cast<Application*>(app)->device_.reset(device); };
    opened.userdata1 = this;
    wgpuAdapterRequestDevice(adapter_.get(), &wanted, opened);
    wgpuInstanceProcessEvents(instance_.get());
    if (!device_) throw std::runtime_error("the WebGPU adapter gives no device");
    queue_.reset(wgpuDeviceGetQueue(device_.get()));
  }

  // Options that pass the application's device to tensorgrad.
  [[nodiscard]] tg::DeviceOptions device() const {
    return {.external = {.instance = instance_.get(),
                         .device = device_.get(),
                         .adapter = adapter_.get(),
                         .lost = &lost_}};
  }

  [[nodiscard]] Buffer buffer(std::int64_t floats) const {
    WGPUBufferDescriptor descriptor = {};
    descriptor.usage = WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst;
    descriptor.size = static_cast<std::uint64_t>((floats * 4 + 255) / 256 * 256);
    return Buffer(wgpuDeviceCreateBuffer(device_.get(), &descriptor));
  }

  [[nodiscard]] Pipeline pipeline(const std::string& wgsl) const {
    WGPUShaderSourceWGSL source = {};
    source.chain.sType = WGPUSType_ShaderSourceWGSL;
    source.code = text_of(wgsl);
    WGPUShaderModuleDescriptor code = {};
    code.nextInChain = &source.chain;
    const Owned<WGPUShaderModule, wgpuShaderModuleRelease> module(
        wgpuDeviceCreateShaderModule(device_.get(), &code));
    WGPUComputePipelineDescriptor descriptor = {};
    descriptor.compute.module = module.get();
    descriptor.compute.entryPoint = {"main", WGPU_STRLEN};
    return Pipeline(wgpuDeviceCreateComputePipeline(device_.get(), &descriptor));
  }

  // Submits a dispatch for `elements` invocations.
  void dispatch(const Pipeline& pipeline, const std::vector<WGPUBuffer>& buffers,
                std::int64_t elements) const {
    std::vector<WGPUBindGroupEntry> entries(buffers.size());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      entries[i].binding = static_cast<std::uint32_t>(i);
      entries[i].buffer = buffers[i];
      entries[i].size = WGPU_WHOLE_SIZE;
    }
    const Owned<WGPUBindGroupLayout, wgpuBindGroupLayoutRelease> layout(
        wgpuComputePipelineGetBindGroupLayout(pipeline.get(), 0));
    WGPUBindGroupDescriptor descriptor = {};
    descriptor.layout = layout.get();
    descriptor.entryCount = entries.size();
    descriptor.entries = entries.data();
    const Owned<WGPUBindGroup, wgpuBindGroupRelease> group(
        wgpuDeviceCreateBindGroup(device_.get(), &descriptor));
    const Owned<WGPUCommandEncoder, wgpuCommandEncoderRelease> encoder(
        wgpuDeviceCreateCommandEncoder(device_.get(), nullptr));
    const Owned<WGPUComputePassEncoder, wgpuComputePassEncoderRelease> pass(
        wgpuCommandEncoderBeginComputePass(encoder.get(), nullptr));
    wgpuComputePassEncoderSetPipeline(pass.get(), pipeline.get());
    wgpuComputePassEncoderSetBindGroup(pass.get(), 0, group.get(), 0, nullptr);
    wgpuComputePassEncoderDispatchWorkgroups(pass.get(), static_cast<std::uint32_t>(elements / 64),
                                             1, 1);
    wgpuComputePassEncoderEnd(pass.get());
    submit(encoder.get());
  }

  void write(const Buffer& buffer, std::uint32_t word) const {
    wgpuQueueWriteBuffer(queue_.get(), buffer.get(), 0, &word, sizeof word);
  }

  [[nodiscard]] std::vector<float> read(const Buffer& buffer, std::int64_t floats) const {
    const std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float);
    WGPUBufferDescriptor descriptor = {};
    descriptor.usage = WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst;
    descriptor.size = bytes;
    const Buffer copy(wgpuDeviceCreateBuffer(device_.get(), &descriptor));
    const Owned<WGPUCommandEncoder, wgpuCommandEncoderRelease> encoder(
        wgpuDeviceCreateCommandEncoder(device_.get(), nullptr));
    wgpuCommandEncoderCopyBufferToBuffer(encoder.get(), buffer.get(), 0, copy.get(), 0, bytes);
    submit(encoder.get());
    bool mapped = false;
    WGPUBufferMapCallbackInfo callback = {};
    callback.mode = WGPUCallbackMode_AllowProcessEvents;
    callback.callback = [](WGPUMapAsyncStatus, WGPUStringView, void* done, void*) {
      *static_cast<bool*>(done) = true;
    };
    callback.userdata1 = &mapped;
    wgpuBufferMapAsync(copy.get(), WGPUMapMode_Read, 0, bytes, callback);
    while (!mapped && !lost_) wgpuInstanceProcessEvents(instance_.get());
    const auto* first =
        static_cast<const float*>(wgpuBufferGetConstMappedRange(copy.get(), 0, bytes));
    if (first == nullptr) throw std::runtime_error("the GPU's memory cannot be read");
    return {first, first + floats};
  }

 private:
  void submit(WGPUCommandEncoder encoder) const {
    const Owned<WGPUCommandBuffer, wgpuCommandBufferRelease> commands(
        wgpuCommandEncoderFinish(encoder, nullptr));
    WGPUCommandBuffer one = commands.get();
    wgpuQueueSubmit(queue_.get(), 1, &one);
  }

  std::atomic<bool> lost_{false};
  Owned<WGPUInstance, wgpuInstanceRelease> instance_;
  Owned<WGPUAdapter, wgpuAdapterRelease> adapter_;
  Owned<WGPUDevice, wgpuDeviceRelease> device_;
  Owned<WGPUQueue, wgpuQueueRelease> queue_;
};

// ---- the network -------------------------------------------------------------------------------

struct Field {
  static constexpr int kFrequencies = 5;
  tg::nn::Linear first{6 * kFrequencies, 64}, second{64, 64}, third{64, 64}, light{64, 1};
  TG_MODULE(first, second, third, light)

  // Positions and times [B, 3] -> brightness [B].
  tg::Tensor operator()(tg::Tensor place) const {
    const tg::Tensor rate = exp2(tg::arange(kFrequencies, tg::f32)) * (std::numbers::pi / 2);
    const tg::Tensor angle = flatten(unsqueeze(place, -1) * rate, -2);
    tg::Tensor x = tg::concat({sin(angle), cos(angle)}, -1);
    x = relu(third(relu(second(relu(first(x))))));
    return squeeze(sigmoid(light(x)), -1);
  }
};

bool play(const sample::Options& options) {
  const Application app;
  const int steps = options.steps(6000, 100);
  const Buffer round = app.buffer(1), place = app.buffer(3 * kBatch), light = app.buffer(kBatch);
  const Pipeline make_examples = app.pipeline(kMakeExamples);
  auto trainer = tg::compile(
      Field{},
      [](const Field& net, const tg::Inputs& in) { return mse(net(in["place"]), in["light"]); },
      {.inputs = {{"place", {kBatch, 3}}, {"light", {kBatch}}},
       .optimizer = tg::optim::Adam{.lr = tg::Schedule::cosine(3e-3, 1e-4, steps)},
       .device = app.device()});
  trainer.bind_input("place", place.get());
  trainer.bind_input("light", light.get());
  for (int step = 0; step < steps; ++step) {
    app.write(round, static_cast<std::uint32_t>(step));
    app.dispatch(make_examples, {round.get(), place.get(), light.get()}, kBatch);
    trainer.submit(1);
    if (step % 100 == 99)
      sample::progress("step " + std::to_string(step + 1) + "  loss " +
                       std::to_string(trainer.losses().back()));
  }

  const Buffer pixels = app.buffer(3 * kPixels), shades = app.buffer(kPixels),
               screen = app.buffer(2 * kPixels);
  auto predict =
      trainer.attach([](const Field& net, const tg::Inputs& in) { return net(in["place"]); },
                     {.inputs = {{"place", {kPixels, 3}}}});
  predict.bind_input("place", pixels.get());
  predict.bind_output("output", shades.get());
  app.dispatch(app.pipeline(kAskForFrames), {pixels.get()}, kPixels);
  predict.run();
  app.dispatch(app.pipeline(kDraw), {pixels.get(), shades.get(), screen.get()}, kPixels);
  const std::vector<float> drawn = app.read(screen, 2 * kPixels);

  sample::save_png(options, "own_device.png", sample::sheet(drawn, kSide, kSide, kFrames));
  double error = 0;
  for (std::size_t i = 0; i < kPixels; ++i)
    error += std::pow(drawn[i] - drawn[kPixels + i], 2) / kPixels;
  return sample::at_least(options, "PSNR in dB", -10 * std::log10(error), 32, 12);
}

}  // namespace

int main(int argc, char** argv) {
  return sample::run(argc, argv,
                     "Learns from and draws with an application's shaders, on its WebGPU device "
                     "(whatever --device says).",
                     play);
}
