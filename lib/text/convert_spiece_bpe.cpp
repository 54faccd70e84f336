// SentencePiece's files as the classes of transformers 5 with a BPE model read them (NLLB, Llama,
// Gemma), and any model by the settings in its file.
#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/interrupt.hpp"
#include "base/json_writer.hpp"
#include "base/utf8.hpp"
#include "text/convert_spiece.hpp"
#include "text/tokenizer_files.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

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
  std::vector<std::string> steps{replace_json("String", "▁", " ")};
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
    text.normalizer = replace_json("String", " ", "▁");
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

ClassModel read_bpe_class(SpieceModel& spiece, const std::string& path, const FolderConfig& config,
                          const std::string& kind) {
  return kind == "nllb" ? nllb_class(spiece, path, config)
                        : llama_class(spiece, path, config, kind);
}

}  // namespace masque::text
