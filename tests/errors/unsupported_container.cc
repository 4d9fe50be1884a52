// SPDX-License-Identifier: MIT
// This must not compile: parameters in a map would never be found, and never be trained.
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
