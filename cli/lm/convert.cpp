// SPDX-License-Identifier: MIT
// tg lm import, export and quantize.
#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "lm/commands.h"
#include "os/process.h"
#include "tensorgrad/error.h"
#include "text.h"

namespace tensorgrad::cli {
namespace {

// Prints one line about a written model file.
void print_file(const std::string& path, const lm::SavedModel& model) {
  fmt::print("{}: {} layers of width {}, {} tokens, weights in {}, {}{}\n", path,
             model.config.n_layer, model.config.d_model, model.config.vocab_size,
             nn::to_string(model.config.weight_format),
             bytes_text(static_cast<std::int64_t>(std::filesystem::file_size(os::utf8_path(path)))),
             model.tokenizer ? "" : ", without a tokenizer");
}

// Returns true for the files of a folder of transformers.
bool belongs_to_folder(const std::string& path) {
  const std::filesystem::path file = os::utf8_path(path);
  std::error_code ignored;
  return std::filesystem::exists(file, ignored) &&
         (file.extension() == ".safetensors" || file.extension() == ".json");
}

}  // namespace

int lm_import(const LmImportArguments& arguments) {
  lm::SavedModel model;
  std::error_code ignored;
  if (std::filesystem::is_directory(os::utf8_path(arguments.from), ignored)) {
    if (arguments.euler) throw UserError("lm import: --euler applies only to MBJS files");
    model = lm::load_pretrained(arguments.from,
                                {.tokenizer = arguments.tokenizer, .context = arguments.context});
  } else if (arguments.from.ends_with(".gguf")) {
    if (arguments.euler) throw UserError("lm import: --euler applies only to MBJS files");
    model = lm::load_gguf(arguments.from,
                          {.tokenizer = arguments.tokenizer, .context = arguments.context});
  } else if (belongs_to_folder(arguments.from)) {
    throw UserError(arguments.from +
                    ": is a file; expected the folder that holds it, a GGUF file or an MBJS file");
  } else {
    lm::MbjsOptions options;
    if (arguments.euler) options.discretization = Discretization::kEuler;
    model = lm::load_mbjs(arguments.from, options);
  }
  lm::save_model(arguments.out, model);
  print_file(arguments.out, model);
  return 0;
}

int lm_export(const LmExportArguments& arguments) {
  lm::SavedModel model = lm::load_model(lm_model_path(arguments.model));
  if (!arguments.tokenizer) model.tokenizer.reset();
  if (arguments.out.ends_with(".gguf")) {
    lm::save_gguf(arguments.out, model);
    fmt::print("wrote {}: for llama.cpp, {}{}\n", arguments.out,
               bytes_text(static_cast<std::int64_t>(
                   std::filesystem::file_size(os::utf8_path(arguments.out)))),
               model.tokenizer ? "" : ", without a tokenizer");
    return 0;
  }
  if (!arguments.out.ends_with(".onnx")) {
    lm::save_pretrained(arguments.out, model);
    fmt::print("wrote {}: a folder for transformers{}\n", arguments.out,
               model.tokenizer ? "" : ", without a tokenizer");
    return 0;
  }
  // Pieces that need a scan, whose sizes are none of the model; one token is taken too.
  const std::int64_t context = lm::max_context(model.config);
  const OnnxOptions options = {.name = "language_model",
                               .size_name = "length",
                               .sizes = context == 0 || context > 41
                                            ? std::vector<std::int64_t>{10, 23, 41}
                                            : std::vector<std::int64_t>{5, 7, 9},
                               .states = true};
  CompiledFunction forward = compile_function(
      nn::LanguageModel(model.config),
      [](const nn::LanguageModel& net, const Inputs& in) {
        return std::map<std::string, Tensor>{{"logits", net.resume(in["tokens"], in["keep"])}};
      },
      {.inputs = lm::Decoder::inputs(1), .device = arguments.device});
  forward.upload_params(model.weights);
  forward.export_onnx(arguments.out, options);
  fmt::print("wrote {}: tokens i32[1,length], keep f32[1] and states -> logits f32[1,length,{}]\n",
             arguments.out, model.config.vocab_size);
  return 0;
}

int lm_quantize(const LmQuantizeArguments& arguments) {
  const lm::SavedModel model =
      lm::quantize(lm::load_model(lm_model_path(arguments.model)), arguments.format);
  lm::save_model(arguments.out, model);
  print_file(arguments.out, model);
  return 0;
}

}  // namespace tensorgrad::cli
