// SPDX-License-Identifier: MIT
// Fields of Protocol Buffers byte by byte, and invalid ONNX files. tests/onnx tests that other
// programs read whole models.
#include <gtest/gtest.h>
#ifndef _WIN32
#include <sys/mman.h>
#endif

#include "io/onnx.h"
#include "io/protobuf.h"
#include "io_test_util.h"
#include "tensorgrad/data/files.h"

namespace tensorgrad::inline TENSORGRAD_ABI::io {
namespace {

using test::TempDir;

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    char pair[4];
    std::snprintf(pair, sizeof pair, "%02x ", static_cast<unsigned char>(c));
    text += pair;
  }
  return text;
}

// The examples of protobuf.dev/programming-guides/encoding.
TEST(Protobuf, fields_are_a_tag_and_a_value) {
  ProtoMessage number, text, inner, outer, packed;
  number.integer(1, 150);
  EXPECT_EQ(hex(number.bytes()), "08 96 01 ");
  text.text(2, "testing");
  EXPECT_EQ(hex(text.bytes()), "12 07 74 65 73 74 69 6e 67 ");
  outer.message(3, number);
  EXPECT_EQ(hex(outer.bytes()), "1a 03 08 96 01 ");
  const std::int64_t values[] = {3, 270, 86942};
  packed.integers(6, values);
  EXPECT_EQ(hex(packed.bytes()), "32 06 03 8e 02 9e a7 05 ");
}

TEST(Protobuf, a_negative_number_takes_ten_bytes_and_a_tag_more_than_one_above_fifteen) {
  ProtoMessage message;
  message.integer(16, -2);
  EXPECT_EQ(hex(message.bytes()), "80 01 fe ff ff ff ff ff ff ff ff 01 ");
}

TEST(Protobuf, a_field_whose_bytes_follow_has_their_number) {
  ProtoMessage message;
  message.begin(9, 300);
  EXPECT_EQ(hex(message.bytes()), "4a ac 02 ");
}

OnnxModel model_with(std::span<const std::byte> data) {
  OnnxModel model;
  model.producer = "test";
  model.version = "1";
  model.ir_version = 8;
  model.opset = 18;
  const auto count = static_cast<std::int64_t>(data.size() / 4);
  model.graph.name = "g";
  model.graph.doc = "doc";
  model.graph.initializers = {{{"w", OnnxType::kFloat, {count}}, data}};
  return model;
}

TEST(OnnxFile, bytes_match_the_format) {
  const TempDir folder;
  const std::vector<std::byte> data(4, std::byte{0x40});
  write_onnx(folder / "m.onnx", model_with(data));
  const std::vector<std::byte> bytes = read_file(folder / "m.onnx");
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_EQ(hex(text),
            "08 08 "                                              // ir_version 8
            "12 04 74 65 73 74 1a 01 31 "                         // producer, version
            "42 04 0a 00 10 12 "                                  // opset 18 of ""
            "3a 18 12 01 67 52 03 64 6f 63 "                      // graph, its name and doc
            "2a 0e 0a 01 01 10 01 42 01 77 4a 04 40 40 40 40 ");  // dims, type, name, data
}

TEST(OnnxFile, sizes_are_numbers_or_names_or_unknown) {
  const TempDir folder;
  OnnxModel model;
  model.graph.inputs = {{"x", OnnxType::kFloat, {kUnknownSize, 3}, {"n", ""}},
                        {"y", OnnxType::kFloat, {kUnknownSize}}};
  write_onnx(folder / "m.onnx", model);
  const std::vector<std::byte> bytes = read_file(folder / "m.onnx");
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_NE(hex(text).find("5a 14 0a 01 78 12 0f 0a 0d 08 01 12 09 "  // x: a tensor of floats,
                           "0a 03 12 01 6e 0a 02 08 03 "              // n by 3
                           "5a 0d 0a 01 79 12 08 0a 06 08 01 12 02 "  // y: the same
                           "0a 00 "),                                 // of an unknown size
            std::string::npos)
      << hex(text);
}

#ifndef _WIN32
// The elements are inaccessible memory, so the test crashes if they are read.
TEST(OnnxFile, above_two_gib_is_rejected_before_writing) {
  const TempDir folder;
  constexpr std::size_t kSize = std::size_t{1} << 31U;
  void* nothing =
      mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(nothing, MAP_FAILED);
  const std::string path = folder / "large.onnx";
  const OnnxModel model = model_with({static_cast<const std::byte*>(nothing), kSize});
  try {
    write_onnx(path, model);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const IoError& error) {
    EXPECT_EQ(error.message(), path +
                                   ": the model takes 2147483703 bytes; an ONNX file is limited "
                                   "to 2147483647");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  munmap(nothing, kSize);
}
#endif

}  // namespace
}  // namespace tensorgrad::inline TENSORGRAD_ABI::io
