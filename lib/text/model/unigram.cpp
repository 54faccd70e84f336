// Unigram: the segmentation of the highest sum of scores (Viterbi), by Hugging Face's rules or by
// SentencePiece's.
#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "text/model/byte_pieces.hpp"
#include "text/model/vocabulary_model.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

constexpr double kUnknownPenalty = 10;
constexpr std::size_t kLongestCharacter = 4;

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
    for (const TrieKey& key : keys) longest_ = std::max(longest_, key.text.size());
    trie_ = Trie(keys);
  }

  std::size_t size() const override { return size_; }
  std::size_t count() const override { return size_; }

  void tokenize(std::string_view word, std::vector<Piece>& out) const override {
    each(word, [&](const Piece& piece) { out.push_back(piece); });
  }

  bool append_ids(std::string_view word, std::vector<TokenId>& ids) const override {
    each(word, [&](const Piece& piece) { ids.push_back(piece.id); });
    return true;
  }

 private:
  /// Calls see(piece) for each token of a word, from left to right.
  template <typename See>
  void each(std::string_view word, const See& see) const {
    std::optional<Piece> unknown;  // neighbours that are, joined
    const auto resolve = [&] {
      if (unknown) resolve_unknown(word, *unknown, see);
      unknown.reset();
    };
    const bool join = is_hf() || !options_.byte_fallback;
    const auto take = [&](const Piece& piece) {
      if (piece.id != options_.unk_id) {
        resolve();
        see(piece);
      } else if (unknown && join) {
        unknown->end = piece.end;
      } else {
        resolve();
        unknown = piece;
      }
    };
    if (is_hf()) {
      cut<double>(word, take);
    } else {
      cut<float>(word, take);
    }
    resolve();
  }

  bool is_hf() const { return options_.rules == PieceRules::kHuggingFace; }

  /// The best segmentation, unknown characters one by one. `Score` is what sums are rounded to.
  template <typename Score, typename See>
  void cut(std::string_view word, const See& see) const {
    if (word.empty()) return;
    // How many bytes the last piece of the best way to a place has; 0: no way leads there yet. Of
    // the scores of those ways only so many are needed as a piece is long.
    std::vector<std::uint32_t> last(word.size() + 1);
    std::vector<Score> scores(std::bit_ceil(std::min(longest_, word.size()) + 1));
    const std::size_t mask = scores.size() - 1;
    // Says whether this way is the best so far.
    const auto arrive = [&](std::size_t from, std::size_t to, double score) {
      const auto candidate = static_cast<Score>(score + static_cast<double>(scores[from & mask]));
      if (last[to] != 0 && candidate <= scores[to & mask]) return false;
      scores[to & mask] = candidate;
      last[to] = static_cast<std::uint32_t>(to - from);
      return true;
    };
    const TokenId unknown = options_.unk_id.value_or(-1);
    SparseLooks looks;
    for (std::size_t begin = 0; begin < word.size();) {
      looks.step();
      const std::size_t next = begin + char_bytes(word, begin);
      bool single = false;
      Trie::Node node = Trie::kRoot;
      for (std::size_t i = begin; i < word.size();) {
        node = trie_.child(node, word[i++]);
        if (node == Trie::kNone) break;
        const TokenId id = trie_.value(node);
        if (id < 0) continue;
        arrive(begin, i, scores_[static_cast<std::size_t>(id)]);
        single = single || i == next;
      }
      if (!single && arrive(begin, next, unknown_score_) && unknown < 0) {
        throw InputError("the Unigram model has no unknown token, needed for a word");
      }
      begin = next;
    }
    turn_round(last);
    for (std::size_t begin = 0; begin < word.size(); begin += last[begin]) {
      looks.step();
      const Trie::Node node = trie_.walk(Trie::kRoot, word.substr(begin, last[begin]));
      const TokenId id = node == Trie::kNone ? -1 : trie_.value(node);
      see({id < 0 ? unknown : id, static_cast<std::uint32_t>(begin),
           static_cast<std::uint32_t>(begin + last[begin])});
    }
  }

  /// From the bytes of the pieces that end at the places of the best way to those of the pieces
  /// that begin there.
  static void turn_round(std::vector<std::uint32_t>& pieces) {
    std::uint32_t bytes = pieces.back();
    for (std::size_t end = pieces.size() - 1; end > 0;) {
      end -= bytes;
      std::swap(pieces[end], bytes);
    }
  }

  /// Neighbours that are unknown become one piece, or bytes.
  template <typename See>
  void resolve_unknown(std::string_view word, Piece piece, const See& see) const {
    const std::string_view text = word.substr(piece.begin, piece.end - piece.begin);
    // Hugging Face looks up the joined text once more.
    const auto known = is_hf() ? find(text) : std::nullopt;
    if (!known && options_.byte_fallback && bytes_.cover(text)) {
      for (const char byte : text) see({bytes_[byte], piece.begin, piece.end});
      return;
    }
    piece.id = known.value_or(piece.id);
    see(piece);
  }

  UnigramOptions options_;
  std::size_t size_;
  BytePieces bytes_;
  std::vector<double> scores_;  // by id
  double unknown_score_ = 0;
  std::size_t longest_ = kLongestCharacter;  // bytes of a piece, or of an unknown character
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
