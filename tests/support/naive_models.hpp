// Second implementations of the models, as plain as their definitions: what random tests and fuzz
// targets compare with. Nothing here is fast.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "text/model/model.hpp"

namespace masque::test {

using text::Piece;
using text::PieceRules;
using text::ScoredPiece;
using text::VocabEntry;

inline std::vector<std::string> characters_of(const std::string& text) {
  std::vector<std::string> out;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80 || out.empty()) out.emplace_back();
    out.back() += c;
  }
  return out;
}

inline Piece piece(TokenId id, std::size_t begin, std::size_t end) {
  return {id, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
}

/// WordPiece by trying every end, longest first; `unk` is in the vocabulary.
inline std::vector<Piece> naive_wordpiece(const std::vector<VocabEntry>& vocab,
                                          const text::WordPieceOptions& options,
                                          const std::string& word) {
  const std::map<std::string, TokenId> ids(vocab.begin(), vocab.end());
  const std::vector<Piece> unknown = {piece(ids.at(options.unk_token), 0, word.size())};
  if (characters_of(word).size() > options.max_input_chars_per_word) {
    const auto whole = ids.find(word);
    if (!options.overlong_may_be_token || whole == ids.end()) return unknown;
    return {piece(whole->second, 0, word.size())};
  }
  std::vector<Piece> out;
  for (std::size_t begin = 0; begin < word.size();) {
    std::size_t end = word.size();
    for (; end > begin; --end) {
      const std::string part =
          (begin > 0 ? options.continuing_subword_prefix : "") + word.substr(begin, end - begin);
      if (const auto found = ids.find(part); found != ids.end()) {
        out.push_back(piece(found->second, begin, end));
        break;
      }
    }
    if (end == begin) return unknown;
    begin = end;
  }
  return out;
}

/// BPE without affixes, unknown tokens or fallback; no two merges make the same token. The pair of
/// lowest rank, leftmost, again and again.
inline std::vector<Piece> naive_bpe(const std::vector<VocabEntry>& vocab,
                                    const std::vector<std::pair<std::string, std::string>>& merges,
                                    const std::string& word) {
  const std::map<std::string, TokenId> ids(vocab.begin(), vocab.end());
  std::map<std::pair<std::string, std::string>, std::size_t> ranks;
  for (std::size_t i = 0; i < merges.size(); ++i) ranks[merges[i]] = i;
  std::vector<std::string> symbols;
  for (const std::string& c : characters_of(word)) {
    if (ids.count(c) > 0) symbols.push_back(c);
  }
  for (;;) {
    std::size_t best = symbols.size();
    std::size_t rank = merges.size();
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found == ranks.end() || found->second >= rank) continue;
      rank = found->second;
      best = i;
    }
    if (best == symbols.size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  std::vector<Piece> out;
  std::size_t at = 0;
  for (const std::string& symbol : symbols) {
    out.push_back(piece(ids.at(symbol), at, at + symbol.size()));
    at += symbol.size();
  }
  return out;
}

/// The score of the best segmentation (Unigram, Hugging Face's rules, no byte fallback), by a
/// search through all ends. Ties do not matter to the score.
inline double naive_unigram_score(const std::vector<ScoredPiece>& pieces, const std::string& word) {
  double least = std::numeric_limits<double>::infinity();
  std::map<std::string, double> scores;
  for (const ScoredPiece& p : pieces) {
    scores[p.text] = p.score;
    least = std::min(least, p.score);
  }
  const std::vector<std::string> characters = characters_of(word);
  std::vector<double> best(characters.size() + 1, -std::numeric_limits<double>::infinity());
  best[0] = 0;
  for (std::size_t end = 1; end <= characters.size(); ++end) {
    std::string part;
    for (std::size_t begin = end; begin-- > 0;) {
      part.insert(0, characters[begin]);
      const auto found = scores.find(part);
      if (found != scores.end()) best[end] = std::max(best[end], best[begin] + found->second);
      // A character that no piece of its own covers may be unknown.
      if (begin + 1 == end && found == scores.end()) {
        best[end] = std::max(best[end], best[begin] + least - 10);
      }
    }
  }
  return best.back();
}

}  // namespace masque::test
