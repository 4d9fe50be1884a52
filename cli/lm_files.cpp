// SPDX-License-Identifier: MIT
// tg lm import and quantize.
#include <filesystem>

#include <fmt/format.h>

#include "lm_commands.h"
#include "tensorgrad/error.h"
#include "text.h"

namespace tensorgrad::cli {
namespace {

// Prints one line about a written model file.
void print_file(const std::string& path, const lm::SavedModel& model) {
  fmt::print("{}: {} layers of width {}, {} tokens, weights in {}, {}{}\n", path,
             model.config.n_layer, model.config.d_model, model.config.vocab_size,
             nn::to_string(model.config.weight_format),
             bytes_text(static_cast<std::int64_t>(std::filesystem::file_size(path))),
             model.tokenizer ? "" : ", without a tokenizer");
}

}  // namespace

int lm_import(const LmImportArguments& arguments) {
  lm::SavedModel model;
  std::error_code ignored;
  if (std::filesystem::is_directory(arguments.from, ignored)) {
    if (arguments.euler) throw UserError("lm import: --euler applies only to MBJS files");
    model = lm::load_pretrained(arguments.from, {.tokenizer = arguments.tokenizer});
  } else {
    lm::MbjsOptions options;
    if (arguments.euler) options.discretization = Discretization::kEuler;
    model = lm::load_mbjs(arguments.from, options);
  }
  lm::save_model(arguments.out, model);
  print_file(arguments.out, model);
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
