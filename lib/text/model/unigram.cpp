// Unigram: the segmentation of the highest sum of scores (Viterbi), by Hugging Face's rules or by
// SentencePiece's.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "text/byte_pieces.hpp"
#include "text/model/vocabulary_model.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

constexpr double kUnknownPenalty = 10;
constexpr TokenId kNowhere = -2;  // no way leads here yet

std::vector<std::string> texts_of(const std::vector<ScoredPiece>& pieces) {
  std::vector<std::string> out;
  out.reserve(pieces.size());
  for (const ScoredPiece& piece : pieces) out.push_back(piece.text);
  return out;
}

class Unigram final : public VocabularyModel {
 public:
  Unigram(const std::vector<ScoredPiece>& pieces, const UnigramOptions& options)
      : VocabularyModel(numbered(texts_of(pieces))),
        options_(options),
        size_(pieces.size()),
        bytes_([&](const std::string& token) { return find(token); }) {
    scores_.resize(pieces.size());
    const bool hf = options.rules == PieceRules::kHuggingFace;
    float least = std::numeric_limits<float>::max();  // of SentencePiece's normal pieces
    double least_of_all = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      scores_[i] = pieces[i].score;
      least_of_all = std::min(least_of_all, pieces[i].score);
      if (pieces[i].type != PieceType::kNormal) continue;
      least = std::min(least, static_cast<float>(pieces[i].score));
    }
    unknown_score_ = hf ? least_of_all - kUnknownPenalty
                        : static_cast<double>(least - static_cast<float>(kUnknownPenalty));
    std::vector<TrieKey> keys = vocabulary().keys();
    if (!hf) {
      std::erase_if(keys, [&](const TrieKey& key) {
        const PieceType type = pieces[static_cast<std::size_t>(key.value)].type;
        return type != PieceType::kNormal && type != PieceType::kUserDefined;
      });
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (pieces[i].type != PieceType::kUserDefined) continue;
        // libsentencepiece 0.2.3; earlier ones have length · greatest score − 0.1.
        const double bonus = 0.1 * static_cast<double>(pieces[i].text.size() - 1);
        scores_[i] = static_cast<double>(static_cast<float>(bonus));
      }
    }
    trie_ = Trie(keys);
  }

  std::size_t size() const override { return size_; }
  std::size_t count() const override { return size_; }

  void tokenize(std::string_view word, std::vector<Piece>& out) const override {
    if (options_.rules == PieceRules::kHuggingFace) {
      cut<double>(word, out);
    } else {
      cut<float>(word, out);
    }
  }

 private:
  /// The best way to a place in the word. `Score` is what sums are rounded to.
  template <typename Score>
  struct Arrival {
    Score score = 0;
    TokenId id = kNowhere;  // of an unknown character the id of unknown
    std::uint32_t from = 0;
  };

  template <typename Score>
  void cut(std::string_view word, std::vector<Piece>& out) const {
    if (word.empty()) return;
    std::vector<Arrival<Score>> best(word.size() + 1);
    // Says whether this way is the best so far.
    const auto arrive = [&](std::size_t from, std::size_t to, TokenId id, double score) {
      const auto candidate = static_cast<Score>(score + static_cast<double>(best[from].score));
      Arrival<Score>& at = best[to];
      if (at.id != kNowhere && candidate <= at.score) return false;
      at = {candidate, id, static_cast<std::uint32_t>(from)};
      return true;
    };
    const TokenId unknown = options_.unk_id.value_or(-1);
    for (std::size_t begin = 0; begin < word.size();) {
      const std::size_t next = begin + char_bytes(word, begin);
      bool single = false;
      Trie::Node node = Trie::kRoot;
      for (std::size_t i = begin; i < word.size();) {
        node = trie_.child(node, word[i++]);
        if (node == Trie::kNone) break;
        const TokenId id = trie_.value(node);
        if (id < 0) continue;
        arrive(begin, i, id, scores_[static_cast<std::size_t>(id)]);
        single = single || i == next;
      }
      if (!single && arrive(begin, next, unknown, unknown_score_) && unknown < 0) {
        throw InputError("the Unigram model has no unknown token, needed for a word");
      }
      begin = next;
    }
    // Back from the end; the pieces come out in reverse.
    const std::size_t before = out.size();
    for (auto end = static_cast<std::uint32_t>(word.size()); end > 0; end = best[end].from) {
      out.push_back({best[end].id, best[end].from, end});
    }
    std::reverse(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
    if (options_.unk_id) resolve_unknown(word, before, out);
  }

  /// Neighbouring unknown pieces become one, or bytes.
  void resolve_unknown(std::string_view word, std::size_t first, std::vector<Piece>& out) const {
    const TokenId unk = *options_.unk_id;
    const auto is_unknown = [&](const Piece& piece) { return piece.id == unk; };
    const auto begin = out.begin() + static_cast<std::ptrdiff_t>(first);
    if (std::none_of(begin, out.end(), is_unknown)) return;
    const std::vector<Piece> pieces(begin, out.end());
    out.erase(begin, out.end());
    const bool hf = options_.rules == PieceRules::kHuggingFace;
    for (std::size_t i = 0; i < pieces.size();) {
      Piece piece = pieces[i++];
      if (is_unknown(piece)) {
        const bool join = hf || !options_.byte_fallback;
        while (join && i < pieces.size() && is_unknown(pieces[i])) piece.end = pieces[i++].end;
        const std::string_view text = word.substr(piece.begin, piece.end - piece.begin);
        // Hugging Face looks up the joined text once more.
        const auto known = hf ? find(text) : std::nullopt;
        if (known) {
          piece.id = *known;
        } else if (options_.byte_fallback && bytes_.cover(text)) {
          for (const char byte : text) out.push_back({bytes_[byte], piece.begin, piece.end});
          continue;
        }
      }
      out.push_back(piece);
    }
  }

  UnigramOptions options_;
  std::size_t size_;
  BytePieces bytes_;
  std::vector<double> scores_;  // by id
  double unknown_score_ = 0;
  Trie trie_;
};

}  // namespace

std::shared_ptr<const TokenModel> make_unigram(const std::vector<ScoredPiece>& pieces,
                                               const UnigramOptions& options,
                                               const std::string& path) {
  if (options.unk_id &&
      (*options.unk_id < 0 || static_cast<std::size_t>(*options.unk_id) >= pieces.size())) {
    throw InputError(path, fmt::format("unk_id is {}, expected one of the {} pieces",
                                       *options.unk_id, pieces.size()));
  }
  return std::make_shared<Unigram>(pieces, options);
}

}  // namespace masque::text
