// SPDX-License-Identifier: MIT
// Mistakes in options, in what is given at run time, and in files.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "errors/mistake.h"

namespace tensorgrad::testing {
namespace {

using In = const Inputs&;

Tensor plain_loss(const Net& net, In in) { return mse(net.fc(in["x"]), in["y"]); }

struct Given {
  std::vector<float> x = std::vector<float>(12, 1), y = std::vector<float>(8, 1);
  std::vector<std::int32_t> i = {0, 1, 2, 0};
  [[nodiscard]] Feed feed() const { return {{"x", x}, {"y", y}, {"i", i}}; }
};

// A step that is refused changes nothing.
void expect_refused(const std::string& message, const Feed& feed, Loc here = Loc::current()) {
  auto trainer = compiled(plain_loss);
  const auto before = trainer.download_params();
  expect_mistake<UserError>(message, [&] { trainer.step(feed); }, false, here);
  EXPECT_EQ(trainer.steps(), 0);
  EXPECT_EQ(trainer.download_params().at("fc.weight").bytes, before.at("fc.weight").bytes);
}

TEST(RunErrors, input_that_is_missing) {
  const Given given;
  expect_refused("input 'y' is missing; the inputs are x, y, i", {{"x", given.x}, {"i", given.i}});
}

TEST(RunErrors, input_that_nobody_declared) {
  const Given given;
  Feed feed = given.feed();
  feed.insert({"z", given.x});
  expect_refused("there is no input 'z'; the inputs are x, y, i", feed);
}

TEST(RunErrors, input_with_the_wrong_count) {
  Given given;
  given.x.pop_back();
  expect_refused("input 'x': [4,3] has 12 elements, got 11", given.feed());
}

TEST(RunErrors, input_of_the_wrong_type) {
  const Given given;
  Feed feed = given.feed();
  feed.insert_or_assign("i", given.x);
  expect_refused("input 'i': i32 expected, got f32", feed);
}

TEST(RunErrors, index_out_of_range_in_an_input) {
  auto trainer = compiled([](const Net& net, In in) {
    return cross_entropy(net.fc(in["x"]), in["i"]);  // error
  });
  Given given;
  given.i = {0, 1, 2, 0};
  expect_mistake<UserError>(
      "input 'i': element 2 is 2, which cross_entropy uses as an index in [0, 2)",
      [&] { trainer.step(given.feed()); });
}

TEST(RunErrors, index_out_of_range_in_a_dataset) {
  CompileOptions options{
      .dataset = {{"x", {8, 3}}, {"t", {8}, i32}}, .batch = 4, .optimizer = optim::SGD{}};
  auto trainer = compiled(
      [](const Net& net, In in) {
        return cross_entropy(net.fc(in["x"]), in["t"]);  // error
      },
      options);
  expect_mistake<UserError>(
      "input 't': element 1 is -1, which cross_entropy uses as an index in [0, 2)",
      [&] { trainer.upload_data("t", std::vector<std::int32_t>{0, -1, 0, 0, 0, 0, 0, 0}); });
}

TEST(RunErrors, dataset_that_was_not_given) {
  CompileOptions options{
      .dataset = {{"x", {8, 3}}, {"y", {8, 2}}}, .batch = 4, .optimizer = optim::SGD{}};
  auto trainer = compiled(plain_loss, options);
  trainer.upload_data("x", std::vector<float>(24));
  expect_mistake<UserError>(
      "dataset entry 'y' has not been given; call upload_data()", [&] { trainer.run(1); }, false);
  expect_mistake<UserError>(
      "there is no dataset entry 'z'", [&] { trainer.upload_data("z", std::vector<float>(24)); },
      false);
}

TEST(RunErrors, batch_larger_than_the_dataset) {
  expect_mistake<UserError>("dataset: the batch must be between 1 and the 8 rows, got 9", [] {
    const CompileOptions options{.dataset = {{"x", {8, 3}}},
                                 .batch = 9,
                                 .optimizer = optim::SGD{},
                                 .device = {.kind = "cpu"}};
    const auto loss = [](const Net& net, In in) { return mean(net.fc(in["x"])); };
    static_cast<void>(compile(Net{}, loss, options));  // error
  });
}

TEST(RunErrors, submit_with_inputs) {
  auto trainer = compiled(plain_loss);
  expect_mistake<UserError>(
      "submit: the inputs of this program are given step by step; call step(), or declare them as "
      "dataset",
      [&] { trainer.submit(1); }, false);
}

TEST(RunErrors, no_optimizer) {
  expect_mistake<UserError>("compile: an optimizer is needed", [] {
    const CompileOptions options{.inputs = {{"x", {4, 3}}, {"y", {4, 2}}},
                                 .device = {.kind = "cpu"}};
    static_cast<void>(compile(Net{}, plain_loss, options));  // error
  });
}

TEST(RunErrors, model_without_parameters) {
  expect_mistake<UserError>("compile: the model has no parameters", [] {
    const CompileOptions options{
        .inputs = {{"x", {4}}}, .optimizer = optim::SGD{}, .device = {.kind = "cpu"}};
    const auto loss = [](const nn::ReLU&, In in) { return sum(in["x"]); };
    static_cast<void>(compile(nn::ReLU{}, loss, options));  // error
  });
}

TEST(RunErrors, input_declared_twice) {
  expect_mistake<UserError>("input 'x' is declared twice", [] {
    const CompileOptions options{.inputs = {{"x", {4, 3}}, {"x", {4, 2}}},
                                 .optimizer = optim::SGD{},
                                 .device = {.kind = "cpu"}};
    static_cast<void>(compile(Net{}, plain_loss, options));  // error
  });
}

TEST(RunErrors, device_of_unknown_kind) {
  expect_mistake<UserError>(
      "device: one of auto, cpu, webgpu and null expected, got 'cuda'",
      [] {
        static_cast<void>(
            compiled(plain_loss, {.optimizer = optim::SGD{}, .device = {.kind = "cuda"}}));
      },
      false);
}

TEST(RunErrors, scalar_of_unknown_name) {
  auto trainer =
      compiled([](const Net& net, In in) { return mean(net.fc(in["x"])) * scalar("beta", 0.5); });
  trainer.set("beta", 0.25);
  expect_mistake<UserError>(
      "there is no run-time scalar 'alpha'; there is beta", [&] { trainer.set("alpha", 1); },
      false);
}

TEST(RunErrors, schedule_that_cannot_be) {
  expect_mistake<UserError>(
      "schedule linear: at least one step expected, got 0",
      [] { static_cast<void>(Schedule::linear(1, 0, 0)); }, false);
  expect_mistake<UserError>(
      "schedule multi_step: the milestones must rise",
      [] { static_cast<void>(Schedule::multi_step(1, {5, 3}, 0.1)); }, false);
}

TEST(RunErrors, memory_budget_that_is_too_small_lists_the_largest_tensors) {
  try {
    static_cast<void>(compiled(plain_loss, {.optimizer = optim::SGD{}, .memory_budget = 1000}));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const UserError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.rfind("memory budget: the plan needs ", 0), 0U) << text;
    EXPECT_NE(text.find(" bytes, the budget is 1000; the largest tensors are\n    "),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("48 bytes: input f32[4,3] at "), std::string::npos) << text;
    EXPECT_GE(std::count(text.begin(), text.end(), '\n'), 4) << text;
  }
}

TEST(RunErrors, loss_that_is_not_a_number_names_the_op_and_its_line) {
  auto trainer = compiled(
      [](const Net& net, In in) {
        const Tensor y = net.fc(in["x"]);
        return mean(y) * 0.0 + mean(log(in["y"]));  // error
      },
      {.optimizer = optim::SGD{}, .detect_nan = true});
  Given given;
  EXPECT_TRUE(std::isfinite(trainer.step(given.feed()).loss));
  given.y[5] = -1;
  expect_mistake<UserError>(
      "step 2: the loss is nan; the first op that gives NaN or infinity is log (element 5 of "
      "f32[4,2] is nan)",
      [&] {
        try {
          trainer.step(given.feed());
        } catch (const UserError& error) {
          std::string text = error.message();
          if (text.find("is -nan") == std::string::npos) throw;
          for (std::size_t at; (at = text.find("-nan")) != std::string::npos;) text.erase(at, 1);
          throw UserError(text, error.site());
        }
      });
}

TEST(RunErrors, parameters_that_do_not_fit) {
  auto trainer = compiled(plain_loss);
  auto params = trainer.download_params();
  params.erase("fc.bias");
  const auto before = trainer.download_params();
  EXPECT_THROW(trainer.upload_params(params), UserError);
  params = before;
  params["fc.extra"] = params["fc.bias"];
  EXPECT_THROW(trainer.upload_params(params), UserError);
  params = before;
  params["fc.bias"].shape = {3};
  params["fc.bias"].bytes.resize(12);
  EXPECT_THROW(trainer.upload_params(params), UserError);
  EXPECT_EQ(trainer.download_params().at("fc.weight").bytes, before.at("fc.weight").bytes);
}

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "_" + name))
      .string();
}

struct Wide {
  nn::Linear fc{3, 5};
  TG_MODULE(fc)
};

TEST(RunErrors, checkpoint_of_another_model_changes_nothing) {
  const std::string path = temporary("other.safetensors");
  auto wide =
      compile(Wide{}, [](const Wide& net, In in) { return mean(net.fc(in["x"])); },
              {.inputs = {{"x", {4, 3}}}, .optimizer = optim::SGD{}, .device = {.kind = "cpu"}});
  wide.save(path);
  auto trainer = compiled(plain_loss);
  const auto before = trainer.download_params();
  try {
    trainer.load(path);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("fc."), std::string::npos) << error.what();
  }
  EXPECT_EQ(trainer.download_params().at("fc.weight").bytes, before.at("fc.weight").bytes);
  std::filesystem::remove(path);
}

TEST(RunErrors, checkpoint_cut_short_anywhere_is_refused_whole) {
  const std::string path = temporary("cut.safetensors");
  auto trainer = compiled(plain_loss, {.optimizer = optim::Adam{}});
  trainer.save(path);
  const std::vector<std::byte> bytes = read_file(path);
  const auto before = trainer.download_params();
  for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 40) {
    write_file_atomically(path, std::span(bytes).first(size));
    try {
      trainer.load(path);
      ADD_FAILURE() << "nothing was thrown for " << size << " bytes";
    } catch (const IoError& error) {
      EXPECT_EQ(std::string(error.what()).rfind(path, 0), 0U) << error.what();
    }
  }
  EXPECT_EQ(trainer.download_params().at("fc.weight").bytes, before.at("fc.weight").bytes);
  std::filesystem::remove(path);
}

TEST(RunErrors, checkpoint_that_is_not_there_or_cannot_be_written) {
  auto trainer = compiled(plain_loss);
  EXPECT_THROW(trainer.load(temporary("missing")), IoError);
  EXPECT_THROW(trainer.save("/nonexistent/folder/model.safetensors"), IoError);
}

TEST(RunErrors, trace_within_a_trace) {
  expect_mistake<UserError>(
      "a function that is being traced may not compile or attach another",
      [] {
        static_cast<void>(compiled([](const Net& net, In in) {
          static_cast<void>(compiled(plain_loss));
          return plain_loss(net, in);
        }));
      },
      false);
}

// Names that the library itself gives to buffers must stay free for the user, or be refused.
TEST(RunErrors, inputs_may_have_the_names_of_our_buffers) {
  CompileOptions options{.optimizer = optim::SGD{.lr = 0.0}};
  options.inputs = {{"params", {4, 3}}, {"loss", {4, 2}}, {"grads", {1}}, {"slot0", {1}}};
  auto trainer = compiled(
      [](const Net& net, In in) {
        return mse(net.fc(in["params"]), in["loss"]) + sum(in["grads"]) + sum(in["slot0"]);
      },
      options);
  auto plain = compiled(plain_loss);
  const Given given;
  const std::vector<float> one = {1}, two = {2};
  const float want = plain.step(given.feed()).loss + 3;
  EXPECT_FLOAT_EQ(
      trainer.step({{"params", given.x}, {"loss", given.y}, {"grads", one}, {"slot0", two}}).loss,
      want);
}

}  // namespace
}  // namespace tensorgrad::testing
