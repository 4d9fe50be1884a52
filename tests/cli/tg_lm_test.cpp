// SPDX-License-Identifier: MIT
// tg lm train, generate and eval, and resuming after a stop, as a user calls them.
#include <csignal>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/tool.h"
#include "lm/settings.h"
#include "support/source_path.h"
#include "tensorgrad/data/npy.h"
#include "tensorgrad/lm.h"

namespace tensorgrad::test {
namespace {

namespace fs = std::filesystem;
using LmLine = nlohmann::json;

// Returns sentences of a few words, which a small model learns quickly.
std::string some_story(unsigned seed, int sentences) {
  static const char* const kWho[] = {"the cat", "a dog", "the king", "my aunt"};
  static const char* const kWhat[] = {"sat", "ran", "sang", "slept"};
  static const char* const kWhere[] = {"here", "on the mat", "in town"};
  std::mt19937 random(seed);
  std::string text;
  for (int i = 0; i < sentences; ++i) {
    text += std::string(kWho[random() % 4]) + " " + kWhat[random() % 4] + " " +
            kWhere[random() % 3] + ".\n";
  }
  return text;
}

void write_stories(const TestFolder& folder) {
  fs::create_directories(folder.path() / "stories");
  write_text(folder / "stories/a.txt", some_story(1, 60));
  write_text(folder / "stories/b.txt", some_story(2, 40));
  write_text(folder / "stories/notes.md", "not a story");
}

std::vector<std::string> train_lm(const std::string& out, std::vector<std::string> more = {}) {
  std::vector<std::string> words = {
      "lm",     "train",    "stories", "--out",        out,  "--device",        "cpu", "--arch",
      "hybrid", "--layers", "2",       "--width",      "16", "--heads",         "2",   "--context",
      "64",     "--steps",  "24",      "--batch",      "4",  "--length",        "16",  "--lr",
      "0.02",   "--warmup", "4",       "--eval-every", "8",  "--sample-tokens", "12",  "--seed",
      "3"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<LmLine> lm_lines(const std::string& run) {
  std::vector<LmLine> lines;
  std::istringstream in(read_text(fs::path(run) / "metrics.jsonl"));
  for (std::string line; std::getline(in, line);) {
    lines.push_back(LmLine::parse(line));
    if (lines.back()["kind"] == "validation") {
      EXPECT_GT(lines.back()["tokens_per_second"], 0) << line;
    }
    lines.back().erase("seconds");
    lines.back().erase("tokens_per_second");
    lines.back().erase("checksum");
  }
  return lines;
}

TEST(TgLm, trains_and_makes_a_run_folder) {
  const TestFolder folder;
  write_stories(folder);
  const ToolResult result = folder.tg(train_lm("run"));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_NE(result.out.find("mamba1 mlp attention mlp"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("2 documents: "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("best validation loss"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(" tokens/s  "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("  validation loss "), std::string::npos) << result.out;
  for (const char* name : {"model.safetensors", "checkpoint.safetensors", "tokenizer.json",
                           "metrics.jsonl", "run.json", "curves.svg"}) {
    EXPECT_GT(fs::file_size(folder.path() / "run" / name), 0U) << name;
  }
  const std::vector<LmLine> lines = lm_lines(folder / "run");
  const auto of_kind = [&](const char* kind) {
    std::vector<LmLine> found;
    std::copy_if(lines.begin(), lines.end(), std::back_inserter(found),
                 [&](const LmLine& line) { return line["kind"] == kind; });
    return found;
  };
  EXPECT_EQ(of_kind("step").size(), 24U);
  ASSERT_EQ(of_kind("validation").size(), 3U);
  EXPECT_EQ(of_kind("sample").size(), 3U);
  const double first = of_kind("validation")[0]["loss"], last = of_kind("validation")[2]["loss"];
  EXPECT_LT(last, first);
  EXPECT_LT(last, 2.6);  // of 23 characters and the end token; a uniform guess has 3.2
  EXPECT_NE(read_text(folder / "run/curves.svg").find("validation"), std::string::npos);
  // The model file is self-contained.
  const lm::SavedModel model = lm::load_model(folder / "run/model.safetensors");
  ASSERT_TRUE(model.tokenizer.has_value());
  EXPECT_TRUE(model.tokenizer->eos_id().has_value());

  const ToolResult other = folder.tg({"eval", "--run", "run", "--device", "cpu"});
  EXPECT_EQ(other.code, 1);
}

TEST(TgLm, RunInExistingFolderHasEveryFileAndResumes) {
  const TestFolder folder;
  write_stories(folder);
  fs::create_directory(folder.path() / "run");
  std::vector<std::string> arguments = train_lm("run");
  arguments.insert(arguments.end(), {"--stop-after", "2"});
  EXPECT_EQ(folder.tg(arguments).code, 130);
  EXPECT_TRUE(fs::exists(folder.path() / "run" / "tokenizer_config.json"));
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path() / "run"))
    EXPECT_FALSE(fs::is_directory(entry)) << entry.path();
  const ToolResult resumed = folder.tg({"lm", "train", "--resume", "run", "--device", "cpu"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
}

TEST(TgLm, shows_how_far_it_is_on_a_terminal) {
  const TestFolder folder;
  write_stories(folder);
  const ToolResult result = run_tool_on_terminal(train_lm("run"), folder.path(), 100);
  ASSERT_EQ(result.code, 0) << result.out;
  std::set<std::string> shares;
  std::size_t with_rate = 0;
  std::istringstream drawn(result.out);
  for (std::string line; std::getline(drawn, line, '\r');) {
    const std::size_t percent = line.find('%');
    if (percent == std::string::npos || percent < 3) continue;
    shares.insert(line.substr(percent - 3, 3));
    EXPECT_NE(line.find("loss "), std::string::npos) << line;
    with_rate += line.find(" tokens/s") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(shares.size(), 3U) << result.out;  // at least one between validations
  EXPECT_GT(with_rate, 0U) << result.out;
}

// Replaces the value of an option.
void set_word(std::vector<std::string>& words, const char* option, const std::string& value) {
  *(std::find(words.begin(), words.end(), option) + 1) = value;
}

TEST(TgLm, trains_each_architecture) {
  const TestFolder folder;
  write_stories(folder);
  const auto repeated = [](const std::string& layer, int times) {
    std::string text = layer;
    for (int i = 1; i < times; ++i) text += " " + layer;
    return text;
  };
  const std::map<std::string, std::string> layers = {
      {"mamba1", repeated("mamba1", 6)},
      {"mamba2", repeated("mamba2", 6)},
      {"mamba3", repeated("mamba3", 6)},
      {"gpt", repeated("attention mlp", 6)},
      {"gpt2", repeated("attention mlp", 6)},
      {"hybrid", "mamba1 mlp attention mlp mamba1 mlp mamba1 mlp attention mlp mamba1 mlp"},
      {"jamba", repeated("mamba2 mlp", 3) + " attention mlp " + repeated("mamba2 mlp", 2)},
      {"zamba", repeated("mamba3 mlp", 5) + " attention mlp"}};
  for (const std::string& arch : cli::lm_arches()) {
    std::vector<std::string> words = train_lm(arch, {"--no-samples"});
    for (const auto& [option, value] : std::vector<std::pair<const char*, std::string>>{
             {"--arch", arch}, {"--layers", "6"}, {"--steps", "2"}, {"--eval-every", "1"}}) {
      set_word(words, option, value);
    }
    const ToolResult result = folder.tg(words);
    ASSERT_EQ(result.code, 0) << arch << ": " << result.err;
    EXPECT_NE(result.out.find("model   " + arch + ": " + layers.at(arch) + "; "), std::string::npos)
        << result.out;
    const std::vector<LmLine> lines = lm_lines(folder / arch);
    ASSERT_EQ(lines.size(), 4U) << arch;           // two steps, each with a validation
    EXPECT_LT(lines.back()["loss"], 3.6) << arch;  // a uniform guess has 3.2
  }
}

TEST(TgLm, TrainsTheLayersOfAListAndOfAConfigurationFile) {
  const TestFolder folder;
  write_stories(folder);
  std::vector<std::string> words = train_lm("list", {"--no-samples"});
  for (const auto& [option, value] : std::vector<std::pair<const char*, std::string>>{
           {"--arch", "mamba2 mlp attention moe"}, {"--layers", "6"}, {"--steps", "2"}}) {
    set_word(words, option, value);
  }
  ToolResult result = folder.tg(words);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find(": mamba2 mlp attention moe mamba2 mlp; "), std::string::npos)
      << result.out;

  write_text(folder / "model.json",
             R"({"d_model": 16, "layers": "mamba1 attention", "n_layer": 4,
                 "attention": {"heads": 2, "max_length": 32},
                 "layer_options": [{"first": 3, "attention": {"heads": 4, "rope": false}}]})");
  const std::vector<std::string> configured = {
      "lm",  "train",    "stories",    "--out",    "configured", "--device",
      "cpu", "--config", "model.json", "--steps",  "2",          "--batch",
      "4",   "--length", "16",         "--prompt", "the"};
  result = folder.tg(configured);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("model   configured: mamba1 attention mamba1 attention; "),
            std::string::npos)
      << result.out;
  const lm::SavedModel model = lm::load_model(folder / "configured/model.safetensors");
  EXPECT_EQ(nn::layer_config(model.config, 1).heads, 2);
  EXPECT_EQ(nn::layer_config(model.config, 3).heads, 4);
  EXPECT_FALSE(nn::layer_config(model.config, 3).attention.rope);
  EXPECT_EQ(model.config.vocab_size, model.tokenizer->vocab_size());

  std::vector<std::string> both = configured;
  both.insert(both.end(), {"--layers", "2"});
  EXPECT_EQ(folder.tg(both).code, 2);
  write_text(folder / "model.json", R"({"d_model": 16, "layers": ["lstm"]})");
  result = folder.tg(configured);
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.err.find("model.json: layers[0]: expected mamba1, mamba2"), std::string::npos)
      << result.err;
}

TEST(TgLm, mamba_3_has_the_requested_norm) {
  const TestFolder folder;
  write_stories(folder);
  const std::pair<const char*, nn::OutNorm> norms[] = {{"none", nn::OutNorm::kNone},
                                                       {"before_gate", nn::OutNorm::kBeforeGate},
                                                       {"after_gate", nn::OutNorm::kAfterGate}};
  for (const auto& [name, norm] : norms) {
    std::vector<std::string> words = train_lm(name, {"--no-samples", "--out-norm", name});
    set_word(words, "--arch", "mamba3");
    set_word(words, "--steps", "1");
    const ToolResult result = folder.tg(words);
    ASSERT_EQ(result.code, 0) << result.err;
    const lm::SavedModel made = lm::load_model(folder / (std::string(name) + "/model.safetensors"));
    EXPECT_EQ(made.config.mamba3.out_norm, norm) << name;
    EXPECT_EQ(made.weights.contains("backbone.layers.0.mixer.norm.weight"),
              norm != nn::OutNorm::kNone);
  }
}

TEST(TgLm, TrainsMamba3WithHeavyTails) {
  const TestFolder folder;
  write_stories(folder);
  std::vector<std::string> words = train_lm("run", {"--no-samples", "--decay", "heavy_tail"});
  set_word(words, "--arch", "mamba3");
  set_word(words, "--steps", "1");
  const ToolResult result = folder.tg(words);
  ASSERT_EQ(result.code, 0) << result.err;
  const lm::SavedModel made = lm::load_model(folder / "run/model.safetensors");
  EXPECT_EQ(made.config.mamba3.decay, nn::DecayActivation::kHeavyTail);
  EXPECT_FALSE(made.weights.contains("backbone.layers.0.mixer.A_bias"));
}

TEST(TgLm, writes_on_and_scores_texts) {
  const TestFolder folder;
  write_stories(folder);
  ASSERT_EQ(folder.tg(train_lm("run", {"--no-samples"})).code, 0);
  const std::vector<std::string> words = {
      "lm",           "generate", "run",    "--device", "cpu",     "--prompt",    "the cat",
      "--max-tokens", "20",       "--seed", "5",        "--quiet", "--ignore-eos"};
  const ToolResult text = folder.tg(words);
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.out.rfind("the cat", 0), 0U);
  EXPECT_EQ(folder.tg(words).out, text.out) << "the seed says what is drawn";

  std::vector<std::string> many = words;
  many.insert(many.end(), {"--prompt", "a", "--count", "2", "--json"});
  const ToolResult lines = folder.tg(many);
  ASSERT_EQ(lines.code, 0) << lines.err;
  std::istringstream in(lines.out);
  std::vector<LmLine> texts;
  for (std::string line; std::getline(in, line);) texts.push_back(LmLine::parse(line));
  ASSERT_EQ(texts.size(), 4U);
  EXPECT_EQ("the cat" + texts[0]["text"].get<std::string>() + "\n", text.out)
      << "beside others as alone";
  EXPECT_NE(texts[0]["text"], texts[1]["text"]);
  EXPECT_EQ(texts[3]["prompt"], "a");
  EXPECT_EQ(texts[0]["tokens"].size(), 20U);
  EXPECT_EQ(texts[0]["finish_reason"], "max tokens");

  std::vector<std::string> stops = words;
  stops.insert(stops.end(), {"--stop", " ", "--json", "--temperature", "0"});
  const ToolResult stopped = folder.tg(stops);
  ASSERT_EQ(stopped.code, 0) << stopped.err;
  EXPECT_EQ(LmLine::parse(stopped.out)["finish_reason"], "stop string");
  EXPECT_EQ(LmLine::parse(stopped.out)["text"].get<std::string>().find(' '), std::string::npos);

  const ToolResult held = folder.tg({"lm", "eval", "run", "--device", "cpu", "--json"});
  ASSERT_EQ(held.code, 0) << held.err;
  const LmLine score = LmLine::parse(held.out);
  EXPECT_NEAR(score["perplexity"].get<double>(), std::exp(score["loss"].get<double>()), 1e-6);
  EXPECT_NEAR(score["loss"].get<double>(), lm_lines(folder / "run").back()["loss"].get<double>(),
              0.3);
  write_text(folder / "other.txt", some_story(9, 10));
  std::vector<std::string> eval = {"lm",     "eval",      "run/model.safetensors",
                                   "--data", "other.txt", "--device",
                                   "cpu",    "--json",    "--chunk",
                                   "16"};
  const ToolResult other = folder.tg(eval);
  ASSERT_EQ(other.code, 0) << other.err;
  // Every character except the first is predicted, and each is one byte.
  EXPECT_EQ(LmLine::parse(other.out)["tokens"], some_story(9, 10).size() - 1);
  eval.emplace_back("--eos");  // also predicts the end of the text
  EXPECT_EQ(LmLine::parse(folder.tg(eval).out)["tokens"], some_story(9, 10).size());
}

TEST(TgLm, keeps_weights_in_fewer_bits_and_scores_them) {
  const TestFolder folder;
  write_stories(folder);
  ASSERT_EQ(folder.tg(train_lm("run", {"--no-samples"})).code, 0);
  write_text(folder / "other.txt", some_story(9, 10));
  const auto loss = [&](const std::string& model) {
    const ToolResult held = folder.tg(
        {"lm", "eval", model, "--data", "other.txt", "--device", "cpu", "--json", "--chunk", "16"});
    EXPECT_EQ(held.code, 0) << held.err;
    return held.code == 0 ? LmLine::parse(held.out)["loss"].get<double>() : 0;
  };
  const double whole = loss("run");
  const ToolResult made =
      folder.tg({"lm", "quantize", "run", "--type", "int8", "-o", "int8.safetensors"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_NE(made.out.find("weights in int8"), std::string::npos) << made.out;
  EXPECT_NE(made.out.find(" kB"), std::string::npos) << made.out;
  EXPECT_LT(fs::file_size(folder / "int8.safetensors"),
            fs::file_size(folder / "run/model.safetensors"));
  EXPECT_NEAR(loss("int8.safetensors"), whole, 0.02);
  EXPECT_NE(loss("int8.safetensors"), whole);
  // Dequantizes to f32, for training.
  const ToolResult back =
      folder.tg({"lm", "quantize", "int8.safetensors", "--type", "f32", "-o", "back.safetensors"});
  ASSERT_EQ(back.code, 0) << back.err;
  EXPECT_NEAR(loss("back.safetensors"), loss("int8.safetensors"), 1e-5);
  EXPECT_EQ(folder.tg({"lm", "quantize", "run", "--type", "int3", "-o", "x"}).code, 2);
}

TEST(TgLm, imports_other_libraries_models) {
  const TestFolder folder;
  const std::string fixture = source_path("tests/golden/pretrained/mamba");
  const ToolResult made = folder.tg({"lm", "import", fixture, "-o", "mamba.safetensors"});
  ASSERT_EQ(made.code, 0) << made.err;
  const lm::SavedModel model = lm::load_model(folder / "mamba.safetensors");
  EXPECT_EQ(model.config.vocab_size, 23);
  lm::save_mbjs(folder / "mamba.mbjs", model);
  const ToolResult mbjs =
      folder.tg({"lm", "import", "mamba.mbjs", "--euler", "-o", "again.safetensors"});
  ASSERT_EQ(mbjs.code, 0) << mbjs.err;
  const lm::SavedModel again = lm::load_model(folder / "again.safetensors");
  EXPECT_EQ(again.config.mamba.discretization, Discretization::kEuler);
  for (const auto& [name, tensor] : model.weights)
    EXPECT_EQ(again.weights.at(name).bytes, tensor.bytes) << name;
  const ToolResult exported = folder.tg({"lm", "export", "mamba.safetensors", "-o", "there"});
  ASSERT_EQ(exported.code, 0) << exported.err;
  const lm::SavedModel there = lm::load_pretrained(folder / "there");
  for (const auto& [name, tensor] : model.weights)
    EXPECT_EQ(there.weights.at(name).bytes, tensor.bytes) << name;
  const ToolResult onnx = folder.tg({"lm", "export", "mamba.safetensors", "-o", "m.onnx"});
  ASSERT_EQ(onnx.code, 0) << onnx.err;
  EXPECT_NE(onnx.out.find("logits f32[1,length,23]"), std::string::npos) << onnx.out;
  EXPECT_GT(fs::file_size(folder / "m.onnx"), fs::file_size(folder / "mamba.safetensors"));
  const ToolResult none = folder.tg({"lm", "import", "nothing", "-o", "x"});
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.err.find("nothing"), std::string::npos) << none.err;
  const ToolResult file = folder.tg({"lm", "import", fixture + "/model.safetensors", "-o", "x"});
  EXPECT_EQ(file.code, 1);
  EXPECT_NE(file.err.find("is a file; expected the folder that holds it"), std::string::npos)
      << file.err;
  const ToolResult used = folder.tg({"lm", "generate", fixture, "--device", "cpu"});
  EXPECT_EQ(used.code, 1);
  EXPECT_NE(used.err.find("convert it with `tg lm import "), std::string::npos) << used.err;
}

TEST(TgLm, exports_and_imports_gguf_files) {
  const TestFolder folder;
  const std::string fixture = source_path("tests/golden/gguf/llama.gguf");
  const ToolResult made = folder.tg({"lm", "import", fixture, "-o", "llama.safetensors"});
  ASSERT_EQ(made.code, 0) << made.err;
  const ToolResult exported = folder.tg({"lm", "export", "llama.safetensors", "-o", "again.gguf"});
  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_NE(exported.out.find("wrote again.gguf: for llama.cpp"), std::string::npos)
      << exported.out;
  EXPECT_TRUE(read_gguf(folder / "again.gguf").tensors == read_gguf(fixture).tensors);
  EXPECT_TRUE(lm::load_gguf(folder / "again.gguf").tokenizer);
  const ToolResult bare =
      folder.tg({"lm", "export", "llama.safetensors", "--no-tokenizer", "-o", "bare.gguf"});
  ASSERT_EQ(bare.code, 0) << bare.err;
  EXPECT_FALSE(lm::load_gguf(folder / "bare.gguf").tokenizer);
  const ToolResult euler = folder.tg({"lm", "import", fixture, "--euler", "-o", "x"});
  EXPECT_EQ(euler.code, 1);
  EXPECT_NE(euler.err.find("--euler applies only to MBJS files"), std::string::npos) << euler.err;
}

TEST(TgLm, resumed_run_matches_an_uninterrupted_one) {
  const TestFolder folder;
  write_stories(folder);
  ASSERT_EQ(folder.tg(train_lm("whole")).code, 0);
  const ToolResult stopped = folder.tg(train_lm("parts", {"--stop-after", "11"}));
  ASSERT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_NE(stopped.out.find("stopped after step 11 of 24"), std::string::npos) << stopped.out;
  for (const char* step : {"11", "16", "16"}) {  // including a stop before the first step
    const ToolResult again =
        folder.tg({"lm", "train", "--resume", "parts", "--device", "cpu", "--stop-after", step});
    ASSERT_EQ(again.code, 130) << again.err;
  }
  const ToolResult rest = folder.tg({"lm", "train", "--resume", "parts", "--device", "cpu"});
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(lm_lines(folder / "parts"), lm_lines(folder / "whole"));
  for (const char* name : {"model.safetensors", "checkpoint.safetensors"}) {
    EXPECT_EQ(read_text(folder.path() / "parts" / name), read_text(folder.path() / "whole" / name))
        << name;
  }
  const ToolResult done = folder.tg({"lm", "train", "--resume", "parts", "--device", "cpu"});
  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_NE(done.out.find("to train its model further: tg lm train TEXT --from parts"),
            std::string::npos)
      << done.out;
  EXPECT_EQ(lm_lines(folder / "parts"), lm_lines(folder / "whole"));
  // A run cannot be resumed with another text.
  write_text(folder / "stories/b.txt", some_story(3, 40));
  const ToolResult changed = folder.tg({"lm", "train", "--resume", "parts", "--device", "cpu"});
  EXPECT_EQ(changed.code, 1);
  EXPECT_NE(changed.err.find("the text differs from that of the run"), std::string::npos)
      << changed.err;
}

// The count of validations without improvement continues after a stop.
TEST(TgLm, ends_for_lack_of_patience_where_it_would_have_without_a_stop) {
  const TestFolder folder;
  write_stories(folder);
  const auto words = [](const std::string& out, std::vector<std::string> more) {
    std::vector<std::string> all = train_lm(out, std::move(more));
    set_word(all, "--lr", "1e-30");  // too small for any validation to improve
    set_word(all, "--eval-every", "2");
    return all;
  };
  const std::vector<std::string> patient = {"--no-samples", "--patience", "4"};
  const ToolResult whole = folder.tg(words("whole", patient));
  ASSERT_EQ(whole.code, 0) << whole.err;
  ASSERT_NE(whole.out.find("stopped early: 4 validations"), std::string::npos) << whole.out;
  EXPECT_EQ(lm_lines(folder / "whole").back()["step"], 10);
  std::vector<std::string> some = patient;
  some.insert(some.end(), {"--stop-after", "7"});
  ASSERT_EQ(folder.tg(words("parts", some)).code, 130);
  const ToolResult rest = folder.tg({"lm", "train", "--resume", "parts", "--device", "cpu"});
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_NE(rest.out.find("stopped early: 4 validations"), std::string::npos) << rest.out;
  EXPECT_EQ(lm_lines(folder / "parts"), lm_lines(folder / "whole"));
  EXPECT_EQ(read_text(folder.path() / "parts/model.safetensors"),
            read_text(folder.path() / "whole/model.safetensors"));
}

TEST(TgLm, trains_with_products_of_f16) {
  const TestFolder folder;
  write_stories(folder);
  ASSERT_EQ(folder.tg(train_lm("whole", {"--no-samples"})).code, 0);
  const ToolResult result = folder.tg(train_lm("mixed", {"--no-samples", "--mixed-precision"}));
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<LmLine> whole = lm_lines(folder / "whole"), mixed = lm_lines(folder / "mixed");
  ASSERT_EQ(mixed.size(), whole.size());
  int others = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (!whole[i].contains("loss")) continue;
    const double loss = whole[i]["loss"], rounded = mixed[i]["loss"];
    EXPECT_NEAR(rounded, loss, 0.02 * loss) << whole[i];
    others += rounded != loss ? 1 : 0;
  }
  EXPECT_GT(others, 10);
  // A resumed run continues with them and with its loss scale.
  const std::vector<std::string> part = {"--no-samples", "--mixed-precision", "--stop-after", "10"};
  ASSERT_EQ(folder.tg(train_lm("parts", part)).code, 130);
  ASSERT_EQ(folder.tg({"lm", "train", "--resume", "parts", "--device", "cpu"}).code, 0);
  EXPECT_EQ(read_text(folder.path() / "parts/model.safetensors"),
            read_text(folder.path() / "mixed/model.safetensors"));
}

TEST(TgLm, TrainsOnPackedDocuments) {
  const TestFolder folder;
  write_stories(folder);
  ASSERT_EQ(folder.tg(train_lm("whole", {"--no-samples"})).code, 0);
  const ToolResult result = folder.tg(train_lm("packed", {"--no-samples", "--pack"}));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(read_text(folder.path() / "packed/model.safetensors"),
            read_text(folder.path() / "whole/model.safetensors"));
  // A stopped run goes on so.
  const std::vector<std::string> part = {"--no-samples", "--pack", "--stop-after", "10"};
  ASSERT_EQ(folder.tg(train_lm("parts", part)).code, 130);
  ASSERT_EQ(folder.tg({"lm", "train", "--resume", "parts", "--device", "cpu"}).code, 0);
  EXPECT_EQ(read_text(folder.path() / "parts/model.safetensors"),
            read_text(folder.path() / "packed/model.safetensors"));
}

TEST(TgLm, saves_when_it_is_interrupted) {
  const TestFolder folder;
  write_stories(folder);
  std::vector<std::string> words = train_lm("run", {"--no-samples"});
  *(std::find(words.begin(), words.end(), "--steps") + 1) = "1000000";
  ToolProcess tool(words, folder.path());
  const auto began = std::chrono::steady_clock::now();
  const auto metrics = folder.path() / "run/metrics.jsonl";
  while (std::chrono::steady_clock::now() - began < std::chrono::seconds(60) &&
         (!fs::exists(metrics) || fs::file_size(metrics) == 0)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  tool.signal(SIGINT);
  const ToolResult result = tool.wait();
  EXPECT_EQ(result.code, 130) << result.err;
  EXPECT_NE(result.out.find("resume with: tg lm train --resume run"), std::string::npos)
      << result.out;
  EXPECT_NO_THROW(lm::load_model(folder / "run/model.safetensors"));
}

TEST(TgLm, trains_only_b_and_c_and_stops_early) {
  const TestFolder folder;
  write_stories(folder);
  ASSERT_EQ(folder.tg(train_lm("base", {"--no-samples"})).code, 0);
  const ToolResult tuned = folder.tg(
      {"lm",           "train", "stories/b.txt", "--from", "base",        "--train-only-bc",
       "--out",        "tuned", "--device",      "cpu",    "--steps",     "40",
       "--batch",      "4",     "--length",      "16",     "--lr",        "1",
       "--eval-every", "1",     "--patience",    "2",      "--no-samples"});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_NE(tuned.out.find("stopped early: 2 validations"), std::string::npos) << tuned.out;
  EXPECT_NE(tuned.out.find("training only those of B, C and attention"), std::string::npos)
      << tuned.out;
  const auto before = lm::load_model(folder / "base/model.safetensors").weights;
  std::set<std::string> changed;
  for (const auto& [name, tensor] :
       read_safetensors(folder / "tuned/checkpoint.safetensors").tensors) {
    if (before.contains(name) && before.at(name).bytes != tensor.data) changed.insert(name);
  }
  EXPECT_EQ(changed, (std::set<std::string>{"backbone.layers.0.mixer.x_proj.weight",
                                            "backbone.layers.2.mixer.in_proj.weight",
                                            "backbone.layers.2.mixer.out_proj.weight"}));
}

TEST(TgLm, trains_on_a_file_of_tokens) {
  const TestFolder folder;
  write_stories(folder);
  ASSERT_EQ(folder
                .tg({"tokenizer", "train", "--data", "stories/a.txt", "--vocab-size", "300",
                     "--out", "bpe.json"})
                .code,
            0);
  ASSERT_EQ(folder
                .tg({"tokenizer", "encode", "--tokenizer", "bpe.json", "stories/a.txt", "--out",
                     "a.safetensors"})
                .code,
            0);
  std::vector<std::string> words = train_lm("run", {"--no-samples", "--tokenizer", "bpe.json"});
  const char* const no_end = "no end-of-text token";
  words[4] = "two";
  const ToolResult two = folder.tg(words);
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_NE(two.out.find(no_end), std::string::npos) << two.out;
  words[2] = "a.safetensors";
  words[4] = "run";
  std::vector<std::string> mixed = words;
  mixed.insert(mixed.begin() + 3, "stories/a.txt");
  const ToolResult refused = folder.tg(mixed);
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("a.safetensors: not a text file"), std::string::npos) << refused.err;
  mixed[2].clear();
  const ToolResult nowhere = folder.tg(mixed);
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_NE(nowhere.err.find("the path of a text file is empty"), std::string::npos) << nowhere.err;
  const ToolResult joined =
      folder.tg({"tokenizer", "encode", "--tokenizer", "bpe.json", "stories/a.txt", "stories/b.txt",
                 "--out", "ab.safetensors"});
  EXPECT_NE(joined.out.find(no_end), std::string::npos) << joined.out;
  const ToolResult result = folder.tg(words);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out.find(no_end), std::string::npos) << result.out;
  // The file name does not matter.
  fs::copy_file(folder.path() / "a.safetensors", folder.path() / "a.tokens");
  words[2] = "a.tokens";
  words[4] = "again";
  ASSERT_EQ(folder.tg(words).code, 0);
  EXPECT_EQ(read_text(folder.path() / "again/model.safetensors"),
            read_text(folder.path() / "run/model.safetensors"));
  words.resize(words.size() - 2);
  words[4] = "other";
  const ToolResult without = folder.tg(words);
  EXPECT_EQ(without.code, 1);
  EXPECT_NE(without.err.find("set --tokenizer to the file"), std::string::npos) << without.err;
}

// Attention without other mixers produces garbage at positions beyond the training length, so the
// context is limited to it.
TEST(TgLm, keeps_a_window_if_only_attention_has_positions) {
  const TestFolder folder;
  write_stories(folder);
  std::vector<std::string> words = train_lm("gpt", {"--no-samples", "--holdout", "0"});
  *(std::find(words.begin(), words.end(), "hybrid")) = "gpt";
  words.erase(std::find(words.begin(), words.end(), "--context"),
              std::find(words.begin(), words.end(), "--steps"));
  ASSERT_EQ(folder.tg(words).code, 0);
  EXPECT_EQ(lm::load_model(folder / "gpt/model.safetensors").config.attention.max_length, 16);
  const ToolResult text =
      folder.tg({"lm", "generate", "gpt", "--device", "cpu", "--prompt", "the", "--ignore-eos"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.err.find("ended at the context length of 16 tokens"), std::string::npos)
      << text.err;
  const ToolResult none = folder.tg(
      {"lm", "generate", "gpt", "--device", "cpu", "--prompt", "the", "--max-tokens", "0"});
  ASSERT_EQ(none.code, 0) << none.err;
  EXPECT_EQ(none.out, "the\n");
  EXPECT_NE(none.err.find("prompts: none; generated: none"), std::string::npos) << none.err;
  const ToolResult longer = folder.tg(
      {"lm", "generate", "gpt", "--device", "cpu", "--prompt", "the cat sat on a mat and more"});
  EXPECT_EQ(longer.code, 1);
  EXPECT_EQ(longer.out, "");
  EXPECT_NE(longer.err.find("the model's attention keeps 16"), std::string::npos) << longer.err;
  const ToolResult score = folder.tg({"lm", "eval", "gpt", "--device", "cpu"});
  EXPECT_EQ(score.code, 1);
  EXPECT_NE(score.err.find("the run has no validation text"), std::string::npos) << score.err;
}

TEST(TgLm, EmbedsTexts) {
  const TestFolder folder;
  write_stories(folder);
  ASSERT_EQ(folder.tg(train_lm("run", {"--no-samples", "--stop-after", "1"})).code, 128 + SIGINT);
  write_text(folder / "lines.txt", "the cat\nin town\r\n");
  const ToolResult lines =
      folder.tg({"lm", "embed", "run", "--device", "cpu", "--text", "the", "--lines", "lines.txt"});
  ASSERT_EQ(lines.code, 0) << lines.err;
  std::istringstream in(lines.out);
  std::vector<float> rows;
  std::vector<std::string> texts;
  for (std::string line; std::getline(in, line);) {
    const LmLine row = LmLine::parse(line);
    texts.push_back(row["text"]);
    EXPECT_EQ(row["tokens"], texts.back().size());
    for (const auto& value : row["embedding"]) rows.push_back(value);
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"the", "the cat", "in town"}));
  const std::vector<std::string> words = {"lm",        "embed",   "run", "--device",
                                          "cpu",       "--text",  "the", "--lines",
                                          "lines.txt", "--batch", "2",   "--out"};
  const auto saved = [&](const std::string& file, const std::string& pooling) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {file, "--pooling", pooling});
    const ToolResult made = folder.tg(all);
    EXPECT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(made.out, "wrote " + file + ": f32[3,16]\n");
    return read_npy(folder / file).floats();
  };
  const std::vector<float> means = saved("means.npy", "mean"), last = saved("last.npy", "last");
  ASSERT_EQ(means.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_NEAR(means[i], rows[i], 1e-6);
  EXPECT_NE(means, last);
  const ToolResult long_text =
      folder.tg({"lm", "embed", "run", "--device", "cpu", "--text", std::string(65, 't')});
  EXPECT_EQ(long_text.code, 1);
  EXPECT_NE(long_text.err.find("embed: text 0: expected at most 64 tokens"), std::string::npos)
      << long_text.err;
}

TEST(TgLm, errors_name_what_is_wrong) {
  const TestFolder folder;
  write_stories(folder);
  const auto says = [&](const std::vector<std::string>& words, int code, const std::string& what) {
    const ToolResult result = folder.tg(words);
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_NE((result.err + result.out).find(what), std::string::npos) << result.err << result.out;
  };
  says({"lm"}, 2, "train, generate, eval, embed, import, export or quantize");
  says({"lm", "train"}, 2, "TEXT or --resume");
  says({"lm", "embed", "x"}, 2, "--text or --lines");
  says({"lm", "embed", "x", "--text", "a", "-o", "a.csv"}, 2, "expected a .npy file, got a.csv");
  says({"lm", "train", "nothing.txt"}, 1, "nothing.txt");
  says({"lm", "train", "stories", "--arch", "lstm"}, 2,
       "--arch: expected one of mamba1,mamba2,mamba3,gpt,gpt2,hybrid,jamba,zamba, or a list of");
  says({"lm", "train", "stories", "--arch", "gpt2", "--length", "32", "--context", "31"}, 2,
       "--context: expected at least --length 32 for gpt2, which has an embedding for each "
       "position");
  says({"lm", "train", "stories", "--tokenizer", "bpe:9"}, 1, "expected bpe:N with N from 257");
  says({"lm", "train", "stories", "--length", "100000"}, 1,
       "expected a text of at least 100000 tokens");
  says({"lm", "train", "--resume", "stories"}, 1, "run.json");
  fs::create_directories(folder.path() / "huge");
  write_text(folder / "huge/run.json", "{\"version\": 1e999}");
  says({"lm", "train", "--resume", "huge"}, 1, "run.json: a number is too large");
  says({"lm", "train", "--resume", "stories", "--steps", "7"}, 2, "--resume");
  says({"lm", "train", "stories", "--lr", "-1"}, 2, "expected a number above 0");
  says({"lm", "train", "stories", "--tokenizer", "bpe"}, 1, "expected bpe:N with N from 257");
  says({"lm", "train", "stories", "--train-only-bc"}, 2, "--train-only-bc: requires --from");
  says({"lm", "train", "stories", "--out-norm", "before_gate"}, 2,
       "applies only to Mamba-3 layers; hybrid has none");
  says({"lm", "train", "stories", "--decay", "heavy_tail"}, 2,
       "--decay: applies only to Mamba-3 layers; hybrid has none");
  says({"lm", "train", "stories", "--arch", "mamba3", "--out-norm", "some"}, 2,
       "--out-norm: unknown value 'some'; available: after_gate, before_gate, none");
  says({"lm", "train", "stories", "--prompt", "Zo\xc3\xab"}, 1, "--prompt: tokenizer: ");
  says({"lm", "generate", "stories"}, 1, "model.safetensors");
  write_text(folder / "stories/c.txt", "caf\xe9 is no UTF-8");
  says({"lm", "train", "stories"}, 1, "c.txt: invalid UTF-8 at byte 3");
  fs::remove(folder.path() / "stories/c.txt");
  write_safetensors(folder / "plain.safetensors", {});
  says({"lm", "generate", "plain.safetensors"}, 1, "not a language model file");
  says({"lm", "generate", "plain.safetensors", "--top-p", "0"}, 2, "--top-p");
}

}  // namespace
}  // namespace tensorgrad::test
