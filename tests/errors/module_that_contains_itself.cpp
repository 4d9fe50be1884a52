// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

namespace {

struct Ring {
  Parameter weight{{2}};
  std::shared_ptr<Ring> next;
  TG_MODULE(weight, next)
};

}  // namespace

MISTAKE(module_that_contains_itself, UserError) {
  auto ring = std::make_shared<Ring>();
  ring->next = ring;
  const std::shared_ptr<void> opened(nullptr, [&](void*) { ring->next.reset(); });
  const auto loss = [](const Ring& net, In) { return sum(net.weight); };
  // error: model: the module 'next' contains itself
  compile(*ring, loss, {.optimizer = optim::SGD{}});
}

}  // namespace tensorgrad::testing
