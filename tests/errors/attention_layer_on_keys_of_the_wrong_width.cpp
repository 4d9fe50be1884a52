// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(attention_layer_on_keys_of_the_wrong_width, ShapeError) {
  struct Reader {
    nn::MultiheadAttention attention{8, 2, {.kdim = 6}};
    TG_MODULE(attention)
  };
  compile(Reader{},
          [](const Reader& net, In) {
            const Tensor x = zeros({2, 5, 8});
            // error: MultiheadAttention: key: expected [B, T, 6], got [2,5,8]
            return sum(net.attention(x, x, x));
          },
          {.optimizer = optim::SGD{}, .device = {.kind = "cpu"}});
}

}  // namespace tensorgrad::testing
