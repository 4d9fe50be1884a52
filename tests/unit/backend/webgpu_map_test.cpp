// SPDX-License-Identifier: MIT
// Map launches on a WebGPU device, compared with the oracle: views of all kinds, types, constants,
// gathers.
#include <bit>
#include <cmath>
#include <limits>

#include "webgpu_test_util.h"

namespace tensorgrad::testing {
namespace {

// Checks out[i] = a[map(i)] * 2 + b[i].
void check_view(webgpu::WebGpuDevice& device, const IndexMap& map, std::int64_t source_elements) {
  TestProgram test;
  const std::int64_t elements = map.domain_size();
  const int a = test.buffer(DType::kF32, source_elements);
  const int b = test.buffer(DType::kF32, elements);
  const int out = test.buffer(DType::kF32, elements);
  Launch& launch = test.launch(MapLaunch{elements}, "view");
  test.bind(launch, a, BindMode::kRead);
  test.bind(launch, b, BindMode::kRead);
  test.bind(launch, out, BindMode::kWrite);
  ProgramMaker make;
  const int doubled = make.op("mul", {make.load(0, map), make.constant(2)});
  const int sum = make.op("add", {doubled, make.load(1, whole({elements}))});
  launch.body = make.program;
  TestProgram::store(launch, 2, sum, whole({elements}));
  SCOPED_TRACE(to_string(map));
  test.check(device);
}

TEST(WebGpuMap, reads_through_views) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  check_view(*device, whole({1000}), 1000);
  check_view(*device, whole({1}), 1);
  check_view(*device, strided({16, 8}, {1, 16}), 128);                   // transposed
  check_view(*device, strided({5, 7, 3}, {0, 3, 1}), 21);                // broadcast
  check_view(*device, strided({6, 10}, {-10, -1}, 59), 60);              // flipped
  check_view(*device, strided({4, 5}, {20, 3}, 2), 80);                  // sliced
  check_view(*device, masked({8, 9}, {5, 1}, -12, {2, 2}, {6, 7}), 20);  // padded
  check_view(*device, masked({7}, {-1}, 6, {3}, {7}), 4);
  check_view(*device, masked({1, 5}, {0, 1}, 0, {0, 0}, {0, 5}), 5);  // valid nowhere
}

TEST(WebGpuMap, reads_through_stacks_of_views) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  // A transposed matrix, reshaped to 6x4 and transposed again.
  const View first{{4, 6}, {1, 4}, 0, {}, {}};
  const View second{{4, 6}, {1, 4}, 0, {}, {}};
  check_view(*device, IndexMap{{first, second}}, 24);
  // Padded, then flattened and strided.
  const View padded{{4, 5}, {3, 1}, -4, {1, 1}, {3, 4}};
  const View flat{{20}, {-1}, 19, {}, {}};
  check_view(*device, IndexMap{{flat, padded}}, 6);
  const View masked_first{{20}, {1}, -3, {3}, {20}};
  check_view(*device, IndexMap{{masked_first, View{{17}, {2}, 1, {}, {}}}}, 34);
}

TEST(WebGpuMap, reads_through_random_views) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  std::mt19937 random(7);
  const auto draw = [&](int lo, int hi) {
    return std::uniform_int_distribution<int>(lo, hi)(random);
  };
  const std::vector<Shape> cuts = {{48}, {6, 8}, {8, 6}, {2, 3, 8}, {4, 12}, {3, 16}, {2, 2, 2, 6}};
  for (int round = 0; round < 25; ++round) {
    IndexMap map;
    std::int64_t elements = 0;
    const int depth = draw(1, 2);
    for (int level = 0; level < depth; ++level) {
      // The domain of the next view has the size of the range of this one; with 48, views can be
      // stacked.
      const Shape& shape = cuts[static_cast<std::size_t>(draw(0, 6))];
      View view = View::contiguous(shape);
      std::vector<std::size_t> order(shape.size());
      for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
      std::shuffle(order.begin(), order.end(), random);
      std::int64_t stride = 1;
      for (const std::size_t d : order) {
        view.strides[d] = stride;
        stride *= shape[d];
        if (draw(0, 3) == 0) {
          view.offset += view.strides[d] * (shape[d] - 1);
          view.strides[d] = -view.strides[d];
        }
      }
      if (draw(0, 1) == 0) {
        for (const std::int64_t size : shape) {
          view.lo.push_back(draw(0, 2) == 0 ? 1 : 0);
          view.hi.push_back(draw(0, 2) == 0 ? size - (size > 2 ? 1 : 0) : size);
        }
      }
      map.views.push_back(view);
      elements = 48;
    }
    check_view(*device, map, elements);
  }
}

TEST(WebGpuMap, knows_where_it_is) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test;
  const std::int64_t elements = 7 * 12 * 5;
  const int out = test.buffer(DType::kU32, elements * 4);
  Launch& launch = test.launch(MapLaunch{elements}, "coordinates");
  test.bind(launch, out, BindMode::kWrite);
  ProgramMaker make;
  const std::vector<int> values = {make.index(), make.coord(60, 7), make.coord(5, 12),
                                   make.coord(1, 5)};
  launch.body = make.program;
  for (std::size_t i = 0; i < values.size(); ++i) {
    TestProgram::store(launch, 0, values[i], strided({elements}, {4}, static_cast<std::int64_t>(i)),
                       DType::kU32);
  }
  test.check(*device);
}

TEST(WebGpuMap, writes_constants_exactly) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test;
  const std::vector<std::uint32_t> floats = {
      0x00000000u, 0x80000000u, 0x3f800000u, 0x3dcccccdu, 0xc2f6e979u, 0x7f7fffffu,
      0xff7fffffu, 0x00800000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x3eaaaaabu,
      0x4b7fffffu, 0x33d6bf95u, 0x34000000u, 0x7e967699u, 0x0da24260u};
  const std::vector<std::uint32_t> integers = {0u, 1u, 0x7fffffffu, 0x80000000u, 0xffffffffu};
  const auto count = static_cast<std::int64_t>(floats.size() + 3 * integers.size());
  const int out = test.buffer(DType::kU32, count);
  Launch& launch = test.launch(MapLaunch{}, "constants");
  test.bind(launch, out, BindMode::kWrite);
  ProgramMaker make;
  std::int64_t place = 0;
  const auto add = [&](std::uint32_t bits, DType dtype) {
    const int value = make.constant_u32(bits, dtype);
    TestProgram::store(launch, 0, value, strided({1}, {0}, place++), dtype);
  };
  for (const std::uint32_t bits : floats) add(bits, DType::kF32);
  for (const std::uint32_t bits : integers) {
    add(bits, DType::kI32);
    add(bits, DType::kU32);
    add(bits, DType::kBool);
  }
  launch.body = make.program;
  test.check(*device);
}

TEST(WebGpuMap, keeps_booleans_as_words_and_mixes_types_in_a_buffer) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test;
  const int a = test.buffer(DType::kF32, 100);
  const int flags = test.buffer(DType::kBool, 100);
  const int mixed = test.buffer(DType::kU32, 300);
  Launch& launch = test.launch(MapLaunch{100}, "mixed");
  test.bind(launch, a, BindMode::kRead);
  test.bind(launch, flags, BindMode::kReadWrite);
  test.bind(launch, mixed, BindMode::kWrite);
  ProgramMaker make;
  const int x = make.load(0, whole({100}));
  const int flag = make.load(1, whole({100}), DType::kBool);
  const int positive = make.op_to("gt", {x, make.constant(0)}, DType::kBool);
  const int both = make.op("logical_and", {flag, positive});
  const int chosen = make.op("where", {both, x, make.constant(-1)});
  launch.body = make.program;
  TestProgram::store(launch, 1, both, whole({100}), DType::kBool);
  TestProgram::store(launch, 2, chosen, strided({100}, {3}), DType::kF32);
  TestProgram::store(launch, 2, flag, strided({100}, {3}, 1), DType::kBool);
  TestProgram::store(launch, 2, make.index(), strided({100}, {3}, 2), DType::kU32);
  launch.body = make.program;
  test.check(*device);
}

TEST(WebGpuMap, guards_gathers) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  TestProgram test;
  const int table = test.buffer(DType::kF32, 10 * 4);
  const int keys = test.buffer(DType::kI32, 50, -4, 14);
  const int out = test.buffer(DType::kF32, 50 * 4);
  Launch& launch = test.launch(MapLaunch{200}, "gather");
  test.bind(launch, table, BindMode::kRead);
  test.bind(launch, keys, BindMode::kRead);
  test.bind(launch, out, BindMode::kWrite);
  ProgramMaker make;
  const int key = make.load(1, strided({50, 4}, {1, 0}), DType::kI32);
  const int value = make.load_at(0, strided({50, 4}, {0, 1}), key, 4, 10);
  const int back = make.load_at(0, strided({50, 4}, {0, 1}, 36), key, -4, 10);
  const int padded = make.load_at(0, masked({50, 4}, {0, 1}, -1, {3, 1}, {50, 4}), key, 4, 10);
  const int sum = make.op("add", {make.op("mul", {value, back}), padded});
  launch.body = make.program;
  TestProgram::store(launch, 2, sum, whole({200}));
  test.check(*device);
}

TEST(WebGpuMap, runs_random_programs) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  std::mt19937 random(11);
  const std::vector<const char*> unary = {"exp", "tanh", "sigmoid", "neg", "sin", "erf", "square"};
  const std::vector<const char*> binary = {"add", "sub", "mul"};
  for (int round = 0; round < 20; ++round) {
    TestProgram test(static_cast<unsigned>(round));
    const std::int64_t rows = 1 + static_cast<std::int64_t>(random() % 40);
    const std::int64_t cols = 1 + static_cast<std::int64_t>(random() % 70);
    const std::int64_t elements = rows * cols;
    const int a = test.buffer(DType::kF32, elements), b = test.buffer(DType::kF32, cols);
    const int out = test.buffer(DType::kF32, elements);
    Launch& launch = test.launch(MapLaunch{elements}, "random");
    test.bind(launch, a, BindMode::kRead);
    test.bind(launch, b, BindMode::kRead);
    test.bind(launch, out, BindMode::kReadWrite);
    ProgramMaker make;
    std::vector<int> values = {make.load(0, whole({elements})),
                               make.load(1, strided({rows, cols}, {0, 1})),
                               make.load(0, strided({cols, rows}, {1, cols})),
                               make.load(2, whole({elements})), make.constant(0.25f)};
    for (int i = 0; i < 8; ++i) {
      const auto any = [&] { return values[random() % values.size()]; };
      int value = random() % 2 == 0 ? make.op(unary[random() % unary.size()], {any()})
                                    : make.op(binary[random() % binary.size()], {any(), any()});
      value = make.op("tanh", {value});  // bounded, so that errors do not grow
      values.push_back(value);
    }
    launch.body = make.program;
    TestProgram::store(launch, 2, values.back(), whole({elements}));
    test.check(*device, {oracle_scalars()}, 2e-4);
  }
}

TEST(WebGpuMap, folds_large_grids) {
  TENSORGRAD_DEVICE_OR_RETURN(device);
  // One workgroup per row, and more rows than a dispatch has workgroups in one dimension.
  TestProgram test;
  const std::int64_t rows = 70001;
  const int a = test.buffer(DType::kF32, 1024);
  const int out = test.buffer(DType::kF32, rows);
  Launch& launch = test.launch(RowLaunch{rows, 1024}, "many_rows");
  test.bind(launch, a, BindMode::kRead);
  test.bind(launch, out, BindMode::kWrite);
  ProgramMaker make;
  const int sum = make.reduce(ReduceOp::kSum, make.load(0, strided({rows, 1024}, {0, 1})));
  const int row = make.op_to("cast", {make.index(Level::kRow)}, DType::kF32);
  const int value = make.op("add", {sum, row});
  launch.body = make.program;
  TestProgram::store(launch, 1, value, whole({rows}), DType::kF32, Level::kRow);
  const WgslKernel kernel = write_wgsl(launch);
  EXPECT_GT(kernel.groups_y, 1u);
  const std::vector<BufferHandle> handles = test.upload(*device);
  const auto executable = device->prepare(test.program, handles);
  device->run(*executable, std::vector<RuntimeScalars>{oracle_scalars()});
  const std::vector<std::uint32_t> words = test.download(*device, handles[1], out);
  double total = 0;
  for (int i = 0; i < 1024; ++i)
    total += oracle_decode(test.contents[0][static_cast<std::size_t>(i)], DType::kF32);
  for (std::int64_t i = 0; i < rows; i += 997) {
    EXPECT_NEAR(std::bit_cast<float>(words[static_cast<std::size_t>(i)]),
                total + static_cast<double>(i), 0.01);
  }
  EXPECT_NEAR(std::bit_cast<float>(words[rows - 1]), total + static_cast<double>(rows - 1), 0.01);
}

}  // namespace
}  // namespace tensorgrad::testing
