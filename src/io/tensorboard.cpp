// SPDX-License-Identifier: MIT
// Event files: a record per scalar, each a message of event.proto.
#include "io/tensorboard.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "base/os/files.h"
#include "base/os/process.h"
#include "base/path.h"
#include "io/little_endian.h"
#include "io/protobuf.h"
#include "io/text.h"
#include "tensorgrad/data/tensorboard.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace io {
namespace {

constexpr std::uint32_t kCastagnoli = 0x82f63b78;  // the polynomial, lowest bit first

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1U ^ ((crc & 1U) != 0 ? kCastagnoli : 0);
    table[i] = crc;
  }
  return table;
}

// TFRecord masks checksums, since a checksum of bytes that contain checksums is weak.
std::uint32_t masked_crc(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return (crc >> 15U | crc << 17U) + 0xa282ead8U;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = crc_table();
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes)
    crc = crc >> 8U ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xffU];
  return ~crc;
}

std::string tf_record(std::string_view bytes) {
  std::string out;
  append_number(out, bytes.size(), 8);
  append_number(out, masked_crc(out), 4);
  out += bytes;
  append_number(out, masked_crc(bytes), 4);
  return out;
}

}  // namespace io

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEventPrefix = "events.out.tfevents.";

// Field numbers of Event, SessionLog, Summary and Summary.Value.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr int kStatus = 1, kStatusStart = 1;
constexpr int kValue = 1;
constexpr int kTag = 1, kSimpleValue = 2;

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Returns a number of seconds that is above those in the names of the event files in a folder:
// TensorBoard reads files in the order of their names.
std::int64_t next_seconds(const std::string& folder) {
  auto seconds = static_cast<std::int64_t>(seconds_since_1970());
  std::error_code ignored;
  for (fs::directory_iterator entry(utf8_path(folder), ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const std::string name = utf8_text(entry->path().filename());
    if (!name.starts_with(kEventPrefix)) continue;
    std::int64_t other = 0;
    const char* const digits = name.data() + kEventPrefix.size();
    const auto [stop, error] = std::from_chars(digits, name.data() + name.size(), other);
    // Numbers of more digits are not ordered by their names.
    if (error == std::errc() && stop == digits + 10 && other < 9'999'999'999)
      seconds = std::max(seconds, other + 1);
  }
  return seconds;
}

std::string host_name() {
  std::string host = os::host_name();
  std::replace(host.begin(), host.end(), '/', '-');
  return host;
}

io::ProtoMessage event_at(double seconds, std::int64_t step) {
  io::ProtoMessage event;
  event.real(kWallTime, seconds);
  event.integer(kStep, step);
  return event;
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(const std::string& folder,
                                     std::optional<std::int64_t> first_step) {
  if (first_step && *first_step < 0) {
    throw UserError("TensorBoardWriter: first_step must not be negative, got " +
                    std::to_string(*first_step));
  }
  std::error_code error;
  fs::create_directories(utf8_path(folder), error);
  if (error) {
    throw IoError(folder + ": cannot be created: " +
                  io::system_error_text(error.default_error_condition().value()));
  }
  // Another process may create a file of this name: the next number is then tried.
  const std::string end = "." + host_name() + "." + std::to_string(os::process_id());
  for (std::int64_t seconds = next_seconds(folder); fd_ < 0; ++seconds) {
    const std::string name = std::string(kEventPrefix) + std::to_string(seconds) + end;
    path_ = utf8_text(utf8_path(folder) / utf8_path(name));
    fd_ = os::open_file(path_, os::Open::kNew);
    if (fd_ < 0 && errno != EEXIST)
      throw IoError(path_ + ": cannot be written: " + io::system_error_text(errno));
  }
  io::ProtoMessage version;
  version.real(kWallTime, seconds_since_1970());
  version.text(kFileVersion, "brain.Event:2");
  write_record(version.bytes());
  if (!first_step) return;
  io::ProtoMessage log;
  log.integer(kStatus, kStatusStart);
  io::ProtoMessage start = event_at(seconds_since_1970(), *first_step);
  start.message(kSessionLog, log);
  // TensorBoard takes the first such record of a folder for the start of training, not for a
  // restart.
  for (int i = 0; i < 2; ++i) write_record(start.bytes());
}

TensorBoardWriter::~TensorBoardWriter() {
  if (fd_ >= 0) os::close_file(fd_);
}

TensorBoardWriter::TensorBoardWriter(TensorBoardWriter&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

TensorBoardWriter& TensorBoardWriter::operator=(TensorBoardWriter&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

void TensorBoardWriter::add_scalar(std::string_view tag, double value, std::int64_t step,
                                   std::optional<double> seconds) {
  if (tag.empty() || !io::is_plain_utf8(tag)) {
    throw UserError("TensorBoardWriter::add_scalar: tag: expected UTF-8 text, got " +
                    io::in_quotes(tag));
  }
  if (step < 0) {
    throw UserError("TensorBoardWriter::add_scalar: step must not be negative, got " +
                    std::to_string(step));
  }
  io::ProtoMessage scalar, summary;
  scalar.text(kTag, tag);
  scalar.real32(kSimpleValue, static_cast<float>(value));
  summary.message(kValue, scalar);
  io::ProtoMessage event = event_at(seconds.value_or(seconds_since_1970()), step);
  event.message(kSummary, summary);
  write_record(event.bytes());
}

void TensorBoardWriter::write_record(std::string_view event) {
  const std::string record = io::tf_record(event);
  const auto bytes = std::as_bytes(std::span(record.data(), record.size()));
  if (const int code = os::write_all(fd_, bytes))
    throw IoError(path_ + ": cannot be written: " + io::system_error_text(code));
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
