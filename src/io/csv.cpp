// SPDX-License-Identifier: MIT
// CSV tables for training: finds the header and the label column, converts features to f32 and
// labels to class numbers, and splits off test rows by a seed.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/numbers.h"
#include "io/csv_tokens.h"
#include "io/gzip.h"
#include "io/random.h"
#include "io/text.h"
#include "tensorgrad/data/csv.h"
#include "tensorgrad/data/idx.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

using io::CsvTokens;
using io::in_quotes;

constexpr std::size_t kNoLabel = std::numeric_limits<std::size_t>::max();

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Parses a number that is finite as f32, with optional blanks around it. Returns nullopt if it is
// malformed or too large.
std::optional<double> parse_number(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  const std::optional<double> value = parse_finite(text);
  if (!value) return std::nullopt;
  return std::isfinite(static_cast<float>(*value)) ? value : std::nullopt;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool is_nan(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return text.size() == 3 && lower_case(text) == "nan";
}

// Returns true if all fields except `label` are their column numbers: 0,1,2 or 1,2,3.
bool counts_columns(const std::vector<std::string>& fields, std::size_t label) {
  std::optional<std::int64_t> next;
  std::int64_t count = 0;
  for (std::size_t c = 0; c < fields.size(); ++c) {
    const std::optional<std::int64_t> value = parse_integer(trimmed(fields[c]));
    if (c == label) {
      if (next) ++*next;
      continue;
    }
    if (!value || (next && *value != *next)) return false;
    next = *value + 1;
    ++count;
  }
  return count > 1;
}

bool is_usual_label_name(std::string_view text) {
  static constexpr std::string_view kNames[] = {"label",  "labels",   "class",   "classes",
                                                "target", "category", "species", "outcome",
                                                "kind",   "type",     "y",       "name"};
  const std::string lower = lower_case(text);
  return std::find(std::begin(kNames), std::end(kNames), lower) != std::end(kNames);
}

// Maps each distinct label text to a class, numbered in order of appearance until finish() sorts
// them.
class Labels {
 public:
  explicit Labels(const CsvOptions& options) : fixed_(!options.class_names.empty()) {
    limit_ = static_cast<std::size_t>(std::max(options.max_classes, 0));
    for (const std::string& name : options.class_names) add(name);
  }

  // Returns the label's number, or nullopt if the classes are fixed and do not contain it.
  std::optional<std::int32_t> number(std::string_view text) {
    const auto found = numbers_.find(std::string(text));
    if (found != numbers_.end()) return found->second;
    if (fixed_) return std::nullopt;
    return add(std::string(text));
  }
  [[nodiscard]] bool too_many() const { return !fixed_ && names_.size() > limit_; }

  // Sorts the classes (integers by value, otherwise by bytes) and renumbers `labels`.
  std::vector<std::string> finish(std::vector<std::int32_t>& labels) {
    if (fixed_) return std::move(names_);
    const bool integers = std::all_of(names_.begin(), names_.end(), [](const std::string& name) {
      return parse_integer(name).has_value();
    });
    std::vector<std::size_t> order(names_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if (!integers) return names_[a] < names_[b];
      return std::pair(*parse_integer(names_[a]), names_[a]) <
             std::pair(*parse_integer(names_[b]), names_[b]);
    });
    std::vector<std::int32_t> renumbered(order.size());
    std::vector<std::string> sorted;
    for (std::size_t i = 0; i < order.size(); ++i) {
      renumbered[order[i]] = static_cast<std::int32_t>(i);
      sorted.push_back(std::move(names_[order[i]]));
    }
    for (std::int32_t& label : labels) label = renumbered[static_cast<std::size_t>(label)];
    return sorted;
  }

 private:
  std::int32_t add(std::string name) {
    const auto next = static_cast<std::int32_t>(names_.size());
    const auto [where, is_new] = numbers_.emplace(std::move(name), next);
    if (is_new) names_.push_back(where->first);
    return where->second;
  }

  bool fixed_;
  std::size_t limit_ = 0;
  std::unordered_map<std::string, std::int32_t> numbers_;
  std::vector<std::string> names_;
};

class CsvReader {
 public:
  CsvReader(std::string_view text, std::string_view file, const CsvOptions& options)
      : text_(text), file_(file), options_(options) {
    const char d = options.delimiter;
    if (d == '"' || d == '\n' || d == '\r' || d == '\0') {
      fail("the delimiter " + in_quotes(std::string_view(&d, 1)) + " cannot be used");
    }
    if (!(options.holdout >= 0.0 && options.holdout < 1.0)) {
      fail("holdout must be in [0, 1), got " + number_text(options.holdout));
    }
  }

  CsvData read() {
    look_at_first_rows();
    CsvRows all = read_rows();
    if (all.count == 0) fail("has a header but no rows");
    split(std::move(all));
    return std::move(data_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw IoError(std::string(file_) + ": " + what);
  }
  [[noreturn]] void fail_at(std::uint64_t line, std::size_t column, const std::string& what) const {
    std::string name;
    if (data_.had_header && column < names_.size()) name = " (" + in_quotes(names_[column]) + ")";
    fail("line " + std::to_string(line) + ", column " + std::to_string(column + 1) + name + ": " +
         what);
  }

  // Returns a suffix for errors that another label column may fix.
  [[nodiscard]] std::string hint() const {
    return options_.label_hint.empty() ? "" : "; " + options_.label_hint;
  }

  void look_at_first_rows();
  std::size_t find_label(const std::vector<std::string>& first) const;
  bool is_header(const std::vector<std::string>& first,
                 const std::vector<std::string>& second) const;
  [[nodiscard]] bool only_in_header(std::string_view label, bool others_repeat) const;
  CsvRows read_rows();
  void check_classes() const;
  void read_row(const CsvTokens& tokens, CsvRows& rows, Labels& labels) const;
  void split(CsvRows all);

  std::string_view text_;
  std::string_view file_;
  const CsvOptions& options_;
  CsvData data_;
  std::vector<std::string> names_;  // of all columns
  std::size_t label_ = kNoLabel;
};

void CsvReader::look_at_first_rows() {
  CsvTokens tokens(text_, options_.delimiter, file_);
  if (!tokens.next()) fail("is empty; expected rows of numbers");
  const std::vector<std::string> first(tokens.fields().begin(), tokens.fields().end());
  const std::uint64_t first_line = tokens.line();
  std::vector<std::string> second;
  if (tokens.next()) second.assign(tokens.fields().begin(), tokens.fields().end());
  label_ = find_label(first);
  data_.had_header = is_header(first, second);
  for (std::size_t c = 0; c < first.size(); ++c) {
    names_.push_back(data_.had_header ? std::string(trimmed(first[c]))
                                      : "column " + std::to_string(c));
    if (!io::is_plain_utf8(names_[c])) fail_at(first_line, c, "the name is not plain UTF-8");
    if (c == label_) {
      data_.label_name = names_[c];
    } else {
      data_.feature_names.push_back(names_[c]);
    }
  }
  if (data_.feature_names.empty()) {
    fail("has only one column; expected features in addition to the label (is the delimiter " +
         in_quotes(std::string_view(&options_.delimiter, 1)) + "?)");
  }
}

std::size_t CsvReader::find_label(const std::vector<std::string>& first) const {
  if (options_.unlabeled) return kNoLabel;
  if (options_.label.empty()) return first.size() - 1;
  std::size_t found = kNoLabel;
  if (options_.header != CsvOptions::Header::kNo) {
    for (std::size_t c = 0; c < first.size(); ++c) {
      if (trimmed(first[c]) != options_.label) continue;
      if (found != kNoLabel) {
        fail("has several columns named " + in_quotes(options_.label) + hint());
      }
      found = c;
    }
  }
  const std::optional<std::int64_t> index = parse_integer(options_.label);
  // A number is an index if it is not the name of a column, or if it could be a value of the first
  // row.
  if (index && (found == kNoLabel || options_.header == CsvOptions::Header::kAuto)) {
    const auto columns = static_cast<std::int64_t>(first.size());
    if (*index < -columns || *index >= columns) {
      fail("has no column " + options_.label + ": it has " + std::to_string(columns) + " columns" +
           hint());
    }
    return static_cast<std::size_t>(*index < 0 ? *index + columns : *index);
  }
  if (found != kNoLabel) return found;
  std::string known;
  for (std::size_t c = 0; c < std::min<std::size_t>(first.size(), 8); ++c) {
    known += (c > 0 ? ", " : "") + in_quotes(trimmed(first[c]), 30);
  }
  fail("has no column named " + in_quotes(options_.label) + ": the first line is " + known +
       (first.size() > 8 ? ", ..." : "") + hint());
}

// See CsvOptions::Header.
bool CsvReader::is_header(const std::vector<std::string>& first,
                          const std::vector<std::string>& second) const {
  if (options_.header != CsvOptions::Header::kAuto) {
    return options_.header == CsvOptions::Header::kYes;
  }
  if (label_ != kNoLabel && !options_.label.empty() && !parse_integer(options_.label)) return true;
  bool any_number = false;
  for (std::size_t c = 0; c < first.size(); ++c) {
    if (c != label_ && parse_number(first[c])) any_number = true;
  }
  if (!any_number) return true;
  if (label_ == kNoLabel || label_ >= second.size() || parse_number(first[label_])) return false;
  if (parse_number(second[label_])) return true;
  const std::string_view label = trimmed(first[label_]);
  if (is_usual_label_name(label)) return only_in_header(label, false);
  return counts_columns(first, label_) && only_in_header(label, true);
}

// Returns true if only the first row has this label. If `others_repeat`, other rows must also share
// a label.
bool CsvReader::only_in_header(std::string_view label, bool others_repeat) const {
  CsvTokens tokens(text_, options_.delimiter, file_);
  tokens.next();
  std::unordered_set<std::string> seen;
  while (tokens.next()) {
    if (label_ >= tokens.fields().size()) continue;
    const std::string_view other = trimmed(tokens.fields()[label_]);
    if (other == label) return false;
    if (others_repeat && !seen.emplace(other).second) others_repeat = false;
  }
  return !others_repeat;
}

CsvRows CsvReader::read_rows() {
  CsvTokens tokens(text_, options_.delimiter, file_);
  if (data_.had_header) tokens.next();
  Labels labels(options_);
  CsvRows rows;
  while (tokens.next()) {
    if (tokens.fields().size() != names_.size()) {
      fail("line " + std::to_string(tokens.line()) + ": has " +
           std::to_string(tokens.fields().size()) + " columns; expected " +
           std::to_string(names_.size()) + ", as in the first line");
    }
    read_row(tokens, rows, labels);
    ++rows.count;
  }
  if (label_ == kNoLabel) return rows;
  data_.class_names = labels.finish(rows.labels);
  if (options_.class_names.empty() && rows.count > 1) check_classes();
  return rows;
}

// Throws if the labels seem to be from a wrong column: a single class, or fractional numbers.
void CsvReader::check_classes() const {
  const std::vector<std::string>& names = data_.class_names;
  const std::string column =
      "the label column " + in_quotes(data_.label_name) +
      (options_.label.empty() ? " (the last column by default)" : std::string());
  if (names.size() == 1) {
    fail(column + " contains only one class, " + in_quotes(names[0], 30) +
         "; expected at least two" + hint());
  }
  const auto fraction = std::find_if(names.begin(), names.end(),
                                     [](const std::string& n) { return !parse_integer(n); });
  const bool numbers = std::all_of(
      names.begin(), names.end(), [](const std::string& n) { return parse_number(n).has_value(); });
  if (numbers && fraction != names.end()) {
    fail(column + " contains fractional numbers such as " + in_quotes(*fraction, 30) +
         "; expected class names or integers" + hint());
  }
}

void CsvReader::read_row(const CsvTokens& tokens, CsvRows& rows, Labels& labels) const {
  const std::vector<std::string_view>& fields = tokens.fields();
  for (std::size_t c = 0; c < fields.size(); ++c) {
    const std::string_view field = fields[c];
    if (c != label_) {
      const std::optional<double> value = parse_number(field);
      if (!value) {
        fail_at(tokens.line(), c,
                trimmed(field).empty() ? "is empty; expected a number"
                                       : in_quotes(field, 30) + " is not a finite number" +
                                             (options_.label.empty() ? hint() : ""));
      }
      rows.features.push_back(static_cast<float>(*value));
      if (options_.exact) rows.exact.push_back(*value);
      continue;
    }
    const std::string_view text = trimmed(field);
    if (text.empty()) fail_at(tokens.line(), c, "the label is empty" + hint());
    if (is_nan(text) && options_.class_names.empty()) {
      fail_at(tokens.line(), c,
              "the label is " + std::string(text) + "; expected a class" + hint());
    }
    if (!io::is_plain_utf8(text)) {
      fail_at(tokens.line(), c, "the label " + in_quotes(text, 30) + " is not plain UTF-8");
    }
    const std::optional<std::int32_t> label = labels.number(text);
    if (!label) {
      fail_at(tokens.line(), c,
              "the label " + in_quotes(text, 30) + " is not one of the known classes");
    }
    if (labels.too_many()) {
      fail_at(tokens.line(), c,
              "more than " + std::to_string(options_.max_classes) +
                  " different labels (is this the label column?)" + hint());
    }
    rows.labels.push_back(*label);
  }
}

void CsvReader::split(CsvRows all) {
  const auto n = static_cast<std::size_t>(all.count);
  const auto held =
      static_cast<std::size_t>(std::llround(options_.holdout * static_cast<double>(all.count)));
  if (options_.holdout > 0.0 && (held == 0 || held == n)) {
    fail("has " + std::to_string(n) + " rows, too few for a holdout of " +
         number_text(options_.holdout));
  }
  if (held == 0) {
    data_.train = std::move(all);
    return;
  }
  // A partial Fisher-Yates shuffle. The bias of the remainder is below n / 2^64.
  std::vector<std::size_t> order(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  std::vector<bool> is_test(n, false);
  std::uint64_t state = options_.seed;
  for (std::size_t i = 0; i < held && i < n; ++i) {
    std::swap(order[i], order[i + io::next_random(state) % (n - i)]);
    is_test[order[i]] = true;
  }
  const std::size_t width = data_.feature_names.size();
  const auto take_row = [&](const auto& from, auto& to, std::size_t row) {
    if (from.empty()) return;
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(row * width);
    to.insert(to.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
  };
  data_.train.features.reserve((n - held) * width);
  data_.test.features.reserve(held * width);
  for (std::size_t i = 0; i < n; ++i) {
    CsvRows& to = is_test[i] ? data_.test : data_.train;
    take_row(all.features, to.features, i);
    take_row(all.exact, to.exact, i);
    if (label_ != kNoLabel) to.labels.push_back(all.labels[i]);
    ++to.count;
  }
}

}  // namespace

CsvData read_csv(const FileSource& source, const CsvOptions& options) {
  const io::Content content = io::read_inflated(source, options.max_bytes, options.max_expansion);
  return CsvReader(content.text(), source.name(), options).read();
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
