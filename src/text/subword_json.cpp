// SPDX-License-Identifier: MIT
#include "text/subword_json.h"

#include <algorithm>

#include "text/base64.h"

namespace tensorgrad::text {
namespace {

NormalStep replace_step(const Part& part) {
  NormalStep step;
  step.to = part["content"].string();
  const Part pattern = part["pattern"];
  if (!pattern["String"].is_null()) {
    step.what = NormalStep::What::kReplace;
    step.from = pattern["String"].string();
    if (step.from.empty()) pattern["String"].fail("empty string");
    return step;
  }
  enum class Kind { kRun, kSpaces, kEnds, kTail };
  const auto kind = pattern["Regex"].one_of<Kind>({{" {2,}", Kind::kRun},
                                                   {"\\s+", Kind::kSpaces},
                                                   {"\\A +| +\\z", Kind::kEnds},
                                                   {"\u2581+\\z", Kind::kTail}});
  const bool run = kind == Kind::kRun || kind == Kind::kSpaces;
  step.what = run ? NormalStep::What::kReplaceSpaces : NormalStep::What::kReplaceEnds;
  step.least = kind == Kind::kRun ? 2 : 1;
  step.from = kind == Kind::kTail ? "\u2581" : " ";
  step.left = kind != Kind::kTail;
  return step;
}

NormalStep bert_step(const Part& part) {
  NormalStep step;
  step.what = NormalStep::What::kBert;
  step.clean = part["clean_text"].boolean(true);
  step.ideographs = part["handle_chinese_chars"].boolean(true);
  step.lower = part["lowercase"].boolean(true);
  step.accents = part["strip_accents"].boolean(step.lower);
  return step;
}

NormalStep map_step(const Part& part) {
  NormalStep step;
  step.what = NormalStep::What::kCharacterMap;
  const Part map = part["precompiled_charsmap"];
  std::string bytes;
  if (!decode_base64(map.string(), bytes)) map.fail("expected base64");
  // A field of ours, which Hugging Face's tokenizers ignore.
  const auto match = part["longest_match"].boolean(false) ? CharacterMap::Match::kLongest
                                                          : CharacterMap::Match::kClusters;
  step.map = std::make_shared<const CharacterMap>(std::move(bytes), map.where(), match);
  return step;
}

void add_steps(const Part& part, std::vector<NormalStep>& steps) {
  using What = NormalStep::What;
  enum class Kind { kForm, kLowercase, kAccents, kPrepend, kReplace, kStrip, kBert, kMap, kMany };
  const auto kind = part["type"].one_of<Kind>({{"NFC", Kind::kForm},
                                               {"NFD", Kind::kForm},
                                               {"NFKC", Kind::kForm},
                                               {"NFKD", Kind::kForm},
                                               {"Lowercase", Kind::kLowercase},
                                               {"StripAccents", Kind::kAccents},
                                               {"Prepend", Kind::kPrepend},
                                               {"Replace", Kind::kReplace},
                                               {"Strip", Kind::kStrip},
                                               {"BertNormalizer", Kind::kBert},
                                               {"Precompiled", Kind::kMap},
                                               {"Sequence", Kind::kMany}});
  NormalStep step;
  switch (kind) {
    case Kind::kMany:
      for (const Part& one : part["normalizers"].list()) add_steps(one, steps);
      return;
    case Kind::kForm:
      step.form = part["type"].one_of<NormalForm>({{"NFC", NormalForm::kNfc},
                                                   {"NFD", NormalForm::kNfd},
                                                   {"NFKC", NormalForm::kNfkc},
                                                   {"NFKD", NormalForm::kNfkd}});
      break;
    case Kind::kLowercase: step.what = What::kLowercase; break;
    case Kind::kAccents: step.what = What::kStripAccents; break;
    case Kind::kPrepend:
      step.what = What::kPrepend;
      step.to = part["prepend"].string();
      break;
    case Kind::kReplace: step = replace_step(part); break;
    case Kind::kStrip:
      step.what = What::kStrip;
      step.left = part["strip_left"].boolean(true);
      step.right = part["strip_right"].boolean(true);
      break;
    case Kind::kBert: step = bert_step(part); break;
    case Kind::kMap:
      if (part["precompiled_charsmap"].string().empty()) return;
      step = map_step(part);
      break;
  }
  steps.push_back(std::move(step));
}

void add_decoders(const Part& part, std::vector<DecodeStep>& steps) {
  using What = DecodeStep::What;
  enum class Kind { kMetaspace, kByteFallback, kFuse, kStrip, kReplace, kWordPiece, kMany };
  const auto kind = part["type"].one_of<Kind>({{"Metaspace", Kind::kMetaspace},
                                               {"ByteFallback", Kind::kByteFallback},
                                               {"Fuse", Kind::kFuse},
                                               {"Strip", Kind::kStrip},
                                               {"Replace", Kind::kReplace},
                                               {"WordPiece", Kind::kWordPiece},
                                               {"Sequence", Kind::kMany}});
  DecodeStep step;
  const auto text_of = [&](const Part& of) {
    if (of.string().empty()) of.fail("empty string");
    return of.string();
  };
  switch (kind) {
    case Kind::kMany:
      for (const Part& one : part["decoders"].list()) add_decoders(one, steps);
      return;
    case Kind::kMetaspace:
      step.what = What::kMetaspace;
      step.from = text_of(part["replacement"]);
      step.keeps_first = prepend_scheme(part) == Stage::Prefix::kNever;
      break;
    case Kind::kByteFallback: step.what = What::kByteFallback; break;
    case Kind::kFuse: step.what = What::kFuse; break;
    case Kind::kStrip:
      step.what = What::kStrip;
      step.from = text_of(part["content"]);
      step.start = static_cast<std::size_t>(part["start"].id());
      step.stop = static_cast<std::size_t>(part["stop"].id());
      break;
    case Kind::kReplace:
      step.what = What::kReplace;
      step.from = text_of(part["pattern"]["String"]);
      step.to = part["content"].string();
      break;
    case Kind::kWordPiece:
      step.what = What::kWordPiece;
      step.from = part["prefix"].string();
      step.cleanup = part["cleanup"].boolean(true);
      break;
  }
  steps.push_back(std::move(step));
}

}  // namespace

Stage::Prefix prepend_scheme(const Part& part) {
  const Part scheme = part["prepend_scheme"];
  if (scheme.is_null()) {  // in older files
    return part["add_prefix_space"].boolean(true) ? Stage::Prefix::kAlways : Stage::Prefix::kNever;
  }
  return scheme.one_of<Stage::Prefix>({{"always", Stage::Prefix::kAlways},
                                       {"first", Stage::Prefix::kFirst},
                                       {"never", Stage::Prefix::kNever}});
}

void take_normalizer(const Part& part, Definition& definition) {
  if (part.is_null()) return;
  add_steps(part, definition.normal);
  const bool forms = std::all_of(definition.normal.begin(), definition.normal.end(),
                                 [](auto& s) { return s.what == NormalStep::What::kForm; });
  if (!forms) definition.normalizer = part.json().dump();
}

void take_subword_decoder(const Part& part, Subword& subword) {
  if (part.is_null()) return;
  add_decoders(part, subword.decoder);
  subword.decoder_json = part.json().dump();
}

}  // namespace tensorgrad::text
