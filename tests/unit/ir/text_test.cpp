// SPDX-License-Identifier: MIT
// IR text: errors of the parser, with file and line.
#include <gtest/gtest.h>

#include "ir/graph.h"
#include "ops/registry.h"

namespace tensorgrad::testing {
namespace {

// Two leaves and a sum on lines 1 to 3.
constexpr const char* kSum = R"(%0 = input() {dtype=0, name="x", shape=[4]} : f32[4]
%1 = state() {dtype=0, init=f:0x0p+0, name="s", shape=[4]} : f32[4]
%2 = add(%0, %1) : f32[4]
)";

void refused(const std::string& text, const std::string& message) {
  try {
    static_cast<void>(parse(text, "x.ir", find_op));
    ADD_FAILURE() << "no error: " << message;
  } catch (const IoError& error) {
    EXPECT_EQ(error.message(), message);
  } catch (const Error& error) {
    ADD_FAILURE() << "no IoError: " << error.what();
  }
}

TEST(Parse, offset_outside_the_arena_is_rejected) {
  const auto parameter = [](const std::string& offset, const std::string& shape) {
    return "%0 = parameter() {dtype=0, name=\"w\"" + offset + ", shape=" + shape + "} : f32" +
           shape + "\noutput y = %0\n";
  };
  EXPECT_EQ(parse(parameter(", offset=0", "[4]"), "x.ir", find_op).size(), 1);
  EXPECT_EQ(parse(parameter(", offset=281474976710652", "[4]"), "x.ir", find_op).size(), 1);
  const std::string range =
      "x.ir:1: parameter: 'w': expected an offset from 0 to 2^48 minus the elements of [4], got ";
  refused(parameter(", offset=-4", "[4]"), range + "-4");
  refused(parameter(", offset=281474976710653", "[4]"), range + "281474976710653");
  refused(parameter("", "[4]"), "x.ir:1: parameter: attribute 'offset' is missing");
}

TEST(Parse, missing_attributes_are_named_with_the_line) {
  refused("\n%0 = input() {dtype=0, shape=[4]} : f32[4]\n",
          "x.ir:2: input: attribute 'name' is missing");
  refused("%0 = state() {dtype=0, name=\"s\", shape=[4]} : f32[4]\n",
          "x.ir:1: state: attribute 'init' is missing");
  refused("%0 = scalar() {dtype=0} : f32[]\n", "x.ir:1: scalar: attribute 'name' is missing");
  refused("%0 = constant() {dtype=0} : f32[]\n", "x.ir:1: constant: attribute 'value' is missing");
  refused("%0 = input() {dtype=0, name=7, shape=[4]} : f32[4]\n",
          "x.ir:1: input: attribute 'name' has another type than expected");
  refused(std::string(kSum) + "%3 = sum(%2) : f32[]\n", "x.ir:4: sum: attribute 'axes' is missing");
}

TEST(Parse, unknown_element_types_are_rejected) {
  for (const char* number : {"32", "5", "-1", "256"}) {
    const std::string dtype = "dtype=" + std::string(number);
    const std::string expected =
        ": attribute 'dtype': expected 0 (f32) to 4 (f16), got " + std::string(number);
    refused(std::string(kSum) + "%3 = cast(%2) {" + dtype + "} : f32[4]\n",
            "x.ir:4: cast" + expected);
    refused("%0 = input() {" + dtype + ", name=\"x\", shape=[4]} : f32[4]\n",
            "x.ir:1: input" + expected);
    refused("%0 = constant() {" + dtype + ", value=f:0x1p+0} : f32[]\n",
            "x.ir:1: constant" + expected);
    refused("%0 = scalar() {" + dtype + ", name=\"s\"} : f32[]\n", "x.ir:1: scalar" + expected);
  }
}

TEST(Parse, attention_of_two_ranks_is_rejected) {
  refused(
      "%0 = input() {dtype=0, name=\"q\", shape=[6,2,2,5,4]} : f32[6,2,2,5,4]\n"
      "%1 = input() {dtype=0, name=\"k\", shape=[2,2,6,4]} : f32[2,2,6,4]\n"
      "%2 = attention(%0, %1, %1) {causal=0, keep=0, mask=0, scale=f:0x1p-1} : f32[2,2,5,4]\n",
      "x.ir:3: attention: expected q, k and v of one rank, got q [6,2,2,5,4] and [2,2,6,4]");
}

TEST(Parse, repeated_names_of_outputs_and_leaves_are_rejected) {
  refused(std::string(kSum) + "output y = %2\noutput y = %0\n",
          "x.ir:5: two outputs are named 'y'");
  refused(std::string(kSum) + "%3 = input() {dtype=0, name=\"x\", shape=[2]} : f32[2]\n",
          "x.ir:4: input: the name 'x' is used twice");
}

TEST(Parse, update_needs_a_leaf_that_keeps_its_value) {
  EXPECT_EQ(parse(std::string(kSum) + "update %1 = %2\n", "x.ir", find_op).updates.size(), 1U);
  const auto update = [](const std::string& line, const std::string& message) {
    refused(std::string(kSum) + "%3 = scalar() {dtype=0, name=\"rate\"} : f32[]\n" + line + "\n",
            message);
  };
  const std::string kinds = ": expected a state, an arena or a parameter, got ";
  update("update %3 = %3", "x.ir:5: update %3" + kinds + "scalar");
  update("update %2 = %2", "x.ir:5: update %2" + kinds + "add");
  update("update %0 = %2", "x.ir:5: update %0" + kinds + "input");
  update("update %1 = %3", "x.ir:5: update %1: expected f32[4], got %3 f32[]");
  update("update %1 = %2\nupdate %1 = %0", "x.ir:6: update %1: already updated");
}

}  // namespace
}  // namespace tensorgrad::testing
