// SPDX-License-Identifier: MIT
// Malformed safetensors files, each with its error message, and mutated valid files.
#include <gtest/gtest.h>

#include <cstring>

#include "io_test_util.h"
#include "support/source_path.h"
#include "tensorgrad/data/safetensors.h"

namespace tensorgrad {
namespace {

using test::as_bytes;
using test::io_error_of;
using test::mutated;
using test::safetensors_text;
using test::TestRandom;

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string out(sizeof length, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + rest;
}

// Returns a file with one tensor "w" of 4 bytes, described by `entry`.
std::string one_tensor(const std::string& entry, std::size_t data_bytes = 4) {
  return safetensors_text("{\"w\":" + entry + "}", data_bytes);
}

struct Malformed {
  std::string name;
  std::string file;
  std::string message;  // after "f: "
};

std::vector<Malformed> broken_headers() {
  const std::string zero("\0", 1);
  return {
      {"empty", "", "truncated at byte 0: expected an 8-byte header length"},
      {"seven_bytes", std::string(7, '\2'),
       "truncated at byte 7: expected an 8-byte header length"},
      {"no_header", with_length(2, ""),
       "header length 2 at byte 0: the file has only 0 more bytes"},
      {"header_past_end", with_length(9, "{}"),
       "header length 9 at byte 0: the file has only 2 more bytes"},
      {"header_of_nothing", with_length(0, "{}"), "header length 0 at byte 0: expected at least 2"},
      {"header_over_limit", with_length(100'000'001, "{}"),
       "header length 100000001 at byte 0: expected at most 100000000 (is this safetensors?)"},
      {"header_length_wraps", with_length(~0ULL, "{}"),
       "header length 18446744073709551615 at byte 0: expected at most 100000000 (is this "
       "safetensors?)"},
      {"not_json", safetensors_text("{x}", 0), "header is not JSON at byte 9: unexpected \"x\""},
      {"json_cut_off", safetensors_text("{\"w\":", 0),
       "header is not JSON at byte 13: unexpected end"},
      {"array", safetensors_text("[]", 0), "header starts with \"[\" at byte 8: expected \"{\""},
      {"space_first", safetensors_text(" {}", 0),
       "header starts with \" \" at byte 8: expected \"{\""},
      {"byte_order_mark", safetensors_text("\xef\xbb\xbf{}", 0),
       "header starts with \"\\xef\" at byte 8: expected \"{\""},
      {"two_values", safetensors_text("{} {}", 0),
       "header is not JSON at byte 11: unexpected \"{\""},
      {"nul_padding", safetensors_text("{}" + zero + "{secret", 0),
       "a zero byte in the header at byte 10: only spaces may follow the JSON"},
      {"not_utf8", safetensors_text("{\"\xff\":1}", 0),
       "header is not JSON at byte 10: unexpected \"\\xff\""},
      {"metadata_number", safetensors_text(R"({"__metadata__":{"a":1}})", 0),
       "metadata: a number at byte 29: expected a string for \"a\""},
      {"metadata_no_object", safetensors_text(R"({"__metadata__":"x"})", 0),
       "metadata: a string at byte 26: expected an object"},
      {"metadata_nested", safetensors_text(R"({"__metadata__":{"a":{}}})", 0),
       "metadata: an object at byte 29: expected a string for \"a\""},
      {"metadata_key_twice", safetensors_text(R"({"__metadata__":{"a":"","a":""}})", 0),
       "metadata: duplicate key \"a\" at byte 34: expected each key once"},
      {"metadata_twice", safetensors_text(R"({"__metadata__":{},"__metadata__":{}})", 0),
       "duplicate name \"__metadata__\" at byte 40: expected each name once"},
  };
}

std::vector<Malformed> broken_entries() {
  const auto nest = [](int depth) { return std::string(static_cast<std::size_t>(depth), '['); };
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  return {
      {"entry_is_null", one_tensor("null"), "tensor \"w\": null at byte 16: expected an object"},
      {"entry_is_bool", one_tensor("true"),
       "tensor \"w\": a boolean at byte 16: expected an object"},
      {"entry_is_deep", one_tensor(nest(100'000)),
       "tensor \"w\": an array at byte 13: expected an object"},
      {"no_dtype", one_tensor(R"({"shape":[1],"data_offsets":[0,4]})"),
       "tensor \"w\": no dtype at byte 46: expected dtype, shape and data_offsets"},
      {"no_shape", one_tensor(R"({"dtype":"F32","data_offsets":[0,4]})"),
       "tensor \"w\": no shape at byte 48: expected dtype, shape and data_offsets"},
      {"no_offsets", one_tensor(R"({"dtype":"F32","shape":[1]})"),
       "tensor \"w\": no data_offsets at byte 39: expected dtype, shape and data_offsets"},
      {"unknown_key", one_tensor(R"({"stride":[1]})"),
       "tensor \"w\": unknown key \"stride\" at byte 21: expected dtype, shape and data_offsets"},
      {"key_twice", one_tensor(R"({"dtype":"F32","dtype":"F32"})"),
       "tensor \"w\": duplicate key \"dtype\" at byte 34: expected each key once"},
      {"unknown_dtype", one_tensor(R"({"dtype":"F33","shape":[1],"data_offsets":[0,4]})"),
       "tensor \"w\": unknown dtype \"F33\" at byte 26: expected F32, I32, U32, BOOL or another "
       "dtype of the format"},
      {"dtype_lower_case", one_tensor(R"({"dtype":"f32"})"),
       "tensor \"w\": unknown dtype \"f32\" at byte 26: expected F32, I32, U32, BOOL or another "
       "dtype of the format"},
      {"dtype_number", one_tensor(R"({"dtype":32})"),
       "tensor \"w\": a number at byte 23: expected a string for \"dtype\""},
      {"dtype_array", one_tensor(R"({"dtype":["F32"]})"),
       "tensor \"w\": an array at byte 22: expected a string for \"dtype\""},
      {"shape_string", one_tensor(R"({"shape":"1"})"),
       "tensor \"w\": a string at byte 24: expected an array for \"shape\""},
      {"shape_negative", one_tensor(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"),
       "tensor \"w\": the negative number -1 at byte 38: expected a non-negative integer"},
      {"shape_fraction", one_tensor(R"({"dtype":"F32","shape":[1.5]})"),
       "tensor \"w\": the number \"1.5\" at byte 39: expected a non-negative integer below 2^63"},
      {"shape_exponent", one_tensor(R"({"dtype":"F32","shape":[1e0]})"),
       "tensor \"w\": the number \"1e0\" at byte 39: expected a non-negative integer below 2^63"},
      {"shape_null", one_tensor(R"({"dtype":"F32","shape":[null]})"),
       "tensor \"w\": null at byte 40: expected an integer"},
      {"shape_nested", one_tensor(R"({"dtype":"F32","shape":[[1]]})"),
       "tensor \"w\": an array at byte 37: expected an integer"},
      {"shape_2_63", one_tensor(R"({"dtype":"F32","shape":[9223372036854775808]})"),
       "tensor \"w\": the number 9223372036854775808 at byte 55: expected a non-negative integer "
       "below 2^63"},
      {"shape_2_64", one_tensor(R"({"dtype":"F32","shape":[18446744073709551616]})"),
       "tensor \"w\": the number \"18446744073709551616\" at byte 56: expected a non-negative "
       "integer below 2^63"},
      {"rank_65", one_tensor(R"({"dtype":"F32","shape":[)" + ones + "]}"),
       "tensor \"w\": too many sizes at byte 165: expected at most 64"},
      {"offsets_one", one_tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[4]})"),
       "tensor \"w\": 1 data offsets at byte 57: expected two"},
      {"offsets_three", one_tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,4]})"),
       "tensor \"w\": a third data offset at byte 60: expected two"},
  };
}

std::vector<Malformed> broken_layouts() {
  const auto two = [](const std::string& a, const std::string& b, std::size_t bytes) {
    const auto entry = [](const std::string& offsets) {
      return R"({"dtype":"U8","shape":[4],"data_offsets":[)" + offsets + "]}";
    };
    return safetensors_text("{\"a\":" + entry(a) + ",\"b\":" + entry(b) + "}", bytes);
  };
  return {
      {"backwards", one_tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"),
       "tensor \"w\": data offsets [4,0] are reversed at byte 60"},
      {"past_the_end", one_tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"),
       "tensor \"w\": data offsets [0,8] reach past the 4 bytes of data at byte 60"},
      {"far_past_the_end",
       one_tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[9223372036854775803,)"
                  R"(9223372036854775807]})"),
       "tensor \"w\": data offsets [9223372036854775803,9223372036854775807] reach past the 4 "
       "bytes of data at byte 96"},
      {"shape_too_small", one_tensor(R"({"dtype":"U8","shape":[3],"data_offsets":[0,4]})"),
       "tensor \"w\": U8 [3] takes 3 bytes but data offsets [0,4] span 4 at byte 59"},
      {"shape_zero", one_tensor(R"({"dtype":"F32","shape":[0],"data_offsets":[0,4]})"),
       "tensor \"w\": F32 [0] takes 0 bytes but data offsets [0,4] span 4 at byte 60"},
      {"shape_wraps",
       one_tensor(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0),
       "tensor \"w\": shape [4294967296,4294967296] is too large at byte 80"},
      {"shape_wraps_to_size",
       one_tensor(R"({"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]})"),
       "tensor \"w\": shape [4611686018427387905] is too large at byte 78"},
      {"overlap", two("0,4", "3,7", 7), "tensor \"b\": overlaps tensor \"a\" at byte 116"},
      {"same_place", two("0,4", "0,4", 4), "tensor \"b\": overlaps tensor \"a\" at byte 113"},
      {"hole", two("5,9", "0,4", 9), "tensor \"a\": a gap of 1 bytes before it at byte 117"},
      {"hole_at_start", two("1,5", "5,9", 9),
       "tensor \"a\": a gap of 1 bytes before it at byte "
       "113"},
      {"trailing", two("0,4", "4,8", 10), "2 bytes that belong to no tensor at byte 121"},
      {"data_without_tensors", safetensors_text("{}", 1),
       "1 bytes that belong to no tensor at byte 10"},
      {"name_twice",
       safetensors_text(R"({"w":{"dtype":"U8","shape":[],"data_offsets":[0,1]},)"
                        R"("w":{"dtype":"U8","shape":[],"data_offsets":[1,2]}})",
                        2),
       "duplicate name \"w\" at byte 62: expected each name once"},
  };
}

TEST(SafetensorsHostile, each_malformed_file_has_its_message) {
  std::vector<Malformed> all = broken_headers();
  for (auto* more : {&broken_entries, &broken_layouts}) {
    for (Malformed& file : more()) all.push_back(std::move(file));
  }
  EXPECT_GE(all.size(), 55U);
  for (const Malformed& bad : all) {
    EXPECT_EQ(io_error_of([&] { read_safetensors({as_bytes(bad.file), "f"}); }),
              "f: " + bad.message)
        << bad.name;
  }
}

TEST(SafetensorsHostile, long_and_unprintable_names_are_made_readable) {
  const std::string name(1000, 'x');
  const std::string file = safetensors_text("{\"\\u001b[31m" + name + "\":1}", 0);
  const std::string message = io_error_of([&] { read_safetensors({as_bytes(file), "f"}); });
  EXPECT_LT(message.size(), 200U);
  EXPECT_NE(message.find("\\x1b[31mxxx"), std::string::npos) << message;
  EXPECT_NE(message.find("...\""), std::string::npos) << message;
}

std::string read_fixture() {
  return test::get_file(test::source_path("tests/unit/io/fixtures/reference.safetensors"));
}

// Returns true if the file is accepted. Anything but IoError fails the test.
bool parses_safely(const std::string& text) {
  try {
    const StoredFile file = read_safetensors({as_bytes(text), "mutant"});
    std::uint64_t total = 0;
    for (const auto& [name, tensor] : file.tensors) {
      std::uint64_t bytes = stored_dtype_bytes(tensor.dtype);
      EXPECT_NE(bytes, 0U);
      for (const std::int64_t size : tensor.shape) bytes *= static_cast<std::uint64_t>(size);
      EXPECT_EQ(bytes, tensor.data.size()) << name;
      total += bytes;
    }
    EXPECT_LE(total, text.size());
    EXPECT_FALSE(dump_safetensors(file).empty());
    return true;
  } catch (const IoError& error) {
    EXPECT_EQ(error.message().rfind("mutant: ", 0), 0U) << error.message();
    return false;
  }
}

TEST(SafetensorsHostile, mutated_files_throw_or_are_consistent) {
  const std::vector<std::string> seeds = {
      read_fixture(),
      safetensors_text(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                       R"("b":{"dtype":"F32","shape":[1,2],"data_offsets":[4,12]}})",
                       12)};
  TestRandom random(1);
  int accepted = 0;
  constexpr int kRounds = 12'000;
  for (int i = 0; i < kRounds; ++i) {
    accepted += parses_safely(mutated(seeds[random.below(seeds.size())], random)) ? 1 : 0;
  }
  EXPECT_GT(accepted, kRounds / 100);  // changed values and names are valid
  EXPECT_LT(accepted, kRounds);
}

TEST(SafetensorsHostile, every_prefix_is_rejected) {
  const std::string text = read_fixture();
  for (std::size_t n = 0; n < text.size(); ++n) EXPECT_FALSE(parses_safely(text.substr(0, n))) << n;
}

}  // namespace
}  // namespace tensorgrad
