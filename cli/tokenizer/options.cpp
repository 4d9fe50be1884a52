// SPDX-License-Identifier: MIT
// The options of tg tokenizer.
#include <memory>

#include <CLI/CLI.hpp>

#include "tokenizer/commands.h"
#include "usage.h"

namespace tensorgrad::cli {
namespace {

using TokenizerAction = std::function<int()>;

void add_tokenizer_option(CLI::App& command, std::string& tokenizer,
                          const std::string& names = "--tokenizer") {
  command
      .add_option(
          names, tokenizer,
          "A tokenizer.json, tokenizer.model or vocab.txt, a folder with one, or `bytes` (each "
          "byte is a token)")
      ->required()
      ->option_text("FILE");
}

void add_tokenizer_train(CLI::App& app, TokenizerAction& action) {
  auto args = std::make_shared<TokenizerTrainArguments>();
  CLI::App& command = *app.add_subcommand("train", "Train a tokenizer on text");
  command
      .add_option("--data", args->data, "Text files, optionally gzipped; merges do not cross files")
      ->required()
      ->option_text("FILE ...");
  command.add_option("--out", args->out, "The tokenizer.json to write")
      ->required()
      ->option_text("FILE");
  command.add_option("--vocab-size", args->vocab_size, "Vocabulary size, for bpe")
      ->check(in_range(std::int64_t{256}, std::int64_t{1} << 24))
      ->capture_default_str();
  command
      .add_option("--kind", args->kind,
                  "bpe (byte-level byte-pair encoding), bytes, or characters (those of the text)")
      ->check(one_of({"bpe", "bytes", "characters"}))
      ->option_text("bpe|bytes|characters (bpe)");
  command.add_option("--pattern", args->pattern, "Pre-tokenization pattern, named after its model")
      ->check(one_of({"none", "gpt2", "cl100k", "qwen2", "o200k"}))
      ->option_text("gpt2|cl100k|qwen2|o200k|none (gpt2)");
  command
      .add_option("--min-frequency", args->min_frequency, "Minimum count of a pair to be merged")
      ->check(in_range(std::int64_t{0}, std::int64_t{1} << 40))
      ->capture_default_str();
  command
      .add_option("--special-token", args->specials,
                  "Special token, such as '<|endoftext|>'; may be repeated")
      ->allow_extra_args(false)
      ->option_text("TOKEN");
  command.add_flag("--nfc", args->nfc, "Normalize text to Unicode NFC");
  command.footer(
      "Examples:\n"
      "  tg tokenizer train --data book.txt --vocab-size 8000 "
      "--special-token '<|endoftext|>' --out tokenizer.json\n"
      "  tg tokenizer train --data book.txt --kind characters --out letters.json\n"
      "Hugging Face's `tokenizers` can also read the file.");
  command.callback([=, &action] { action = [args] { return train_tokenizer(*args); }; });
}

void add_tokenizer_import(CLI::App& app, TokenizerAction& action) {
  auto args = std::make_shared<TokenizerImportArguments>();
  CLI::App& command = *app.add_subcommand("import",
                                          "Import a tokenizer from vocab.json and merges.txt, a "
                                          "tiktoken file, a SentencePiece model or "
                                          "BERT's vocab.txt");
  CLI::Option* const vocab = command.add_option("--vocab", args->vocab, "vocab.json file");
  CLI::Option* const merges =
      command.add_option("--merges", args->merges, "merges.txt or vocab.bpe file");
  CLI::Option* const tiktoken = command.add_option(
      "--tiktoken", args->tiktoken, "tiktoken file: base64 tokens with their ranks, one per line");
  CLI::Option* const sentencepiece = command.add_option("--sentencepiece", args->sentencepiece,
                                                        "tokenizer.model file of SentencePiece");
  CLI::Option* const wordpiece =
      command.add_option("--wordpiece", args->wordpiece, "vocab.txt file of BERT");
  command.add_flag("--cased", args->cased, "With --wordpiece: keep upper case and accents")
      ->needs(wordpiece);
  vocab->needs(merges)->excludes(tiktoken)->excludes(sentencepiece)->excludes(wordpiece);
  merges->needs(vocab);
  tiktoken->excludes(sentencepiece)->excludes(wordpiece);
  sentencepiece->excludes(wordpiece);
  command.add_option("--out", args->out, "The tokenizer.json to write")
      ->required()
      ->option_text("FILE");
  for (CLI::Option* const file : {sentencepiece, wordpiece}) file->option_text("FILE");
  CLI::Option* const pattern =
      command
          .add_option("--pattern", args->pattern, "Pre-tokenization pattern, named after its model")
          ->check(one_of({"none", "gpt2", "cl100k", "tiktoken_cl100k", "qwen2", "o200k"}))
          ->option_text("gpt2|cl100k|tiktoken_cl100k|qwen2|o200k|none (gpt2)");
  command
      .add_option("--special-token", args->specials,
                  "Special token, with its id as in '<|endoftext|>=50256' if it is not in the "
                  "vocabulary (default: the next id); may be repeated")
      ->allow_extra_args(false)
      ->option_text("TOKEN");
  CLI::Option* const nfc =
      command.add_flag("--nfc", args->nfc, "Normalize text to Unicode NFC, as for Qwen2");
  // These files contain their rules.
  for (CLI::Option* const file : {sentencepiece, wordpiece}) file->excludes(pattern)->excludes(nfc);
  command.footer(
      "Examples:\n"
      "  tg tokenizer import --vocab vocab.json --merges merges.txt "
      "--special-token '<|endoftext|>' --out tokenizer.json\n"
      "  tg tokenizer import --sentencepiece tokenizer.model --out tokenizer.json");
  command.callback([=, &action] {
    if (vocab->empty() && tiktoken->empty() && sentencepiece->empty() && wordpiece->empty())
      throw CLI::RequiredError("--vocab, --tiktoken, --sentencepiece or --wordpiece");
    action = [args] { return import_tokenizer(*args); };
  });
}

void add_tokenizer_encode(CLI::App& app, TokenizerAction& action) {
  auto args = std::make_shared<TokenizerEncodeArguments>();
  CLI::App& command = *app.add_subcommand("encode", "Encode text into tokens");
  add_tokenizer_option(command, args->tokenizer);
  CLI::Option* const file =
      command
          .add_option("FILE", args->files,
                      "Text files, optionally gzipped; - or none: standard input. If there are "
                      "several, each is followed by the tokenizer's eos token")
          ->option_text("[FILE ...]");
  CLI::Option* const text =
      command.add_option("--text", args->text, "Text to encode instead of files");
  CLI::Option* const out =
      command.add_option("--out", args->out, "Token file to write (safetensors, U16 or U32)")
          ->option_text("FILE");
  command
      .add_option("--eos", args->eos,
                  "Token to append to each text, such as '<|endoftext|>', so that models learn "
                  "where texts end")
      ->option_text("TOKEN");
  CLI::Option* const json = command.add_flag(
      "--json", args->json, "Read a JSON string per line, and print an array of ids for each");
  command
      .add_flag("--pre-tokens", args->pre_tokens,
                "With --json: print pre-tokens, which merges do not cross, instead of ids")
      ->needs(json);
  CLI::Option* const show =
      command.add_flag("--show", args->show, "Print each id with its token, one per line");
  command.add_flag("--plain", args->plain,
                   "Encode special tokens as plain text, and add none except eos");
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
  CLI::App& command = *app.add_subcommand("decode", "Decode tokens into text");
  add_tokenizer_option(command, args->tokenizer);
  CLI::Option* const ids =
      command.add_option("ID", args->ids, "Token ids (default: standard input)");
  command.add_option("--file", args->file, "Token file, as written by `tg tokenizer encode --out`")
      ->option_text("FILE")
      ->excludes(ids);
  command.add_flag("--skip-special", args->skip_special, "Omit special tokens");
  command.footer(
      "Examples:\n"
      "  tg tokenizer decode --tokenizer tokenizer.json 15496 995\n"
      "  tg tokenizer decode --tokenizer tokenizer.json --file book.safetensors > book.txt\n"
      "Prints only the bytes of the tokens.");
  command.callback([=, &action] { action = [args] { return decode_tokens(*args); }; });
}

void add_tokenizer_show(CLI::App& app, TokenizerAction& action) {
  auto tokenizer = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App& command = *app.add_subcommand("show", "Show the properties of a tokenizer");
  add_tokenizer_option(command, *tokenizer, "tokenizer,--tokenizer");
  command.add_flag("--json", *json, "Print one JSON object");
  command.footer("Example:\n  tg tokenizer show tokenizer.json");
  command.callback(
      [=, &action] { action = [tokenizer, json] { return show_tokenizer(*tokenizer, *json); }; });
}

}  // namespace

void add_tokenizer(CLI::App& app, std::function<int()>& action) {
  CLI::App& command =
      *app.add_subcommand("tokenizer", "Train tokenizers, and encode and decode text with them");
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
  command.footer("See `tg tokenizer COMMAND --help` for details and examples.");
}

}  // namespace tensorgrad::cli
