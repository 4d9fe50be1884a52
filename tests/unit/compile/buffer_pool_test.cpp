// SPDX-License-Identifier: MIT
#include "compile/runtime/buffer_sharing.h"

#include <gtest/gtest.h>

#include <array>

namespace tensorgrad {
namespace {

Program program_of(std::vector<BufferDecl> buffers) {
  Program program;
  program.buffers = std::move(buffers);
  return program;
}

TEST(BufferPool, of_one_program_is_its_buffers) {
  const Program a = program_of({{"params", BufferKind::kParams, 512, {}},
                                {"slot 0", BufferKind::kSlot, 256, {}},
                                {"slot 1", BufferKind::kSlot, 1024, {}}});
  const std::array<const Program*, 1> programs = {&a};
  const BufferPool pool = pool_buffers(programs, {});
  EXPECT_EQ(pool.bytes(), 512 + 256 + 1024);
  ASSERT_EQ(pool.places.size(), 1U);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(pool.buffers[pool.places[0][i]].bytes, a.buffers[i].bytes) << i;
}

TEST(BufferPool, has_what_lasts_once_and_slots_by_size) {
  const Program a = program_of({{"params", BufferKind::kParams, 512, {}},
                                {"data x", BufferKind::kData, 256, {}},
                                {"data order", BufferKind::kData, 256, {}},
                                {"output loss", BufferKind::kOutput, 256, {}},
                                {"slot 0", BufferKind::kSlot, 256, {}},
                                {"slot 1", BufferKind::kSlot, 1024, {}}});
  const Program b = program_of({{"slot 0", BufferKind::kSlot, 2048, {}},
                                {"slot 1", BufferKind::kSlot, 512, {}},
                                {"slot 2", BufferKind::kSlot, 256, {}},
                                {"params", BufferKind::kParams, 512, {}},
                                {"data x", BufferKind::kData, 512, {}},
                                {"data order", BufferKind::kData, 256, {}},
                                {"output loss", BufferKind::kOutput, 256, {}}});
  const std::array<const Program*, 2> programs = {&a, &b};
  const BufferPool pool = pool_buffers(programs, {"data order"});
  EXPECT_EQ(pool.places[0][0], pool.places[1][3]);
  EXPECT_NE(pool.places[0][1], pool.places[1][4]) << "of another size";
  EXPECT_NE(pool.places[0][2], pool.places[1][5]) << "each its own";
  EXPECT_NE(pool.places[0][3], pool.places[1][6]);
  EXPECT_EQ(pool.places[0][5], pool.places[1][0]) << "the largest";
  EXPECT_EQ(pool.places[0][4], pool.places[1][1]) << "the second";
  EXPECT_EQ(pool.bytes(), 512 + (256 + 512) + 2 * 256 + 2 * 256 + 2048 + 512 + 256);
}

}  // namespace
}  // namespace tensorgrad
