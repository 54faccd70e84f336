// spiece.model as transformers converts it, and by SentencePiece's own rules.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "text/convert.hpp"
#include "text/spiece_model.hpp"
#include "text/tokenizer_files.hpp"

namespace masque::text {

namespace {

std::string base64(std::string_view bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k)
      word = word << 8 | (k < n ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) out += k <= n ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

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
  std::string steps;
  const bool lower = setting(config, "do_lower_case", kind == "albert");
  if (kind == "albert" || kind == "xlnet") {
    steps += R"({"type":"Replace","pattern":{"String":"``"},"content":"\""},)"
             R"({"type":"Replace","pattern":{"String":"''"},"content":"\""},)";
    if (!setting(config, "keep_accents", false))
      steps += R"({"type":"NFKD"},{"type":"StripAccents"},)";
  }
  if (lower && kind != "t5") steps += R"({"type":"Lowercase"},)";
  if (kind == "deberta-v2") steps += R"({"type":"Strip","strip_left":true,"strip_right":true},)";
  if (!spiece.precompiled_charsmap.empty()) {
    steps += fmt::format(R"({{"type":"Precompiled","precompiled_charsmap":"{}"}},)",
                         base64(spiece.precompiled_charsmap));
  }
  if (kind == "t5") steps += R"({"type":"Strip","strip_left":false,"strip_right":true},)";
  steps += fmt::format(R"({{"type":"Replace","pattern":{{"Regex":" {{2,}}"}},"content":"{}"}})",
                       kind == "t5" ? "\xE2\x96\x81" : " ");
  return fmt::format(R"({{"type":"Sequence","normalizers":[{}]}})", steps);
}

std::string words_json(const std::string& kind, const FolderConfig& config) {
  std::string metaspace =
      fmt::format(R"({{"type":"Metaspace","replacement":"▁","prepend_scheme":"{}","split":true}})",
                  setting(config, "legacy", true) ? "always" : "first");
  if (kind != "deberta-v2") return metaspace;
  const bool split = setting(config, "split_by_punct", false);
  return fmt::format(R"({{"type":"Sequence","pretokenizers":[{}{}]}})",
                     split ? R"({"type":"Punctuation","behavior":"Isolated"},)" : "", metaspace);
}

std::string processor_json(const Model& model, const std::string& kind) {
  if (kind == "t5") return template_json(model, "$A:0 </s>:0", "$A:0 </s>:0 $B:0 </s>:0");
  if (kind == "xlnet") {
    return template_json(model, "$A:0 <sep>:0 <cls>:2", "$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2");
  }
  return template_json(model, "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1");
}

std::string all_added_json(const SpieceModel& spiece, const Model& model, const std::string& kind) {
  std::string out;
  const auto add = [&](std::string_view content, bool special, bool lstrip) {
    const std::string item = added_json(model, content, special, lstrip);
    if (!item.empty()) out += (out.empty() ? "" : ",") + item;
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

/// DeBERTa's [MASK], which its vocabulary lacks, behind the others.
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
  if (kind != "albert" && kind != "xlnet" && kind != "t5" && kind != "deberta-v2")
    kind = guess(spiece);
  if (flavor == Flavor::kSentencePiece || (flavor == Flavor::kAuto && kind.empty()))
    return read_spiece_by_its_rules(spiece, path);
  if (kind.empty()) {
    throw InputError(path, fmt::format("the vocabulary of no known architecture, expected ALBERT, "
                                       "XLNet, T5 or DeBERTa-v2 (or {} spm)",
                                       field("flavor")));
  }
  if (kind == "albert" || kind == "xlnet") {
    for (ScoredPiece& piece : spiece.pieces) piece.score -= is_number_comma(piece.text) ? 100 : 0;
  }
  if (kind == "t5") {
    for (int i = 99; i >= 0; --i)
      spiece.pieces.push_back({fmt::format("<extra_id_{}>", i), 0, PieceType::kControl});
  }
  const TokenId unknown = spiece.unk_id;
  const bool unigram = spiece.type == SpieceModel::Type::kUnigram;
  const auto model = make_spiece(spiece, PieceRules::kHuggingFace, path);
  const std::string words = words_json(kind, config);
  const std::string json = fmt::format(
      R"({{"normalizer":{},"pre_tokenizer":{},"post_processor":{},"decoder":{},"added_tokens":[{}]}})",
      normalizer_json(spiece, kind, config), words, processor_json(*model, kind),
      words_json("", config), all_added_json(spiece, *model, kind));
  TokenizerParts parts =
      assemble(parse_json_file(json, path), model, unigram ? "Unigram" : "BPE", path);
  add_folder_tokens(config, parts.added);
  if (kind == "deberta-v2") add_mask(parts.added);
  if (unigram) parts.unknown_as_text = unknown;
  parts.format = "spiece.model";
  parts.summary.emplace_back("read_as", kind);
  return parts;
}

}  // namespace masque::text
