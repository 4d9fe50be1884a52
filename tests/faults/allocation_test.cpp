// SPDX-License-Identifier: MIT
// Fails each allocation of the library in turn, either once or with all that follow. The call
// throws std::bad_alloc or an error of the library, leaks nothing, and afterwards succeeds with the
// same result. By default tests a sample of the allocations; TENSORGRAD_ALLOCATION_FAULTS=1 tests
// all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "base/env.h"
#include "failing_malloc.h"
#include "ir/node.h"
#include "support/source_path.h"
#include "support/temp_dir.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

constexpr std::int64_t kSample = 250;  // allocations per call and kind of failure

// Printed after a crash, so it must not allocate.
char current[160] = "";

void tell_where() {
  std::fputs(current, stderr);
  std::fputc('\n', stderr);
}

void expect_recovery(const char* name, const std::function<std::string()>& call) {
  std::set_terminate([] {
    tell_where();
    std::abort();
  });
  for (const int signal : {SIGSEGV, SIGABRT}) {
    std::signal(signal, [](int number) {
      tell_where();
      std::signal(number, SIG_DFL);
      std::raise(number);
    });
  }
  const std::string wanted = call();  // also makes the allocations that persist
  (void)call();
  const std::int64_t before = allocations();
  EXPECT_EQ(call(), wanted);
  const std::int64_t count = allocations() - before;
  ASSERT_GT(count, 0);
  const bool every = env_flag("TENSORGRAD_ALLOCATION_FAULTS");
  const std::int64_t stride = every ? 1 : std::max<std::int64_t>(1, count / kSample);
  int thrown = 0;
  for (const Failing failing : {Failing::kOne, Failing::kRest}) {
    for (std::int64_t number = 0; number < count; number += stride) {
      std::snprintf(current, sizeof current, "%s: allocation %lld of %lld fails%s", name,
                    static_cast<long long>(number), static_cast<long long>(count),
                    failing == Failing::kOne ? "" : ", and all that follow");
      const std::int64_t live = live_allocations();
      std::array<char, 400> other{};
      fail_allocation(number, failing);
      try {
        const std::string got = call();
        stop_failing();
        EXPECT_EQ(got, wanted) << current;
      } catch (const std::bad_alloc&) {
        ++thrown;
      } catch (const Error&) {
        ++thrown;
      } catch (const std::exception& error) {
        std::snprintf(other.data(), other.size(), "%s", error.what());
      }
      stop_failing();
      EXPECT_STREQ(other.data(), "") << current;
      EXPECT_EQ(live_allocations(), live) << current << ": leaks";
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(thrown, 0);
  EXPECT_EQ(call(), wanted) << "afterwards";
  std::printf("%s: %lld allocations, every %lldth failed\n", name, static_cast<long long>(count),
              static_cast<long long>(stride));
}

#define TENSORGRAD_SKIP_WITHOUT_OWN_MALLOC() \
  if (!kFailsAllocations) GTEST_SKIP() << "needs glibc, whose malloc the test replaces"

struct FaultyNet {
  nn::Linear hidden{2, 4}, out{4, 1};
  TG_MODULE(hidden, out)
};

const std::vector<float> kX = {0, 0, 0, 1, 1, 0, 1, 1}, kY = {0, 1, 1, 0};

auto faulty_trainer(int threads) {
  return compile(FaultyNet{},
                 [](const FaultyNet& net, const Inputs& in) {
                   return mse(net.out(tanh(net.hidden(in["x"]))), in["y"]);
                 },
                 {.inputs = {{"x", {4, 2}}, {"y", {4, 1}}},
                  .optimizer = optim::Adam{.lr = 0.05},
                  .device = {.kind = "cpu", .threads = threads}});
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(AllocationFaults, compile_and_step) {
  TENSORGRAD_SKIP_WITHOUT_OWN_MALLOC();
  for (const int threads : {1, 2}) {
    expect_recovery("compile and step", [=] {
      auto trainer = faulty_trainer(threads);
      trainer.step({{"x", kX}, {"y", kY}});
      return std::to_string(trainer.step({{"x", kX}, {"y", kY}}).loss);
    });
  }
}

TEST(AllocationFaults, steps_of_a_trainer_that_stays) {
  TENSORGRAD_SKIP_WITHOUT_OWN_MALLOC();
  auto trainer = faulty_trainer(2);
  const std::vector<std::byte> start = trainer.save_bytes();
  expect_recovery("steps", [&] {
    trainer.load(start);
    for (int i = 0; i < 3; ++i) trainer.step({{"x", kX}, {"y", kY}});
    return text_of(trainer.save_bytes());
  });
}

TEST(AllocationFaults, checkpoints) {
  TENSORGRAD_SKIP_WITHOUT_OWN_MALLOC();
  const test::TempDir folder;
  const std::string path = (folder / "net.safetensors");
  auto trainer = faulty_trainer(1);
  trainer.step({{"x", kX}, {"y", kY}});
  trainer.save(path);
  expect_recovery("save", [&] {
    trainer.save(path);
    return std::string();
  });
  EXPECT_THAT(folder.files(), ::testing::ElementsAre("net.safetensors"));
  expect_recovery("load", [&] {
    trainer.load(path);
    return text_of(trainer.save_bytes());
  });
  EXPECT_EQ(text_of(trainer.save_bytes()), text_of(read_file(path)));
}

TEST(AllocationFaults, copies_of_attributes) {
  TENSORGRAD_SKIP_WITHOUT_OWN_MALLOC();
  const std::string longer(40, 'x');
  const std::vector<std::int64_t> sizes(9, 3);
  const Attrs attrs = {{"a", longer}, {"b", sizes}, {"c", std::int64_t{1}}, {"d", 0.5}};
  expect_recovery("attributes", [&] {
    Attrs copy = attrs;
    copy.set("a", sizes);  // a different alternative of the variant
    copy.set("b", longer);
    copy.set("d", longer);
    Attrs other = {{"e", longer}};
    other = copy;
    return other.text("b") + to_string(other.list("a")) + copy.text("d");
  });
}

// Uses the ops with the most attributes: windows, a scan, indices, and a sort.
Tensor faulty_function(const Inputs& in) {
  const Tensor image = reshape(in["x"], {1, 1, 4, 4});
  const Tensor pooled = max_pool2d(conv2d(image, ones({2, 1, 3, 3}), {}, {.padding = 1}), 2);
  const Tensor rows = reshape(pad(pooled, {1, 0}, PadMode::kCircular), {4, 3});
  const Tensor sorted = topk(cumsum(rows, 1), 2, 1).values;
  return softmax(gather(sorted, 1, in["index"]), 1);
}

TEST(AllocationFaults, functions_and_their_export) {
  TENSORGRAD_SKIP_WITHOUT_OWN_MALLOC();
  const std::vector<float> x(16, 0.25F);
  const std::vector<std::int32_t> index = {0, 1, 1, 0};
  const auto make = [] {
    return compile_function(faulty_function, {.inputs = {{"x", {4, 4}}, {"index", {4, 1}, i32}},
                                              .device = {.kind = "cpu", .threads = 1}});
  };
  expect_recovery("compile_function", [&] {
    auto function = make();
    const HostTensor result = function({{"x", x}, {"index", index}});
    return text_of(result.bytes);
  });
  const auto function = make();
  expect_recovery("explain", [&] { return function.explain(); });
  expect_recovery("export_onnx", [&] {
    std::vector<std::byte> file;
    function.export_onnx(file);
    return text_of(file);
  });
}

std::string text_of(const std::map<std::string, std::vector<std::byte>>& files) {
  std::string all;
  for (const auto& [name, bytes] : files) all += name + text_of(bytes);
  return all;
}

TEST(AllocationFaults, export_for_web_pages) {
  TENSORGRAD_SKIP_WITHOUT_OWN_MALLOC();
  const auto function =
      compile_function(FaultyNet{},
                       [](const FaultyNet& net, const Inputs& in) {
                         return gather(net.hidden(in["x"]), 1, in["index"]);
                       },
                       {.inputs = {{"x", {kDynamic, 2}}, {"index", {kDynamic, 1}, i32}},
                        .device = {.kind = "cpu", .threads = 1}});
  expect_recovery("web_files",
                  [&] { return text_of(function.web_files({.name = "net", .sizes = {1, 3}})); });
  const test::TempDir folder;
  const std::string page = folder / "page";
  expect_recovery("export_web", [&] {
    function.export_web(page);
    std::map<std::string, std::vector<std::byte>> files;
    for (const char* name : {"model.json", "runner.js", "weights.bin"})
      files[name] = read_file(page + "/" + name);
    return text_of(files);
  });
}

TEST(AllocationFaults, trace_events) {
  TENSORGRAD_SKIP_WITHOUT_OWN_MALLOC();
  auto trainer = faulty_trainer(1);
  const Profile profile = trainer.profile({{"x", kX}, {"y", kY}});
  expect_recovery("trace_events", [&] { return profile.trace_events(); });
}

TEST(AllocationFaults, data_loaders) {
  TENSORGRAD_SKIP_WITHOUT_OWN_MALLOC();
  for (const int workers : {0, 2}) {
    expect_recovery("DataLoader", [=] {
      const auto sample = [](std::int64_t index) -> NamedTensors {
        return {{"x", HostTensor::from({2}, std::vector<float>{static_cast<float>(index), 1})}};
      };
      DataLoader loader(6, sample, {.batch = 2, .workers = workers});
      std::string all;
      for (int i = 0; i < 4; ++i) all += text_of(loader.next().fields.at("x").bytes);
      return all;
    });
  }
}

TEST(AllocationFaults, texts_of_graphs) {
  TENSORGRAD_SKIP_WITHOUT_OWN_MALLOC();
  const std::string text =
      "%0 = input() {dtype=0, name=\"x\", shape=[2,3]} : f32[2,3]\n"
      "%1 = permute(%0) {axes=[1,0]} : f32[3,2]\n"
      "%2 = tanh(%1) : f32[3,2]\n"
      "output y = %2\n";
  expect_recovery("optimize", [&] { return ir::optimize(text, "graph", {"fuse", "cse"}); });
}

TEST(AllocationFaults, tokenizers) {
  TENSORGRAD_SKIP_WITHOUT_OWN_MALLOC();
  const std::string text = "the cat sat on the mat; a dog ran to the cat";
  const std::vector<std::string_view> texts = {text};
  const Tokenizer trained = Tokenizer::train(texts, {.vocab_size = 280});
  const std::string json = trained.to_json();
  expect_recovery("tokenizer", [&] {
    const Tokenizer tokenizer = Tokenizer::from_json(json);
    return tokenizer.decode(tokenizer.encode(text)) + tokenizer.to_json();
  });
}

TEST(AllocationFaults, readers) {
  TENSORGRAD_SKIP_WITHOUT_OWN_MALLOC();
  std::string table = "width,height,kind\n";
  for (int i = 0; i < 12; ++i)
    table += std::to_string(i) + ",2.5," + (i % 2 == 0 ? "small" : "large") + "\n";
  const auto bytes_of = [](const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  CsvOptions options;
  options.holdout = 0.25;
  const std::vector<std::byte> csv = bytes_of(table);
  expect_recovery("CSV", [&] {
    const CsvData data = read_csv({csv, "table"}, options);
    return std::to_string(data.train.count) + data.feature_names.at(0);
  });
  const std::vector<std::byte> idx = bytes_of(std::string("\0\0\x08\x01\0\0\0\x02", 8) + "ab");
  expect_recovery("IDX", [&] { return text_of(read_idx({idx, "labels"}).bytes); });
  HostTensor tensor{f32, {2, 2}, std::vector<std::byte>(16)};
  std::vector<std::byte> arrays;
  write_npz(arrays, {{"first", tensor}, {"second", tensor}});
  expect_recovery("NumPy archive", [&] {
    std::string all;
    for (const auto& [name, array] : read_npz({arrays, "arrays"}))
      all += name + text_of(array.bytes);
    return all;
  });
  const MbjsFile layers = {.version = 2,
                           .layers = {MbjsLayer::kMamba1, MbjsLayer::kAttention},
                           .tensors = {{1, 2, 3}, {0.5F}}};
  expect_recovery("MBJS", [&] {
    std::vector<std::byte> written;
    write_mbjs(written, layers);
    return read_mbjs({written, "layers"}) == layers ? text_of(written) : "";
  });
  StoredFile stored;
  stored.tensors["weight"] = {"F32", {2, 2}, std::vector<std::byte>(16)};
  stored.metadata["some"] = "text that is too long for a small string";
  std::vector<std::byte> file;
  write_safetensors(file, stored);
  expect_recovery("safetensors",
                  [&] { return read_safetensors({file, "weights"}).metadata.at("some"); });
}

TEST(AllocationFaults, images) {
  TENSORGRAD_SKIP_WITHOUT_OWN_MALLOC();
  for (const char* name : {"progressive.jpg", "cmyk.jpg", "rgba.png", "palette.png"}) {
    const auto file = read_file(test::source_path("tests/fuzz/corpus/image/") + name);
    expect_recovery(name, [&] {
      const Image image = read_image({file, "picture"}, {.height = 5, .width = 7, .channels = 0});
      return std::string(image.pixels.begin(), image.pixels.end());
    });
  }
}

TEST(AllocationFaults, gguf_files) {
  TENSORGRAD_SKIP_WITHOUT_OWN_MALLOC();
  const auto types = read_file(test::source_path("tests/golden/gguf/types.gguf"));
  expect_recovery("GGUF", [&] {
    const GgufFile file = read_gguf({types, "types"});
    std::vector<std::byte> written;
    write_gguf(written, file);
    std::string all = text_of(written);
    for (const auto& [name, tensor] : file.tensors) {
      if (tensor.dtype.starts_with('I') || tensor.dtype == "F64") continue;
      all += name + std::to_string(gguf_floats("types", name, tensor).size());
    }
    return all;
  });
  const auto mamba = read_file(test::source_path("tests/golden/gguf/mamba.gguf"));
  expect_recovery("GGUF model", [&] {
    std::vector<std::byte> written;
    lm::save_gguf(written, lm::load_gguf({mamba, "mamba"}));
    return text_of(written);
  });
}

}  // namespace
}  // namespace tensorgrad::testing
