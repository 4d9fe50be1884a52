// SPDX-License-Identifier: MIT
// Files of weights that do not fit the model, and rules for their names.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "errors/example.h"

namespace tensorgrad::testing {

TEST(WeightsErrors, parameter_missing) {
  const std::string path = temporary("lacks.safetensors");
  write_safetensors(path, {{{"fc.weight", {"F16", {2, 3}, std::vector<std::byte>(12)}}}, {}});
  Example example;
  EXPECT_ERROR(example.trainer.import_weights(path), UserError,
               path + ": no tensor for parameter 'fc.bias' f32[2]");
}

TEST(WeightsErrors, tensor_unknown) {
  const std::string path = temporary("too_many.safetensors");
  write_safetensors(path, {{{"extra", {"BF16", {2}, std::vector<std::byte>(4)}}}, {}});
  Example example;
  EXPECT_ERROR(
      example.trainer.import_weights(path, {.names = {{"*", "fc.*"}}, .partial = true}), UserError,
      path + ": tensor 'extra' (BF16 [2]): the model has no parameter or buffer 'fc.extra'");
}

TEST(WeightsErrors, shape_differs) {
  const std::string path = temporary("other_shape.safetensors");
  write_safetensors(path, {{{"w", {"F16", {2, 3}, std::vector<std::byte>(12)}}}, {}});
  Example example;
  EXPECT_ERROR(example.trainer.import_weights(
                   path, {.names = {{"w", "fc.weight", {1, 0}}}, .partial = true}),
               UserError,
               path +
                   ": tensor 'w' (F16 [2,3], permuted to [3,2]) does not fit parameter 'fc.weight' "
                   "f32[2,3]");
}

TEST(WeightsErrors, integers_for_parameter) {
  const std::string path = temporary("integers.safetensors");
  write_safetensors(path, {{{"fc.bias", {"I64", {2}, std::vector<std::byte>(16)}}}, {}});
  Example example;
  EXPECT_ERROR(example.trainer.import_weights(path, {.partial = true}), UserError,
               path + ": tensor 'fc.bias' (I64 [2]) does not fit parameter 'fc.bias' f32[2]");
}

TEST(WeightsErrors, float8_tensor) {
  const std::string path = temporary("float8.safetensors");
  write_safetensors(path, {{{"fc.bias", {"F8_E4M3", {2}, std::vector<std::byte>(2)}}}, {}});
  EXPECT_ERROR(
      read_weights(path), IoError,
      path +
          ": tensor \"fc.bias\" (F8_E4M3): expected F64, F32, F16, BF16, an integer type or BOOL");
}

TEST(WeightsErrors, double_too_large) {
  const std::string path = temporary("too_large_double.safetensors");
  const double value = -1e39;
  const auto bytes = std::as_bytes(std::span(&value, 1));
  write_safetensors(path, {{{"scale", {"F64", {}, {bytes.begin(), bytes.end()}}}}, {}});
  EXPECT_ERROR(read_weights(path), IoError,
               path + ": tensor \"scale\" (F64): element 0 is -1e+39, which does not fit in f32");
}

TEST(WeightsErrors, integer_too_large) {
  const std::string path = temporary("too_large.safetensors");
  std::vector<std::byte> bytes(16);
  bytes[12] = std::byte{1};  // makes the second element 2^32
  write_safetensors(path, {{{"count", {"I64", {2}, bytes}}}, {}});
  EXPECT_ERROR(
      read_weights(path), IoError,
      path + ": tensor \"count\" (I64): element 1 is 4294967296, which does not fit in i32");
}

TEST(WeightsErrors, two_tensors_renamed_to_one) {
  const std::string path = temporary("one_name.safetensors");
  const StoredTensor bias{"F32", {2}, std::vector<std::byte>(8)};
  write_safetensors(path, {{{"a.bias", bias}, {"b.bias", bias}}, {}});
  Example example;
  EXPECT_ERROR(
      example.trainer.import_weights(path, {.names = {{"?.bias", "fc.bias"}}, .partial = true}),
      IoError, path + ": tensors 'a.bias' and 'b.bias' both become 'fc.bias'");
}

TEST(WeightsErrors, permuted_vector) {
  const std::string path = temporary("permuted.safetensors");
  write_safetensors(path, {{{"fc.bias", {"F32", {2}, std::vector<std::byte>(8)}}}, {}});
  EXPECT_ERROR(read_weights(path, {.names = {{"fc.*", "fc.*", {1, 0}}}}), IoError,
               path + ": tensor 'fc.bias' (F32 [2]) cannot be permuted by a rule for 2 axes");
}

TEST(WeightsErrors, header_shape_too_large) {
  const std::string path = temporary("hostile.safetensors");
  std::string text =
      R"({"w":{"dtype":"F32","shape":[1099511627776,1099511627776],"data_offsets":[0,4]}})";
  const std::uint64_t length = text.size();
  text.insert(0, reinterpret_cast<const char*>(&length), sizeof length);
  write_file_atomically(path, text + "1234");
  auto function = compiled_function(predict);
  EXPECT_ERROR(
      function.load_params(path), IoError,
      path + ": tensor \"w\": shape [1099511627776,1099511627776] is too large at byte 86");
}

TEST(NameRuleErrors, pattern_matches_nothing) {
  const std::string path = temporary("no_match.safetensors");
  write_safetensors(path, {{{"fc.bias", {"F32", {2}, std::vector<std::byte>(8)}}}, {}});
  EXPECT_ERROR(read_weights(path, {.names = {{"fc.*", "fc.*"}, {"*.bias", "*.b"}}}), IoError,
               path + ": no remaining tensor matches the name rule '*.bias' -> '*.b'");
}

TEST(NameRuleErrors, rule_invalid) {
  EXPECT_ERROR(read_weights("any.safetensors", {.names = {{"*", "*", {0, 0}}}}), UserError,
               "name rule '*' -> '*': permute must name each of its 2 axes once");
  EXPECT_ERROR(read_weights("any.safetensors", {.names = {{"h.*.weight", "layers.*.*"}}}),
               UserError,
               "name rule 'h.*.weight' -> 'layers.*.*': the replacement has more wildcards than "
               "the pattern");
}

}  // namespace tensorgrad::testing
