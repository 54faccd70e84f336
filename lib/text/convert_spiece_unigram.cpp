// SentencePiece's Unigram files as the classes of transformers 5 read them: XLM-R, CamemBERT,
// mBART, ALBERT, XLNet, T5, DeBERTa-v2.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "text/convert_spiece.hpp"
#include "text/tokenizer_files.hpp"

namespace masque::text {

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
