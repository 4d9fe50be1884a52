// SPDX-License-Identifier: MIT
// Values passed to a call: HostView, FeedView and Feed.
#include <cstring>

#include "tensorgrad/train/device_tensor.h"
#include "tensorgrad/train/inputs.h"
#include "train/device_value.h"

namespace tensorgrad::inline TENSORGRAD_ABI {
namespace {

// Copies the elements of a host value. Keeps null data, which the call reports.
FeedValue owned(const FeedValue& value) {
  if (value.on_device || value.owner || value.data == nullptr) return value;
  auto copy = std::make_shared<HostTensor>();
  copy->dtype = value.dtype;
  const auto* first = static_cast<const std::byte*>(value.data);
  copy->bytes.assign(first, first + value.count * element_bytes(value.dtype));
  FeedValue result = value;
  result.data = copy->bytes.data();
  if (value.shape != nullptr) {
    copy->shape = *value.shape;
    result.shape = &copy->shape;
  }
  result.owner = std::move(copy);
  return result;
}

}  // namespace

HostView::HostView(const HostTensor& tensor)
    : HostView(tensor.dtype, tensor.bytes.data(),
               tensor.bytes.size() / element_bytes(tensor.dtype)) {
  shape = &tensor.shape;
}

FeedValue::FeedValue(const std::vector<bool>& values)
    : HostView(DType::kBool, nullptr, values.size()) {
  auto words = std::make_shared<const std::vector<std::uint32_t>>(values.begin(), values.end());
  data = words->data();
  owner = std::move(words);
}

FeedValue::FeedValue(const DeviceTensor& tensor)
    : HostView(tensor.dtype(), nullptr, static_cast<std::size_t>(numel(tensor.shape()))),
      on_device(tensor.value_.shared()) {
  shape = &on_device->type.shape;
}

FeedView::FeedView(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) add(entry.name, entry.value);
}

void FeedView::add(const NameRef& name, FeedValue value) {
  if (values_.emplace(name.name, std::move(value)).second) return;
  throw UserError("input '" + name.name + "' is given twice", name.location);
}

Feed::Feed(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) add(entry.name, entry.value);
}

Feed::Feed(const FeedView& view) {
  for (const auto& [name, value] : view) values_.emplace(name, owned(value));
}

void Feed::add(const NameRef& name, const FeedValue& value) { FeedView::add(name, owned(value)); }

}  // namespace tensorgrad::inline TENSORGRAD_ABI
