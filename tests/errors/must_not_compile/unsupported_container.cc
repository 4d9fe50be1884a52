// SPDX-License-Identifier: MIT
// Must not compile: parameters in a map would not be found, and so not be trained.
// error: other containers are not searched for parameters
#include <map>
#include <string>

#include "tensorgrad/tensorgrad.h"

struct Hidden {
  std::map<std::string, tensorgrad::Parameter> weights;
  TG_MODULE(weights)
};

void visit(const Hidden& model, tensorgrad::ParameterVisitor& visitor) {
  model.visit_fields(visitor);
}
