// SPDX-License-Identifier: MIT
// Clang warns at exactly the marked lines, at which a view outlives what it refers to. It checks
// this itself (-verify).
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tensorgrad/tensorgrad.h>

namespace tg = tensorgrad;

std::vector<float> pixels();
const std::vector<std::byte> constant_bytes();
std::vector<std::byte> bytes();
tg::HostTensor tensor();
const tg::Batch constant_batch();
tg::CustomCall call();

void host_values() {
  const tg::HostView a = pixels();          // expected-warning{{temporary whose address}}
  const tg::HostView b = tensor();          // expected-warning{{temporary whose address}}
  const tg::FeedView c = constant_batch();  // expected-warning{{temporary whose address}}
}

void files() {
  const tg::FileSource a = constant_bytes();       // expected-warning{{temporary whose}}
  const auto b = tg::FileSource(bytes()).bytes();  // expected-warning{{temporary whose}}
}

void logits(const tg::lm::SavedModel& model, const std::vector<std::vector<std::int32_t>>& texts) {
  const auto a = tg::lm::Decoder(model).prefill(texts);     // expected-warning{{temporary whose}}
  const auto b = tg::lm::Decoder(model).step(texts.at(0));  // expected-warning{{temporary whose}}
}

void custom_op() {
  const auto a = call().floats(0);       // expected-warning{{temporary whose address}}
  const auto b = call().ints(0);         // expected-warning{{temporary whose address}}
  const auto c = call().uints(0);        // expected-warning{{temporary whose address}}
  const auto d = call().result();        // expected-warning{{temporary whose address}}
  const auto e = call().result_ints();   // expected-warning{{temporary whose address}}
  const tg::Shape& f = call().shape(0);  // expected-warning{{temporary bound to}}
}

// No warnings: a source that owns its bytes, views of variables, and views used at once.
void right(const std::vector<float>& values, const std::vector<std::byte>& stored, tg::Batch batch,
           tg::lm::Decoder& decoder, const std::vector<std::int32_t>& tokens) {
  const tg::FileSource owner = bytes();
  const tg::FileSource source = stored, part = std::span<const std::byte>(stored).first(1);
  const tg::HostView view = values, piece = std::span<const float>(values).first(1);
  const tg::FeedView inputs = batch;
  const tg::FeedView own = {{"x", pixels()}};
  const auto logits = decoder.step(tokens);
  const auto size = tg::FileSource(bytes()).bytes().size();
}
