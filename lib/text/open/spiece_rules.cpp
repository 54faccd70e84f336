// Tokenizers by the rules of libsentencepiece.
#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/text_splice.hpp"
#include "text/open/convert.hpp"
#include "text/open/tokenizer_files.hpp"
#include "text/step/charsmap.hpp"
#include "text/unicode/space_marks.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

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

/// SentencePiece's Decode: control pieces are nothing, the unknown piece is its surface, pieces of
/// bytes are characters, and the mark in front of the text goes.
class SpieceDecoder final : public Decoder {
 public:
  explicit SpieceDecoder(const SpieceModel& spiece)
      : surface_(spiece.unk_surface),
        drops_space_(spiece.add_dummy_prefix || spiece.remove_extra_whitespaces),
        drops_all_(spiece.remove_extra_whitespaces),
        suffix_(spiece.treat_whitespace_as_suffix) {
    for (const ScoredPiece& piece : spiece.pieces) {
      if (piece.type == PieceType::kControl || piece.type == PieceType::kUnknown)
        types_.emplace(piece.text, piece.type);
      if (piece.type == PieceType::kByte) bytes_.emplace(piece.text, 0);
    }
    for (int byte = 0; byte < 256; ++byte) {
      const auto piece = bytes_.find(fmt::format("<0x{:02X}>", byte));
      if (piece != bytes_.end()) piece->second = static_cast<char>(byte);
    }
  }

  void decode(std::vector<std::string>& tokens) const override {
    std::string text;
    std::string bytes;
    bool dropped = false;  // the mark in front of the text
    for (const std::string& token : tokens) {
      if (const auto byte = bytes_.find(token); byte != bytes_.end()) {
        bytes += byte->second;
        continue;
      }
      flush(bytes, text);
      const auto found = types_.find(token);
      const PieceType type = found == types_.end() ? PieceType::kNormal : found->second;
      if (type == PieceType::kControl) continue;
      if (type == PieceType::kUnknown) {
        text += surface_;
        continue;
      }
      std::string_view rest = token;
      if (text.empty() && !dropped && drops_space_ && !suffix_ && rest.starts_with(kSpaceMark)) {
        rest.remove_prefix(kSpaceMark.size());
        dropped = !drops_all_;
      }
      std::string part(rest);
      replace_all(part, kSpaceMark, " ");
      text += part;
    }
    flush(bytes, text);
    tokens.assign(1, std::move(text));
  }

 private:
  /// Adds the characters of `bytes`; each byte that belongs to none is U+FFFD.
  static void flush(std::string& bytes, std::string& text) {
    std::string_view rest = bytes;
    while (!rest.empty()) {
      char32_t c = 0;
      const int size = decode_utf8(rest, c);
      text += size > 0 ? rest.substr(0, static_cast<std::size_t>(size)) : "\xEF\xBF\xBD";
      rest.remove_prefix(static_cast<std::size_t>(std::max(size, 1)));
    }
    bytes.clear();
  }

  std::string surface_;
  bool drops_space_;
  bool drops_all_;
  bool suffix_;
  std::unordered_map<std::string, PieceType> types_;  ///< of those that are no text
  std::unordered_map<std::string, char> bytes_;
};

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
  const std::string json = tokenizer_json({});
  auto model = make_spiece(spiece, PieceRules::kSentencePiece, path);
  TokenizerParts parts =
      assemble(parse_json_file(json, path), std::move(model), unigram ? "Unigram" : "BPE", path);
  parts.steps.normalizer = normalizer;
  parts.decoder = std::make_shared<SpieceDecoder>(spiece);
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
