// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(submit_with_inputs, UserError) {
  Example example;
  // error: submit: the inputs are passed at each step; call step(), or declare them as a dataset
  example.trainer.submit(1);
}

}  // namespace tensorgrad::testing
