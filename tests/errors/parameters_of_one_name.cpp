// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

namespace {

struct Doubled {
  Parameter a{{2}};
  Parameter b{{2}};
  void visit_fields(ParameterVisitor& visitor) const {
    visitor.parameter("a", a);
    visitor.parameter("a", b);
  }
};

}  // namespace

MISTAKE(parameters_of_one_name, UserError) {
  const auto loss = [](const Doubled& net, In) { return sum(net.a) + sum(net.b); };
  // error: model: two parameters are named 'a'
  compile(Doubled{}, loss, {.optimizer = optim::SGD{}});
}

}  // namespace tensorgrad::testing
