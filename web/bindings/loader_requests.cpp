// SPDX-License-Identifier: MIT
// Requests for data loaders. C++ manages order and position; JavaScript reads the samples.
#include "requests.h"

namespace tensorgrad::web {
namespace {

constexpr const char* kIndex = "index";

void create(const Request& r, Writer& w) {
  auto options = r.get<LoaderOptions>("options", {});
  options.workers = 0;
  const auto index = [](std::int64_t i) {
    const std::vector<std::int32_t> one = {static_cast<std::int32_t>(i)};
    return NamedTensors{{kIndex, HostTensor::from({}, one)}};
  };
  w.number(loaders().add(DataLoader(r.get<std::int64_t>("size"), index, options, r.location)));
}

// Writes the batch at a position, which may be ahead of the loader's.
void batch(const Request& r, Writer& w) {
  DataLoader& loader = loaders().at(r);
  const LoaderState now = loader.state();
  loader.load_state(r.get<LoaderState>("at"), r.location);
  const Batch batch = loader.next(r.location);
  const LoaderState next = loader.state();
  loader.load_state(now, r.location);
  const HostTensor& indices = batch.fields.at(kIndex);
  w.object(4);
  w.key("indices");
  w.array(static_cast<std::uint32_t>(DType::kI32), static_cast<std::size_t>(batch.samples),
          indices.bytes);
  w.key("epoch");
  put(w, batch.epoch);
  w.key("position");
  put(w, batch.position);
  w.key("next");
  put(w, next);
}

constexpr std::pair<std::string_view, Handler> kHandlers[] = {
    {"loader.create", create},
    {"loader.batch", batch},
    {"loader.batchesPerEpoch",
     [](const Request& r, Writer& w) { put(w, loaders().at(r).batches_per_epoch()); }},
    {"loader.state", [](const Request& r, Writer& w) { put(w, loaders().at(r).state()); }},
    {"loader.loadState",
     [](const Request& r, Writer&) {
       loaders().at(r).load_state(r.get<LoaderState>("state"), r.location);
     }},
    {"loader.free", [](const Request& r, Writer&) { loaders().remove(r.get<int>("id")); }},
};

}  // namespace

Objects<DataLoader>& loaders() {
  static Objects<DataLoader> all;
  return all;
}

HandlerTable loader_handlers() { return kHandlers; }

}  // namespace tensorgrad::web
