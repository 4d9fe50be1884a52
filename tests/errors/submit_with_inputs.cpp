// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(submit_with_inputs, UserError) {
  Example example;
  // error: submit: the inputs of this program are given step by step; call step(), or declare them
  // as dataset
  example.trainer.submit(1);
}

}  // namespace tensorgrad::testing
