// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

namespace {

struct Lazy {
  Schedule lr = 0.1;
  void operator()(optim::Update&) const {}
};

}  // namespace

MISTAKE(optimizer_that_never_updates, UserError) {
  const CompileOptions options{.inputs = {{"x", {4, 3}}, {"y", {4, 2}}}, .optimizer = Lazy{}};
  compile(Net{}, plain_loss, options);  // error: optimizer: set_param() was never called
}

}  // namespace tensorgrad::testing
