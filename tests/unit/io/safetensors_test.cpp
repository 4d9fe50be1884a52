// SPDX-License-Identifier: MIT
// safetensors: round trips, the same bytes as the reference implementation, and the dump.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "io_test_util.h"
#include "support/source_path.h"
#include "tensorgrad/data/files.h"
#include "tensorgrad/data/safetensors.h"

namespace tensorgrad {
namespace {

using test::as_bytes;
using test::get_file;
using test::io_error_of;
using test::TempDir;

const std::string kReference = test::source_path("tests/unit/io/fixtures/reference.safetensors");

template <typename T>
StoredTensor tensor_of(const std::string& dtype, Shape shape, const std::vector<T>& values) {
  StoredTensor tensor{dtype, std::move(shape), {}};
  tensor.data.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

StoredFile sample() {
  StoredFile file;
  file.tensors["w"] = tensor_of<float>("F32", {2, 3}, {1, 2, 3, 4, 5, 6});
  file.tensors["step"] = tensor_of<std::int32_t>("I32", {}, {42});
  file.tensors["empty"] = tensor_of<float>("F32", {3, 0}, {});
  file.tensors["bytes"] = tensor_of<std::uint8_t>("U8", {3}, {1, 2, 3});
  file.tensors["line\nbreak \"\\ \u00e4"] = tensor_of<std::uint64_t>("U64", {1}, {~0ULL});
  file.metadata = {{"schedule", "{\"kind\":\"cosine\"}"}, {"", "empty key"}, {"x", ""}};
  return file;
}

TEST(Safetensors, round_trips) {
  const TempDir dir;
  const std::string path = dir / "model.safetensors";
  write_safetensors(path, sample());
  EXPECT_EQ(read_safetensors(path), sample());
  std::vector<std::byte> bytes;
  write_safetensors(bytes, sample());
  EXPECT_EQ(bytes, read_file(path));
  EXPECT_EQ(read_safetensors(bytes), sample());
  EXPECT_EQ(dir.files(), std::vector<std::string>{"model.safetensors"});
}

TEST(Safetensors, an_empty_file_round_trips) {
  const TempDir dir;
  write_safetensors(dir / "e", {});
  EXPECT_EQ(get_file(dir / "e").size(), 16U);
  EXPECT_EQ(read_safetensors(dir / "e"), StoredFile{});
}

TEST(Safetensors, header_and_every_tensor_are_aligned) {
  const TempDir dir;
  write_safetensors(dir / "m", sample());
  const std::string text = get_file(dir / "m");
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof length);
  EXPECT_EQ(length % 8, 0U);
  // Widest first: U64, F32, I32, U8.
  const std::string header = text.substr(8, length);
  EXPECT_LT(header.find("U64"), header.find("F32"));
  EXPECT_LT(header.find("F32"), header.find("I32"));
  EXPECT_LT(header.find("I32"), header.find("U8\""));
}

TEST(Safetensors, reads_a_file_of_the_reference_implementation) {
  const StoredFile file = read_safetensors(kReference);
  EXPECT_EQ(file.tensors.size(), 10U);
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"format", "n\u00f6te \"x\""}}));
  EXPECT_EQ(file.tensors.at("layer.weight"),
            tensor_of<float>("F32", {2, 3}, {0, 0.25F, 0.5F, 0.75F, 1, 1.25F}));
  EXPECT_EQ(file.tensors.at("step"), tensor_of<std::int32_t>("I32", {}, {1234567}));
  EXPECT_EQ(file.tensors.at("counter"), tensor_of<std::uint32_t>("U32", {2}, {0, ~0U}));
  EXPECT_EQ(file.tensors.at("mask"), tensor_of<std::uint8_t>("BOOL", {3, 1}, {1, 0, 1}));
  EXPECT_EQ(file.tensors.at("nothing"), tensor_of<float>("F32", {0, 4}, {}));
  EXPECT_EQ(file.tensors.at("half"), tensor_of<std::uint16_t>("F16", {2}, {0x3c00, 0xc000}));
  EXPECT_TRUE(file.tensors.contains("a \"quoted\" n\u00e4me"));
}

TEST(Safetensors, writes_the_bytes_of_the_reference_implementation) {
  const TempDir dir;
  write_safetensors(dir / "again", read_safetensors(kReference));
  EXPECT_EQ(get_file(dir / "again"), get_file(kReference));
}

TEST(Safetensors, tensors_it_could_not_read_are_not_written) {
  const TempDir dir;
  const std::string path = dir / "m";
  const auto error_with = [&](const std::string& name, const StoredTensor& tensor) {
    StoredFile file;
    file.tensors[name] = tensor;
    return io_error_of([&] { write_safetensors(path, file); });
  };
  const StoredTensor good = tensor_of<float>("F32", {1}, {1});
  EXPECT_EQ(error_with("w", {"F33", {1}, good.data}),
            path + ": tensor \"w\": unknown dtype \"F33\"");
  EXPECT_EQ(error_with("w", {"F32", {2}, good.data}),
            path + ": tensor \"w\": F32 [2] does not take 4 bytes");
  EXPECT_EQ(error_with("w", {"F32", {-1}, good.data}),
            path + ": tensor \"w\": F32 [-1] does not take 4 bytes");
  EXPECT_EQ(error_with("__metadata__", good),
            path + ": tensor \"__metadata__\": the name is reserved by the format");
  EXPECT_EQ(error_with("\xff", good), path + ": a tensor's name or the metadata is not UTF-8");
  EXPECT_EQ(error_with("w", {"U8", Shape(65, 1), std::vector<std::byte>(1)}),
            path + ": tensor \"w\": has too many axes");
  EXPECT_TRUE(dir.files().empty());
}

TEST(Safetensors, missing_files_and_folders_are_errors) {
  const TempDir dir;
  EXPECT_EQ(io_error_of([&] { read_safetensors(dir / "none"); }),
            (dir / "none") + ": cannot be opened: no such file or directory");
  EXPECT_EQ(io_error_of([&] { read_safetensors(dir.str()); }),
            dir.str() + ": is a folder; expected a file");
  EXPECT_EQ(io_error_of([&] { read_safetensors("/dev/null"); }),
            "/dev/null: is not a regular file");
}

TEST(Safetensors, files_on_disk_are_checked_as_bytes_are) {
  const TempDir dir;
  const std::string path = dir / "m";
  for (const std::size_t keep : {0U, 7U, 8U, 300U, 743U}) {
    const std::string text = get_file(kReference).substr(0, keep);
    test::put_file(path, text);
    const std::string message = io_error_of([&] { read_safetensors(path); });
    EXPECT_NE(message, "no error");
    EXPECT_EQ(message, io_error_of([&] { read_safetensors({as_bytes(text), path}); }));
  }
}

TEST(Safetensors, dtypes_have_their_names) {
  for (const DType dtype : {f32, i32, u32}) {
    EXPECT_EQ(element_type("m", "w", {std::string(stored_dtype(dtype)), {}, {}}), dtype);
  }
  EXPECT_EQ(stored_dtype(boolean), "BOOL");
  EXPECT_EQ(io_error_of([] { element_type("m", "w", {"BOOL", {}, {}}); }),
            "m: tensor 'w' is BOOL; expected F32, I32 or U32");
}

TEST(Safetensors, the_range_is_of_the_finite_values) {
  const auto expect = [](const StoredTensor& tensor, const StoredRange& expected) {
    const StoredRange range = stored_range(tensor);
    EXPECT_EQ(range.min, expected.min);
    EXPECT_EQ(range.max, expected.max);
    EXPECT_EQ(range.mean, expected.mean);
    EXPECT_EQ(range.count, expected.count);
    EXPECT_EQ(range.finite, expected.finite);
  };
  expect(tensor_of<float>("F32", {4}, {NAN, 2, -INFINITY, 4}), {2, 4, 3, 4, 2});
  expect(tensor_of<float>("F32", {1}, {NAN}), {0, 0, 0, 1, 0});
  expect(tensor_of<std::int32_t>("I32", {2}, {-3, 1}), {-3, 1, -1, 2, 2});
  expect(tensor_of<std::uint32_t>("U32", {1}, {4294967295U}),
         {4294967295.0, 4294967295.0, 4294967295.0, 1, 1});
  expect(tensor_of<std::uint8_t>("BOOL", {4}, {1, 0, 0, 0}), {0, 1, 0.25, 4, 4});
  expect(tensor_of<std::uint8_t>("U8", {1}, {1}), {});
}

TEST(Safetensors, dump_lists_tensors_and_metadata) {
  StoredFile file = sample();
  file.tensors["nan"] = tensor_of<float>("F32", {2}, {NAN, 2});
  const std::string text = dump_safetensors(file);
  EXPECT_NE(text.find("line\\x0abreak"), std::string::npos) << text;
  EXPECT_NE(text.find("1         3.5           6"), std::string::npos) << text;
  EXPECT_NE(text.find("1 not finite"), std::string::npos) << text;
  EXPECT_NE(text.find("6 tensors, 47 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("schedule = {\"kind\":\"cosine\"}"), std::string::npos) << text;
  StoredFile one;
  one.tensors["a"] = tensor_of<float>("F32", {2}, {1, 2});
  EXPECT_TRUE(dump_safetensors(one).ends_with("\n1 tensor, 8 bytes\n"));
}

StoredFile checked_file() {
  StoredFile file;
  file.checksums = true;
  file.metadata["step"] = "12";
  file.tensors["a"] = {"F32", {2}, std::vector<std::byte>(8, std::byte{1})};
  file.tensors["b"] = {"U8", {3}, std::vector<std::byte>(3, std::byte{2})};
  file.tensors["empty"] = {"F32", {0}, {}};
  return file;
}

TEST(Safetensors, checksums_are_written_and_read) {
  std::vector<std::byte> bytes;
  write_safetensors(bytes, checked_file());
  const StoredFile back = read_safetensors({bytes, "f"});
  EXPECT_EQ(back, checked_file());
  EXPECT_NE(dump_safetensors(back).find("checksums match\n"), std::string::npos);
  std::vector<std::byte> again;
  write_safetensors(again, back);
  EXPECT_EQ(again, bytes);
}

TEST(Safetensors, names_the_tensor_that_differs_from_its_checksum) {
  std::vector<std::byte> bytes;
  write_safetensors(bytes, checked_file());
  bytes.back() ^= std::byte{1};
  EXPECT_EQ(io_error_of([&] { read_safetensors({bytes, "f"}); }),
            "f: tensor \"b\" differs from its checksum: expected crc32 20fd0ed2, got 57fa3e44; the "
            "file is damaged (if another program changed it, remove tensorgrad.checksum from its "
            "metadata)");
}

// A flipped bit is an error, unless it is in the key of the checksums. Then the file is read
// without checksums.
TEST(Safetensors, any_changed_bit_of_a_file_with_checksums_is_seen) {
  std::vector<std::byte> bytes;
  write_safetensors(bytes, checked_file());
  const StoredFile whole = checked_file();
  int unseen = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> changed = bytes;
      changed[at] ^= std::byte(1 << bit);
      try {
        StoredFile got = read_safetensors({changed, "f"});
        EXPECT_EQ(got.tensors, whole.tensors) << at;
        EXPECT_EQ(got.metadata.at("step"), "12") << at;
        EXPECT_FALSE(got.checksums) << at << ' ' << bit;
        ++unseen;
      } catch (const IoError&) {  // seen
      }
    }
  }
  EXPECT_LE(unseen, 19 * 8) << "tensorgrad.checksum";
}

TEST(Safetensors, the_metadata_is_read_from_the_header) {
  std::vector<std::byte> bytes;
  write_safetensors(bytes, checked_file());
  EXPECT_EQ(read_metadata({bytes, "f"}), checked_file().metadata);
  std::vector<std::byte> other = bytes;
  other.back() ^= std::byte{1};  // in a tensor
  EXPECT_EQ(read_metadata({other, "f"}), checked_file().metadata);
  EXPECT_THROW(read_safetensors({other, "f"}), IoError);
  other = bytes;
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  other[text.find("\"12\"") + 1] = std::byte{'3'};
  EXPECT_EQ(io_error_of([&] { read_metadata({other, "f"}); }).find("f: the header differs"), 0U);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(read_metadata({std::span(bytes).first(size), "f"}), IoError) << size;
}

TEST(Safetensors, malformed_checksums_are_rejected) {
  for (const char* value : {"", "crc32", "crc32 00000000", "md5 00000000 00000000",
                            "crc32 00000000 00000000 00000000 0"}) {
    StoredFile file;
    file.metadata["tensorgrad.checksum"] = value;
    file.tensors["a"] = {"U8", {1}, std::vector<std::byte>(1)};
    std::vector<std::byte> bytes;
    write_safetensors(bytes, file);
    EXPECT_EQ(io_error_of([&] { read_safetensors({bytes, "f"}); }),
              std::string("f: tensorgrad.checksum: expected crc32 and 2 checksums, got \"") +
                  value + "\"");
  }
}

}  // namespace
}  // namespace tensorgrad
