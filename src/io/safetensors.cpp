// SPDX-License-Identifier: MIT
// Writing and reading whole safetensors files, and the table that `tg dump` prints. A file is
// written as the reference implementation does it: byte for byte the same for the same content.
#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/numbers.h"
#include "io/const_zlib.h"
#include "io/input_file.h"
#include "io/output_file.h"
#include "io/text.h"
#include "tensorgrad/data/safetensors.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

using Item = std::pair<const std::string, StoredTensor>;

constexpr const char* kChecksumKey = "tensorgrad.checksum";
constexpr std::string_view kChecksumStart = "crc32 ";
constexpr std::size_t kChecksumDigits = 8;

std::string checksum_of(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  std::string digits(kChecksumDigits, '0');
  auto rest = static_cast<std::uint32_t>(crc32_z(0, data, bytes.size()));
  for (std::size_t i = kChecksumDigits; i-- > 0; rest >>= 4)
    digits[i] = "0123456789abcdef"[rest % 16];
  return digits;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void check_writable(const std::string& name, const StoredTensor& tensor, const std::string& path) {
  const auto fail = [&](const std::string& what) {
    throw IoError(path + ": tensor " + io::in_quotes(name) + ": " + what);
  };
  if (name == "__metadata__") fail("the name is reserved by the format");
  const std::size_t element = stored_dtype_bytes(tensor.dtype);
  if (element == 0) fail("unknown dtype " + io::in_quotes(tensor.dtype));
  if (tensor.shape.size() > io::kMaxStoredRank) fail("has too many axes");
  const auto bytes = io::checked_bytes(tensor.shape, element);
  if (!bytes || *bytes != tensor.data.size()) {
    fail(tensor.dtype + " " + to_string(tensor.shape) + " does not take " +
         std::to_string(tensor.data.size()) + " bytes");
  }
}

// The order of the data: widest dtypes first, so that each tensor is aligned; then by name.
std::vector<const Item*> in_file_order(const StoredFile& file) {
  std::vector<const Item*> items;
  items.reserve(file.tensors.size());
  for (const Item& item : file.tensors) items.push_back(&item);
  std::stable_sort(items.begin(), items.end(), [](const Item* a, const Item* b) {
    return io::stored_dtype_rank(a->second.dtype) > io::stored_dtype_rank(b->second.dtype);
  });
  return items;
}

// "crc32 HEADER TENSOR ...", with zeros for the header, of which it is a part.
std::string checksums_of(const std::vector<const Item*>& items) {
  std::string text = std::string(kChecksumStart) + std::string(kChecksumDigits, '0');
  for (const Item* item : items) text += " " + checksum_of(item->second.data);
  return text;
}

// Where the header's own checksum is in it; npos if there is none.
std::size_t place_of_checksum(std::string_view header) {
  const std::string start =
      "\"" + std::string(kChecksumKey) + "\":\"" + std::string(kChecksumStart);
  const std::size_t at = header.find(start);
  return at == std::string_view::npos ? at : at + start.size();
}

void check_checksum(std::string_view expected, const std::string& got, const std::string& what) {
  if (expected == got) return;
  throw IoError(what + " differs from its checksum: expected crc32 " + std::string(expected) +
                ", got " + got + "; the file is damaged (if another program changed it, remove " +
                kChecksumKey + " from its metadata)");
}

// Returns the checksums of the tensors, in the order of the data.
std::vector<std::string> checked_header(std::string header, const std::string& value,
                                        std::size_t tensors, const std::string& path) {
  const std::size_t words =
      (value.size() - std::min(value.size(), kChecksumStart.size()) + 1) / (kChecksumDigits + 1);
  const std::size_t at = place_of_checksum(header);
  if (!value.starts_with(kChecksumStart) || words != tensors + 1 ||
      value.size() != kChecksumStart.size() + words * (kChecksumDigits + 1) - 1 ||
      at == std::string::npos || header.size() - at < kChecksumDigits) {
    throw IoError(path + ": " + kChecksumKey + ": expected crc32 and " +
                  std::to_string(tensors + 1) + " checksums, got " + io::in_quotes(value));
  }
  header.replace(at, kChecksumDigits, kChecksumDigits, '0');
  std::vector<std::string> all;
  for (std::size_t i = 0; i < words; ++i)
    all.push_back(value.substr(kChecksumStart.size() + i * (kChecksumDigits + 1), kChecksumDigits));
  check_checksum(all[0], checksum_of(std::as_bytes(std::span(header))), path + ": the header");
  all.erase(all.begin());
  return all;
}

// The header's length and the header, padded with spaces to a multiple of eight bytes.
std::string make_header(const std::vector<const Item*>& items, const StoredFile& file,
                        const std::string& path) {
  auto metadata = file.metadata;
  if (file.checksums) metadata[kChecksumKey] = checksums_of(items);
  JsonWriter json;
  try {
    json.begin_object();
    if (!metadata.empty()) {
      json.key("__metadata__").begin_object();
      for (const auto& [key, value] : metadata) json.member(key, value);
      json.end_object();
    }
    std::int64_t offset = 0;
    for (const Item* item : items) {
      const auto& [name, tensor] = *item;
      const std::int64_t end = offset + static_cast<std::int64_t>(tensor.data.size());
      json.key(name).begin_object().member("dtype", tensor.dtype).member("shape", tensor.shape);
      json.member("data_offsets", std::array{offset, end}).end_object();
      offset = end;
    }
    json.end_object();
  } catch (const nlohmann::json::exception&) {
    throw IoError(path + ": a tensor's name or the metadata is not UTF-8");
  }
  std::string text = json.text();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > io::kMaxSafetensorsHeader) {
    throw IoError(path + ": the header would exceed " + std::to_string(io::kMaxSafetensorsHeader) +
                  " bytes");
  }
  if (file.checksums) {
    text.replace(place_of_checksum(text), kChecksumDigits,
                 checksum_of(std::as_bytes(std::span(text))));
  }
  const std::uint64_t length = text.size();
  std::string out(io::kLengthBytes, '\0');
  std::memcpy(out.data(), &length, sizeof length);
  return out + text;
}

// The header of a file, verified, and the checksums of the tensors in the order of the data.
struct Header {
  io::SafetensorsHeader layout;
  bool checksums = false;
  std::vector<std::string> tensor_checksums = {};
};

Header read_header(const io::InputFile& file, const std::string& path) {
  std::array<std::byte, io::kLengthBytes> first{};
  const std::size_t available = std::min<std::uint64_t>(file.size(), first.size());
  file.read_at(0, std::span(first).first(available));
  const std::uint64_t length =
      io::checked_header_length(as_text(std::span(first).first(available)), file.size(), path);
  std::vector<std::byte> json(length);
  file.read_at(io::kLengthBytes, json);
  Header header = {.layout = io::parse_safetensors_header(as_text(json), file.size(), path)};
  auto& metadata = header.layout.metadata;
  if (const auto found = metadata.find(kChecksumKey); found != metadata.end()) {
    header.tensor_checksums = checked_header(std::string(as_text(json)), found->second,
                                             header.layout.entries.size(), path);
    header.checksums = true;
    metadata.erase(found);
  }
  return header;
}

}  // namespace

std::string_view stored_dtype(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "F32";
    case DType::kI32: return "I32";
    case DType::kU32: return "U32";
    case DType::kBool: return "BOOL";
    case DType::kF16: return "F16";
  }
  return "";
}

DType element_type(const std::string& file, const std::string& name, const StoredTensor& tensor) {
  for (const DType dtype : {DType::kF32, DType::kI32, DType::kU32}) {
    if (tensor.dtype == stored_dtype(dtype)) return dtype;
  }
  throw IoError(file + ": tensor '" + name + "' is " + tensor.dtype + "; expected F32, I32 or U32");
}

void write_safetensors(const FileSink& sink, const StoredFile& file) {
  const std::string& path = sink.name();
  for (const auto& [name, tensor] : file.tensors) check_writable(name, tensor, path);
  const std::vector<const Item*> items = in_file_order(file);
  const std::string header = make_header(items, file, path);
  std::uint64_t size = header.size();
  for (const Item* item : items) size += item->second.data.size();
  io::OutputFile out(sink, size);
  out.write(std::as_bytes(std::span(header)));
  for (const Item* item : items) out.write(item->second.data);
  out.commit();
}

StoredFile read_safetensors(const FileSource& source) {
  const std::string& path = source.name();
  const io::InputFile file(source);
  Header header = read_header(file, path);
  StoredFile stored;
  stored.metadata = std::move(header.layout.metadata);
  stored.checksums = header.checksums;
  for (std::size_t i = 0; i < header.layout.entries.size(); ++i) {
    io::SafetensorsEntry& entry = header.layout.entries[i];
    std::vector<std::byte> data(entry.end - entry.begin);
    file.read_at(header.layout.data_start + entry.begin, data);
    if (stored.checksums) {
      check_checksum(header.tensor_checksums[i], checksum_of(data),
                     path + ": tensor " + io::in_quotes(entry.name));
    }
    stored.tensors.emplace(
        std::move(entry.name),
        StoredTensor{std::move(entry.dtype), std::move(entry.shape), std::move(data)});
  }
  return stored;
}

std::map<std::string, std::string> read_metadata(const FileSource& source) {
  const io::InputFile file(source);
  return read_header(file, source.name()).layout.metadata;
}

namespace {

template <typename T>
StoredRange range_of(const StoredTensor& tensor) {
  StoredRange range{.min = INFINITY, .max = -INFINITY, .count = tensor.data.size() / sizeof(T)};
  for (std::size_t i = 0; i < range.count; ++i) {
    T raw;
    std::memcpy(&raw, tensor.data.data() + i * sizeof(T), sizeof(T));
    const auto value = static_cast<double>(raw);
    if (!std::isfinite(value)) continue;
    range.min = std::min(range.min, value);
    range.max = std::max(range.max, value);
    range.mean += value;
    ++range.finite;
  }
  if (range.finite == 0) return {.count = range.count};
  range.mean /= static_cast<double>(range.finite);
  return range;
}

std::string values_of(const StoredTensor& tensor) {
  const StoredRange range = stored_range(tensor);
  if (range.finite == 0) return range.count == 0 ? "" : "no finite value";
  std::string out = format_text("%11.4g %11.4g %11.4g", range.min, range.mean, range.max);
  if (range.finite < range.count) {
    out += "  " + std::to_string(range.count - range.finite) + " not finite";
  }
  return out;
}

std::string pad(const std::string& text, std::size_t width, bool left = false) {
  const std::size_t fill = text.size() < width ? width - text.size() : 0;
  return left ? std::string(fill, ' ') + text : text + std::string(fill, ' ');
}

}  // namespace

StoredRange stored_range(const StoredTensor& tensor) {
  if (tensor.dtype == "F32") return range_of<float>(tensor);
  if (tensor.dtype == "I32") return range_of<std::int32_t>(tensor);
  if (tensor.dtype == "U32") return range_of<std::uint32_t>(tensor);
  if (tensor.dtype == "BOOL") return range_of<std::uint8_t>(tensor);
  return {};
}

std::string dump_safetensors(const StoredFile& file) {
  std::size_t name_width = 4;
  std::size_t shape_width = 5;
  std::uint64_t total = 0;
  for (const auto& [name, tensor] : file.tensors) {
    name_width = std::max(name_width, std::min<std::size_t>(io::printable(name).size(), 60));
    shape_width = std::max(shape_width, std::min<std::size_t>(to_string(tensor.shape).size(), 40));
    total += tensor.data.size();
  }
  const auto row = [&](const std::string& name, const std::string& dtype, const std::string& shape,
                       const std::string& bytes, const std::string& values) {
    std::string line = pad(name, name_width) + "  " + pad(dtype, 5) + "  " +
                       pad(shape, shape_width) + "  " + pad(bytes, 12, true) + " " + values;
    return line.erase(line.find_last_not_of(' ') + 1) + "\n";
  };
  std::string text = row("name", "dtype", "shape", "bytes", "        min        mean         max");
  for (const auto& [name, tensor] : file.tensors) {
    text += row(io::printable(name), tensor.dtype, to_string(tensor.shape),
                std::to_string(tensor.data.size()), values_of(tensor));
  }
  text += std::to_string(file.tensors.size()) +
          (file.tensors.size() == 1 ? " tensor, " : " tensors, ") + std::to_string(total) +
          " bytes\n";
  for (const auto& [key, value] : file.metadata) {
    text += io::printable(key) + " = " + io::printable(value) + "\n";
  }
  if (file.checksums) text += "checksums match\n";
  return text;
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
