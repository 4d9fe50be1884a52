// SPDX-License-Identifier: MIT
#include "errors/mistake.h"

namespace tensorgrad::testing {

MISTAKE(model_file_with_a_hostile_header, IoError) {
  const std::string path = temporary("hostile.safetensors");
  std::string text =
      R"({"w":{"dtype":"F32","shape":[1099511627776,1099511627776],"data_offsets":[0,4]}})";
  const std::uint64_t length = text.size();
  text.insert(0, reinterpret_cast<const char*>(&length), sizeof length);
  write_file_atomically(path, text + "1234");
  compile_function(Net{}, [](const Net& net, In in) { return net.fc(in["x"]); },
                   {.inputs = {{"x", {4, 3}}}, .device = {.kind = "cpu"}})
      // error: TMP/hostile.safetensors: tensor "w": shape [1099511627776,1099511627776] is too
      // large at byte 86
      .load_params(path);
}

}  // namespace tensorgrad::testing
