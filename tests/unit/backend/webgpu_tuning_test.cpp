// SPDX-License-Identifier: MIT
// The tuning cache of a device: a product is timed once, and the file decides from then on.
#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "codegen/wgsl/matmul/variants.h"
#include "support/temp_dir.h"
#include "tensorgrad/data/files.h"
#include "webgpu_test_util.h"

namespace tensorgrad::testing {
namespace {

using test::TempDir;

std::unique_ptr<webgpu::WebGpuDevice> tuned_device(const std::string& path) {
  WebGpuOptions options;
  options.allow_software = true;
  options.tuning_cache = path;
  return std::unique_ptr<webgpu::WebGpuDevice>(
      dynamic_cast<webgpu::WebGpuDevice*>(make_webgpu_device(options).release()));
}

void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// Returns the fields of the lines that are neither the header nor comments.
std::vector<std::vector<std::string>> entries_of(const std::string& path) {
  std::istringstream text(read_text_file(path));
  std::vector<std::vector<std::string>> entries;
  std::string line;
  for (std::getline(text, line); std::getline(text, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream fields(line);
    entries.emplace_back();
    for (std::string field; std::getline(fields, field, '\t');) entries.back().push_back(field);
  }
  return entries;
}

std::string choice_line(const std::vector<std::string>& entry, const std::string& choice) {
  return entry[0] + "\t" + entry[1] + "\t" + entry[2] + "\t" + choice + "\t\n";
}

// out = a b + 0.25, once for each depth.
struct TunedProducts {
  explicit TunedProducts(const std::vector<std::int64_t>& depths) {
    for (const std::int64_t k : depths) {
      constexpr std::int64_t kM = 40, kN = 48;
      const int a = test.buffer(DType::kF32, kM * k), b = test.buffer(DType::kF32, k * kN);
      results.push_back(test.buffer(DType::kF32, kM * kN));
      Launch& launch = test.launch(ContractionLaunch{.m = kM, .n = kN, .k = k}, "product");
      test.bind(launch, a, BindMode::kRead);
      test.bind(launch, b, BindMode::kRead);
      test.bind(launch, results.back(), BindMode::kWrite);
      ProgramMaker make_a, make_b, make;
      make_a.load(0, whole({kM, k}));
      make_b.load(1, whole({k, kN}));
      launch.as<ContractionLaunch>().a = make_a.program;
      launch.as<ContractionLaunch>().b = make_b.program;
      const int value = make.op("add", {make.acc(), make.constant(0.25f)});
      launch.body = make.program;
      TestProgram::store(launch, 2, value, whole({kM * kN}));
    }
  }

  // Returns the bits of all results.
  std::vector<std::uint32_t> run(webgpu::WebGpuDevice& device) {
    const std::vector<BufferHandle> handles = test.upload(device);
    const auto executable = device.prepare(test.program, handles);
    const RuntimeScalars row = oracle_scalars();
    device.wait(device.run(*executable, {&row, 1}));
    std::vector<std::uint32_t> bits;
    for (const int result : results) {
      const auto words = test.download(device, handles[static_cast<std::size_t>(result)], result);
      bits.insert(bits.end(), words.begin(), words.end());
    }
    for (const BufferHandle handle : handles) device.free(handle);
    return bits;
  }

  TestProgram test;
  std::vector<int> results;
};

class WebGpuTuning : public ::testing::Test {
 protected:
  void SetUp() override { TENSORGRAD_SKIP_WITHOUT_GPU_TESTS(); }

  const TempDir dir_;
  const std::string path_ = dir_ / "tuning";
};

TEST_F(WebGpuTuning, times_a_product_once_then_reads_the_file) {
  TunedProducts products({96, 300, 96});
  const auto first = tuned_device(path_);
  products.test.check(*first, {oracle_scalars()}, 1e-4);
  EXPECT_EQ(first->timed_contractions(), 2);  // two of the three are equal
  const auto entries = entries_of(path_);
  ASSERT_EQ(entries.size(), 2U);
  for (const auto& entry : entries) {
    ASSERT_EQ(entry.size(), 5U);
    EXPECT_EQ(entry[0], first->info().name);
    EXPECT_EQ(entry[1], first->info().driver);
    EXPECT_EQ(entry[4].find("default "), 0U) << entry[4];
    EXPECT_NE(entry[4].find("tile 32 "), std::string::npos) << entry[4];
  }
  EXPECT_EQ(entries[0][2].find("1x40x48x96 "), 0U);
  EXPECT_EQ(entries[1][2].find("1x40x48x300 "), 0U);
  const std::vector<std::uint32_t> bits = products.run(*first);
  EXPECT_EQ(first->timed_contractions(), 2);

  const std::string text = read_text_file(path_);
  const auto second = tuned_device(path_);
  EXPECT_EQ(products.run(*second), bits);
  EXPECT_EQ(second->timed_contractions(), 0);
  EXPECT_EQ(read_text_file(path_), text);
}

TEST_F(WebGpuTuning, without_a_file_times_nothing_and_keeps_the_bits) {
  TunedProducts products({300});
  const auto plain = tuned_device("");
  const std::vector<std::uint32_t> bits = products.run(*plain);
  EXPECT_EQ(plain->timed_contractions(), 0);
  EXPECT_TRUE(dir_.files().empty());
  // "default" in the file has the same effect.
  products.run(*tuned_device(path_));
  const auto entry = entries_of(path_).at(0);
  write_text(path_, "tensorgrad tuning 1\n" + choice_line(entry, "default"));
  const auto tuned = tuned_device(path_);
  EXPECT_EQ(products.run(*tuned), bits);
  EXPECT_EQ(tuned->timed_contractions(), 0);
}

// The file selects one kernel at a time, as does force_kernels(), and both return the same bits.
// The tiles differ in the order of sums, so there are several sets of bits.
TEST_F(WebGpuTuning, uses_the_tile_of_the_file) {
  TunedProducts products({300});
  const auto plain = tuned_device("");
  products.run(*tuned_device(path_));
  const auto entry = entries_of(path_).at(0);
  std::set<std::vector<std::uint32_t>> kinds;
  for (const auto& [name, tile] : {std::pair{"tile 1", MatmulTile::kNone},
                                   {"tile 8", MatmulTile::k8x8},
                                   {"tile 32", MatmulTile::k32x32},
                                   {"tile 64", MatmulTile::k64x64}}) {
    WgslOptions options;
    options.matmul_tile = tile;
    plain->force_kernels(options);
    const std::vector<std::uint32_t> bits = products.run(*plain);
    kinds.insert(bits);
    write_text(path_, "tensorgrad tuning 1\n" + choice_line(entry, name));
    const auto tuned = tuned_device(path_);
    EXPECT_EQ(products.run(*tuned), bits) << name;
    EXPECT_EQ(tuned->timed_contractions(), 0);
  }
  EXPECT_GE(kinds.size(), 3U);
}

TEST_F(WebGpuTuning, error_names_the_line_of_an_invalid_choice) {
  TunedProducts products({96});
  products.run(*tuned_device(path_));
  const auto entry = entries_of(path_).at(0);
  write_text(path_, "tensorgrad tuning 1\n# by hand\n" + choice_line(entry, "tile 7"));
  const auto device = tuned_device(path_);
  std::string message;
  try {
    products.run(*device);
  } catch (const UserError& error) {
    message = error.what();
  }
  EXPECT_EQ(message, path_ + ": line 3: \"tile 7\" is not a valid choice for this contraction");
  write_text(path_, "nonsense\n");
  EXPECT_THROW(tuned_device(path_), UserError);
}

TEST_F(WebGpuTuning, keeps_and_ignores_entries_of_other_devices) {
  TunedProducts products({96});
  products.run(*tuned_device(path_));
  auto entry = entries_of(path_).at(0);
  const std::string driver = entry[1];
  entry[1] = "another driver";
  std::string others = "tensorgrad tuning 1\n" + choice_line(entry, "tile 8");
  entry[1] = driver;
  entry[0] = "another GPU";
  others += choice_line(entry, "subgroup_matrix 3");
  write_text(path_, others);
  const auto device = tuned_device(path_);
  products.run(*device);
  EXPECT_EQ(device->timed_contractions(), 1);
  EXPECT_EQ(read_text_file(path_).find(others), 0U);
  EXPECT_EQ(entries_of(path_).size(), 3U);
}

// The trial frees its buffers: the next buffer gets the first free handle, and no buffer of the
// program is modified. Uses the host clock, as on devices without timestamps.
TEST_F(WebGpuTuning, trial_does_not_change_buffers) {
  TunedProducts products({96});
  const auto device = tuned_device(path_);
  device->force_host_clock();
  const std::vector<BufferHandle> handles = products.test.upload(*device);
  const auto executable = device->prepare(products.test.program, handles);
  EXPECT_EQ(device->timed_contractions(), 1);
  for (std::size_t i = 0; i < handles.size(); ++i) {
    const int number = static_cast<int>(i);
    EXPECT_EQ(products.test.download(*device, handles[i], number), products.test.contents[i]);
  }
  const BufferHandle last = *std::max_element(handles.begin(), handles.end());
  EXPECT_LE(device->alloc(256, "next"), last + 3);
}

// A product that shares its kernel with a concurrent launch keeps the choice of the cost model.
TEST_F(WebGpuTuning, joined_products_are_not_timed) {
  TunedProducts products({96, 300});
  products.test.program.launches[1].concurrent = true;
  const auto device = tuned_device(path_);
  products.run(*device);
  EXPECT_EQ(device->timed_contractions(), 0);
  EXPECT_TRUE(dir_.files().empty());
}

// All variants of a product differ in their text and are found by name. The first one is the
// default.
TEST(ContractionVariants, are_named_and_differ) {
  TunedProducts products({300});
  const Launch& launch = products.test.program.launches.front();
  const auto variants = contraction_variants(launch, {});
  ASSERT_GE(variants.size(), 5U);
  EXPECT_EQ(variants.front().name, "default");
  EXPECT_EQ(variants.front().kernel.body, write_wgsl(launch, {}).body);
  std::set<std::string> bodies;
  for (const ContractionVariant& variant : variants) {
    bodies.insert(variant.kernel.body);
    EXPECT_EQ(contraction_variant(launch, {}, variant.name).kernel.body, variant.kernel.body);
  }
  EXPECT_EQ(bodies.size(), variants.size());
  EXPECT_TRUE(contraction_variant(launch, {}, "tile 7").name.empty());
}

TEST(ContractionVariants, of_large_products_leave_out_lanes_and_with_units_have_them) {
  TunedProducts products({300});
  Launch launch = products.test.program.launches.front();
  const auto has = [&](const std::string& name, const WgslOptions& options) {
    return !contraction_variant(launch, options, name).name.empty();
  };
  EXPECT_TRUE(has("tile 1", {}));
  EXPECT_FALSE(has("subgroup_matrix 1", {}));
  WgslOptions options;
  options.subgroup_matrix = {16, 16, 16, 32};
  EXPECT_TRUE(has("subgroup_matrix 1", options));
  launch.as<ContractionLaunch>().k = 1 << 20;
  EXPECT_FALSE(has("tile 1", {}));
}

// Returns a program that loads [1, rows, cols], stored column-major if `turned`.
ScalarProgram operand_program(int binding, std::int64_t rows, std::int64_t cols, bool turned,
                              std::int64_t offset) {
  View view = View::contiguous({1, rows, cols});
  if (turned) view.strides = {rows * cols, 1, rows};
  view.offset = offset;
  ProgramMaker maker;
  maker.load(binding, {{view}});
  return maker.program;
}

// Returns the product of a and b. Each is contiguous along k if a_along or b_along is set. Both
// begin `offset` elements into their buffers.
Launch large_product(std::int64_t m, std::int64_t n, std::int64_t k, bool a_along, bool b_along,
                     std::int64_t offset) {
  Launch launch = TunedProducts({96}).test.program.launches.front();
  launch.kind = ContractionLaunch{.m = m,
                                  .n = n,
                                  .k = k,
                                  .a = operand_program(0, m, k, !a_along, offset),
                                  .b = operand_program(1, k, n, b_along, offset)};
  launch.stores[0].map = IndexMap::identity({m * n});
  return launch;
}

TEST(ContractionVariants, have_one_key_wherever_in_their_buffers_operands_begin) {
  const std::string key = contraction_key(large_product(512, 384, 256, true, false, 0), {});
  EXPECT_EQ(key.find("1x512x384x256 kn "), 0U) << key;
  EXPECT_EQ(contraction_key(large_product(512, 384, 256, true, false, 4096), {}), key);
  // The offset is not a multiple of four elements, so the kernel is not vectorized and differs.
  EXPECT_NE(contraction_key(large_product(512, 384, 256, true, false, 4097), {}), key);
  EXPECT_NE(contraction_key(large_product(512, 384, 260, true, false, 0), {}), key);
  const std::string across = contraction_key(large_product(512, 384, 256, false, true, 0), {});
  EXPECT_EQ(across.find("1x512x384x256 mk "), 0U) << across;
}

// As timed on an H100: the largest tile is the fastest, with more threads if its last wave would
// not be full. Smaller tiles are faster for short sums and few results.
TEST(ContractionVariants, start_with_the_fastest_tile_of_the_cost_model) {
  const auto tile_of = [](const Launch& launch) {
    WgslOptions options;
    options.max_workgroup_bytes = 48 << 10;
    const std::string chosen = write_wgsl(launch, options).body;
    for (const MatmulTile tile :
         {MatmulTile::k128x128, MatmulTile::k128x128MoreThreads, MatmulTile::k128x64,
          MatmulTile::k64x64, MatmulTile::k32x32, MatmulTile::k32x32InSlices, MatmulTile::k16x16,
          MatmulTile::k8x8}) {
      options.matmul_tile = tile;
      if (write_wgsl(launch, options).body == chosen) return tile;
    }
    return MatmulTile::kNone;
  };
  EXPECT_EQ(tile_of(large_product(4096, 4096, 4096, true, true, 0)), MatmulTile::k128x128);
  EXPECT_EQ(tile_of(large_product(4096, 4096, 4096, true, false, 0)), MatmulTile::k128x128);
  EXPECT_EQ(tile_of(large_product(4096, 4096, 4096, false, false, 0)), MatmulTile::k128x128);
  EXPECT_EQ(tile_of(large_product(16384, 384, 1536, true, true, 0)),
            MatmulTile::k128x128MoreThreads);
  EXPECT_EQ(tile_of(large_product(16384, 1536, 48, true, true, 0)), MatmulTile::k128x64);
  EXPECT_EQ(tile_of(large_product(1024, 1536, 48, true, true, 0)), MatmulTile::k64x64);
  EXPECT_EQ(tile_of(large_product(256, 768, 1536, true, true, 0)), MatmulTile::k32x32);
  EXPECT_EQ(tile_of(large_product(64, 768, 1536, true, true, 0)), MatmulTile::k16x16);
}

}  // namespace
}  // namespace tensorgrad::testing
