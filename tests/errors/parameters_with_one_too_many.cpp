// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(parameters_with_one_too_many, UserError) {
  Example example;
  auto params = example.trainer.download_params();
  params["fc.extra"] = params["fc.bias"];
  // error: upload_params: the model has no parameter 'fc.extra'
  example.trainer.upload_params(params);
}

}  // namespace tensorgrad::testing
