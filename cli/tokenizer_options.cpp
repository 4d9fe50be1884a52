// SPDX-License-Identifier: MIT
// The options of tg tokenizer.
#include <memory>

#include <CLI/CLI.hpp>

#include "tokenizer_commands.h"

namespace tensorgrad::cli {
namespace {

using TokenizerAction = std::function<int()>;

void add_tokenizer_option(CLI::App& command, std::string& tokenizer,
                          const std::string& names = "--tokenizer") {
  command
      .add_option(names, tokenizer,
                  "A tokenizer.json, a folder with one, or `bytes`, where every byte is a token")
      ->required()
      ->option_text("FILE");
}

void add_tokenizer_train(CLI::App& app, TokenizerAction& action) {
  auto args = std::make_shared<TokenizerTrainArguments>();
  CLI::App& command = *app.add_subcommand("train", "Make a tokenizer from text");
  command
      .add_option("--data", args->data, "Files of text, gzipped or not; merges cross none of them")
      ->required()
      ->option_text("FILE ...");
  command.add_option("--out", args->out, "File to write, a tokenizer.json")
      ->required()
      ->option_text("FILE");
  command.add_option("--vocab-size", args->vocab_size, "Tokens in all, of a bpe")
      ->check(CLI::Range(std::int64_t{256}, std::int64_t{1} << 24))
      ->capture_default_str();
  command
      .add_option("--kind", args->kind,
                  "bpe: byte-level byte-pair encoding; bytes; characters: those of the text")
      ->check(CLI::IsMember({"bpe", "bytes", "characters"}))
      ->option_text("bpe|bytes|characters (bpe)");
  command.add_option("--pattern", args->pattern, "How text is cut before merges, as in that model")
      ->check(CLI::IsMember({"none", "gpt2", "cl100k", "qwen2", "o200k"}))
      ->option_text("gpt2|cl100k|qwen2|o200k|none (gpt2)");
  command.add_option("--min-frequency", args->min_frequency, "Least count of a pair to be merged")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->capture_default_str();
  command
      .add_option("--special-token", args->specials,
                  "Special token, such as '<|endoftext|>'; once for each")
      ->allow_extra_args(false)
      ->option_text("TOKEN");
  command.add_flag("--nfc", args->nfc, "Bring text into Unicode's normal form C");
  command.footer(
      "Examples:\n"
      "  tg tokenizer train --data book.txt --vocab-size 8000 --special '<|endoftext|>' "
      "--out tokenizer.json\n"
      "  tg tokenizer train --data book.txt --kind characters --out letters.json\n"
      "Hugging Face's `tokenizers` reads the file too.");
  command.callback([=, &action] { action = [args] { return train_tokenizer(*args); }; });
}

void add_tokenizer_import(CLI::App& app, TokenizerAction& action) {
  auto args = std::make_shared<TokenizerImportArguments>();
  CLI::App& command = *app.add_subcommand(
      "import", "Make a tokenizer.json of vocab.json and merges.txt, or of a file of tiktoken");
  CLI::Option* const vocab = command.add_option("--vocab", args->vocab, "A vocab.json");
  CLI::Option* const merges =
      command.add_option("--merges", args->merges, "A merges.txt or vocab.bpe");
  CLI::Option* const tiktoken = command.add_option(
      "--tiktoken", args->tiktoken, "Or tokens in base64 with their ranks, one a line");
  vocab->needs(merges)->excludes(tiktoken);
  merges->needs(vocab);
  command.add_option("--out", args->out, "File to write, a tokenizer.json")
      ->required()
      ->option_text("FILE");
  command.add_option("--pattern", args->pattern, "How text is cut before merges, as in that model")
      ->check(CLI::IsMember({"none", "gpt2", "cl100k", "tiktoken_cl100k", "qwen2", "o200k"}))
      ->option_text("gpt2|cl100k|tiktoken_cl100k|qwen2|o200k|none (gpt2)");
  command
      .add_option("--special-token", args->specials,
                  "Special token, with its id as '<|endoftext|>=50256' unless it is in the "
                  "vocabulary or the next one; once for each")
      ->allow_extra_args(false)
      ->option_text("TOKEN");
  command.add_flag("--nfc", args->nfc, "Bring text into Unicode's normal form C, as for Qwen2");
  command.footer(
      "Example:\n"
      "  tg tokenizer import --vocab vocab.json --merges merges.txt --special '<|endoftext|>' "
      "--out tokenizer.json");
  command.callback([=, &action] {
    if (vocab->empty() && tiktoken->empty()) throw CLI::RequiredError("--vocab or --tiktoken");
    action = [args] { return import_tokenizer(*args); };
  });
}

void add_tokenizer_encode(CLI::App& app, TokenizerAction& action) {
  auto args = std::make_shared<TokenizerEncodeArguments>();
  CLI::App& command = *app.add_subcommand("encode", "Turn text into tokens");
  add_tokenizer_option(command, args->tokenizer);
  CLI::Option* const file =
      command
          .add_option("FILE", args->files,
                      "Text, gzipped or not; - or none: standard input. Behind each of several "
                      "files comes the tokenizer's eos, where it has one")
          ->option_text("[FILE ...]");
  CLI::Option* const text = command.add_option("--text", args->text, "Text to take instead");
  CLI::Option* const out =
      command.add_option("--out", args->out, "File of tokens to write (safetensors, U16 or U32)")
          ->option_text("FILE");
  command
      .add_option("--eos", args->eos,
                  "Put this token behind each text, as '<|endoftext|>', so that a model that is "
                  "trained on them learns where they end")
      ->option_text("TOKEN");
  CLI::Option* const json = command.add_flag(
      "--json", args->json, "Each line is a string of JSON, and becomes an array of numbers");
  command
      .add_flag("--pre-tokens", args->pre_tokens,
                "With --json: arrays of the pieces that merges do not cross, as strings")
      ->needs(json);
  CLI::Option* const show =
      command.add_flag("--show", args->show, "Print each number with its token, one a line");
  command.add_flag("--plain", args->plain,
                   "Special tokens in the text are text, and none but eos is added to it");
  text->excludes(file);
  out->excludes(json)->excludes(show);
  json->excludes(show)->excludes(text);
  command.footer(
      "Examples:\n"
      "  tg tokenizer encode --tokenizer tokenizer.json --text 'Hello world' --show\n"
      "  tg tokenizer encode --tokenizer tokenizer.json book.txt --out book.safetensors\n"
      "  tg tokenizer encode --tokenizer tokenizer.json a.txt b.txt --eos '<|endoftext|>' "
      "--out books.safetensors");
  command.callback([=, &action] {
    args->text_given = !text->empty();
    action = [args] { return encode_text(*args); };
  });
}

void add_tokenizer_decode(CLI::App& app, TokenizerAction& action) {
  auto args = std::make_shared<TokenizerDecodeArguments>();
  CLI::App& command = *app.add_subcommand("decode", "Turn tokens into text");
  add_tokenizer_option(command, args->tokenizer);
  CLI::Option* const ids =
      command.add_option("ID", args->ids, "Tokens; none: those of standard input");
  command
      .add_option("--file", args->file, "A file of tokens, as `tg tokenizer encode --out` makes")
      ->option_text("FILE")
      ->excludes(ids);
  command.add_flag("--skip-special", args->skip_special, "Leave special tokens out");
  command.footer(
      "Examples:\n"
      "  tg tokenizer decode --tokenizer tokenizer.json 15496 995\n"
      "  tg tokenizer decode --tokenizer tokenizer.json --file book.safetensors > book.txt\n"
      "Prints the bytes of the tokens and nothing else.");
  command.callback([=, &action] { action = [args] { return decode_tokens(*args); }; });
}

void add_tokenizer_show(CLI::App& app, TokenizerAction& action) {
  auto tokenizer = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App& command = *app.add_subcommand("show", "Say what a tokenizer is");
  add_tokenizer_option(command, *tokenizer, "tokenizer,--tokenizer");
  command.add_flag("--json", *json, "Print one JSON object");
  command.footer("Example:\n  tg tokenizer show tokenizer.json");
  command.callback(
      [=, &action] { action = [tokenizer, json] { return show_tokenizer(*tokenizer, *json); }; });
}

}  // namespace

void add_tokenizer(CLI::App& app, std::function<int()>& action) {
  CLI::App& command =
      *app.add_subcommand("tokenizer", "Make a tokenizer; turn text into tokens and back");
  command.require_subcommand(0, 1);
  command.callback([&command] {
    if (!command.get_subcommands().empty()) return;
    throw CLI::RequiredError("train, import, encode, decode or show");
  });
  add_tokenizer_train(command, action);
  add_tokenizer_import(command, action);
  add_tokenizer_encode(command, action);
  add_tokenizer_decode(command, action);
  add_tokenizer_show(command, action);
  command.footer("`tg tokenizer COMMAND --help` says more about a command, with examples.");
}

}  // namespace tensorgrad::cli
