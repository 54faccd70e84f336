// Tokenizers by the rules of libsentencepiece.
#include <algorithm>

#include "base/error.hpp"
#include "text/charsmap.hpp"
#include "text/convert.hpp"
#include "text/tokenizer_files.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // ▁

/// SentencePiece's Normalizer: replacements, spaces, the mark in front.
class SpieceNormalizer final : public Normalizer {
 public:
  SpieceNormalizer(const SpieceModel& spiece, const std::string& path)
      : charsmap_(spiece.precompiled_charsmap, path),
        remove_spaces_(spiece.remove_extra_whitespaces),
        prefix_(spiece.add_dummy_prefix),
        suffix_(spiece.treat_whitespace_as_suffix),
        space_(spiece.escape_whitespaces ? kSpaceMark : " ") {
    for (const ScoredPiece& piece : spiece.pieces)
      if (piece.type == PieceType::kUserDefined) symbols_.add(piece.text, 0);
  }

  void apply(AlignedText& text) const override {
    AlignedText out;
    const std::string_view in = text.text;
    bool after_space = remove_spaces_;
    bool started = false;
    TextTrie::Match symbol;
    bool more = symbols_.find(in, 0, symbol);
    for (std::size_t i = 0; i < in.size();) {
      if (more && symbol.begin < i) more = symbols_.find(in, i, symbol);
      std::size_t size = char_bytes(in[i]);
      std::string_view now = in.substr(i, size);
      if (more && symbol.begin == i) {
        size = symbol.end - i;
        now = in.substr(i, size);
      } else if (const auto match = charsmap_.longest(in.substr(i))) {
        size = match->length;
        now = match->replacement;
      }
      const Span span{text.origin[i].begin, text.origin[i + size - 1].end};
      i += size;
      if (!started) {
        if (remove_spaces_ && now == " ") continue;
        started = true;
        if (prefix_ && !suffix_) add(out, space_, start(span));
      }
      if (after_space) now.remove_prefix(std::min(now.find_first_not_of(' '), now.size()));
      if (!now.empty()) {
        for (const char c : now) add(out, c == ' ' ? space_ : std::string_view(&c, 1), span);
        after_space = now.ends_with(' ');
      }
      if (!remove_spaces_) after_space = false;
    }
    while (remove_spaces_ && out.text.ends_with(space_) && !out.text.empty())
      cut(out, out.text.size() - space_.size());
    if (suffix_ && prefix_ && started && !out.text.empty())
      add(out, space_, {out.origin.back().end, out.origin.back().end});
    text = std::move(out);
  }

 private:
  static Span start(const Span& span) { return {span.begin, span.begin}; }

  static void add(AlignedText& out, std::string_view bytes, Span span) {
    out.text += bytes;
    out.origin.insert(out.origin.end(), bytes.size(), span);
  }

  static void cut(AlignedText& out, std::size_t size) {
    out.text.resize(size);
    out.origin.resize(size);
  }

  Charsmap charsmap_;
  TextTrie symbols_;
  bool remove_spaces_;
  bool prefix_;
  bool suffix_;
  std::string_view space_;
};

/// The mark back to a space, and bytes back to characters.
std::string decoder_json(bool bytes) {
  if (!bytes) return R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})";
  return R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},)"
         R"({"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})";
}

}  // namespace

TokenizerParts read_spiece_by_its_rules(const SpieceModel& spiece, const std::string& path) {
  const TokenId unknown = spiece.unk_id;
  const auto normalizer = std::make_shared<SpieceNormalizer>(spiece, path);
  std::vector<AddedToken> added;
  for (std::size_t i = 0; i < spiece.pieces.size(); ++i) {
    const ScoredPiece& piece = spiece.pieces[i];
    if (piece.type != PieceType::kControl && piece.type != PieceType::kUnknown) continue;
    AddedToken token;
    token.id = static_cast<TokenId>(i);
    token.content = piece.text;
    token.special = true;
    token.found = false;
    added.push_back(std::move(token));
  }
  const bool unigram = spiece.type == SpieceModel::Type::kUnigram;
  const std::string json = tokenizer_json({.decoder = decoder_json(spiece.byte_fallback)});
  auto model = make_spiece(spiece, PieceRules::kSentencePiece, path);
  TokenizerParts parts =
      assemble(parse_json_file(json, path), std::move(model), unigram ? "Unigram" : "BPE", path);
  parts.steps.normalizer = normalizer;
  parts.added = std::move(added);
  parts.unknown_as_text = unknown;
  parts.word_mark = WordMark::kSpace;
  parts.word_prefix = kSpaceMark;
  parts.format = "spiece.model";
  parts.summary.emplace_back("read_as", "SentencePiece");
  parts.make_fast = [](const Steps& steps, bool) { return make_plain_encoder(steps); };
  return parts;
}

}  // namespace masque::text
