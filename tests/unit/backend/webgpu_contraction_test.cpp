// SPDX-License-Identifier: MIT
// Contractions and scatters on a WebGPU device, compared with the oracle: every tile, ragged edges,
// operand layouts, operand and epilogue programs, column sums.
#include <array>
#include <bit>

#include "codegen/wgsl/matmul/contraction.h"
#include "webgpu_test_util.h"

namespace tensorgrad::testing {
namespace {

struct Product {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  bool a_along_m = false, b_along_k = false, ones = false, fused = false;
  bool ones_of_a = false;       // if `ones`: sums of the rows of a, not of the columns of b
  bool cut = false;             // the rows are split among two launches
  bool half = false;            // f16 operands, and one f16 result
  std::int64_t part_depth = 0;  // split-K with parts of this depth
  double tolerance = 1e-4;
};

IndexMap operand_map(std::int64_t batch, std::int64_t outer, std::int64_t inner, bool transposed) {
  return transposed ? strided({batch, outer, inner}, {outer * inner, 1, outer})
                    : whole({batch, outer, inner});
}

void check_product(webgpu::WebGpuDevice& device, const Product& p) {
  TestProgram test;
  const std::int64_t parts = p.part_depth > 0 ? (p.k + p.part_depth - 1) / p.part_depth : 1;
  const std::int64_t batches = p.batch * parts;  // of the result
  const int a = test.buffer(DType::kF32, p.batch * p.m * p.k);
  const int b = test.buffer(DType::kF32, p.batch * p.k * p.n);
  const int bias = test.buffer(DType::kF32, p.n);
  const int out = test.buffer(DType::kF32, batches * p.m * p.n);
  const int second = test.buffer(DType::kF32, batches * p.m * p.n);
  const int sums = test.buffer(DType::kF32, std::max(p.m, p.n));
  Launch& launch = test.launch(ContractionLaunch{}, "product");
  auto& product = launch.as<ContractionLaunch>();
  product.batch = p.batch;
  product.m = p.m;
  product.n = p.n;
  product.k = p.k;
  product.parts = parts;
  product.part_depth = p.part_depth;
  product.bias_grad_row = p.ones && !p.ones_of_a;
  product.bias_grad_column = p.ones && p.ones_of_a;
  for (const int read : {a, b, bias}) test.bind(launch, read, BindMode::kRead);
  for (const int written : {out, second, sums}) test.bind(launch, written, BindMode::kWrite);
  ProgramMaker make_a, make_b, make;
  int value = make_a.load(0, operand_map(p.batch, p.m, p.k, p.a_along_m));
  if (p.fused) make_a.op("relu", {make_a.op("add", {value, make_a.constant(0.5f)})});
  value = make_b.load(1, operand_map(p.batch, p.k, p.n, p.b_along_k));
  if (p.fused) make_b.op("mul", {value, make_b.load(2, strided({p.batch, p.k, p.n}, {0, 0, 1}))});
  for (ProgramMaker* each : {&make_a, &make_b}) {
    const int last = static_cast<int>(each->program.instrs.size()) - 1;
    if (p.half) each->op("round_to_f16", {last});
  }
  const int acc = make.acc();
  int result = acc;
  if (p.fused) {
    result = make.op("add", {acc, make.load(2, strided({batches * p.m, p.n}, {0, 1}))});
    result = make.op("tanh", {make.op("mul", {result, make.constant(0.1f)})});
  }
  product.a = make_a.program;
  product.b = make_b.program;
  launch.body = make.program;
  const std::int64_t results = batches * p.m * p.n;
  TestProgram::store(launch, 3, result, whole({results}));
  TestProgram::store(launch, 4, acc, strided({batches, p.m, p.n}, {p.m * p.n, 1, p.m}));
  product.bias_grad_store.binding = 5;
  product.bias_grad_store.map = whole({p.ones_of_a ? p.m : p.n});
  if (p.cut) {
    launch.row_count = batches > 1 ? batches / 2 * p.m : p.m / 3 + 1;
    Launch rest = launch;
    rest.first_row = launch.row_count;
    rest.row_count = batches * p.m - launch.row_count;
    rest.as<ContractionLaunch>().bias_grad_row = false;  // computed by the other launch
    test.program.launches.push_back(rest);
  }
  SCOPED_TRACE(std::to_string(p.batch) + "*" + std::to_string(p.m) + "x" + std::to_string(p.n) +
               "x" + std::to_string(p.k));
  test.check(device, {oracle_scalars()}, p.tolerance);
}

// Checks all layouts of one product, plain and fused.
void check_layouts(webgpu::WebGpuDevice& device, Product p) {
  for (int way = 0; way < 4; ++way) {
    p.a_along_m = way % 2 == 1;
    p.b_along_k = way / 2 == 1;
    p.fused = way == 0 || way == 3;
    p.ones = p.batch == 1 && p.part_depth == 0 && way < 2;
    p.ones_of_a = way == 1;
    check_product(device, p);
  }
}

struct TileCase {
  const char* name;
  MatmulTile tile;
  std::int64_t side, depth;  // of the larger side, and of a step
};

class WebGpuTiles : public ::testing::TestWithParam<TileCase> {};

// Uses the minimum workgroup memory, and the limits of the adapter, which have room for two tiles.
TEST_P(WebGpuTiles, multiply) {
  for (const bool least : {true, false}) {
    TENSORGRAD_DEVICE_OR_RETURN(device, least);
    WgslOptions options;
    options.matmul_tile = GetParam().tile;
    device->force_kernels(options);
    const std::int64_t side = GetParam().side;
    check_layouts(*device, {1, side + 8, side - 4, 44});  // vectorized
    // The last part is shorter and ends within a tile.
    const std::int64_t depth = GetParam().depth;
    check_product(*device, {.m = side + 8,
                            .n = 20,
                            .k = 3 * depth - 20,
                            .a_along_m = least,
                            .b_along_k = !least,
                            .part_depth = depth});
    if (!least) continue;
    check_product(*device, {1, side, side, 64, true, false, true});  // no ragged edges
    check_layouts(*device, {1, side + 3, side - 5, 19});             // all edges are ragged
    check_product(*device, {3, 5, side + 1, 9, false, true, false, true});
    check_product(*device, {1, 1, 1, 1});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, WebGpuTiles,
    ::testing::Values(TileCase{"none", MatmulTile::kNone, 16, 64},
                      TileCase{"8x8", MatmulTile::k8x8, 16, 128},
                      TileCase{"16x16", MatmulTile::k16x16, 16, 64},
                      TileCase{"32x32", MatmulTile::k32x32, 32, 64},
                      TileCase{"32x32_in_slices", MatmulTile::k32x32InSlices, 32, 64},
                      TileCase{"64x64", MatmulTile::k64x64, 64, 64},
                      TileCase{"128x64", MatmulTile::k128x64, 128, 64},
                      TileCase{"128x128", MatmulTile::k128x128, 128, 64},
                      TileCase{"128x128_more_threads", MatmulTile::k128x128MoreThreads, 128, 64}),
    [](const auto& one) { return std::string(one.param.name); });

// A thread computes up to 4 x 4 results, some of which are out of range.
TEST(WebGpuContraction, without_barriers) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  WgslOptions options;
  options.barrier_free = true;
  device->force_kernels(options);
  check_layouts(*device, {1, 64, 32, 44});
  check_layouts(*device, {1, 19, 13, 11});
  check_layouts(*device, {.m = 22, .n = 3, .k = 8, .cut = true});
  check_layouts(*device, {3, 5, 17, 9});
  check_product(*device, {.m = 24, .n = 20, .k = 172, .part_depth = 64});
  check_product(*device, {1, 1, 9, 5});
  check_product(*device, {1, 1, 1, 1});
}

// Products with few rows and both operands contiguous along k. The last vector of a lane may be
// missing, workgroups may be ragged, lanes are many or few, and steps are unrolled or in a loop.
TEST(WebGpuContraction, of_few_rows_by_vectors) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const bool fused : {false, true}) {
    for (const auto& [batch, m, n, k] : {std::array<std::int64_t, 4>{1, 1, 80, 1536},
                                         {1, 1, 5000, 68},
                                         {1, 2, 333, 768},
                                         {1, 4, 17, 260},
                                         {3, 3, 50, 64},
                                         {1, 1, 3, 9000},
                                         {1, 5, 40, 128}}) {
      check_product(*device,
                    {.batch = batch, .m = m, .n = n, .k = k, .b_along_k = true, .fused = fused});
    }
  }
}

TEST(WebGpuContraction, uses_vectors_for_few_rows_along_k) {
  const auto by_vectors = [](std::int64_t m, std::int64_t k, bool b_along_k) {
    const std::int64_t n = 96;
    TestProgram test;
    Launch& launch = test.launch(ContractionLaunch{.m = m, .n = n, .k = k}, "product");
    test.bind(launch, test.buffer(DType::kF32, m * k), BindMode::kRead);
    test.bind(launch, test.buffer(DType::kF32, k * n), BindMode::kRead);
    test.bind(launch, test.buffer(DType::kF32, m * n), BindMode::kWrite);
    ProgramMaker a, b, body;
    a.load(0, operand_map(1, m, k, false));
    b.load(1, operand_map(1, k, n, b_along_k));
    launch.as<ContractionLaunch>().a = a.program;
    launch.as<ContractionLaunch>().b = b.program;
    const int acc = body.acc();
    launch.body = body.program;
    TestProgram::store(launch, 2, acc, whole({m * n}));
    return emit_wgsl(launch, {}).find("dot(a_at(") != std::string::npos;
  };
  EXPECT_TRUE(by_vectors(1, 768, true));
  EXPECT_TRUE(by_vectors(4, 768, true));
  EXPECT_FALSE(by_vectors(5, 768, true));
  EXPECT_FALSE(by_vectors(1, 768, false));
  EXPECT_FALSE(by_vectors(1, 766, true));  // not a multiple of four
}

// Products of f16 are exact in f32, so the subgroup matrix differs from tiles only in the order of
// sums.
TEST(WebGpuContraction, by_subgroup_matrix) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  const SubgroupMatrix units = device->kernel_options().subgroup_matrix;
  if (!units.present()) GTEST_SKIP() << "the device has no matrix units";
  for (const int tile : wgsl::subgroup_matrix_tiles()) {
    WgslOptions options;
    options.subgroup_matrix_tile = tile;
    device->force_kernels(options);
    SCOPED_TRACE(tile);
    const std::int64_t side = 4 * units.m, depth = 2 * units.k;
    check_layouts(*device, {.m = side + 8, .n = side - 4, .k = depth + 4, .half = true});
    check_layouts(*device, {.m = side - 3, .n = 2 * side + 5, .k = 3 * depth - 1, .half = true});
    check_layouts(*device,
                  {.m = 24, .n = side, .k = 10 * depth - 4, .half = true, .part_depth = 4 * depth});
    if (tile != 3) continue;  // software GPUs take many seconds to compile other kernels
    check_layouts(*device, {.m = side, .n = side, .k = depth, .half = true});
    check_layouts(*device, {.batch = 3, .m = 5, .n = side + 1, .k = depth, .half = true});
    check_layouts(*device, {.m = side + 22, .n = side, .k = depth, .cut = true, .half = true});
  }
}

// As three products of f16, each result is almost as exact as in f32. Products of rounded operands
// would differ by 1e-3.
TEST(WebGpuContraction, of_f32_by_subgroup_matrix) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  const SubgroupMatrix units = device->kernel_options().subgroup_matrix;
  if (!units.present()) GTEST_SKIP() << "the device has no matrix units";
  for (const int tile : wgsl::subgroup_matrix_tiles(true)) {
    WgslOptions options;
    options.f16x3 = true;
    options.subgroup_matrix_tile = tile;
    device->force_kernels(options);
    SCOPED_TRACE(tile);
    const std::int64_t side = 4 * units.m, depth = 2 * units.k;
    const double tolerance = 1e-5;
    check_layouts(*device, {.m = side + 8, .n = side - 4, .k = depth + 4, .tolerance = tolerance});
    check_layouts(*device,
                  {.m = side - 3, .n = 2 * side + 5, .k = 3 * depth - 1, .tolerance = tolerance});
    check_layouts(
        *device,
        {.m = 24, .n = side, .k = 10 * depth - 4, .part_depth = 4 * depth, .tolerance = tolerance});
    if (tile != 2) continue;  // software GPUs take many seconds to compile other kernels
    check_layouts(*device, {.m = side, .n = side, .k = depth, .tolerance = tolerance});
    check_layouts(*device,
                  {.m = side + 22, .n = side, .k = depth, .cut = true, .tolerance = tolerance});
  }
}

// Checks only the kernel text: which products use the subgroup matrix, and that it is enabled.
TEST(WebGpuContraction, uses_subgroup_matrix_for_f16_operands) {
  const auto text_of = [](std::int64_t side, bool half, const WgslOptions& options,
                          std::int64_t rows = 0) {
    const std::int64_t m = rows > 0 ? rows : side;
    TestProgram test;
    Launch& launch = test.launch(ContractionLaunch{.m = m, .n = side, .k = side}, "product");
    test.bind(launch, test.buffer(DType::kF32, m * side), BindMode::kRead);
    test.bind(launch, test.buffer(DType::kF32, side * side), BindMode::kRead);
    test.bind(launch, test.buffer(DType::kF32, m * side), BindMode::kWrite);
    ProgramMaker a, b, body;
    const int x = a.load(0, whole({m, side})), y = b.load(1, whole({side, side}));
    if (half) a.op("round_to_f16", {x});
    b.op("round_to_f16", {y});
    launch.as<ContractionLaunch>().a = a.program;
    launch.as<ContractionLaunch>().b = b.program;
    const int acc = body.acc();
    launch.body = body.program;
    TestProgram::store(launch, 2, acc, whole({m, side}));
    return emit_wgsl(launch, options);
  };
  WgslOptions with, without;
  with.subgroup_matrix = {16, 16, 16, 32};
  with.max_workgroup_bytes = 48 << 10;
  const auto uses = [](const std::string& text) {
    return text.find("subgroupMatrixMultiplyAccumulate") != std::string::npos;
  };
  EXPECT_TRUE(uses(text_of(256, true, with)));
  EXPECT_NE(text_of(256, true, with).find("var<workgroup> tiles: array<vec4<u32>"),
            std::string::npos);
  EXPECT_FALSE(uses(text_of(256, false, with)));
  EXPECT_FALSE(uses(text_of(256, true, without)));
  EXPECT_FALSE(uses(text_of(32, true, with)));  // too small to pay
  WgslOptions f16x3 = with;
  f16x3.f16x3 = true;
  EXPECT_TRUE(uses(text_of(512, false, f16x3)));
  EXPECT_FALSE(uses(text_of(256, false, f16x3)));  // too small to pay
  EXPECT_NE(text_of(512, false, f16x3).find("split_low"), std::string::npos);
  EXPECT_EQ(text_of(256, true, f16x3).find("low_a"), std::string::npos);
  EXPECT_FALSE(uses(text_of(4096, false, f16x3, 8)));
  with.subgroup_matrix_tile = f16x3.subgroup_matrix_tile = -1;
  EXPECT_FALSE(uses(text_of(256, true, with)));
  EXPECT_FALSE(uses(text_of(512, false, f16x3)));
}

TEST(WebGpuContraction, by_any_number_of_lanes) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const int lanes : {1, 4, 32, 256}) {
    WgslOptions options;
    options.matmul_tile = MatmulTile::kNone;
    options.lanes = lanes;
    device->force_kernels(options);
    SCOPED_TRACE(lanes);
    check_layouts(*device, {1, 7, 5, 300});
    check_layouts(*device, {2, 3, 4, 17});
  }
}

TEST(WebGpuContraction, by_two_launches_that_share_its_rows) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const MatmulTile tile : {MatmulTile::kNone, MatmulTile::k16x16, MatmulTile::k64x64}) {
    WgslOptions options;
    options.matmul_tile = tile;
    device->force_kernels(options);
    SCOPED_TRACE(static_cast<int>(tile));
    Product whole{1, 150, 70, 33}, batches{5, 20, 17, 9}, fours{1, 152, 72, 36};
    whole.cut = batches.cut = fours.cut = true;
    check_layouts(*device, whole);
    check_product(*device, {.m = 40, .n = 12, .k = 200, .cut = true, .part_depth = 64});
    if (tile == MatmulTile::k64x64) continue;  // its kernels take seconds to compile
    check_layouts(*device, batches);
    check_layouts(*device, fours);
  }
}

TEST(WebGpuContraction, of_odd_sizes) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  check_layouts(*device, {1, 256, 64, 1});
  check_layouts(*device, {1, 64, 1, 256});
  check_layouts(*device, {1, 1, 1, 5000});
  check_layouts(*device, {4, 33, 65, 30});
  check_layouts(*device, {1, 300, 200, 100});
  check_layouts(*device, {1, 64, 48, 1000});
  check_layouts(*device, {2, 37, 52, 515});
}

TEST(WebGpuContraction, an_operand_made_of_views_and_gathers) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  // a[m,k] = table[key[m], k], padded by one row in front; b is a flipped, broadcast vector.
  TestProgram test;
  const std::int64_t m = 20, n = 18, k = 24;
  const int table = test.buffer(DType::kF32, 10 * k), keys = test.buffer(DType::kI32, m, -2, 12);
  const int vector = test.buffer(DType::kF32, k), out = test.buffer(DType::kF32, m * n);
  Launch& launch = test.launch(ContractionLaunch{.m = m, .n = n, .k = k}, "gathered");
  for (const int read : {table, keys, vector}) test.bind(launch, read, BindMode::kRead);
  test.bind(launch, out, BindMode::kWrite);
  ProgramMaker make_a, make_b, make;
  const int key = make_a.load(1, masked({m, k}, {1, 0}, -1, {1, 0}, {m, k}), DType::kI32);
  make_a.load_at(0, strided({m, k}, {0, 1}), key, k, 10);
  make_b.load(2, strided({k, n}, {-1, 0}, k - 1));
  const int acc = make.acc();
  const int shifted = make.op("add", {acc, make.op_to("cast", {make.coord(1, n)}, DType::kF32)});
  launch.as<ContractionLaunch>().a = make_a.program;
  launch.as<ContractionLaunch>().b = make_b.program;
  launch.body = make.program;
  TestProgram::store(launch, 3, shifted, whole({m * n}));
  for (const MatmulTile tile : {MatmulTile::kNone, MatmulTile::k16x16}) {
    WgslOptions options;
    options.matmul_tile = tile;
    device->force_kernels(options);
    test.check(*device);
  }
}

struct Spread {
  std::int64_t pre, count, post, size;
  int lanes = 0;
  ScatterVariant variant = ScatterVariant::kAuto;
};

// Indices are from -1 to size + 1, one for each row (shared by all q) or each element. If `half`,
// two launches each compute a half of the results.
void check_scatter(webgpu::WebGpuDevice& device, const Spread& s, bool of_rows, bool half) {
  WgslOptions options;
  options.lanes = s.lanes;
  options.scatter_variant = s.variant;
  device.force_kernels(options);
  TestProgram test;
  const std::int64_t sources = s.pre * s.count * s.post, results = s.pre * s.size * s.post;
  const int index = test.buffer(DType::kI32, of_rows ? s.pre * s.count : sources, -1,
                                static_cast<double>(s.size) + 1);
  const int source = test.buffer(DType::kF32, sources), out = test.buffer(DType::kF32, results);
  for (const bool front : {true, false}) {
    if (!half && !front) continue;
    Launch& launch =
        test.launch(ScatterLaunch{s.pre, s.count, s.post, s.size}, front ? "scatter" : "rest");
    if (half) {
      const std::int64_t rows = s.pre > 1 ? s.size : s.size / 2;
      launch.first_row = front ? 0 : rows;
      launch.row_count = front ? rows : s.pre * s.size - rows;
    }
    test.bind(launch, index, BindMode::kRead);
    test.bind(launch, source, BindMode::kRead);
    test.bind(launch, out, BindMode::kReadWrite);
    ProgramMaker make_index, make_source, make;
    make_index.load(0, of_rows ? strided({s.pre * s.count, s.post}, {1, 0}) : whole({sources}),
                    DType::kI32);
    make_source.op("mul", {make_source.load(1, whole({sources})), make_source.constant(0.5f)});
    const int acc = make.acc();
    const int sum = make.op("add", {acc, make.load(2, whole({results}))});
    launch.as<ScatterLaunch>().index = make_index.program;
    launch.as<ScatterLaunch>().source = make_source.program;
    launch.body = make.program;
    TestProgram::store(launch, 2, sum, whole({results}));
  }
  SCOPED_TRACE("pre " + std::to_string(s.pre) + " count " + std::to_string(s.count) + " post " +
               std::to_string(s.post) + " size " + std::to_string(s.size) + " variant " +
               std::to_string(static_cast<int>(s.variant)) + (of_rows ? " of rows" : "") +
               (half ? " by halves" : ""));
  test.check(device);
}

TEST(WebGpuScatter, sums_all_values_of_each_index) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const Spread& s : {Spread{1, 40, 16, 10},
                          {3, 7, 1, 5},
                          {2, 33, 9, 4, 8},
                          {1, 500, 1, 3},
                          {1, 64, 20, 300, 1},
                          {1, 1, 1, 1}}) {
    check_scatter(*device, s, true, false);
  }
}

TEST(WebGpuScatter, in_blocks_of_results) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const Spread& s : {Spread{1, 40, 16, 10},
                          {3, 700, 5, 50},
                          {1, 1000, 1, 3000},
                          {1, 300, 100, 40},
                          {2, 256, 64, 33},
                          {1, 1, 1, 1}}) {
    Spread forced = s;
    forced.variant = ScatterVariant::kBlocks;
    check_scatter(*device, forced, true, false);
    check_scatter(*device, forced, false, false);
  }
}

// An embedding of 5000 rows, for which the kernel by blocks is the default.
TEST(WebGpuScatter, of_many_results) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  const Spread s{1, 600, 32, 5000};
  check_scatter(*device, s, true, false);
  const std::unique_ptr<webgpu::WebGpuDevice> small = test_device(true);
  check_scatter(*small, s, true, false);
}

TEST(WebGpuScatter, of_a_part_of_the_rows) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  for (const ScatterVariant variant : {ScatterVariant::kLanes, ScatterVariant::kBlocks}) {
    for (const Spread& s : {Spread{1, 40, 16, 11}, {3, 70, 5, 50}, {1, 300, 1, 700}}) {
      Spread forced = s;
      forced.variant = variant;
      check_scatter(*device, forced, true, true);
    }
  }
}

}  // namespace
}  // namespace tensorgrad::testing
