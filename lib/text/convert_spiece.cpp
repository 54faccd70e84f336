// spiece.model as transformers converts it, and by SentencePiece's own rules.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json_writer.hpp"
#include "text/convert.hpp"
#include "text/spiece_model.hpp"
#include "text/tokenizer_files.hpp"

namespace masque::text {

namespace {

bool has(const SpieceModel& spiece, std::size_t id, std::string_view text) {
  return id < spiece.pieces.size() && spiece.pieces[id].text == text;
}

/// The architecture that published models with these first pieces have; empty if none.
std::string guess(const SpieceModel& spiece) {
  if (has(spiece, 3, "<cls>") && has(spiece, 4, "<sep>")) return "xlnet";
  if (has(spiece, 2, "[CLS]") && has(spiece, 3, "[SEP]") && has(spiece, 0, "<pad>"))
    return "albert";
  if (has(spiece, 0, "[PAD]") && has(spiece, 1, "[CLS]")) return "deberta-v2";
  if (has(spiece, 0, "<pad>") && has(spiece, 1, "</s>")) return "t5";
  return {};
}

std::string normalizer_json(const SpieceModel& spiece, const std::string& kind,
                            const FolderConfig& config) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "Sequence").key("normalizers").begin_array();
  const auto replace = [&json](std::string_view kind_of_pattern, std::string_view pattern,
                               std::string_view content) {
    json.begin_object().member("type", "Replace").key("pattern").begin_object();
    json.member(kind_of_pattern, pattern).end_object().member("content", content).end_object();
  };
  const auto strip = [&json](bool left) {
    json.begin_object().member("type", "Strip").member("strip_left", left);
    json.member("strip_right", true).end_object();
  };
  const bool lower = setting(config, "do_lower_case", kind == "albert");
  if (kind == "albert" || kind == "xlnet") {
    replace("String", "``", "\"");
    replace("String", "''", "\"");
    if (!setting(config, "keep_accents", false))
      json.raw(R"({"type":"NFKD"},{"type":"StripAccents"})");
  }
  if (lower && kind != "t5") json.raw(R"({"type":"Lowercase"})");
  if (kind == "deberta-v2") strip(true);
  if (!spiece.precompiled_charsmap.empty()) json.raw(precompiled_json(spiece.precompiled_charsmap));
  if (kind == "t5") strip(false);
  replace("Regex", " {2,}", kind == "t5" ? "\xE2\x96\x81" : " ");
  json.end_array().end_object();
  return out;
}

std::string words_json(const std::string& kind, const FolderConfig& config) {
  std::string out;
  JsonWriter json(out);
  const bool sequence = kind == "deberta-v2";
  if (sequence) {
    json.begin_object().member("type", "Sequence").key("pretokenizers").begin_array();
    if (setting(config, "split_by_punct", false))
      json.raw(R"({"type":"Punctuation","behavior":"Isolated"})");
  }
  json.begin_object().member("type", "Metaspace").member("replacement", "▁");
  json.member("prepend_scheme", setting(config, "legacy", true) ? "always" : "first");
  json.member("split", true).end_object();
  if (sequence) json.end_array().end_object();
  return out;
}

std::string processor_json(const TokenModel& model, const std::string& kind) {
  if (kind == "t5") return template_json(model, "$A:0 </s>:0", "$A:0 </s>:0 $B:0 </s>:0");
  if (kind == "xlnet") {
    return template_json(model, "$A:0 <sep>:0 <cls>:2", "$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2");
  }
  return template_json(model, "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1");
}

std::string all_added_json(const SpieceModel& spiece, const TokenModel& model,
                           const std::string& kind) {
  std::string out;
  JsonWriter items(out);
  const auto add = [&](std::string_view content, bool special, bool lstrip) {
    items.raw(added_json(model, content, special, lstrip));
  };
  for (const ScoredPiece& piece : spiece.pieces) {
    const bool mask = piece.text == "<mask>" || (piece.text == "[MASK]" && kind != "deberta-v2");
    const bool control = piece.type == PieceType::kControl || piece.type == PieceType::kUnknown;
    if (control || mask) add(piece.text, true, mask);
    if (piece.type == PieceType::kUserDefined && !mask)
      add(piece.text, piece.text == "<eop>" || piece.text == "<eod>", false);
  }
  return out;
}

/// T5's sentinels that the file lacks.
std::int64_t extra_ids(const FolderConfig& config) {
  constexpr std::int64_t kMost = 1 << 16;
  const JsonValue* value = config.settings.find("extra_ids");
  if (value == nullptr || value->is(JsonKind::kNull)) return 100;
  const auto number = value->integer();
  if (!number || *number > kMost) {
    throw InputError(config.path, fmt::format("extra_ids: found {}, expected 0 to {}",
                                              escape(value->text), kMost));
  }
  return static_cast<std::int64_t>(*number);
}

/// DeBERTa's [MASK], which its vocabulary lacks, after the others.
void add_mask(std::vector<AddedToken>& tokens) {
  if (std::any_of(tokens.begin(), tokens.end(),
                  [](const AddedToken& token) { return token.content == "[MASK]"; }))
    return;
  AddedToken mask;
  mask.content = "[MASK]";
  mask.special = true;
  tokens.push_back(std::move(mask));
}

}  // namespace

TokenizerParts read_spiece(std::string_view bytes, const std::string& path,
                           const FolderConfig& config, Flavor flavor) {
  SpieceModel spiece = read_spiece_model(bytes, path);
  std::string kind = config.architecture;
  if (kind.empty()) kind = guess(spiece);
  if (flavor == Flavor::kSentencePiece || (flavor == Flavor::kAuto && kind.empty()))
    return read_spiece_by_its_rules(spiece, path);
  if (kind.empty()) {
    throw InputError(path,
                     fmt::format("the architecture of the vocabulary is not known, expected a "
                                 "tokenizer_class in tokenizer_config.json (or {} spm)",
                                 field("flavor")));
  }
  if (kind != "albert" && kind != "xlnet" && kind != "t5" && kind != "deberta-v2")
    return read_spiece_of_class(std::move(spiece), path, config, kind);
  if (kind == "albert" || kind == "xlnet") {
    for (ScoredPiece& piece : spiece.pieces) piece.score -= is_number_comma(piece.text) ? 100 : 0;
  }
  if (kind == "t5") {
    for (std::int64_t i = extra_ids(config) - 1; i >= 0; --i)
      spiece.pieces.push_back({fmt::format("<extra_id_{}>", i), 0, PieceType::kControl});
  }
  const TokenId unknown = spiece.unk_id;
  const bool unigram = spiece.type == SpieceModel::Type::kUnigram;
  const auto model = make_spiece(spiece, PieceRules::kHuggingFace, path);
  const std::string json = tokenizer_json({.normalizer = normalizer_json(spiece, kind, config),
                                           .pre_tokenizer = words_json(kind, config),
                                           .post_processor = processor_json(*model, kind),
                                           .decoder = words_json("", config),
                                           .added_tokens = all_added_json(spiece, *model, kind)});
  TokenizerParts parts =
      assemble(parse_json_file(json, path), model, unigram ? "Unigram" : "BPE", path);
  add_folder_tokens(config, parts.added);
  if (kind == "deberta-v2") add_mask(parts.added);
  if (unigram) parts.unknown_as_text = unknown;
  parts.kind = kind;
  parts.format = "spiece.model";
  parts.summary.emplace_back("read_as", kind);
  return parts;
}

}  // namespace masque::text
