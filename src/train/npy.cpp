// SPDX-License-Identifier: MIT
#include "tensorgrad/data/npy.h"

#include <utility>
#include <vector>

#include "io/elements.h"
#include "io/input_file.h"
#include "io/npy.h"
#include "io/output_file.h"
#include "tensorgrad/error.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

constexpr std::string_view kNpyEnding = ".npy";

HostTensor tensor_of(std::span<const std::byte> bytes, const std::string& file,
                     const std::string& name) {
  StoredTensor stored = io::parse_npy(bytes, file);
  Shape shape = stored.shape;
  io::Elements elements = io::to_elements(file, name, std::move(stored));
  return {elements.dtype, std::move(shape), std::move(elements.bytes)};
}

// Returns the contents of the file of a tensor.
std::vector<std::byte> npy_bytes(const HostTensor& tensor) {
  const std::string head = io::npy_head(std::string(stored_dtype(tensor.dtype)), tensor.shape);
  const auto head_bytes = std::as_bytes(std::span(head));
  std::vector<std::byte> bytes(head_bytes.begin(), head_bytes.end());
  if (tensor.dtype != boolean) {
    bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
    return bytes;
  }
  for (std::size_t i = 0; i < tensor.bytes.size(); i += sizeof(std::uint32_t))
    bytes.push_back(tensor.bytes[i]);
  return bytes;
}

}  // namespace

HostTensor read_npy(const FileSource& source) {
  const io::Content content(source);
  return tensor_of(content.bytes(), source.name(), "array");
}

std::map<std::string, HostTensor> read_npz(const FileSource& source) {
  const io::Content content(source);
  std::map<std::string, HostTensor> tensors;
  for (io::ZipMember& member : io::read_zip(content.bytes(), source.name())) {
    std::string name = member.name;
    if (name.ends_with(kNpyEnding)) name.resize(name.size() - kNpyEnding.size());
    HostTensor tensor = tensor_of(member.bytes, source.name() + ": " + member.name, name);
    if (!tensors.emplace(name, std::move(tensor)).second)
      throw IoError(source.name() + ": two arrays are called " + name);
  }
  return tensors;
}

void write_npy(const FileSink& sink, const HostTensor& tensor) {
  const std::vector<std::byte> bytes = npy_bytes(tensor);
  io::OutputFile out(sink, bytes.size());
  out.write(bytes);
  out.commit();
}

void write_npz(const FileSink& sink, const std::map<std::string, HostTensor>& tensors) {
  std::vector<io::ZipMember> members;
  for (const auto& [name, tensor] : tensors) {
    if (name.empty()) throw IoError(sink.name() + ": the name of a tensor is empty");
    members.push_back({name + std::string(kNpyEnding), npy_bytes(tensor)});
  }
  io::write_zip(sink, members);
}

}  // namespace tensorgrad::inline TENSORGRAD_ABI
