// SentencePiece's files as the classes of transformers 5 read them: which rules count, the added
// tokens and the template.
#include "text/convert_spiece.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "text/tokenizer_files.hpp"

namespace masque::text {

namespace {

constexpr std::array kLlamaRoles{ClassRole{"bos", "<s>"}, ClassRole{"eos", "</s>"},
                                 ClassRole{"unk", "<unk>"}};
constexpr std::array kGemmaRoles{ClassRole{"bos", "<bos>"}, ClassRole{"eos", "<eos>"},
                                 ClassRole{"unk", "<unk>"}, ClassRole{"pad", "<pad>"},
                                 ClassRole{"mask", "<mask>"}};

/// Whether the folder lists special tokens: then the class adds none of its own.
bool lists_special_tokens(const FolderConfig& config) {
  const JsonValue* extra = config.settings.find("extra_special_tokens");
  return extra != nullptr && !extra->is(JsonKind::kObject);
}

/// Whether the folder adds the token `content` by its id.
bool adds_by_id(const FolderConfig& config, std::string_view content) {
  if (config.added_ids.find(content) != nullptr) return true;
  const JsonValue* decoder = config.settings.find("added_tokens_decoder");
  return decoder != nullptr && std::ranges::any_of(decoder->members, [&](const JsonMember& item) {
           return item.value.text_of("content") == content;
         });
}

/// Control pieces are found in text, and pieces that the model's author `defined`, by their
/// spelling alone, even those with a role.
void add_file_pieces(const SpieceModel& spiece, bool defined, const FolderConfig& config,
                     std::vector<AddedToken>& tokens) {
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < tokens.size(); ++i) places.emplace(tokens[i].content, i);
  for (const ScoredPiece& piece : spiece.pieces) {
    const bool control = piece.type == PieceType::kControl;
    if (!control && !(defined && piece.type == PieceType::kUserDefined)) continue;
    AddedToken token;
    token.content = piece.text;
    const auto [place, is_new] = places.emplace(piece.text, tokens.size());
    token.special = control || !is_new;
    if (is_new) {
      tokens.push_back(std::move(token));
    } else if (!adds_by_id(config, piece.text)) {
      tokens[place->second] = std::move(token);
    }
  }
}

/// Gives the pieces of `tokens` that the folder adds by id the names that it gives them, unless
/// another piece has the name.
void rename_pieces(const std::vector<AddedToken>& tokens, const std::string& path,
                   std::vector<ScoredPiece>& pieces) {
  std::unordered_set<std::size_t> ids;
  for (const AddedToken& token : tokens) {
    if (token.id >= 0) ids.insert(static_cast<std::size_t>(token.id));
  }
  std::unordered_set<std::string> kept;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!ids.contains(i)) kept.insert(pieces[i].text);
  }
  for (const AddedToken& token : tokens) {
    const auto id = static_cast<std::size_t>(token.id);
    if (token.id < 0 || id >= pieces.size() || kept.contains(token.content)) continue;
    if (pieces[id].text != token.content && pieces[id].type == PieceType::kNormal) {
      throw InputError(path, fmt::format("added_tokens_decoder: {} is '{}', which is '{}' in the "
                                         "model, expected a piece that is no text",
                                         id, escape(token.content), escape(pieces[id].text)));
    }
    pieces[id].text = token.content;
  }
}

/// The special tokens of the class, and those of the file for any model.
FolderConfig class_roles(const SpieceModel& spiece, const FolderConfig& config,
                         const std::string& kind) {
  if (kind == "llama") return with_class_roles(config, kLlamaRoles);
  if (kind == "gemma") return with_class_roles(config, kGemmaRoles);
  if (kind != "sentencepiece") {
    FolderConfig out = with_class_roles(config, spiece_class_roles(kind));
    set_mask_flags(out, kind);
    return out;
  }
  std::vector<ClassRole> own;
  const auto add = [&](std::string_view role, TokenId id) {
    if (id >= 0 && static_cast<std::size_t>(id) < spiece.pieces.size())
      own.push_back({role, spiece.pieces[static_cast<std::size_t>(id)].text});
  };
  add("bos", spiece.bos_id);
  add("eos", spiece.eos_id);
  add("unk", spiece.unk_id);
  return with_class_roles(config, own);
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

TokenizerParts read_class(SpieceModel spiece, const std::string& path, const FolderConfig& folder,
                          const std::string& kind) {
  const bool unigram = spiece.type == SpieceModel::Type::kUnigram;
  const bool any = kind == "sentencepiece";
  const bool pairs = kind == "llama" || kind == "gemma" || kind == "nllb";
  if ((!unigram && spiece.type != SpieceModel::Type::kBpe) || (!any && unigram == pairs)) {
    throw InputError(path, fmt::format("is no {} model, expected one for {}",
                                       any     ? "Unigram or BPE"
                                       : pairs ? "BPE"
                                               : "Unigram",
                                       folder.tokenizer.named));
  }
  FolderConfig config = class_roles(spiece, folder, kind);
  // transformers replaces this list by that of the model.
  const bool ignored =
      std::erase_if(config.settings.members, [](const JsonMember& member) {
        return member.name == "additional_special_tokens" && !member.value.items.empty();
      }) > 0;
  std::vector<AddedToken> tokens;
  add_folder_tokens(config, tokens);
  if (!lists_special_tokens(config)) {
    add_file_pieces(spiece, !any, config, tokens);
    for (std::string& name : class_tokens(spiece, config, kind))
      tokens.push_back({.content = std::move(name), .special = true});
  }
  if (any && spiece.add_dummy_prefix) {
    for (AddedToken& token : tokens)
      token.normalized = token.normalized && !adds_by_id(config, token.content);
  }
  if (any && !unigram) rename_pieces(tokens, config.path, spiece.pieces);
  ClassModel made = any     ? read_any_model(spiece, path, config)
                    : pairs ? read_bpe_class(spiece, path, config, kind)
                            : read_unigram_class(spiece, path, config, kind);
  made.text.post_processor = spiece_processor(finder_with(made.model, tokens), config, kind);
  TokenizerParts parts =
      assemble(parse_json_file(tokenizer_json(made.text), path), made.model, made.model_type, path);
  parts.added = std::move(tokens);
  parts.unknown_as_text = made.unknown;
  parts.kind = kind;
  parts.format = "spiece.model";
  if (ignored) {
    parts.warnings.emplace_back(
        "additional_special_tokens of special_tokens_map.json do not count for a SentencePiece "
        "model, as in transformers");
  }
  parts.summary.emplace_back("read_as", kind);
  return parts;
}

}  // namespace

std::string spiece_processor(const TokenFinder& find, const FolderConfig& config,
                             const std::string& kind) {
  const std::string bos = fmt::format("{}:0", role_of(config, "bos").value_or("<s>"));
  const std::string eos = fmt::format("{}:0", role_of(config, "eos").value_or("</s>"));
  if (kind == "xlm-roberta" || kind == "camembert")
    return template_json(find, {bos, "$A:0", eos}, {bos, "$A:0", eos, eos, "$B:0", eos});
  if (kind == "t5") return template_json(find, {"$A:0", eos}, {"$A:0", eos, "$B:0", eos});
  // ALBERT's constructor sets its template before that of bos and eos, the others after it.
  const auto given = [&](const char* name) { return config.settings.find(name) != nullptr; };
  if (kind == "albert" && (given("add_bos_token") || given("add_eos_token")))
    return bos_eos_json(find, config, false, false);
  if (kind == "albert" || kind == "deberta-v2") return cls_sep_json(find, config);
  if (kind == "xlnet") {
    const std::string sep = role_of(config, "sep").value_or("");
    const std::string cls = role_of(config, "cls").value_or("") + ":2";
    return template_json(find, {"$A:0", sep + ":0", cls},
                         {"$A:0", sep + ":0", "$B:1", sep + ":1", cls});
  }
  if (kind != "mbart" && kind != "mbart50" && kind != "nllb")
    return bos_eos_json(find, config, false, false);
  const std::string source = config.settings.text_of("src_lang");
  const std::string language = !source.empty() ? source : kind == "nllb" ? "eng_Latn" : "en_XX";
  // A language without a token gets the id of the unknown one, as in transformers.
  const TokenFinder known = [&](std::string_view token) {
    const auto id = find(token);
    return id || token != language ? id : find(role_of(config, "unk").value_or("<unk>"));
  };
  const std::string name = language + ":0";
  const bool last =
      kind == "mbart" || (kind == "nllb" && setting(config, "legacy_behaviour", false));
  if (last) return template_json(known, {"$A:0", eos, name}, {"$A:0", "$B:0", eos, name});
  return template_json(known, {name, "$A:0", eos}, {name, "$A:0", "$B:0", eos});
}

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
  return read_class(std::move(spiece), path, config, kind);
}

}  // namespace masque::text
