// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

namespace {

struct Hasty {
  Schedule lr = 0.1;
  void operator()(optim::Update& update) const { update.set_state("velocity", update.grad); }
};

}  // namespace

MISTAKE(optimizer_that_sets_an_unknown_state, UserError) {
  const CompileOptions options{.inputs = {{"x", {4, 3}}, {"y", {4, 2}}}, .optimizer = Hasty{}};
  // error: optimizer: set_state('velocity') called before state('velocity')
  compile(Net{}, plain_loss, options);
}

}  // namespace tensorgrad::testing
