// SPDX-License-Identifier: MIT
// The network, its loss and its evaluation, implemented with the public ops.
#include "classify/classifier.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "tensorgrad/data/safetensors.h"
#include "tensorgrad/functional.h"
#include "tensorgrad/ops.h"

namespace tensorgrad::cli {
namespace {

constexpr std::int64_t kTestBatch = 1000;

nn::Sequential make_model(const Run& run) {
  nn::Sequential model;
  std::int64_t width = run.task.features();
  for (const std::int64_t size : run.settings.hidden) {
    model.add(nn::Linear(width, size)).add(nn::ReLU{});
    width = size;
  }
  model.add(nn::Linear(width, run.task.classes()));
  return model;
}

// Returns (pixels / 255 - mean) / deviation.
Tensor standardised(const Task& task, Tensor pixels) {
  return pixels * (1 / (255 * task.deviation[0])) - task.mean[0] / task.deviation[0];
}

// Returns the input of the network. Pixels are bytes on the device; tables are standardized.
Tensor prepared(const Task& task, Tensor x) {
  if (task.kind == Task::Kind::kTable) return x;
  Tensor pixels = unpack_bytes(x);
  if (pixels.size(-1) != task.features()) pixels = narrow(pixels, -1, 0, task.features());
  return standardised(task, pixels);
}

// As prepared(), for the exported model: pixels are f32 from 0 to 255, tables are not standardized.
Tensor prepared_outside(const Task& task, Tensor x) {
  if (task.kind == Task::Kind::kImages) return standardised(task, x);
  const auto row = [](const std::vector<double>& of) {
    return constant(std::vector<float>(of.begin(), of.end()),
                    {static_cast<std::int64_t>(of.size())});
  };
  return (x - row(task.mean)) / row(task.deviation);
}

InputSpec input_spec(const Task& task, std::int64_t count) {
  if (task.kind == Task::Kind::kTable) return {"x", {count, task.features()}, f32};
  return {"x", {count, task.words()}, u32};
}

HostView input_view(const Task& task, const Samples& samples) {
  if (task.kind == Task::Kind::kTable) return {samples.features};
  return {samples.words};
}

Optimizer make_optimizer(const Run& run) {
  const TrainSettings& s = run.settings;
  const Schedule lr = schedule_of(run);
  if (s.optimizer == "sgd") {
    return optim::SGD{.lr = lr, .momentum = 0.9, .weight_decay = s.weight_decay};
  }
  if (s.optimizer == "adam") return optim::Adam{.lr = lr, .weight_decay = s.weight_decay};
  return optim::AdamW{.lr = lr, .weight_decay = s.weight_decay};
}

auto log_probability_function(const Task& task) {
  return [task](const nn::Sequential& net, const Inputs& in) {
    return log_softmax(net(prepared(task, in["x"])));
  };
}

}  // namespace

Schedule schedule_of(const Run& run) {
  return Schedule::cosine(run.settings.lr, 0, run.total_steps());
}

NetTrainer compile_training(const Run& run, const DeviceOptions& device, const Ranks& ranks) {
  const Task task = run.task;
  const auto loss = [task](const nn::Sequential& net, const Inputs& in) {
    return cross_entropy(net(prepared(task, in["x"])), in["labels"]);
  };
  return compile(
      make_model(run), loss,
      {.dataset = {input_spec(task, task.train_count), {"labels", {task.train_count}, i32}},
       .batch = batch_per_rank(run.settings.batch, ranks),
       .optimizer = make_optimizer(run),
       .mixed_precision = run.settings.mixed_precision,
       .seed = run.settings.seed,
       .device = device,
       .distributed = ranks.communicator(),
       .shard_optimizer = ranks.shards(),
       .shard_parameters = ranks.shards_params()});
}

void upload(NetTrainer& trainer, const Task& task, const Samples& train) {
  trainer.upload_data("x", input_view(task, train));
  trainer.upload_data("labels", train.labels);
}

std::string model_text(const Run& run) {
  std::string text = fmt::format("{}-", run.task.features());
  for (const std::int64_t size : run.settings.hidden) text += fmt::format("{}-", size);
  return text + fmt::format("{}", run.task.classes());
}

std::int64_t parameter_count(const Run& run) {
  std::int64_t count = 0;
  std::int64_t width = run.task.features();
  for (const std::int64_t size : run.settings.hidden) {
    count += (width + 1) * size;
    width = size;
  }
  return count + (width + 1) * run.task.classes();
}

Predictor::Predictor(NetTrainer& trainer, const Run& run, std::int64_t count)
    : task_(run.task),
      batch_(std::min(count, kTestBatch)),
      forward_(trainer.attach(log_probability_function(run.task),
                              {.inputs = {input_spec(run.task, batch_)},
                               .mixed_precision = run.settings.mixed_precision})) {}

Predictor::Predictor(const std::string& model_path, const Run& run, const DeviceOptions& device,
                     std::int64_t count)
    : task_(run.task),
      batch_(std::min(count, kTestBatch)),
      forward_(compile_function(make_model(run), log_probability_function(run.task),
                                {.inputs = {input_spec(run.task, batch_)},
                                 .device = device,
                                 .mixed_precision = run.settings.mixed_precision})) {
  forward_.load_params(model_path);
}

CompiledFunction outside_forward(const std::string& model_path, const Run& run,
                                 std::int64_t batch) {
  const Task task = run.task;
  CompiledFunction forward = compile_function(
      make_model(run),
      [task](const nn::Sequential& net, const Inputs& in) {
        const Tensor logits = net(prepared_outside(task, in["x"]));
        return std::map<std::string, Tensor>{{"log_probabilities", log_softmax(logits)}};
      },
      {.inputs = {{"x", {batch, task.features()}}}, .device = {.kind = "cpu"}});
  forward.load_params(model_path);
  return forward;
}

// The last batch is padded with zeros; the results of the padding are dropped.
std::vector<float> Predictor::predict(const Samples& samples, std::int64_t from) {
  const bool table = task_.kind == Task::Kind::kTable;
  const std::int64_t width = table ? task_.features() : task_.words();
  const auto one = static_cast<std::size_t>(batch_ * width);
  std::vector<float> floats(table ? one : 0);
  std::vector<std::uint32_t> words(table ? 0 : one);
  const std::int64_t count = std::min(batch_, samples.count - from);
  const auto fill = [&](const auto& all, auto& part) {
    std::copy_n(all.begin() + from * width, count * width, part.begin());
    return HostView(part);
  };
  const HostView batch = table ? fill(samples.features, floats) : fill(samples.words, words);
  return forward_({{"x", batch}}).floats();
}

std::vector<float> Predictor::log_probabilities(const Samples& samples) {
  std::vector<float> results;
  for (std::int64_t from = 0; from < samples.count; from += batch_) {
    const std::vector<float> values = predict(samples, from);
    const std::int64_t count = std::min(batch_, samples.count - from);
    results.insert(results.end(), values.begin(), values.begin() + count * task_.classes());
  }
  return results;
}

std::vector<float> Predictor::log_probabilities(const Samples& samples, const Ranks& ranks) {
  const std::int64_t round = batch_ * ranks.size();
  std::vector<float> mine(static_cast<std::size_t>(batch_ * task_.classes()));
  std::vector<float> all(mine.size() * static_cast<std::size_t>(ranks.size()));
  std::vector<float> results;
  for (std::int64_t from = 0; from < samples.count; from += round) {
    ranks.check_interrupted();
    const std::int64_t own = from + ranks.rank() * batch_;
    // Sharded parameters are gathered by all ranks in each round.
    if (own < samples.count || ranks.shards_params())
      mine = predict(samples, std::min(own, samples.count - 1));
    ranks.gather(mine, all);
    const std::int64_t count = std::min(round, samples.count - from);
    results.insert(results.end(), all.begin(), all.begin() + count * task_.classes());
  }
  return results;
}

}  // namespace tensorgrad::cli
