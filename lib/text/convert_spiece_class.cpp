// SentencePiece's files as the classes of transformers 5 read them: XLM-R, CamemBERT, mBART, NLLB,
// Llama, Gemma, and any model by the settings in its file.
#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/interrupt.hpp"
#include "base/json_writer.hpp"
#include "base/utf8.hpp"
#include "text/convert.hpp"
#include "text/spiece_model.hpp"
#include "text/tokenizer_files.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

constexpr std::array kFairseqRoles{ClassRole{"bos", "<s>"},    ClassRole{"eos", "</s>"},
                                   ClassRole{"unk", "<unk>"},  ClassRole{"sep", "</s>"},
                                   ClassRole{"pad", "<pad>"},  ClassRole{"cls", "<s>"},
                                   ClassRole{"mask", "<mask>"}};
constexpr std::array kLlamaRoles{ClassRole{"bos", "<s>"}, ClassRole{"eos", "</s>"},
                                 ClassRole{"unk", "<unk>"}};
constexpr std::array kGemmaRoles{ClassRole{"bos", "<bos>"}, ClassRole{"eos", "<eos>"},
                                 ClassRole{"unk", "<unk>"}, ClassRole{"pad", "<pad>"},
                                 ClassRole{"mask", "<mask>"}};
constexpr std::array kMbartLanguages{"ar_AR", "cs_CZ", "de_DE", "en_XX", "es_XX", "et_EE", "fi_FI",
                                     "fr_XX", "gu_IN", "hi_IN", "it_IT", "ja_XX", "kk_KZ", "ko_KR",
                                     "lt_LT", "lv_LV", "my_MM", "ne_NP", "nl_XX", "ro_RO", "ru_RU",
                                     "si_LK", "tr_TR", "vi_VN", "zh_CN"};
constexpr std::array kMbart50Languages{
    "af_ZA", "az_AZ", "bn_IN", "fa_IR", "he_IL", "hr_HR", "id_ID", "ka_GE", "km_KH",
    "mk_MK", "ml_IN", "mn_MN", "mr_IN", "pl_PL", "ps_AF", "pt_XX", "sv_SE", "sw_KE",
    "ta_IN", "te_IN", "th_TH", "tl_XX", "uk_UA", "ur_PK", "xh_ZA", "gl_ES", "sl_SI"};

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
  std::vector<std::string> steps{replace_json("String", "▁", " ")};
  if (bytes) steps.emplace_back(R"({"type":"ByteFallback"})");
  if (fuse) steps.emplace_back(R"({"type":"Fuse"})");
  if (strip) steps.emplace_back(R"({"type":"Strip","content":" ","start":1,"stop":0})");
  return sequence_json("decoders", steps);
}

/// What is read of a file, before the added tokens and the template.
struct ClassModel {
  std::shared_ptr<const TokenModel> model;
  std::string model_type = "Unigram";
  std::optional<TokenId> unknown;  ///< of Unigram
  TokenizerText text;              ///< without template and added tokens
};

/// Puts fairseq's special pieces in front of all but the first `dropped` pieces, and `tail` and the
/// mask token behind them.
void renumber(std::vector<ScoredPiece>& pieces, const FolderConfig& config, bool camembert,
              const std::vector<std::string>& tail) {
  const auto role = [&](const char* name, const char* usual) {
    return role_of(config, name).value_or(usual);
  };
  std::vector<ScoredPiece> out;
  if (camembert) {
    out = {{"<s>NOTUSED"},
           {role("pad", "<pad>")},
           {"</s>NOTUSED"},
           {role("unk", "<unk>")},
           {"<unk>NOTUSED", -100}};
  } else {
    out = {{role("bos", "<s>")},
           {role("pad", "<pad>")},
           {role("eos", "</s>")},
           {role("unk", "<unk>")}};
  }
  const std::size_t dropped = std::min<std::size_t>(camembert ? 1 : 3, pieces.size());
  out.insert(out.end(),
             std::make_move_iterator(pieces.begin() + static_cast<std::ptrdiff_t>(dropped)),
             std::make_move_iterator(pieces.end()));
  for (const std::string& token : tail) out.push_back({token});
  pieces = std::move(out);
}

ClassModel unigram_class(SpieceModel& spiece, const std::string& path, const FolderConfig& config,
                         const std::string& kind) {
  std::vector<std::string> tail;
  if (kind == "mbart" || kind == "mbart50")
    tail.insert(tail.end(), kMbartLanguages.begin(), kMbartLanguages.end());
  if (kind == "mbart50")
    tail.insert(tail.end(), kMbart50Languages.begin(), kMbart50Languages.end());
  tail.push_back(role_of(config, "mask").value_or("<mask>"));
  renumber(spiece.pieces, config, kind == "camembert", tail);
  ClassModel out;
  out.unknown = 3;
  out.model = make_unigram(spiece.pieces, {.unk_id = 3}, path);
  const std::string charsmap = precompiled_json(spiece.precompiled_charsmap);
  const bool prefix = setting(config, "add_prefix_space", true) || kind.starts_with("mbart");
  const std::string words = metaspace_json(prefix ? "always" : "never", true);
  if (kind == "mbart50") {
    std::vector<std::string> steps;
    if (charsmap != "null") steps.push_back(charsmap);
    steps.push_back(replace_json("Regex", " {2,}", " "));
    out.text.normalizer = sequence_json("normalizers", steps);
    out.text.pre_tokenizer = words;
  } else {
    if (kind != "mbart") out.text.normalizer = charsmap;
    out.text.pre_tokenizer =
        sequence_json("pretokenizers", {R"({"type":"WhitespaceSplit"})", words});
  }
  out.text.decoder = words;
  return out;
}

ClassModel nllb_class(SpieceModel& spiece, const std::string& path, const FolderConfig& config) {
  const Merges merges = piece_merges(spiece.pieces, false, path);
  renumber(spiece.pieces, config, false, {});
  ClassModel out;
  out.model_type = "BPE";
  out.model = make_bpe(vocabulary_of(spiece.pieces), merges,
                       {.unk_token = role_of(config, "unk"), .fuse_unk = true}, path);
  if (!spiece.precompiled_charsmap.empty()) {
    out.text.normalizer = sequence_json(
        "normalizers",
        {precompiled_json(spiece.precompiled_charsmap), replace_json("Regex", " {2,}", " ")});
  }
  out.text.pre_tokenizer = metaspace_json("always", true);
  out.text.decoder = out.text.pre_tokenizer;
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
  const bool prefix = llama && setting(config, "add_prefix_space", true);
  if (llama) {
    const bool legacy = setting(config, "legacy", false);
    out.text.pre_tokenizer = metaspace_json(!prefix ? "never" : legacy ? "always" : "first", false);
  } else {
    out.text.normalizer = replace_json("String", " ", "▁");
    out.text.pre_tokenizer =
        R"({"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious","invert":false})";
  }
  out.text.decoder = bytes_decoder_json(true, prefix, true);
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

ClassModel any_model(const SpieceModel& spiece, const std::string& path,
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
  if (spiece.escape_whitespaces) steps.push_back(replace_json("String", " ", "▁"));
  if (spiece.add_dummy_prefix && legacy) steps.push_back(replace_json("Regex", R"(\A▁)", "▁▁"));
  out.text.normalizer = sequence_json("normalizers", steps);
  std::vector<std::string> words;
  if (spiece.add_dummy_prefix) words.push_back(metaspace_json(legacy ? "always" : "first", false));
  if (!defined.empty()) words.push_back(any_of_json(std::move(defined)));
  if (!words.empty()) out.text.pre_tokenizer = sequence_json("pretokenizers", words);
  out.text.decoder = bytes_decoder_json(spiece.byte_fallback, spiece.add_dummy_prefix,
                                        spiece.add_dummy_prefix || spiece.byte_fallback);
  return out;
}

/// Control pieces are found in text, and pieces that the model's author `defined`.
void add_file_pieces(const SpieceModel& spiece, bool defined, std::vector<AddedToken>& tokens) {
  std::unordered_set<std::string> known;
  for (const AddedToken& token : tokens) known.insert(token.content);
  for (const ScoredPiece& piece : spiece.pieces) {
    const bool control = piece.type == PieceType::kControl;
    if (!control && !(defined && piece.type == PieceType::kUserDefined)) continue;
    if (!known.insert(piece.text).second) continue;
    AddedToken token;
    token.content = piece.text;
    token.special = control;
    tokens.push_back(std::move(token));
  }
}

/// The template; `find` knows all tokens.
std::string class_template(const TokenFinder& find, const FolderConfig& config,
                           const std::string& kind) {
  const std::string bos = fmt::format("{}:0", role_of(config, "bos").value_or("<s>"));
  const std::string eos = fmt::format("{}:0", role_of(config, "eos").value_or("</s>"));
  if (kind == "xlm-roberta" || kind == "camembert")
    return template_json(find, {bos, "$A:0", eos}, {bos, "$A:0", eos, eos, "$B:0", eos});
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
  const bool last = kind == "mbart" || setting(config, "legacy_behaviour", false);
  if (last) return template_json(known, {"$A:0", eos, name}, {"$A:0", "$B:0", eos, name});
  return template_json(known, {name, "$A:0", eos}, {name, "$A:0", "$B:0", eos});
}

/// The special tokens of the class, and those of the file for any model.
FolderConfig class_roles(const SpieceModel& spiece, const FolderConfig& config,
                         const std::string& kind) {
  if (kind == "llama") return with_class_roles(config, kLlamaRoles);
  if (kind == "gemma") return with_class_roles(config, kGemmaRoles);
  if (kind != "sentencepiece") {
    FolderConfig out = with_class_roles(config, kFairseqRoles);
    out.mask_takes_space = kind != "xlm-roberta";
    out.mask_is_normalized = kind == "nllb";
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

}  // namespace

TokenizerParts read_spiece_of_class(SpieceModel spiece, const std::string& path,
                                    const FolderConfig& folder, const std::string& kind) {
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
  const FolderConfig config = class_roles(spiece, folder, kind);
  std::vector<AddedToken> tokens;
  add_folder_tokens(config, tokens);
  add_file_pieces(spiece, !any, tokens);
  const auto special = [](const char* name) {
    AddedToken token;
    token.content = name;
    token.special = true;
    return token;
  };
  if (kind.starts_with("mbart"))
    std::ranges::transform(kMbartLanguages, std::back_inserter(tokens), special);
  if (kind == "mbart50")
    std::ranges::transform(kMbart50Languages, std::back_inserter(tokens), special);
  if (any && spiece.add_dummy_prefix) {
    for (AddedToken& token : tokens) token.normalized = false;
  }
  ClassModel made = any              ? any_model(spiece, path, config)
                    : kind == "nllb" ? nllb_class(spiece, path, config)
                    : pairs          ? llama_class(spiece, path, config, kind)
                                     : unigram_class(spiece, path, config, kind);
  made.text.post_processor = class_template(finder_with(made.model, tokens), config, kind);
  TokenizerParts parts =
      assemble(parse_json_file(tokenizer_json(made.text), path), made.model, made.model_type, path);
  parts.added = std::move(tokens);
  parts.unknown_as_text = made.unknown;
  parts.kind = kind;
  parts.format = "spiece.model";
  parts.summary.emplace_back("read_as", kind);
  return parts;
}

}  // namespace masque::text
