// SPDX-License-Identifier: MIT
// GGUF: the bytes of a file, all types of metadata, what is malformed, and what cannot be written.
#include "tensorgrad/data/gguf.h"

#include <gtest/gtest.h>

#include <cstring>

#include "io_test_util.h"

namespace tensorgrad {
namespace {

using test::as_bytes;
using test::io_error_of;

template <class T>
std::string raw(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}
std::string u32_bytes(std::uint32_t value) { return raw(value); }
std::string u64_bytes(std::uint64_t value) { return raw(value); }
std::string text_bytes(const std::string& text) { return u64_bytes(text.size()) + text; }
std::string padded_to_32(std::string bytes) {
  bytes.resize((bytes.size() + 31) / 32 * 32);
  return bytes;
}

std::string gguf_start(std::uint64_t tensors, std::uint64_t keys) {
  return "GGUF" + u32_bytes(3) + u64_bytes(tensors) + u64_bytes(keys);
}
// The entry of a tensor of F32.
std::string f32_entry(const std::string& name, const std::vector<std::uint64_t>& sizes,
                      std::uint64_t offset) {
  std::string out = text_bytes(name) + u32_bytes(static_cast<std::uint32_t>(sizes.size()));
  for (const std::uint64_t size : sizes) out += u64_bytes(size);
  return out + u32_bytes(0) + u64_bytes(offset);
}

StoredTensor f32_tensor(Shape shape, const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {"F32", std::move(shape), {bytes.begin(), bytes.end()}};
}

std::string written(const GgufFile& file) {
  std::vector<std::byte> bytes;
  write_gguf(bytes, file);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

GgufFile parsed_gguf(const std::string& text) { return read_gguf({as_bytes(text), "f"}); }

TEST(Gguf, has_the_bytes_of_version_3) {
  GgufFile file;
  file.tensors["w"] = f32_tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  file.tensors["x"] = f32_tensor({}, {7});
  file.metadata["k"] = std::uint32_t{5};
  file.metadata["list"] = GgufArray(std::vector<std::string>{"a", ""});
  const std::string header = gguf_start(2, 2) + text_bytes("k") + u32_bytes(4) + u32_bytes(5) +
                             text_bytes("list") + u32_bytes(9) + u32_bytes(8) + u64_bytes(2) +
                             text_bytes("a") + text_bytes("") + f32_entry("w", {3, 2}, 0) +
                             f32_entry("x", {}, 32);
  std::string values;
  for (const float value : {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}) values += raw(value);
  const std::string whole = padded_to_32(header) + padded_to_32(values) + padded_to_32(raw(7.0F));
  EXPECT_EQ(written(file), whole);
  EXPECT_TRUE(parsed_gguf(whole) == file);
  EXPECT_TRUE(parsed_gguf(whole.substr(0, whole.size() - 28)) == file);  // without the last padding
}

TEST(Gguf, keeps_all_types_of_metadata) {
  GgufFile file;
  file.metadata["general.alignment"] = std::uint32_t{64};
  file.tensors["a"] = {"I8", {1}, {std::byte{1}}};
  file.tensors["b"] = {"I64", {0, 5}, {}};
  file.metadata["u8"] = std::uint8_t{255};
  file.metadata["i8"] = std::int8_t{-128};
  file.metadata["u16"] = std::uint16_t{65535};
  file.metadata["i16"] = std::int16_t{-32768};
  file.metadata["i32"] = std::int32_t{-5};
  file.metadata["f32"] = 0.5F;
  file.metadata["bool"] = true;
  file.metadata["text"] = std::string("\xff with any bytes");
  file.metadata["u64"] = ~std::uint64_t{0};
  file.metadata["i64"] = std::int64_t{INT64_MIN};
  file.metadata["f64"] = 0.25;
  file.metadata["u8s"] = GgufArray(std::vector<std::uint8_t>{1, 2});
  file.metadata["i16s"] = GgufArray(std::vector<std::int16_t>{-1});
  file.metadata["f32s"] = GgufArray(std::vector<float>(20'000, 1.5F));  // larger than the window
  file.metadata["bools"] = GgufArray(std::vector<bool>{true, false, true});
  file.metadata["f64s"] = GgufArray(std::vector<double>{});
  const std::string bytes = written(file);
  EXPECT_TRUE(parsed_gguf(bytes) == file);
  EXPECT_EQ(written(parsed_gguf(bytes)), bytes);
  EXPECT_EQ(bytes.size() % 64, 0U);
  std::string older = bytes;
  older[4] = 2;
  EXPECT_TRUE(parsed_gguf(older) == file);
}

TEST(Gguf, truncation_at_any_byte_is_rejected) {
  GgufFile file;
  file.tensors["w"] = f32_tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  file.tensors["x"] = f32_tensor({1}, {7});
  file.metadata["text"] = std::string("value");
  file.metadata["list"] = GgufArray(std::vector<std::int32_t>{1, 2, 3});
  const std::string bytes = written(file);
  for (std::size_t size = 0; size < bytes.size() - 28; ++size) {
    const std::string error = io_error_of([&] { parsed_gguf(bytes.substr(0, size)); });
    ASSERT_TRUE(error.starts_with("f: ")) << size << ": " << error;
  }
}

TEST(Gguf, malformed_files_are_rejected) {
  const auto error_of = [](const std::string& bytes) {
    return io_error_of([&] { parsed_gguf(bytes); });
  };
  EXPECT_EQ(error_of("GGU"),
            "f: truncated: expected the 4 bytes \"GGUF\" at its beginning at byte 3");
  EXPECT_EQ(error_of("PK\3\4----"),
            "f: not a GGUF file: it begins with \"PK\\x03\\x04\", expected \"GGUF\" at byte 0");
  EXPECT_EQ(error_of("GGUF" + u32_bytes(1)),
            "f: version 1 is not supported; expected 2 or 3 at byte 4");
  EXPECT_EQ(error_of("GGUF" + u32_bytes(0x03000000)),
            "f: big-endian files are not supported at byte 4");
  EXPECT_EQ(error_of(gguf_start(~0ULL, 0)),
            "f: the number of tensors is 18446744073709551615, but only 8 bytes follow at byte 8");
  EXPECT_EQ(error_of(gguf_start(0, 1) + std::string(12, 'x')),
            "f: the number of keys is 1, but only 12 bytes follow at byte 16");
  EXPECT_EQ(error_of(gguf_start(0, 1) + u64_bytes(99) + "keyxxxxxx"),
            "f: a key is 99, but only 9 bytes follow at byte 24");
  EXPECT_EQ(error_of(gguf_start(0, 1) + text_bytes("k") + u32_bytes(13)),
            "f: key \"k\" has the unknown type 13 at byte 24");
  EXPECT_EQ(error_of(gguf_start(0, 1) + text_bytes("k") + u32_bytes(7) + "\2"),
            "f: a boolean is 2, expected 0 or 1 at byte 37");
  EXPECT_EQ(error_of(gguf_start(0, 1) + text_bytes("k") + u32_bytes(9) + u32_bytes(9)),
            "f: arrays of arrays are not supported at byte 37");
  EXPECT_EQ(error_of(gguf_start(0, 1) + text_bytes("k") + u32_bytes(9) + u32_bytes(6) +
                     u64_bytes(1ULL << 62)),
            "f: an array's length is 4611686018427387904, but only 0 bytes follow at byte 41");
  const std::string key = text_bytes("k") + u32_bytes(0) + "\1";
  EXPECT_EQ(error_of(gguf_start(0, 2) + key + key), "f: duplicate key \"k\" at byte 38");
  for (const std::uint32_t bad : {0U, 24U}) {
    EXPECT_EQ(error_of(gguf_start(0, 1) + text_bytes("general.alignment") + u32_bytes(4) +
                       u32_bytes(bad)),
              "f: general.alignment: expected a u32 that is a power of 2 at byte 24");
  }
}

TEST(Gguf, malformed_tensors_are_rejected) {
  const auto error_of = [](const std::string& entry, std::size_t data_bytes) {
    return io_error_of([&] {
      parsed_gguf(padded_to_32(gguf_start(1, 0) + entry) + std::string(data_bytes, '\0'));
    });
  };
  EXPECT_EQ(error_of(f32_entry("w", {1, 1, 1, 1, 1}, 0), 4),
            "f: tensor \"w\": 5 axes, expected at most 4 at byte 24");
  EXPECT_EQ(error_of(f32_entry("w", {1ULL << 63}, 0), 4),
            "f: tensor \"w\": the size 9223372036854775808 is too large at byte 24");
  EXPECT_EQ(error_of(f32_entry("w", {1ULL << 40, 1ULL << 40}, 0), 4),
            "f: tensor \"w\": the shape [1099511627776,1099511627776] does not fit blocks of 1 "
            "elements or is too large at byte 24");
  EXPECT_EQ(error_of(f32_entry("w", {1}, 32), 64),
            "f: tensor \"w\": expected its data at offset 0, got 32 at byte 64");
  EXPECT_EQ(error_of(f32_entry("w", {100}, 0), 64),
            "f: truncated: tensor \"w\": expected 400 bytes from offset 0 on at byte 128");
  EXPECT_EQ(error_of(f32_entry("w", {1}, 0), 64),
            "f: 60 bytes that belong to no tensor at byte 68");
  std::string unknown = f32_entry("w", {256}, 0);
  unknown[unknown.size() - 12] = 16;
  EXPECT_TRUE(
      error_of(unknown, 4)
          .starts_with("f: tensor \"w\": type 16 of ggml is not supported; expected F32, "));
  std::string blocks = f32_entry("w", {33}, 0);
  blocks[blocks.size() - 12] = 8;
  EXPECT_EQ(error_of(blocks, 64),
            "f: tensor \"w\": the shape [33] does not fit blocks of 32 elements or is too large at "
            "byte 24");
  const std::string two =
      padded_to_32(gguf_start(2, 0) + f32_entry("w", {8}, 0) + f32_entry("w", {8}, 32)) +
      std::string(64, '\0');
  EXPECT_EQ(io_error_of([&] { parsed_gguf(two); }), "f: duplicate tensor \"w\" at byte 128");
}

TEST(Gguf, values_outside_the_format_are_not_written) {
  const auto error_of = [](const GgufFile& file) {
    std::vector<std::byte> bytes;
    return io_error_of([&] { write_gguf({bytes, "f"}, file); });
  };
  const StoredTensor one = f32_tensor({1}, {1});
  EXPECT_EQ(error_of({.tensors = {{std::string(64, 'n'), one}}, .metadata = {}}),
            "f: tensor \"" + std::string(60, 'n') + "...\": the name has more than 63 bytes");
  EXPECT_EQ(error_of({.tensors = {{"w", f32_tensor({1, 1, 1, 1, 1}, {1})}}, .metadata = {}}),
            "f: tensor \"w\": has more than 4 axes");
  EXPECT_EQ(error_of({.tensors = {{"w", {"F8", {1}, {std::byte{}}}}}, .metadata = {}}),
            "f: tensor \"w\": unknown type \"F8\"");
  EXPECT_EQ(error_of({.tensors = {{"w", {"Q8_0", {32}, {std::byte{}}}}}, .metadata = {}}),
            "f: tensor \"w\": Q8_0 [32] does not take 1 bytes");
  EXPECT_EQ(error_of({.tensors = {}, .metadata = {{"k", GgufArray(std::monostate())}}}),
            "f: key \"k\": arrays of arrays are not supported");
  EXPECT_EQ(error_of({.tensors = {}, .metadata = {{"general.alignment", std::uint32_t{3}}}}),
            "f: general.alignment: expected a u32 that is a power of 2");
}

TEST(Gguf, unsupported_types_are_not_converted) {
  EXPECT_EQ(io_error_of([] { gguf_floats("f", "w", {"I32", {1}, std::vector<std::byte>(4)}); }),
            "f: tensor \"w\": expected floats or one of ggml's quantized types that can be read, "
            "got \"I32\"");
  EXPECT_EQ(io_error_of([] { gguf_floats("f", "w", {"Q4_0", {32}, std::vector<std::byte>(17)}); }),
            "f: tensor \"w\": Q4_0 [32] does not take 17 bytes");
}

TEST(Gguf, survives_mutations) {
  GgufFile file;
  file.tensors["w"] = f32_tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  file.tensors["q"] = {"Q8_0", {1, 32}, std::vector<std::byte>(34)};
  file.metadata["text"] = std::string("value");
  file.metadata["list"] = GgufArray(std::vector<std::string>{"a", "bc"});
  const std::string bytes = written(file);
  test::TestRandom random(7);
  for (int i = 0; i < 3000; ++i) {
    try {
      (void)parsed_gguf(test::mutated(bytes, random));
    } catch (const IoError&) {  // what malformed input must give
    }
  }
}

}  // namespace
}  // namespace tensorgrad
