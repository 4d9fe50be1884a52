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
void put_tokenizer(Writer& w, const Tokenizer& tokenizer) {
  w.object(7);
  w.key("id");
  w.number(tokenizers().add(tokenizer));
  w.key("kind");
  put(w, tokenizer.kind());
  w.key("vocabSize");
  put(w, tokenizer.vocab_size());
  w.key("bosId");
  put(w, tokenizer.bos_id());
  w.key("eosId");
  put(w, tokenizer.eos_id());
  w.key("padId");
  put(w, tokenizer.pad_id());
  w.key("unkId");
  put(w, tokenizer.unk_id());
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

void attach_generator(const Request& r, Writer& w) {
  TrainerObject& trainer = trainers().at(r);
  const auto entry = r.get<std::size_t>("entry");
  const auto options = r.get<lm::DecoderOptions>("options", {});
  CompiledFunction forward = trainer.attach(
      [entry](const Model& model, const Inputs& in) {
        return detail::named(language_model(model, entry).resume_last(in["tokens"], in["keep"]));
      },
      {.inputs = lm::Decoder::inputs(options.batch)}, r.location);
  lm::Decoder decoder(std::move(forward), options, r.location);
  decoder.set_context(lm::max_context(language_model(trainer.model(), entry).config));
  w.number(generators().add(
      {std::make_shared<lm::Generator>(std::move(decoder), given_tokenizer(r).value())}));
}

void load_generator(const Request& r, Writer& w) {
  const lm::SavedModel model = lm::load_model(FileSource::text(r["bytes"].text));
  w.number(generators().add({std::make_shared<lm::Generator>(
      model, r.get<lm::DecoderOptions>("options", {}), r.location)}));
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
  lm::save_model(bytes, {model.config, trainer.base().download_params(), given_tokenizer(r)});
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
    {"scorer.load",
     [](const Request& r, Writer& w) {
       const lm::SavedModel model = lm::load_model(FileSource::text(r["bytes"].text));
       w.number(scorers().add(std::make_shared<lm::TextScorer>(
           model, r.get<lm::ScoreOptions>("options", {}), r.location)));
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

void stop_generator(int id) {
  if (auto* object = generators().find(id)) *object->stopped = true;
}

}  // namespace tensorgrad::web
