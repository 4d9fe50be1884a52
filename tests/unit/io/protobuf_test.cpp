// SPDX-License-Identifier: MIT
// Reading of protobuf messages: what ProtoMessage writes is read again, and malformed messages are
// rejected with the position of the field.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "io/protobuf.h"
#include "io/protobuf_reader.h"
#include "unit/io/io_test_util.h"

namespace tensorgrad::test {
namespace {

TEST(ProtoReader, ReadsWhatIsWritten) {
  io::ProtoMessage inner, message;
  inner.text(1, "inside");
  message.integer(1, 300);
  message.integer(2, -7);
  message.real32(3, -1.5F);
  message.real(4, 2);  // skipped by number
  message.text(5, "");
  message.message(536870911, inner);
  message.integer(7, 1);
  io::ProtoReader in(message.bytes(), "f");
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.number(), 1U);
  EXPECT_EQ(in.integer("a"), 300);
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.integer("a"), -7);
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.real32("a"), -1.5F);
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.number(), 4U);
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.text("a"), "");
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.number(), 536870911U);
  io::ProtoReader nested = in.message("a");
  ASSERT_TRUE(nested.next());
  EXPECT_EQ(nested.text("b"), "inside");
  EXPECT_FALSE(nested.next());
  ASSERT_TRUE(in.next());
  EXPECT_TRUE(in.boolean("a"));
  EXPECT_FALSE(in.next());
  EXPECT_FALSE(in.next());
}

std::string failure_of(std::string_view bytes) {
  return io_error_of([&] {
    io::ProtoReader in(bytes, "f");
    while (in.next()) {
    }
  });
}

TEST(ProtoReader, NamesTheByteOfMalformedFields) {
  EXPECT_EQ(failure_of(""), "no error");
  EXPECT_EQ(failure_of("\x08\x01\x08"),
            "f: byte 2: expected an integer, got the end of the message");
  EXPECT_EQ(failure_of(std::string("\x08") + std::string(11, '\xff')),
            "f: byte 0: expected an integer of at most 10 bytes");
  EXPECT_EQ(failure_of("\x0a\x05"
                       "abc"),
            "f: byte 0: expected 5 bytes, but the message ends after 3");
  EXPECT_EQ(failure_of("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
            "f: byte 0: expected 18446744073709551615 bytes, but the message ends after 0");
  EXPECT_EQ(failure_of("\x0d"
                       "abc"),
            "f: byte 0: expected 4 bytes, but the message ends after 3");
  EXPECT_EQ(failure_of("\x09"
                       "abc"),
            "f: byte 0: expected 8 bytes, but the message ends after 3");
  EXPECT_EQ(failure_of("\x0b"), "f: byte 0: the wire type 3 is not supported");
  EXPECT_EQ(failure_of("\x02"
                       "a"),
            "f: byte 0: expected the tag of a protobuf field, got 2");
}

TEST(ProtoReader, NamesFieldsOfOtherTypes) {
  io::ProtoMessage inner, message;
  inner.integer(1, std::int64_t{1} << 40);
  message.message(3, inner);
  message.integer(2, 2);
  io::ProtoReader in(message.bytes(), "f");
  ASSERT_TRUE(in.next());
  EXPECT_EQ(io_error_of([&] { (void)in.integer("size"); }),
            "f: byte 0: size: expected an integer, got a length and bytes");
  EXPECT_EQ(io_error_of([&] { (void)in.real32("score"); }),
            "f: byte 0: score: expected 4 bytes, got a length and bytes");
  io::ProtoReader nested = in.message("spec");
  ASSERT_TRUE(nested.next());
  EXPECT_EQ(io_error_of([&] { (void)nested.integer("size"); }),
            "f: byte 2: size: expected an integer of 32 bits, got 1099511627776");
  ASSERT_TRUE(in.next());
  EXPECT_EQ(io_error_of([&] { (void)in.boolean("flag"); }),
            "f: byte 9: flag: expected 0 or 1, got 2");
  EXPECT_EQ(io_error_of([&] { (void)in.text("name"); }),
            "f: byte 9: name: expected a length and bytes, got an integer");
}

}  // namespace
}  // namespace tensorgrad::test
