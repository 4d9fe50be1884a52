// SPDX-License-Identifier: MIT
// Checkpoints, weights and exported models in memory, compared with files.
#include <gmock/gmock.h>

#include "runtime/shared.h"
#include "support/file_pairs.h"

namespace tensorgrad::testing {
namespace {

using test::bits_of_range;
using test::bytes_written_by;
using test::expect_reads_bytes_as_files;

struct Normed {
  nn::Linear in{3, 4};
  nn::BatchNorm1d norm{4};
  nn::Linear out{4, 2};
  TG_MODULE(in, norm, out)
  Tensor operator()(const Tensor& x) const { return out(norm(in(x))); }
};

Tensor normed_loss(const Normed& net, const Inputs& in) { return mse(net(in["x"]), in["y"]); }

Trainer<Normed> trained() {
  auto trainer = compile(Normed{}, normed_loss,
                         {.inputs = {{"x", {6, 3}}, {"y", {6, 2}}},
                          .optimizer = optim::AdamW{.lr = 0.01},
                          .ema_decay = 0.5,
                          .device = {.kind = "cpu"}});
  for (unsigned i = 0; i < 3; ++i)
    trainer.step({{"x", numbers(18, i)}, {"y", numbers(12, i + 10)}});
  return trainer;
}

Tensor normed_forward(const Normed& net, const Inputs& in) { return net(in["x"]); }

CompiledFunction forward() {
  return compile_function(Normed{}, normed_forward,
                          {.inputs = {{"x", {5, 3}}}, .device = {.kind = "cpu"}, .seed = 9});
}

TEST(FilesInMemory, checkpoints_are_read_and_rejected_like_files) {
  auto trainer = trained();
  const std::vector<std::byte> bytes =
      bytes_written_by([&](const FileSink& sink) { trainer.save(sink); });
  EXPECT_EQ(bytes, trainer.save_bytes());
  std::vector<std::byte> free;
  save(trainer, free);
  EXPECT_EQ(free, bytes);
  const Bits saved = everything(trainer);
  expect_reads_bytes_as_files(bytes, [&](const FileSource& source) {
    trainer.step({{"x", numbers(18, 7)}, {"y", numbers(12, 8)}});
    const Bits before = everything(trainer);
    try {
      load(trainer, source);
    } catch (const UserError&) {
      EXPECT_EQ(everything(trainer), before);
      throw;
    }
    EXPECT_EQ(everything(trainer), saved);
    return std::to_string(trainer.steps());
  });
}

TEST(FilesInMemory, checkpoints_name_the_bytes_in_errors) {
  auto trainer = trained();
  std::vector<std::byte> bytes = trainer.save_bytes();
  bytes.pop_back();
  const auto message = [&](const FileSource& source) {
    try {
      trainer.load(source);
    } catch (const IoError& error) {
      return error.message().substr(0, error.message().find(':'));
    }
    return std::string("no error");
  };
  EXPECT_EQ(message(bytes), "<memory>");
  EXPECT_EQ(message({bytes, "last run"}), "last run");
}

TEST(FilesInMemory, functions_load_and_import_weights) {
  auto trainer = trained();
  const std::vector<float> x = numbers(15, 3);
  const std::vector<float> expected =
      trainer.attach(normed_forward, {.inputs = {{"x", {5, 3}}}})({{"x", x}}).floats();
  const std::vector<std::byte> checkpoint = trainer.save_bytes();
  auto function = forward();
  const auto untrained = function.download_params();
  expect_reads_bytes_as_files(checkpoint, [&](const FileSource& source) {
    function.upload_params(untrained);
    function.load_params(source);
    return bits_of_range(function({{"x", x}}).floats());
  });
  function.load_params(checkpoint);
  EXPECT_EQ(function({{"x", x}}).floats(), expected);

  const ImportOptions parameters{.ignore = {"state/*"}, .partial = true};
  auto other = compile(Normed{}, normed_loss,
                       {.inputs = {{"x", {6, 3}}, {"y", {6, 2}}},
                        .optimizer = optim::SGD{},
                        .device = {.kind = "cpu"}});
  expect_reads_bytes_as_files(checkpoint, [&](const FileSource& source) {
    other.upload_params(untrained);
    function.upload_params(untrained);
    other.import_weights(source, parameters);
    function.import_weights(source, parameters);
    EXPECT_EQ(bits_of(other.download_params()), bits_of(trainer.download_params()));
    EXPECT_EQ(bits_of(function.download_params()), bits_of(trainer.download_params()));
    std::string all;
    for (const auto& [name, tensor] : read_weights(source, parameters))
      all += name + bits_of_range(tensor.bytes);
    return all;
  });
}

TEST(FilesInMemory, models_are_exported) {
  const auto function = forward();
  const std::vector<std::byte> bytes =
      bytes_written_by([&](const FileSink& sink) { function.export_onnx(sink, {.name = "net"}); });
  EXPECT_GT(bytes.size(), 200U);
}

TEST(FilesInMemory, failed_save_does_not_change_the_vector) {
  auto trainer = trained();
  {
    const DataLoader gone(8, [](std::int64_t) {
      return NamedTensors{{"x", HostTensor::from({1}, std::vector<float>{1})}};
    });
    trainer.add_loader("gone", gone);
  }
  std::vector<std::byte> bytes(5, std::byte{9});
  EXPECT_THROW(trainer.save(bytes), UserError);
  EXPECT_EQ(bytes, std::vector<std::byte>(5, std::byte{9}));
}

}  // namespace
}  // namespace tensorgrad::testing
