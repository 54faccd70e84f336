// BPE as libsentencepiece does it: no list of merges, the score of the joined piece decides.
#include <queue>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "text/model/byte_pieces.hpp"
#include "text/model/vocabulary_model.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

struct SpieceSymbol {
  std::uint32_t begin = 0;
  std::uint32_t bytes = 0;  // 0: merged into the one before
  std::int32_t previous = -1;
  std::int32_t next = -1;
  bool frozen = false;  // a user-defined piece
};

/// A pair that could merge.
struct Pair {
  float score;
  std::int32_t left;
  std::int32_t right;
  std::uint32_t bytes;
  bool operator<(const Pair& other) const {  // the top of the heap is the largest
    return score != other.score ? score < other.score : left > other.left;
  }
};

std::vector<VocabEntry> entries_of(const std::vector<ScoredPiece>& pieces) {
  std::vector<VocabEntry> out;
  out.reserve(pieces.size());
  for (const ScoredPiece& piece : pieces) {
    out.emplace_back(piece.text, static_cast<TokenId>(out.size()));
  }
  return out;
}

class SentencePieceBpe final : public VocabularyModel {
 public:
  SentencePieceBpe(const std::vector<ScoredPiece>& pieces, TokenId unk_id, bool byte_fallback)
      : VocabularyModel(entries_of(pieces)),
        unk_(unk_id),
        byte_fallback_(byte_fallback),
        bytes_([&](const std::string& token) { return find(token); }) {
    std::vector<TrieKey> user_defined;
    for (const TrieKey& key : vocabulary().keys()) {
      const ScoredPiece& piece = pieces[static_cast<std::size_t>(key.value)];
      scores_.push_back(static_cast<float>(piece.score));
      types_.push_back(piece.type);
      if (piece.type == PieceType::kUserDefined) user_defined.push_back(key);
      longest_ = std::max(longest_, piece.text.size());
    }
    user_defined_ = Trie(user_defined);
  }

  void tokenize(std::string_view word, std::vector<Piece>& out) const override;

 private:
  using Splits = std::unordered_map<TokenId, std::uint32_t>;

  std::vector<SpieceSymbol> symbols_of(std::string_view word) const;
  /// The piece that joining makes, or −1.
  TokenId joined(std::string_view text) const {
    if (text.size() > longest_) return -1;
    const TokenId id = find(text).value_or(-1);
    if (id < 0) return -1;
    const PieceType type = types_[static_cast<std::size_t>(id)];
    return type == PieceType::kNormal || type == PieceType::kUserDefined ||
                   type == PieceType::kUnused
               ? id
               : -1;
  }
  void take_apart(std::string_view word, std::uint32_t begin, std::uint32_t end,
                  const Splits& splits, std::vector<Piece>& out) const;
  void add(std::string_view word, Piece piece, std::vector<Piece>& out, std::size_t first) const;

  TokenId unk_;
  bool byte_fallback_;
  BytePieces bytes_;
  std::vector<float> scores_;  // by id
  std::vector<PieceType> types_;
  std::size_t longest_ = 0;
  Trie user_defined_;
};

std::vector<SpieceSymbol> SentencePieceBpe::symbols_of(std::string_view word) const {
  std::vector<SpieceSymbol> out;
  for (std::size_t begin = 0; begin < word.size();) {
    throw_if_interrupted();
    std::size_t end = begin;
    Trie::Node node = Trie::kRoot;
    for (std::size_t i = begin; i < word.size();) {
      node = user_defined_.child(node, word[i++]);
      if (node == Trie::kNone) break;
      if (user_defined_.value(node) >= 0) end = i;
    }
    const bool frozen = end > begin;
    if (!frozen) end = begin + char_bytes(word, begin);
    const auto at = static_cast<std::int32_t>(out.size());
    out.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end - begin),
                   at - 1, end < word.size() ? at + 1 : -1, frozen});
    begin = end;
  }
  return out;
}

void SentencePieceBpe::tokenize(std::string_view word, std::vector<Piece>& out) const {
  std::vector<SpieceSymbol> symbols = symbols_of(word);
  const auto symbol = [&](std::int32_t at) -> SpieceSymbol& {
    return symbols[static_cast<std::size_t>(at)];
  };
  std::priority_queue<Pair> heap;
  Splits splits;  // where pieces that may not be used were joined, the last time
  const auto offer = [&](std::int32_t left, std::int32_t right) {
    throw_if_interrupted();
    if (left < 0 || right < 0 || symbol(left).frozen || symbol(right).frozen) return;
    const std::uint32_t bytes = symbol(left).bytes + symbol(right).bytes;
    const TokenId id = joined(word.substr(symbol(left).begin, bytes));
    if (id < 0) return;
    heap.push({scores_[static_cast<std::size_t>(id)], left, right, bytes});
    if (types_[static_cast<std::size_t>(id)] == PieceType::kUnused) splits[id] = symbol(left).bytes;
  };
  for (std::int32_t at = 1; static_cast<std::size_t>(at) < symbols.size(); ++at) offer(at - 1, at);
  while (!heap.empty()) {
    throw_if_interrupted();
    const Pair top = heap.top();
    heap.pop();
    SpieceSymbol& left = symbol(top.left);
    SpieceSymbol& right = symbol(top.right);
    if (left.bytes == 0 || right.bytes == 0 || left.bytes + right.bytes != top.bytes) continue;
    left.bytes = top.bytes;
    left.next = right.next;
    if (right.next >= 0) symbol(right.next).previous = top.left;
    right.bytes = 0;
    offer(left.previous, top.left);
    offer(top.left, left.next);
  }
  const std::size_t first = out.size();
  std::vector<Piece> parts;
  for (const SpieceSymbol& s : symbols) {
    if (s.bytes == 0) continue;
    throw_if_interrupted();
    parts.clear();
    take_apart(word, s.begin, s.begin + s.bytes, splits, parts);
    for (const Piece& part : parts) add(word, part, out, first);
  }
}

void SentencePieceBpe::take_apart(std::string_view word, std::uint32_t begin, std::uint32_t end,
                                  const Splits& splits, std::vector<Piece>& out) const {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> open = {{begin, end}};
  while (!open.empty()) {
    const auto [from, to] = open.back();
    open.pop_back();
    const std::string_view text = word.substr(from, to - from);
    TokenId id = text.size() > longest_ ? unk_ : find(text).value_or(unk_);
    const bool unused = types_[static_cast<std::size_t>(id)] == PieceType::kUnused;
    const auto split = unused ? splits.find(id) : splits.end();
    if (split == splits.end()) {
      out.push_back({unused ? unk_ : id, from, to});  // a single character that may not be used
    } else {
      open.emplace_back(from + split->second, to);
      open.emplace_back(from, from + split->second);
    }
  }
}

void SentencePieceBpe::add(std::string_view word, Piece piece, std::vector<Piece>& out,
                           std::size_t first) const {
  if (piece.id != unk_) return out.push_back(piece);
  const std::string_view text = word.substr(piece.begin, piece.end - piece.begin);
  if (byte_fallback_ && bytes_.cover(text)) {
    for (const char byte : text) out.push_back({bytes_[byte], piece.begin, piece.end});
  } else if (out.size() > first && out.back().id == unk_) {
    out.back().end = piece.end;
  } else {
    out.push_back(piece);
  }
}

}  // namespace

std::shared_ptr<const TokenModel> make_sentencepiece_bpe(const std::vector<ScoredPiece>& pieces,
                                                         TokenId unk_id, bool byte_fallback,
                                                         const std::string& path) {
  if (unk_id < 0 || static_cast<std::size_t>(unk_id) >= pieces.size()) {
    throw InputError(
        path, fmt::format("unk_id is {}, expected one of the {} pieces", unk_id, pieces.size()));
  }
  return std::make_shared<SentencePieceBpe>(pieces, unk_id, byte_fallback);
}

}  // namespace masque::text
