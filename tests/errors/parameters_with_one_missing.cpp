// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(parameters_with_one_missing, UserError) {
  Example example;
  auto params = example.trainer.download_params();
  params.erase("fc.bias");
  example.trainer.upload_params(params);  // error: upload_params: no value for parameter 'fc.bias'
}

}  // namespace tensorgrad::testing
