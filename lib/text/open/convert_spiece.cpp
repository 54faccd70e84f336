// SentencePiece's files as the classes of transformers 5 read them: which rules count, the added
// tokens and the template.
#include "text/open/convert_spiece.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/split.hpp"
#include "base/string/utf8.hpp"
#include "base/thread/interrupt.hpp"
#include "text/open/tokenizer_files.hpp"
#include "text/unicode/space_marks.hpp"
#include "text/unicode/utf8.hpp"

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
  if (const auto roles = spiece_bpe_roles(kind); !roles.empty())
    return with_class_roles(config, roles);
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
  if (has_targets(config, kind)) {
    const std::string processor =
        spiece_processor(finder_with(made.model, tokens), config, kind, true);
    parts.target_processor = make_post_processor(parse_json_file(processor, path), path);
  }
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

bool has_targets(const FolderConfig& config, std::string_view kind) {
  return (kind == "mbart" || kind == "mbart50") && !config.settings.text_of("tgt_lang").empty();
}

std::string spiece_processor(const TokenFinder& find, const FolderConfig& config,
                             const std::string& kind, bool target) {
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
  const std::string source = config.settings.text_of(target ? "tgt_lang" : "src_lang");
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

TokenizerParts read_spiece_class(SpieceModel spiece, const std::string& path,
                                 const FolderConfig& config) {
  return read_class(std::move(spiece), path, config, config.architecture);
}

// SentencePiece's files as the classes of transformers 5 with a BPE model read them (NLLB, Llama,
// Gemma), and any model by the settings in its file.

namespace {

using Merges = std::vector<std::pair<std::string, std::string>>;

/// A pair of pieces and the piece that it makes.
struct RankedMerge {
  double rank = 0;
  std::size_t id = 0;  ///< of the piece that is made
  std::string left;
  std::string right;
};

/// All pairs of pieces that make a piece, each piece once. With `by_score` only normal pieces, by
/// descending score, id and spelling, as transformers builds a model by its own settings; else by
/// id and length of the left part.
Merges piece_merges(const std::vector<ScoredPiece>& pieces, bool by_score,
                    const std::string& path) {
  constexpr double kMostSteps = 1e10;  // that hostile pieces cannot exceed: the square of lengths
  double steps = 0;
  std::unordered_map<std::string_view, std::size_t> ids;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (!by_score || pieces[i].type == PieceType::kNormal) ids[pieces[i].text] = i;
  }
  std::vector<RankedMerge> ranked;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i % 1024 == 0) throw_if_interrupted();
    const std::string_view text = pieces[i].text;
    steps += static_cast<double>(text.size()) * static_cast<double>(text.size());
    if (steps > kMostSteps) throw InputError(path, "the pieces are too long for a BPE model");
    const auto own = ids.find(text);
    if (own == ids.end() || own->second != i) continue;
    for (std::size_t cut = char_bytes(text[0]); cut < text.size(); cut += char_bytes(text[cut])) {
      const std::string_view left = text.substr(0, cut);
      const std::string_view right = text.substr(cut);
      if (ids.contains(left) && ids.contains(right)) {
        ranked.push_back(
            {by_score ? -pieces[i].score : 0, i, std::string(left), std::string(right)});
      }
    }
  }
  if (by_score) {
    std::ranges::sort(ranked, [](const RankedMerge& a, const RankedMerge& b) {
      return std::tie(a.rank, a.id, a.left, a.right) < std::tie(b.rank, b.id, b.left, b.right);
    });
  }
  Merges out;
  out.reserve(ranked.size());
  for (RankedMerge& merge : ranked) out.emplace_back(std::move(merge.left), std::move(merge.right));
  return out;
}

std::vector<VocabEntry> vocabulary_of(const std::vector<ScoredPiece>& pieces) {
  std::vector<std::string> texts;
  texts.reserve(pieces.size());
  for (const ScoredPiece& piece : pieces) texts.push_back(piece.text);
  return numbered(std::move(texts));
}

/// Bytes and marks back to text; `strip`: without the space in front.
std::string bytes_decoder_json(bool bytes, bool strip, bool fuse) {
  std::vector<std::string> steps{replace_json("String", kSpaceMark, " ")};
  if (bytes) steps.emplace_back(R"({"type":"ByteFallback"})");
  if (fuse) steps.emplace_back(R"({"type":"Fuse"})");
  if (strip) steps.emplace_back(R"({"type":"Strip","content":" ","start":1,"stop":0})");
  return sequence_json("decoders", steps);
}

/// Puts NLLB's special pieces in front of those that are left.
void number_nllb(std::vector<ScoredPiece>& pieces, const FolderConfig& config) {
  std::vector<ScoredPiece> out;
  std::unordered_set<std::string> known;
  for (const char* role : {"bos", "pad", "eos", "unk"}) {
    std::string piece = role_of(config, role).value_or("None");  // as transformers writes null
    if (!known.insert(piece).second) {
      throw InputError(config.path, fmt::format("'{}' has two roles of bos, pad, eos and unk, "
                                                "expected four tokens",
                                                escape(piece)));
    }
    out.push_back({std::move(piece)});
  }
  for (ScoredPiece& piece : pieces) {
    if (known.insert(piece.text).second) out.push_back(std::move(piece));
  }
  pieces = std::move(out);
}

ClassModel nllb_class(SpieceModel& spiece, const std::string& path, const FolderConfig& config) {
  const Merges merges = piece_merges(spiece.pieces, false, path);
  number_nllb(spiece.pieces, config);
  ClassModel out;
  out.model_type = "BPE";
  out.model = make_bpe(vocabulary_of(spiece.pieces), merges,
                       {.unk_token = role_of(config, "unk"), .fuse_unk = true}, path);
  out.text = spiece_bpe_steps(spiece.precompiled_charsmap, config, "nllb");
  return out;
}

ClassModel llama_class(const SpieceModel& spiece, const std::string& path,
                       const FolderConfig& config, const std::string& kind) {
  const bool llama = kind == "llama";
  ClassModel out;
  out.model_type = "BPE";
  out.model = make_bpe(vocabulary_of(spiece.pieces), piece_merges(spiece.pieces, false, path),
                       {.unk_token = llama ? std::nullopt : role_of(config, "unk"),
                        .fuse_unk = true,
                        .byte_fallback = true},
                       path);
  out.text = spiece_bpe_steps({}, config, kind);
  return out;
}

/// A regular expression for `texts`, longest first.
std::string any_of_json(std::vector<std::string> texts) {
  std::ranges::stable_sort(texts, [](const std::string& a, const std::string& b) {
    return count_code_points(a) > count_code_points(b);
  });
  std::string pattern;
  for (const std::string& text : texts) {
    if (!pattern.empty()) pattern += '|';
    for (const char c : text) {
      if (std::string_view("\\^$.|?*+()[]{}-&~# \t\n\r\v\f").find(c) != std::string_view::npos)
        pattern += '\\';
      pattern += c;
    }
  }
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "Split").key("pattern").begin_object();
  json.member("Regex", pattern).end_object();
  json.member("behavior", "Isolated").member("invert", false).end_object();
  return out;
}

}  // namespace

TokenizerText spiece_bpe_steps(const std::string& charsmap, const FolderConfig& config,
                               const std::string& kind) {
  TokenizerText text;
  if (kind == "nllb") {
    if (!charsmap.empty()) {
      text.normalizer = sequence_json(
          "normalizers", {precompiled_json(charsmap), replace_json("Regex", " {2,}", " ")});
    }
    text.pre_tokenizer = text.decoder = metaspace_json("always", true);
    return text;
  }
  const bool prefix = kind == "llama" && setting(config, "add_prefix_space", true);
  if (kind == "llama") {
    const bool legacy = setting(config, "legacy", false);
    text.pre_tokenizer = metaspace_json(!prefix ? "never" : legacy ? "always" : "first", false);
  } else {
    text.normalizer = replace_json("String", " ", kSpaceMark);
    text.pre_tokenizer =
        R"({"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious","invert":false})";
  }
  text.decoder = bytes_decoder_json(true, prefix, true);
  return text;
}

ClassModel read_any_model(const SpieceModel& spiece, const std::string& path,
                          const FolderConfig& config) {
  std::vector<std::string> defined;
  for (const ScoredPiece& piece : spiece.pieces) {
    if (piece.type == PieceType::kUserDefined) defined.push_back(piece.text);
  }
  const std::string& unknown = spiece.pieces[static_cast<std::size_t>(spiece.unk_id)].text;
  ClassModel out;
  if (spiece.type == SpieceModel::Type::kUnigram) {
    out.unknown = spiece.unk_id;
    out.model = make_unigram(
        spiece.pieces, {.unk_id = spiece.unk_id, .byte_fallback = spiece.byte_fallback}, path);
  } else {
    out.model_type = "BPE";
    out.model = make_bpe(vocabulary_of(spiece.pieces), piece_merges(spiece.pieces, true, path),
                         {.unk_token = unknown,
                          .fuse_unk = true,
                          .byte_fallback = spiece.byte_fallback,
                          .ignore_merges = !defined.empty()},
                         path);
  }
  const bool legacy = setting(config, "legacy", true);
  std::vector<std::string> steps;
  if (!spiece.precompiled_charsmap.empty())
    steps.push_back(precompiled_json(spiece.precompiled_charsmap));
  if (spiece.remove_extra_whitespaces) {
    steps.push_back(replace_json("Regex", R"(\A +| +\z)", ""));
    steps.push_back(replace_json("Regex", " {2,}", " "));
  }
  if (spiece.escape_whitespaces) steps.push_back(replace_json("String", " ", kSpaceMark));
  if (spiece.add_dummy_prefix && legacy) {
    steps.push_back(replace_json("Regex", fmt::format(R"(\A{})", kSpaceMark),
                                 fmt::format("{0}{0}", kSpaceMark)));
  }
  out.text.normalizer = sequence_json("normalizers", steps);
  std::vector<std::string> words;
  if (spiece.add_dummy_prefix) words.push_back(metaspace_json(legacy ? "always" : "first", false));
  if (!defined.empty()) words.push_back(any_of_json(std::move(defined)));
  if (!words.empty()) out.text.pre_tokenizer = sequence_json("pretokenizers", words);
  out.text.decoder = bytes_decoder_json(spiece.byte_fallback, spiece.add_dummy_prefix,
                                        spiece.add_dummy_prefix || spiece.byte_fallback);
  return out;
}

ClassModel read_bpe_class(SpieceModel& spiece, const std::string& path, const FolderConfig& config,
                          const std::string& kind) {
  return kind == "nllb" ? nllb_class(spiece, path, config)
                        : llama_class(spiece, path, config, kind);
}

// SentencePiece's Unigram files as the classes of transformers 5 read them: XLM-R, CamemBERT,
// mBART, ALBERT, XLNet, T5, DeBERTa-v2.

namespace {

constexpr std::array kAlbertRoles{ClassRole{"bos", "[CLS]"},  ClassRole{"eos", "[SEP]"},
                                  ClassRole{"unk", "<unk>"},  ClassRole{"sep", "[SEP]"},
                                  ClassRole{"pad", "<pad>"},  ClassRole{"cls", "[CLS]"},
                                  ClassRole{"mask", "[MASK]"}};
constexpr std::array kXlnetRoles{ClassRole{"bos", "<s>"},    ClassRole{"eos", "</s>"},
                                 ClassRole{"unk", "<unk>"},  ClassRole{"sep", "<sep>"},
                                 ClassRole{"pad", "<pad>"},  ClassRole{"cls", "<cls>"},
                                 ClassRole{"mask", "<mask>"}};
constexpr std::array kT5Roles{ClassRole{"eos", "</s>"}, ClassRole{"unk", "<unk>"},
                              ClassRole{"pad", "<pad>"}};
constexpr std::array kMbartLanguages{"ar_AR", "cs_CZ", "de_DE", "en_XX", "es_XX", "et_EE", "fi_FI",
                                     "fr_XX", "gu_IN", "hi_IN", "it_IT", "ja_XX", "kk_KZ", "ko_KR",
                                     "lt_LT", "lv_LV", "my_MM", "ne_NP", "nl_XX", "ro_RO", "ru_RU",
                                     "si_LK", "tr_TR", "vi_VN", "zh_CN"};
constexpr std::array kMbart50Languages{
    "af_ZA", "az_AZ", "bn_IN", "fa_IR", "he_IL", "hr_HR", "id_ID", "ka_GE", "km_KH",
    "mk_MK", "ml_IN", "mn_MN", "mr_IN", "pl_PL", "ps_AF", "pt_XX", "sv_SE", "sw_KE",
    "ta_IN", "te_IN", "th_TH", "tl_XX", "uk_UA", "ur_PK", "xh_ZA", "gl_ES", "sl_SI"};
/// NLLB's, with spaces between them.
constexpr std::string_view kNllbLanguages =
    "ace_Arab ace_Latn acm_Arab acq_Arab aeb_Arab afr_Latn ajp_Arab aka_Latn amh_Ethi "
    "apc_Arab arb_Arab ars_Arab ary_Arab arz_Arab asm_Beng ast_Latn awa_Deva ayr_Latn "
    "azb_Arab azj_Latn bak_Cyrl bam_Latn ban_Latn bel_Cyrl bem_Latn ben_Beng bho_Deva "
    "bjn_Arab bjn_Latn bod_Tibt bos_Latn bug_Latn bul_Cyrl cat_Latn ceb_Latn ces_Latn "
    "cjk_Latn ckb_Arab crh_Latn cym_Latn dan_Latn deu_Latn dik_Latn dyu_Latn dzo_Tibt "
    "ell_Grek eng_Latn epo_Latn est_Latn eus_Latn ewe_Latn fao_Latn pes_Arab fij_Latn "
    "fin_Latn fon_Latn fra_Latn fur_Latn fuv_Latn gla_Latn gle_Latn glg_Latn grn_Latn "
    "guj_Gujr hat_Latn hau_Latn heb_Hebr hin_Deva hne_Deva hrv_Latn hun_Latn hye_Armn "
    "ibo_Latn ilo_Latn ind_Latn isl_Latn ita_Latn jav_Latn jpn_Jpan kab_Latn kac_Latn "
    "kam_Latn kan_Knda kas_Arab kas_Deva kat_Geor knc_Arab knc_Latn kaz_Cyrl kbp_Latn "
    "kea_Latn khm_Khmr kik_Latn kin_Latn kir_Cyrl kmb_Latn kon_Latn kor_Hang kmr_Latn "
    "lao_Laoo lvs_Latn lij_Latn lim_Latn lin_Latn lit_Latn lmo_Latn ltg_Latn ltz_Latn "
    "lua_Latn lug_Latn luo_Latn lus_Latn mag_Deva mai_Deva mal_Mlym mar_Deva min_Latn "
    "mkd_Cyrl plt_Latn mlt_Latn mni_Beng khk_Cyrl mos_Latn mri_Latn zsm_Latn mya_Mymr "
    "nld_Latn nno_Latn nob_Latn npi_Deva nso_Latn nus_Latn nya_Latn oci_Latn gaz_Latn "
    "ory_Orya pag_Latn pan_Guru pap_Latn pol_Latn por_Latn prs_Arab pbt_Arab quy_Latn "
    "ron_Latn run_Latn rus_Cyrl sag_Latn san_Deva sat_Beng scn_Latn shn_Mymr sin_Sinh "
    "slk_Latn slv_Latn smo_Latn sna_Latn snd_Arab som_Latn sot_Latn spa_Latn als_Latn "
    "srd_Latn srp_Cyrl ssw_Latn sun_Latn swe_Latn swh_Latn szl_Latn tam_Taml tat_Cyrl "
    "tel_Telu tgk_Cyrl tgl_Latn tha_Thai tir_Ethi taq_Latn taq_Tfng tpi_Latn tsn_Latn "
    "tso_Latn tuk_Latn tum_Latn tur_Latn twi_Latn tzm_Tfng uig_Arab ukr_Cyrl umb_Latn "
    "urd_Arab uzn_Latn vec_Latn vie_Latn war_Latn wol_Latn xho_Latn ydd_Hebr yor_Latn "
    "yue_Hant zho_Hans zho_Hant zul_Latn";
constexpr std::string_view kSentinel = "<extra_id_";

/// How many sentinels T5 adds to the pieces.
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

/// T5's sentinels, the last one first.
std::vector<std::string> sentinels(const FolderConfig& config) {
  std::vector<std::string> out;
  for (std::int64_t i = extra_ids(config) - 1; i >= 0; --i)
    out.push_back(fmt::format("{}{}>", kSentinel, i));
  return out;
}

std::vector<std::string> languages(std::string_view kind) {
  if (kind == "nllb") {
    std::vector<std::string> out;
    for (const std::string_view code : split_terminated(kNllbLanguages, ' '))
      out.emplace_back(code);
    return out;
  }
  std::vector<std::string> out(kMbartLanguages.begin(), kMbartLanguages.end());
  if (kind == "mbart50") out.insert(out.end(), kMbart50Languages.begin(), kMbart50Languages.end());
  return out;
}

bool is_fairseq(std::string_view kind) {
  return kind == "xlm-roberta" || kind == "camembert" || kind.starts_with("mbart");
}

/// The piece of a role; transformers writes "None" where the folder sets the role to null.
std::string piece_of(const FolderConfig& config, std::string_view role) {
  return role_of(config, role).value_or("None");
}

/// Puts the special pieces of the class `kind` in front of all but the first `pieces`, and `tail`
/// after them.
void put_fairseq_pieces(std::vector<ScoredPiece>& pieces, const FolderConfig& config,
                        std::string_view kind, const std::vector<std::string>& tail) {
  const bool camembert = kind == "camembert";
  std::vector<ScoredPiece> out;
  if (camembert) {
    out = {{"<s>NOTUSED"},
           {piece_of(config, "pad")},
           {"</s>NOTUSED"},
           {piece_of(config, "unk")},
           {"<unk>NOTUSED", -100}};
  } else {
    out = {{piece_of(config, kind == "mbart50" ? "cls" : "bos")},
           {piece_of(config, "pad")},
           {piece_of(config, "eos")},
           {piece_of(config, "unk")}};
  }
  const std::size_t dropped = std::min<std::size_t>(camembert ? 1 : 3, pieces.size());
  out.insert(out.end(),
             std::make_move_iterator(pieces.begin() + static_cast<std::ptrdiff_t>(dropped)),
             std::make_move_iterator(pieces.end()));
  for (const std::string& token : tail) out.push_back({token});
  pieces = std::move(out);
}

/// The pieces of the class in its order; returns the unknown one.
TokenId number_pieces(SpieceModel& spiece, const FolderConfig& config, const std::string& kind) {
  std::vector<ScoredPiece>& pieces = spiece.pieces;
  if (kind == "t5") {
    for (std::string& token : sentinels(config))
      pieces.push_back({std::move(token), 0, PieceType::kControl});
    return 2;
  }
  if (kind == "albert") return 1;
  if (!is_fairseq(kind)) {
    const std::string unknown = role_of(config, "unk").value_or("[UNK]");
    const auto named = std::ranges::find_if(pieces, [&](const ScoredPiece& piece) {
      return piece.text == unknown && piece.score == 0;
    });
    const bool found = kind == "deberta-v2" && named != pieces.end();
    return found ? static_cast<TokenId>(named - pieces.begin()) : spiece.unk_id;
  }
  std::vector<std::string> tail;
  if (kind.starts_with("mbart")) tail = languages(kind);
  tail.push_back(piece_of(config, "mask"));
  put_fairseq_pieces(pieces, config, kind, tail);
  return 3;
}

/// The normalizers of the class, in order.
std::vector<std::string> normalizers(const std::string& charsmap, const FolderConfig& config,
                                     const std::string& kind) {
  std::vector<std::string> steps;
  const bool is_xlnet = kind == "xlnet";
  if (kind == "albert" || is_xlnet) {
    steps = {replace_json("String", "``", "\""), replace_json("String", "''", "\"")};
    if (is_xlnet || !setting(config, "keep_accents", false))
      steps.insert(steps.end(), {R"({"type":"NFKD"})", R"({"type":"StripAccents"})"});
  }
  if ((kind == "albert" || is_xlnet || kind == "deberta-v2") &&
      setting(config, "do_lower_case", kind == "albert"))
    steps.emplace_back(R"({"type":"Lowercase"})");
  if (kind == "deberta-v2") {
    steps.insert(steps.end(),
                 {replace_json("Regex", R"(\s{2,}|[\n\r\t])", " "), R"({"type":"NFC"})",
                  R"({"type":"Strip","strip_left":false,"strip_right":true})"});
  } else if (kind != "mbart" && !charsmap.empty()) {
    steps.push_back(precompiled_json(charsmap));
  }
  if (kind == "mbart50") steps.push_back(replace_json("Regex", " {2,}", " "));
  return steps;
}

}  // namespace

std::span<const ClassRole> spiece_class_roles(std::string_view kind) {
  if (kind == "albert") return kAlbertRoles;
  if (kind == "xlnet") return kXlnetRoles;
  if (kind == "t5") return kT5Roles;
  if (kind == "deberta-v2") return kDebertaRoles;
  if (kind == "mbart50") return std::span(kFairseqRoles).subspan(1);  // it has no begin token
  if (is_fairseq(kind) || kind == "nllb") return kFairseqRoles;
  return {};
}

std::span<const ClassRole> spiece_bpe_roles(std::string_view kind) {
  if (kind == "llama") return kLlamaRoles;
  if (kind == "gemma") return kGemmaRoles;
  return {};
}

TokenizerText unigram_steps(const std::string& charsmap, const FolderConfig& config,
                            const std::string& kind) {
  TokenizerText text;
  const bool prefix = setting(config, "add_prefix_space", true) || kind.starts_with("mbart") ||
                      kind == "t5" || kind == "xlnet";
  const std::string without = kind == "deberta-v2" ? "first" : "never";
  const std::string words = metaspace_json(prefix ? "always" : without, true);
  const std::vector<std::string> steps = normalizers(charsmap, config, kind);
  if (!steps.empty()) text.normalizer = sequence_json("normalizers", steps);
  std::vector<std::string> cuts;
  if (kind == "deberta-v2") {
    if (setting(config, "split_by_punct", false))
      cuts.emplace_back(R"({"type":"Punctuation","behavior":"Isolated"})");
  } else if (kind != "mbart50") {
    cuts.emplace_back(R"({"type":"WhitespaceSplit"})");
  }
  cuts.push_back(words);
  text.pre_tokenizer = cuts.size() == 1 ? words : sequence_json("pretokenizers", cuts);
  text.decoder = words;
  return text;
}

ClassModel read_unigram_class(SpieceModel& spiece, const std::string& path,
                              const FolderConfig& config, const std::string& kind) {
  ClassModel out;
  out.unknown = number_pieces(spiece, config, kind);
  if (static_cast<std::size_t>(*out.unknown) >= spiece.pieces.size()) {
    throw InputError(path, fmt::format("{} pieces, expected an unknown one with id {}",
                                       spiece.pieces.size(), *out.unknown));
  }
  out.model = make_unigram(spiece.pieces, {.unk_id = *out.unknown}, path);
  out.text = unigram_steps(spiece.precompiled_charsmap, config, kind);
  return out;
}

std::vector<std::string> class_tokens(const SpieceModel& spiece, const FolderConfig& config,
                                      const std::string& kind) {
  if (kind.starts_with("mbart")) return languages(kind);
  // In transformers the pieces of a file are the list that replaces NLLB's own.
  if (kind == "nllb" && spiece.pieces.empty()) return languages(kind);
  if (kind != "t5") return {};
  const auto own = std::ranges::count_if(spiece.pieces, [](const ScoredPiece& piece) {
    const bool added = piece.type == PieceType::kControl || piece.type == PieceType::kUserDefined;
    return added && piece.text.find(kSentinel) != std::string::npos;
  });
  const std::int64_t wanted = extra_ids(config);
  if (own == 0) return sentinels(config);
  if (wanted > 0 && wanted != own) {
    throw InputError(config.path, fmt::format("extra_ids: found {}, expected 0 or {}, the number "
                                              "of sentinels in the model",
                                              wanted, own));
  }
  return {};
}

}  // namespace masque::text
