// SPDX-License-Identifier: MIT
// CSV: headers, labels, quotes, the held-out split, and errors that name line and column.
#include <gtest/gtest.h>

#include <algorithm>

#include "io_test_util.h"
#include "tensorgrad/data/csv.h"
#include "tensorgrad/data/idx.h"

namespace tensorgrad {
namespace {

using test::gzipped;
using test::io_error_of;
using test::put_file;
using test::TempDir;
using test::TestRandom;
using Strings = std::vector<std::string>;
using Labels = std::vector<std::int32_t>;
using Floats = std::vector<float>;

CsvData parse(std::string_view text, const CsvOptions& options = {}) {
  return read_csv(FileSource::text(text, "f"), options);
}

std::string error_of(std::string_view text, const CsvOptions& options = {}) {
  return io_error_of([&] { parse(text, options); });
}

CsvOptions label(const std::string& name) {
  CsvOptions options;
  options.label = name;
  return options;
}

TEST(Csv, reads_a_table_with_header_and_text_labels) {
  const CsvData data = parse("length,width,kind\n1,2.5,rose\n-3e2,+4,iris\n5, 6 ,rose\n");
  EXPECT_TRUE(data.had_header);
  EXPECT_EQ(data.feature_names, (Strings{"length", "width"}));
  EXPECT_EQ(data.label_name, "kind");
  EXPECT_EQ(data.class_names, (Strings{"iris", "rose"}));
  EXPECT_EQ(data.train.count, 3);
  EXPECT_EQ(data.train.features, (Floats{1, 2.5F, -300, 4, 5, 6}));
  EXPECT_EQ(data.train.labels, (Labels{1, 0, 1}));
  EXPECT_EQ(data.test.count, 0);
}

TEST(Csv, errors_about_the_label_column_end_with_the_hint) {
  CsvOptions options;
  options.label_hint = "name it";
  EXPECT_EQ(error_of("a,b\n1,x\n2,\n", options),
            "f: line 3, column 2 (\"b\"): the label is empty; name it");
  EXPECT_TRUE(error_of("a,b\n1,x\n2,x\n", options).ends_with("expected at least two; name it"));
  EXPECT_TRUE(error_of("a,b\nx,1\n", options).ends_with("is not a finite number; name it"));
  options.label = "b";
  EXPECT_TRUE(error_of("a,b\nx,1\n", options).ends_with("is not a finite number"));
  options.label = "c";
  EXPECT_TRUE(error_of("a,b\n1,x\n", options).ends_with("is \"a\", \"b\"; name it"));
  EXPECT_TRUE(error_of("", options).ends_with("expected rows of numbers"));
}

TEST(Csv, integer_labels_are_sorted_by_value) {
  const CsvData data = parse("1,10\n2,9\n3,-1\n4,10\n");
  EXPECT_FALSE(data.had_header);
  EXPECT_EQ(data.feature_names, Strings{"column 0"});
  EXPECT_EQ(data.class_names, (Strings{"-1", "9", "10"}));
  EXPECT_EQ(data.train.labels, (Labels{2, 1, 0, 2}));
}

TEST(Csv, label_column_is_named_or_numbered) {
  EXPECT_EQ(parse("k,a,b\nx,1,2\n", label("k")).train.features, (Floats{1, 2}));
  EXPECT_EQ(parse("x,1,2\n", label("0")).train.features, (Floats{1, 2}));
  EXPECT_EQ(parse("1,x,2\n", label("1")).train.features, (Floats{1, 2}));
  EXPECT_EQ(parse("1,x,2\n", label("-2")).train.features, (Floats{1, 2}));
  EXPECT_EQ(parse("1,2,x\n", label("-1")).train.features, (Floats{1, 2}));
  // If a column is selected by name, the first line is a header, whatever its contents.
  EXPECT_EQ(parse("0,1,target\n5,6,1\n", label("target")).feature_names, (Strings{"0", "1"}));
}

TEST(Csv, a_header_is_recognised) {
  EXPECT_TRUE(parse("a,b,c\n1,2,3\n").had_header);
  EXPECT_TRUE(parse("1x1,1x2,label\n1,2,3\n").had_header);
  EXPECT_TRUE(parse("0,1,label\n1,2,3\n").had_header);  // numbers as names, text over a number
  EXPECT_FALSE(parse("0,1,cat\n1,2,dog\n").had_header);
  EXPECT_FALSE(parse("1,2,3\n4,5,6\n").had_header);
  // One invalid field does not make a header.
  EXPECT_EQ(error_of("1,2x,3\n4,5,6\n"), "f: line 1, column 2: \"2x\" is not a finite number");
  CsvOptions options;
  options.header = CsvOptions::Header::kYes;
  EXPECT_EQ(parse("1,2,3\n4,5,6\n", options).train.count, 1);
  options.header = CsvOptions::Header::kNo;
  EXPECT_EQ(error_of("a,b,c\n4,5,6\n", options),
            "f: line 1, column 1: \"a\" is not a finite number");
}

TEST(Csv, quotes_line_ends_and_blank_lines) {
  const CsvData data = parse(
      "\xef\xbb\xbf\"a,1\",\"b "
      "\"\"x\"\"\",kind\r\n\"1\",2,\"p,q\"\r\n\r\n3,4,\"p,q\"\n\n5,6,\"\"\"\"\r");
  EXPECT_EQ(data.feature_names, (Strings{"a,1", "b \"x\""}));
  EXPECT_EQ(data.train.features, (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(data.class_names, (Strings{"\"", "p,q"}));
  EXPECT_EQ(parse("1,2,x\r").class_names, Strings{"x"});
  EXPECT_EQ(error_of("1,2,x\r\n\r\n3,4\n"),
            "f: line 3: has 2 columns; expected 3, as in the first line");
}

TEST(Csv, other_delimiters_work) {
  CsvOptions options;
  options.delimiter = ';';
  EXPECT_EQ(parse("1;2;x\n", options).train.features, (Floats{1, 2}));
  options.delimiter = '\t';
  EXPECT_EQ(parse("1\t2\tx\n", options).train.features, (Floats{1, 2}));
  options.delimiter = '"';
  EXPECT_EQ(error_of("1", options), "f: the delimiter \"\\\"\" cannot be used");
}

TEST(Csv, unlabeled_tables_and_fixed_classes) {
  CsvOptions options;
  options.unlabeled = true;
  const CsvData plain = parse("1,2\n3,4\n", options);
  EXPECT_EQ(plain.train.features, (Floats{1, 2, 3, 4}));
  EXPECT_TRUE(plain.train.labels.empty());
  EXPECT_TRUE(plain.class_names.empty());
  CsvOptions fixed;
  fixed.class_names = {"zebra", "ant", "bee"};
  const CsvData data = parse("1,bee\n2,zebra\n", fixed);
  EXPECT_EQ(data.train.labels, (Labels{2, 0}));
  EXPECT_EQ(data.class_names, fixed.class_names);
  EXPECT_EQ(error_of("1,bee\n2,cat\n", fixed),
            "f: line 2, column 2: the label \"cat\" is not one of the known classes");
}

TEST(Csv, each_malformed_table_has_its_message) {
  const struct {
    std::string_view text;
    std::string message;
  } table[] = {
      {"", "is empty; expected rows of numbers"},
      {"\r\n\n", "is empty; expected rows of numbers"},
      {"a,b\n", "has a header but no rows"},
      {"1\n2\n",
       "has only one column; expected features in addition to the label (is the delimiter "
       "\",\"?)"},
      {"a,b\n1,2\n3\n", "line 3: has 1 columns; expected 2, as in the first line"},
      {"a,b\n1,2,3\n", "line 2: has 3 columns; expected 2, as in the first line"},
      {"a,b\n\"1\n2\",0\n1,2,3\n", "line 2, column 1 (\"a\"): \"1\\x0a2\" is not a finite number"},
      {"a,b\n,2\n", "line 2, column 1 (\"a\"): is empty; expected a number"},
      {"a,b\n1,  \n", "line 2, column 2 (\"b\"): the label is empty"},
      {"1,0\nnan,0\n", "line 2, column 1: \"nan\" is not a finite number"},
      {"1,0\n-inf,0\n", "line 2, column 1: \"-inf\" is not a finite number"},
      {"1,0\n1e39,0\n", "line 2, column 1: \"1e39\" is not a finite number"},
      {"1,0\n1e999,0\n", "line 2, column 1: \"1e999\" is not a finite number"},
      {"1,0\n0x10,0\n", "line 2, column 1: \"0x10\" is not a finite number"},
      {"1,0\n1 2,0\n", "line 2, column 1: \"1 2\" is not a finite number"},
      {"1,0\n+-1,0\n", "line 2, column 1: \"+-1\" is not a finite number"},
      {"1,0\n\r1,0\n", "line 2, column 1: \"\\x0d1\" is not a finite number"},
      {"1,0\n1,\xff\n", "line 2, column 2: the label \"\\xff\" is not plain UTF-8"},
      {"a\x01,b\n1,2\n", "line 1, column 1 (\"a\\x01\"): the name is not plain UTF-8"},
      {"1,\"x\n2,y\n", "line 1: column 2: the quote is never closed"},
      {"1,\"x\"y\n", "line 1: column 2: text after the closing quote"},
  };
  for (const auto& row : table) EXPECT_EQ(error_of(row.text), "f: " + row.message) << row.text;
}

TEST(Csv, errors_list_the_columns) {
  EXPECT_EQ(error_of("a,b\n1,2\n", label("c")),
            "f: has no column named \"c\": the first line is \"a\", \"b\"");
  EXPECT_EQ(error_of("a,b\n1,2\n", label("2")), "f: has no column 2: it has 2 columns");
  EXPECT_EQ(error_of("a,b\n1,2\n", label("-3")), "f: has no column -3: it has 2 columns");
  EXPECT_EQ(error_of("a,a,b\n1,2,3\n", label("a")), "f: has several columns named \"a\"");
}

TEST(Csv, too_many_classes_look_like_the_wrong_column) {
  CsvOptions options;
  options.max_classes = 2;
  EXPECT_EQ(error_of("1,0.1\n2,0.2\n3,0.3\n", options),
            "f: line 3, column 2: more than 2 different labels (is this the label column?)");
}

TEST(Csv, column_without_classes_is_rejected) {
  EXPECT_EQ(error_of("a,b\n1,0.5\n2,1.5\n"),
            "f: the label column \"b\" (the last column by default) contains fractional numbers "
            "such as \"0.5\"; expected class names or integers");
  EXPECT_EQ(error_of("a,b\n1,x\n2,x\n", label("b")),
            "f: the label column \"b\" contains only one class, \"x\"; expected at least two");
}

TEST(Csv, tiny_numbers_become_zero) {
  EXPECT_EQ(parse("1e-400,0\n-1e-60,1\n").train.features, (Floats{0, 0}));
}

TEST(Csv, holds_out_the_same_rows_for_a_seed) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::to_string(i) + "," + std::to_string(i % 3) + "\n";
  CsvOptions options;
  options.holdout = 0.2;
  options.seed = 7;
  const CsvData a = parse(text, options);
  EXPECT_EQ(a.train.count, 80);
  EXPECT_EQ(a.test.count, 20);
  EXPECT_EQ(a.test.features, parse(text, options).test.features);
  EXPECT_TRUE(std::is_sorted(a.test.features.begin(), a.test.features.end()));
  Floats all = a.train.features;
  all.insert(all.end(), a.test.features.begin(), a.test.features.end());
  std::sort(all.begin(), all.end());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)], static_cast<float>(i));
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(a.test.labels[i], static_cast<int>(a.test.features[i]) % 3);
  }
  options.seed = 8;
  EXPECT_NE(a.test.features, parse(text, options).test.features);
  // The split for a seed must never change.
  options = {};
  options.holdout = 0.3;
  EXPECT_EQ(parse("0,1\n1,0\n2,0\n3,0\n4,0\n5,0\n6,0\n7,0\n8,0\n9,0\n", options).test.features,
            (Floats{1, 5, 9}));
  options.holdout = 0.01;
  EXPECT_EQ(error_of("1,0\n2,1\n", options), "f: has 2 rows, too few for a holdout of 0.01");
  options.holdout = 1.0;
  EXPECT_EQ(error_of("1,0\n2,1\n", options), "f: holdout must be in [0, 1), got 1");
}

TEST(Csv, files_may_be_gzipped_and_are_bounded) {
  const TempDir dir;
  put_file(dir / "t.csv", gzipped("1,2,x\n3,4,y\n"));
  EXPECT_EQ(read_csv(dir / "t.csv").train.features, (Floats{1, 2, 3, 4}));
  CsvOptions options;
  options.max_bytes = 1 << 20;
  put_file(dir / "bomb.csv", gzipped(std::string(std::size_t{16} << 20, '1')));
  EXPECT_EQ(io_error_of([&] { read_csv(dir / "bomb.csv", options); }),
            (dir / "bomb.csv") + ": text exceeds the limit of 1048576 bytes");
  put_file(dir / "long.csv", std::string((1 << 20) + 1, '1'));
  EXPECT_EQ(io_error_of([&] { read_csv(dir / "long.csv", options); }),
            (dir / "long.csv") + ": text exceeds the limit of 1048576 bytes");
  EXPECT_EQ(error_of(std::string(1'000'001, ',')), "f: line 1: more than 1000000 columns");
}

TEST(Csv, mutated_tables_throw_or_are_consistent) {
  const std::string seed = "length,\"wi\"\"dth\",kind\r\n1,2.5,rose\n-3e2,4,\"ir,is\"\n5,6,rose\n";
  TestRandom random(3);
  int accepted = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::string text = test::mutated(seed, random);
    try {
      const CsvData data = parse(text);
      ASSERT_EQ(data.train.features.size(),
                static_cast<std::size_t>(data.train.count) * data.feature_names.size());
      ASSERT_EQ(data.train.labels.size(), static_cast<std::size_t>(data.train.count));
      ++accepted;
    } catch (const IoError& error) {
      EXPECT_EQ(error.message().rfind("f: ", 0), 0U);
    }
  }
  EXPECT_GT(accepted, 100);
}

TEST(Csv, header_of_numbers_over_text_labels_is_recognized) {
  const std::string rows = "1,2,3,cat\n4,5,6,dog\n7,8,9,cat\n";
  for (const char* header : {"0,1,2,label\n", "1,2,3,kind of it\n", "10,500,3,Class\n"}) {
    const CsvData data = parse(header + rows);
    EXPECT_TRUE(data.had_header) << header;
    EXPECT_EQ(data.class_names, (Strings{"cat", "dog"})) << header;
    EXPECT_EQ(data.train.count, 3) << header;
  }
  // Not a header: the last field is a label of other rows or no usual name, or the caller decides.
  EXPECT_FALSE(parse("0,1,2,cat\n" + rows).had_header);
  EXPECT_FALSE(parse("3,1,4,bird\n" + rows).had_header);
  EXPECT_FALSE(parse("3,1,4,label\n1,2,3,label\n" + rows).had_header);
  CsvOptions options;
  options.header = CsvOptions::Header::kNo;
  EXPECT_EQ(parse("0,1,2,label\n" + rows, options).class_names.size(), 3U);
}

TEST(Csv, exact_features_are_doubles) {
  CsvOptions options;
  options.exact = true;
  options.holdout = 0.5;
  const CsvData data =
      parse("t,kind\n1700000000,a\n1700000001,b\n1700000002,a\n1700000003,b\n", options);
  std::vector<double> all = data.train.exact;
  all.insert(all.end(), data.test.exact.begin(), data.test.exact.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<double>{1700000000, 1700000001, 1700000002, 1700000003}));
  ASSERT_EQ(data.train.features.size(), 2U);
  EXPECT_EQ(data.train.features[0], static_cast<float>(data.train.exact[0]));
  EXPECT_TRUE(parse("t,kind\n1,a\n2,b\n").train.exact.empty());
}

TEST(Csv, label_that_is_nan_is_missing) {
  for (const char* nan : {"nan", "NaN", "-nan"}) {
    EXPECT_EQ(
        error_of(std::string("x,kind\n1,a\n2,b\n3,") + nan + "\n"),
        std::string("f: line 4, column 2 (\"kind\"): the label is ") + nan + "; expected a class");
  }
  CsvOptions options;
  options.class_names = {"a", "nan"};  // of a model with a class "nan"
  EXPECT_EQ(parse("x,kind\n1,a\n2,nan\n", options).train.labels, (Labels{0, 1}));
}

TEST(Csv, compressed_table_that_expands_too_much_is_rejected) {
  const std::string row = "0,0,0,0,0,0,0,a\n";
  std::string text;
  while (text.size() <= (std::size_t{64} << 20)) text += row;
  const std::string small = gzipped(text);
  ASSERT_LT(small.size() * 100, text.size());
  const auto bytes = std::as_bytes(std::span(small));
  EXPECT_EQ(io_error_of([&] { read_csv({bytes, "f.gz"}); }),
            "f.gz: expands to more than 67108864 bytes, from " + std::to_string(small.size()) +
                "; decompress it first if this is intended (limit: max_expansion)");
  EXPECT_EQ(io_error_of([&] { read_text_file({bytes, "f.gz"}); }).substr(0, 13), "f.gz: expands");
  EXPECT_EQ(read_text_file({bytes, "f.gz"}, UINT64_MAX, 2000), text);
}

}  // namespace
}  // namespace tensorgrad
