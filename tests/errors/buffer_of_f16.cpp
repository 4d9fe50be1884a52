// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

namespace {

struct HalfNet {
  nn::Linear fc{3, 2};
  Buffer kept{{3}, 0, f16};
  TG_MODULE(fc, kept)
};

}  // namespace

MISTAKE(buffer_of_f16, DtypeError) {
  (void)compile(HalfNet{},
                [](const HalfNet& net, In in) {
                  // error: buffer 'kept': f16 is not supported in training
                  const Tensor kept = net.kept.tensor(Loc::current());
                  return sum(net.fc(in["x"] * kept));
                },
                {.inputs = {{"x", {4, 3}}}, .optimizer = optim::SGD{}, .device = {.kind = "cpu"}});
}

}  // namespace tensorgrad::testing
