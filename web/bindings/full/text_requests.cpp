// SPDX-License-Identifier: MIT
// Requests for tokenizers, language models and ONNX files. Not in the core module.
#include "requests.h"

namespace tensorgrad::web {
namespace {

struct GeneratorObject {
  std::shared_ptr<lm::Generator> generator;
  std::shared_ptr<bool> stopped = std::make_shared<bool>(false);
};

Objects<Tokenizer>& tokenizers() {
  static Objects<Tokenizer> all;
  return all;
}
Objects<GeneratorObject>& generators() {
  static Objects<GeneratorObject> all;
  return all;
}
Objects<std::shared_ptr<lm::TextScorer>>& scorers() {
  static Objects<std::shared_ptr<lm::TextScorer>> all;
  return all;
}

// Writes the properties of a tokenizer that JavaScript keeps.
void put_properties(Writer& w, double id, const Tokenizer& tokenizer) {
  w.object(8);
  w.key("id");
  w.number(id);
  w.key("kind");
  put(w, tokenizer.kind());
  w.key("vocabSize");
  put(w, tokenizer.vocab_size());
  w.key("tokenCount");
  put(w, tokenizer.token_count());
  w.key("bosId");
  put(w, tokenizer.bos_id());
  w.key("eosId");
  put(w, tokenizer.eos_id());
  w.key("padId");
  put(w, tokenizer.pad_id());
  w.key("unkId");
  put(w, tokenizer.unk_id());
}

void put_tokenizer(Writer& w, const Tokenizer& tokenizer) {
  put_properties(w, tokenizers().add(tokenizer), tokenizer);
}

// Adds tokens {tokens}, or special tokens {contents}.
void add_tokens(const Request& r, Writer& w) {
  Tokenizer& tokenizer = tokenizers().at(r);
  if (r["tokens"].present()) {
    tokenizer.add_tokens(r.get<std::vector<AddedToken>>("tokens"));
  } else {
    tokenizer.add_special_tokens(r.get<std::vector<std::string>>("contents"));
  }
  put_properties(w, r.get<int>("id"), tokenizer);
}

// Sets the token of a role: "bos", "eos" or "pad".
void set_token(const Request& r, Writer& w) {
  Tokenizer& tokenizer = tokenizers().at(r);
  const auto token = r.get<std::string>("token"), role = r.get<std::string>("role");
  const auto set = role == "bos"   ? &Tokenizer::set_bos
                   : role == "eos" ? &Tokenizer::set_eos
                                   : &Tokenizer::set_pad;
  (tokenizer.*set)(token);
  put_properties(w, r.get<int>("id"), tokenizer);
}

std::optional<Tokenizer> given_tokenizer(const Request& r) {
  if (!r["tokenizer"].present()) return std::nullopt;
  auto* found = tokenizers().find(r.get<int>("tokenizer"));
  if (found == nullptr) throw UserError("the tokenizer was freed", r.location);
  return *found;
}

void train_tokenizer(const Request& r, Writer& w) {
  const auto texts = r.get<std::vector<std::string>>("texts");
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  auto options = r.get<BpeTrainOptions>("options", {});
  if (const Value& number = r["onProgress"]; number.present()) {
    options.on_progress = [&number](const BpeProgress& progress) {
      Writer event;
      put(event, progress);
      emit(number.number, event.take());
    };
  }
  put_tokenizer(w, Tokenizer::train(views, options));
}

// Returns the language model among the entries of a model: the only one, or that of an entry.
const nn::LanguageModel& language_model(const Model& model, std::size_t entry) {
  const auto* layer = dynamic_cast<const Layer<nn::LanguageModel>*>(&model.entry<AnyLayer>(entry));
  if (layer == nullptr) throw InternalError("the layer is no language model");
  return layer->value;
}

// Attaches a generator {entry, options} to a trainer.
std::shared_ptr<lm::Generator> attached_generator(TrainerObject& trainer, const Value& given,
                                                  Tokenizer tokenizer, Loc location) {
  const Where where{"options", location};
  const auto entry = read<std::size_t>(given["entry"], where);
  const auto options = read<lm::DecoderOptions>(given["options"], where);
  CompiledFunction forward = trainer.attach(
      [entry](const Model& model, const Inputs& in) {
        return detail::named(language_model(model, entry).resume_last(in["tokens"], in["keep"]));
      },
      {.inputs = lm::Decoder::inputs(options.batch)}, location);
  lm::Decoder decoder(std::move(forward), options, location);
  decoder.set_context(lm::max_context(language_model(trainer.model(), entry).config));
  return std::make_shared<lm::Generator>(std::move(decoder), std::move(tokenizer));
}

void attach_generator(const Request& r, Writer& w) {
  w.number(generators().add(
      {attached_generator(trainers().at(r), r.all(), given_tokenizer(r).value(), r.location)}));
}

// Returns the model of a request: the bytes of a file, or the files of a folder by their names.
lm::SavedModel saved_model(const Request& r) {
  const Value& source = r["source"];
  if (source.kind != Kind::kObject) {
    const FileSource file = FileSource::text(source.text);
    return source.text.starts_with("GGUF") ? lm::load_gguf(file) : lm::load_model(file);
  }
  std::vector<std::pair<std::string, FileSource>> files;
  for (std::size_t i = 0; i < source.items.size(); ++i)
    files.emplace_back(source.keys[i], FileSource::text(source.items[i].text));
  return lm::load_pretrained(std::move(files));
}

void load_model(const Request& r, Writer& w) {
  const lm::SavedModel model = saved_model(r);
  std::vector<std::byte> weights;
  lm::save_model(weights, {model.config, model.weights});
  w.object(3);
  w.key("config");
  put(w, model.config);
  w.key("weights");
  put_bytes(w, weights);
  w.key("tokenizer");
  if (model.tokenizer) {
    put_tokenizer(w, *model.tokenizer);
  } else {
    w.nothing();
  }
}

void load_generator(const Request& r, Writer& w) {
  w.number(generators().add({std::make_shared<lm::Generator>(
      saved_model(r), r.get<lm::DecoderOptions>("options", {}), r.location)}));
}

void generate(const Request& r, Writer& w) {
  GeneratorObject& object = generators().at(r);
  auto options = r.get<lm::GenerateOptions>("options", {});
  *object.stopped = false;
  const Value& number = r["onText"];
  options.on_text = [&number, stopped = object.stopped](const lm::GeneratedChunk& chunk) {
    if (number.present()) {
      Writer event;
      event.object(3);
      event.key("prompt");
      put(event, chunk.prompt);
      event.key("token");
      put(event, chunk.token);
      event.key("text");
      put(event, chunk.text);
      emit(number.number, event.take());
    }
    return !*stopped;
  };
  put(w,
      object.generator->generate(r.get<std::vector<std::string>>("prompts"), options, r.location));
}

void save_model(const Request& r, Writer& w) {
  TrainerObject& trainer = trainers().at(r);
  const auto& model = language_model(trainer.model(), r.get<std::size_t>("entry"));
  std::vector<std::byte> bytes;
  lm::save_model(bytes,
                 {model.config, trainer.base().download_params(r.location), given_tokenizer(r)});
  put_bytes(w, bytes);
}

void export_onnx(const Request& r, Writer& w) {
  std::vector<std::byte> bytes;
  functions().at(r).function.export_onnx(bytes, r.get<OnnxOptions>("options", {}), r.location);
  put_bytes(w, bytes);
}

void export_web(const Request& r, Writer& w) {
  const auto files =
      functions().at(r).function.web_files(r.get<WebOptions>("options", {}), r.location);
  w.object(files.size());
  for (const auto& [name, bytes] : files) {
    w.key(name);
    put_bytes(w, bytes);
  }
}

constexpr std::pair<std::string_view, Handler> kHandlers[] = {
    {"function.exportOnnx", export_onnx},
    {"function.exportWeb", export_web},
    {"tokenizer.fromJson",
     [](const Request& r, Writer& w) {
       put_tokenizer(w, Tokenizer::from_json(r.get<std::string>("json")));
     }},
    {"tokenizer.fromTiktoken",
     [](const Request& r, Writer& w) {
       put_tokenizer(w, Tokenizer::from_tiktoken(FileSource::text(r["bytes"].text),
                                                 r.get<BpeOptions>("options", {})));
     }},
    {"tokenizer.fromSentencePiece",
     [](const Request& r, Writer& w) {
       put_tokenizer(
           w, Tokenizer::from_sentencepiece(FileSource::text(r["bytes"].text, "tokenizer.model")));
     }},
    {"tokenizer.fromWordPiece",
     [](const Request& r, Writer& w) {
       put_tokenizer(w, Tokenizer::from_wordpiece(FileSource::text(r["vocab"].text, "vocab.txt"),
                                                  r.get<bool>("lowercase", true)));
     }},
    {"tokenizer.fromVocabAndMerges",
     [](const Request& r, Writer& w) {
       put_tokenizer(w, Tokenizer::from_vocab_and_merges(FileSource::text(r["vocab"].text),
                                                         FileSource::text(r["merges"].text),
                                                         r.get<BpeOptions>("options", {})));
     }},
    {"tokenizer.train", train_tokenizer},
    {"tokenizer.bytes",
     [](const Request& r, Writer& w) {
       put_tokenizer(w, Tokenizer::bytes(r.get<std::vector<std::string>>("special", {})));
     }},
    {"tokenizer.characters",
     [](const Request& r, Writer& w) {
       put_tokenizer(w, Tokenizer::characters(r.get<std::vector<std::string>>("symbols"),
                                              r.get<std::vector<std::string>>("special", {})));
     }},
    {"tokenizer.encode",
     [](const Request& r, Writer& w) {
       put(w, tokenizers().at(r).encode(r.get<std::string>("text"),
                                        r.get<EncodeOptions>("options", {})));
     }},
    {"tokenizer.encodeBatch",
     [](const Request& r, Writer& w) {
       put(w, tokenizers().at(r).encode_batch(r.get<std::vector<std::string>>("texts"),
                                              r.get<EncodeOptions>("options", {})));
     }},
    {"tokenizer.encodePadded",
     [](const Request& r, Writer& w) {
       put(w, tokenizers().at(r).encode_padded(r.get<std::vector<std::string>>("texts"),
                                               r.get<EncodeOptions>("options", {}),
                                               r.get<PadOptions>("pad", {})));
     }},
    {"tokenizer.preTokenize",
     [](const Request& r, Writer& w) {
       put(w, tokenizers().at(r).pre_tokenize(r.get<std::string>("text")));
     }},
    {"tokenizer.decodeBytes",
     [](const Request& r, Writer& w) {
       const std::string bytes = tokenizers().at(r).decode_bytes(
           r.get<std::vector<std::int32_t>>("ids"), r.get<DecodeOptions>("options", {}));
       w.array(kBytes, bytes.size(), std::as_bytes(std::span(bytes)));
     }},
    {"tokenizer.decode",
     [](const Request& r, Writer& w) {
       put(w, tokenizers().at(r).decode(r.get<std::vector<std::int32_t>>("ids"),
                                        r.get<DecodeOptions>("options", {})));
     }},
    {"tokenizer.tokenToId",
     [](const Request& r, Writer& w) {
       put(w, tokenizers().at(r).token_to_id(r.get<std::string>("token")));
     }},
    {"tokenizer.idToToken",
     [](const Request& r, Writer& w) {
       put(w, tokenizers().at(r).id_to_token(r.get<std::int32_t>("token")));
     }},
    {"tokenizer.addedTokens",
     [](const Request& r, Writer& w) { put(w, tokenizers().at(r).added_tokens()); }},
    {"tokenizer.merges", [](const Request& r, Writer& w) { put(w, tokenizers().at(r).merges()); }},
    {"tokenizer.addTokens", add_tokens},
    {"tokenizer.setToken", set_token},
    {"tokenizer.toJson", [](const Request& r, Writer& w) { put(w, tokenizers().at(r).to_json()); }},
    {"tokenizer.free", [](const Request& r, Writer&) { tokenizers().remove(r.get<int>("id")); }},
    {"generator.attach", attach_generator},
    {"generator.load", load_generator},
    {"generator.generate", generate},
    {"generator.times",
     [](const Request& r, Writer& w) { put(w, generators().at(r).generator->times()); }},
    {"generator.tokenizer",
     [](const Request& r, Writer& w) {
       put_tokenizer(w, generators().at(r).generator->tokenizer());
     }},
    {"generator.free", [](const Request& r, Writer&) { generators().remove(r.get<int>("id")); }},
    {"languageModel.save", save_model},
    {"languageModel.load", load_model},
    {"languageModel.maxContext",
     [](const Request& r, Writer& w) {
       put(w, lm::max_context(r.get<nn::LanguageModelConfig>("config")));
     }},
    {"languageModel.gpt2Config",
     [](const Request& r, Writer& w) {
       const auto size = [&r](const char* name) { return r.get<std::int64_t>(name); };
       put(w, nn::gpt2_config(size("vocabSize"), size("dModel"), size("blocks"), size("heads"),
                              size("nPositions")));
     }},
    {"scorer.load",
     [](const Request& r, Writer& w) {
       w.number(scorers().add(std::make_shared<lm::TextScorer>(
           saved_model(r), r.get<lm::ScoreOptions>("options", {}), r.location)));
     }},
    {"scorer.score",
     [](const Request& r, Writer& w) {
       const lm::TextScore score =
           scorers().at(r)->score(r.get<std::vector<std::int32_t>>("tokens"), r.location);
       w.object(4);
       w.key("nats");
       put(w, score.nats);
       w.key("tokens");
       put(w, score.tokens);
       w.key("loss");
       put(w, score.loss());
       w.key("perplexity");
       put(w, score.perplexity());
     }},
    {"scorer.free", [](const Request& r, Writer&) { scorers().remove(r.get<int>("id")); }},
};

}  // namespace

HandlerTable full_handlers() { return kHandlers; }

// Generators that were freed meanwhile are skipped.
std::function<void()> reattach_generators(const Request& r, TrainerObject& to) {
  std::vector<std::pair<int, std::shared_ptr<lm::Generator>>> made;
  for (const Value& each : r["generators"].items) {
    const int id = static_cast<int>(each["id"].number);
    const GeneratorObject* known = generators().find(id);
    if (known == nullptr) continue;
    const Loc location = source_location(each["file"], each["line"]);
    with_context("in the generator attached at ", location, [&] {
      made.emplace_back(id, attached_generator(to, each, known->generator->tokenizer(), location));
    });
  }
  return [made = std::move(made)] {
    for (const auto& [id, generator] : made)
      if (GeneratorObject* known = generators().find(id)) known->generator = generator;
  };
}

void stop_generator(int id) {
  if (auto* object = generators().find(id)) *object->stopped = true;
}

}  // namespace tensorgrad::web
