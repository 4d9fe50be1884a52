// SPDX-License-Identifier: MIT
// Checkpoints that cannot be written, or do not fit the trainer that reads them.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "errors/example.h"

namespace tensorgrad::testing {
namespace {

Tensor scaled_loss(const Net& net, In in) { return plain_loss(net, in) * scalar("beta", 0.5); }

// Saves a checkpoint of `trainer` with another value in a field of its metadata. Returns its path.
std::string saved_with(const TrainerBase& trainer, const std::string& field,
                       const std::string& value) {
  const std::string path = temporary("other_" + field + ".safetensors");
  trainer.save(path);
  StoredFile file = read_safetensors(path);
  file.metadata["tensorgrad." + field] = value;
  write_safetensors(path, file);
  return path;
}

}  // namespace

TEST(CheckpointErrors, file_missing) {
  const std::string path = temporary("nothing.safetensors");
  EXPECT_ERROR(Example().trainer.load(path), IoError,
               path + ": cannot be opened: no such file or directory");
}

TEST(CheckpointErrors, folder_missing) {
  const std::string path = temporary("no_folder/model.safetensors");
  EXPECT_ERROR(Example().trainer.save(path), IoError,
               path + ": cannot be written: no such file or directory");
}

TEST(CheckpointErrors, path_is_folder) {
  const std::string folder = temporary("");
  EXPECT_ERROR(Example().trainer.save(folder), IoError,
               folder + ": cannot be written: it exists and is not a regular file");
}

TEST(CheckpointErrors, file_truncated) {
  const std::string path = temporary("cut_short.safetensors");
  Example example;
  example.trainer.save(path);
  const std::vector<std::byte> bytes = read_file(path);
  write_file_atomically(path, std::span(bytes).first(40));
  EXPECT_ERROR(
      example.trainer.load(path), IoError,
      MatchesRegex(path + ": header length [0-9]+ at byte 0: the file has only 32 more bytes"));
}

TEST(CheckpointErrors, version_missing) {
  const std::string path = temporary("only_a_model.safetensors");
  Example example;
  StoredFile file;
  for (const auto& [name, tensor] : example.trainer.download_params()) {
    file.tensors[name] = {"F32", tensor.shape, tensor.bytes};
  }
  write_safetensors(path, file);
  EXPECT_ERROR(example.trainer.load(path), IoError,
               path +
                   ": not a trainer checkpoint: the field 'version' is missing; "
                   "use load_params() for a file of weights");
}

TEST(CheckpointErrors, version_newer) {
  Example example;
  const std::string path = saved_with(example.trainer, "version", "2");
  EXPECT_ERROR(example.trainer.load(path), IoError,
               path + ": unsupported checkpoint version 2; expected version 1");
}

TEST(CheckpointErrors, step_not_a_number) {
  Example example;
  const std::string path = saved_with(example.trainer, "step", "-1");
  EXPECT_ERROR(example.trainer.load(path), IoError,
               path + ": not a trainer checkpoint: the field 'step' is '-1'");
}

TEST(CheckpointErrors, tensor_of_f16) {
  const std::string path = temporary("half_floats.safetensors");
  Example example;
  example.trainer.save(path);
  StoredFile file = read_safetensors(path);
  file.tensors["fc.bias"] = {"F16", {2}, std::vector<std::byte>(4)};
  write_safetensors(path, file);
  EXPECT_ERROR(example.trainer.load(path), IoError,
               path + ": tensor 'fc.bias' is F16; expected F32, I32 or U32");
}

TEST(CheckpointErrors, parameter_shape_differs) {
  struct Wide {
    nn::Linear fc{3, 5};
    TG_MODULE(fc)
  };
  const std::string path = temporary("other.safetensors");
  Example().trainer.save(path);
  const auto loss = [](const Wide& net, In in) { return mean(net.fc(in["x"])); };
  auto trainer = compiled_model(Wide{}, loss);
  EXPECT_ERROR(trainer.load(path), UserError,
               path + ": parameter 'fc.weight' is f32[5,3], got f32[2,3]");
}

TEST(CheckpointErrors, optimizer_differs) {
  const std::string path = temporary("optimizer.safetensors");
  compiled(plain_loss).save(path);
  auto trainer = compiled(plain_loss, {.optimizer = optim::AdamW{}});
  EXPECT_ERROR(
      trainer.load(path), UserError,
      path + ": the checkpoint is from a trainer with the optimizer SGD, this one has AdamW");
}

TEST(CheckpointErrors, optimizer_with_same_states_differs) {
  // Lion has one state, which Adam has too, so only the optimizer's name tells them apart.
  const std::string path = temporary("adam.safetensors");
  compiled(plain_loss, {.optimizer = optim::Adam{}}).save(path);
  auto trainer = compiled(plain_loss, {.optimizer = optim::Lion{}});
  EXPECT_ERROR(
      trainer.load(path), UserError,
      path + ": the checkpoint is from a trainer with the optimizer Adam, this one has Lion");
}

TEST(CheckpointErrors, optimizer_options_differ) {
  const std::string path = temporary("decay.safetensors");
  compiled(plain_loss).save(path);
  auto trainer = compiled(plain_loss, {.optimizer = optim::SGD{.weight_decay = 0.5}});
  EXPECT_ERROR(trainer.load(path), UserError,
               path +
                   ": the checkpoint is from another optimizer or other options: it has no value "
                   "for 'weight_decay', this trainer needs one");
}

TEST(CheckpointErrors, state_unknown) {
  const std::string path = temporary("averages.safetensors");
  compiled(plain_loss, {.ema_decay = 0.5}).save(path);
  auto trainer = compiled(plain_loss);
  EXPECT_ERROR(trainer.load(path), UserError,
               path + ": the checkpoint has a state 'optim.ema/fc.bias', this trainer does not");
}

TEST(CheckpointErrors, accumulate_differs) {
  const std::string path = temporary("accumulate.safetensors");
  compiled(plain_loss, {.accumulate = 2}).save(path);
  auto trainer = compiled(plain_loss, {.accumulate = 4});
  EXPECT_ERROR(trainer.load(path), UserError,
               path +
                   ": the checkpoint is from a trainer with accumulate = 2, this one has 4; the "
                   "number of updates would differ");
}

TEST(CheckpointErrors, objectives_differ) {
  const std::string path = temporary("other_objectives.safetensors");
  compiled(two_objectives()).save(path);
  Example example;
  EXPECT_ERROR(example.trainer.load(path), UserError,
               path +
                   ": the checkpoint is from a trainer with the objectives w b, this one has one "
                   "unnamed objective");
}

TEST(CheckpointErrors, schedule_malformed) {
  Example example;
  const std::string path = saved_with(example.trainer, "schedule", "9 0 0 0 0");
  EXPECT_ERROR(example.trainer.load(path), IoError,
               path + ": schedule: malformed text '9 0 0 0 0'");
}

TEST(CheckpointErrors, scalar_missing) {
  const std::string path = temporary("scalar_missing.safetensors");
  compiled(plain_loss).save(path);
  auto trainer = compiled(scaled_loss);
  EXPECT_ERROR(trainer.load(path), UserError,
               path +
                   ": the checkpoint is from another optimizer or other options: it has no value "
                   "for 'beta', this trainer needs one");
}

TEST(CheckpointErrors, scalar_not_a_number) {
  auto trainer = compiled(scaled_loss);
  const std::string path = saved_with(trainer, "scalar.beta", "0x1p-1 or so");
  EXPECT_ERROR(trainer.load(path), IoError,
               path +
                   ": not a trainer checkpoint: the field 'scalar.beta' is '0x1p-1 or so', "
                   "expected a number");
}

TEST(CheckpointErrors, batch_differs) {
  const auto with_batch = [](std::int64_t batch) {
    return compiled(plain_loss, {.dataset = {{"x", {20, 3}}, {"y", {20, 2}}}, .batch = batch});
  };
  const std::string path = temporary("batch.safetensors");
  with_batch(6).save(path);
  auto trainer = with_batch(5);
  EXPECT_ERROR(trainer.load(path), UserError,
               path +
                   ": the checkpoint is from a trainer with batches of 6 from a dataset, this one "
                   "has batches of 5 from a dataset; the position in the data would differ");
}

TEST(CheckpointErrors, position_out_of_range) {
  Example example;
  const std::string path = saved_with(example.trainer, "position", "7");
  EXPECT_ERROR(
      example.trainer.load(path), IoError,
      path + ": the checkpoint is from another dataset or corrupt: position 7 of 0 batches");
}

TEST(CheckpointErrors, loader_not_added) {
  const std::string path = temporary("with_loader.safetensors");
  const DataLoader loader(3, no_fields);
  Example saved, loaded;
  saved.trainer.add_loader("train", loader);
  saved.trainer.save(path);
  EXPECT_ERROR(
      loaded.trainer.load(path), UserError,
      path + ": the checkpoint has the state of a data loader 'train'; call add_loader() first");
}

TEST(CheckpointErrors, loader_state_missing) {
  const std::string path = temporary("without_loader.safetensors");
  const DataLoader loader(3, no_fields);
  Example saved, loaded;
  saved.trainer.save(path);
  loaded.trainer.add_loader("train", loader);
  EXPECT_ERROR(loaded.trainer.load(path), IoError,
               path + ": not a trainer checkpoint: the field 'loader.train' is missing");
}

TEST(CheckpointErrors, loader_state_malformed) {
  const DataLoader loader(3, no_fields);
  Example example;
  example.trainer.add_loader("train", loader);
  const std::string path = saved_with(example.trainer, "loader.train", "0 -1 0 3 1");
  EXPECT_ERROR(example.trainer.load(path), UserError,
               path + ": data loader 'train': invalid data loader state '0 -1 0 3 1'");
}

TEST(CheckpointErrors, loader_sample_count_differs) {
  const std::string path = temporary("other_loader.safetensors");
  const DataLoader three(3, no_fields), four(4, no_fields);
  Example saved, loaded;
  saved.trainer.add_loader("train", three);
  saved.trainer.save(path);
  loaded.trainer.add_loader("train", four);
  EXPECT_ERROR(loaded.trainer.load(path), UserError,
               path +
                   ": data loader 'train': the saved state is for 3 samples in batches of 1, the "
                   "loader has 4 samples in batches of 1");
}

TEST(CheckpointErrors, metadata_key_reserved) {
  const std::string path = temporary("reserved.safetensors");
  EXPECT_ERROR(Example().trainer.save(path, {.metadata = {{"tensorgrad.step", "9"}}}), UserError,
               "save: SaveOptions::metadata has the key 'tensorgrad.step'; keys that start with "
               "'tensorgrad.' are reserved");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(CheckpointErrors, metadata_key_twice) {
  EXPECT_ERROR(
      Example().trainer.save_bytes({.metadata = {{"a", "1"}, {"b", "2"}, {"a", "1"}}}), UserError,
      "save: SaveOptions::metadata has the key 'a' more than once; expected different keys");
}

TEST(CheckpointErrors, metadata_not_utf8) {
  EXPECT_ERROR(Example().trainer.save_bytes({.metadata = {{"a\xff", "1"}}}), UserError,
               "save: SaveOptions::metadata: a key is not UTF-8: \"a\\xff\"");
  EXPECT_ERROR(Example().trainer.save_bytes({.metadata = {{"notes", "caf\xe9"}}}), UserError,
               "save: SaveOptions::metadata: the value of 'notes' is not UTF-8: \"caf\\xe9\"");
}

}  // namespace tensorgrad::testing
