// SPDX-License-Identifier: MIT
// NumPy files: reading files of numpy (make_npz_fixtures.py), writing, and broken files.
#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "support/source_path.h"
#include "support/temp_dir.h"
#include "tensorgrad/tensorgrad.h"

namespace tensorgrad::testing {
namespace {

using ::testing::HasSubstr;

std::string numpy_path(const std::string& name) {
  return test::source_path("tests/unit/io/fixtures/" + name);
}

std::string npz_failure(const FileSource& source) {
  try {
    (void)read_npz(source);
  } catch (const IoError& error) {
    return error.message();
  }
  return "";
}

std::vector<std::byte> npy_file(const std::string& header, std::size_t bytes) {
  std::string text = "\x93NUMPY";
  text += {'\x01', '\0', static_cast<char>(header.size()), '\0'};
  text += header;
  std::vector<std::byte> file(text.size() + bytes);
  std::memcpy(file.data(), text.data(), text.size());
  return file;
}

std::string npy_failure(const std::vector<std::byte>& file) {
  try {
    (void)read_npy({file, "x.npy"});
  } catch (const IoError& error) {
    return error.message();
  }
  return "";
}
std::string npy_failure(const std::string& header, std::size_t bytes) {
  return npy_failure(npy_file(header, bytes));
}

TEST(Npz, HasTheArraysOfNumpy) {
  for (const char* file : {"numpy.npz", "numpy_packed.npz"}) {
    const std::map<std::string, HostTensor> tensors = read_npz(numpy_path(file));
    EXPECT_EQ(tensors.size(), 17U);
    const std::vector<float> numbers = {0, 1, 2, 3, 100, 127};
    for (const char* name : {"f16", "f32", "f64", "f32_big"}) {
      EXPECT_EQ(tensors.at(name).shape, (Shape{2, 3})) << name;
      EXPECT_EQ(tensors.at(name).floats(), numbers) << name;
    }
    const std::vector<std::int32_t> whole(numbers.begin(), numbers.end());
    for (const char* name : {"i8", "i16", "i32", "i64", "u8", "u16", "u64", "i64_big"}) {
      EXPECT_EQ(tensors.at(name).dtype, i32) << name;
      EXPECT_EQ(tensors.at(name).ints(), whole) << name;
    }
    EXPECT_EQ(tensors.at("u32").dtype, u32);
    EXPECT_EQ(tensors.at("bool").bools(), (std::vector<bool>{true, false, true}));
    EXPECT_EQ(tensors.at("scalar").shape, Shape{});
    EXPECT_EQ(tensors.at("scalar").floats(), std::vector<float>{2.5});
    EXPECT_EQ(tensors
                  .at("gr\xC3\xB6\xC3\x9F"
                      "e/x")
                  .ints(),
              std::vector<std::int32_t>{-7});
    std::vector<float> counted(24);
    for (std::size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<float>(i);
    EXPECT_EQ(tensors.at("columns").floats(), counted);
    EXPECT_EQ(read_npy(numpy_path("fortran.npy")).floats(), counted);
  }
}

TEST(Npz, WritesWhatItReads) {
  std::map<std::string, HostTensor> tensors = read_npz(numpy_path("numpy.npz"));
  std::vector<std::byte> file;
  write_npz(file, tensors);
  const std::map<std::string, HostTensor> again = read_npz(file);
  ASSERT_EQ(again.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(again.at(name).dtype, tensor.dtype) << name;
    EXPECT_EQ(again.at(name).shape, tensor.shape) << name;
    EXPECT_EQ(again.at(name).bytes, tensor.bytes) << name;
    std::vector<std::byte> alone;
    write_npy(alone, tensor);
    EXPECT_EQ(read_npy(alone).bytes, tensor.bytes) << name;
  }
  // The file has the size of numpy's if types and order are the same.
  std::vector<std::byte> columns;
  write_npy(columns, tensors.at("columns"));
  EXPECT_EQ(columns.size(), read_file(numpy_path("fortran.npy")).size());
  EXPECT_THROW(write_npz(file, {{"", tensors.at("f32")}}), IoError);
  EXPECT_THROW(write_npz(file, {{"\xff", tensors.at("f32")}}), IoError);
}

TEST(Npz, NamesWhatIsWrong) {
  EXPECT_THAT(npy_failure("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 11),
              HasSubstr("x.npy: the array [3] of F32 has 11 bytes; expected 12"));
  EXPECT_THAT(npy_failure("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8),
              HasSubstr("x.npy: header of an array: elements of type \"<c8\" are not supported"));
  EXPECT_THAT(npy_failure("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", 4),
              HasSubstr("arrays of records are not supported"));
  EXPECT_THAT(npy_failure("{'descr': '<f4', 'shape': (1,), }", 4),
              HasSubstr("expected descr, fortran_order and shape"));
  EXPECT_THAT(npy_failure("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4),
              HasSubstr("expected up to 64 sizes, got \"-1,"));
  EXPECT_THAT(npy_failure("{'descr': '<f4', 'fortran_order': False, "
                          "'shape': (9223372036854775807, 4), }",
                          4),
              HasSubstr("has 4 bytes"));
  std::vector<std::byte> future = npy_file("", 0);
  future[6] = std::byte{200};
  EXPECT_THAT(npy_failure(future), HasSubstr("x.npy: version 200 of .npy is unknown"));
  EXPECT_THAT(npy_failure("[]", 4), HasSubstr("expected {, got \"[]\""));
  const std::string text = "PK is no archive";
  EXPECT_THAT(npz_failure(FileSource::text(text, "x.npz")),
              HasSubstr("x.npz: ZIP archive: truncated or damaged"));
  EXPECT_THROW((void)read_npy(FileSource::text(text, "x.npy")), IoError);
}

// A broken file is an error or has other values, but does no harm.
TEST(Npz, SurvivesDamage) {
  std::mt19937 random(3);
  for (const char* name : {"numpy.npz", "numpy_packed.npz"}) {
    const std::vector<std::byte> whole = read_file(numpy_path(name));
    int refused = 0;
    for (int i = 0; i < 400; ++i) {
      std::vector<std::byte> file = whole;
      if (i % 4 == 0) {
        file.resize(random() % file.size());
      } else {
        for (int k = 0; k < 3; ++k) file[random() % file.size()] = static_cast<std::byte>(random());
      }
      refused += npz_failure({file, "x.npz"}).empty() ? 0 : 1;
    }
    EXPECT_GT(refused, 300) << name;
  }
}

}  // namespace
}  // namespace tensorgrad::testing
