// BPE: from single characters, the pair of lowest rank merges first, leftmost of equals.
#include <algorithm>
#include <array>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/utf8.hpp"
#include "base/thread/interrupt.hpp"
#include "text/model/byte_pieces.hpp"
#include "text/model/pair_table.hpp"
#include "text/model/vocabulary_model.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

constexpr std::uint32_t kNoRank = Merge{}.rank;

struct Symbol {
  TokenId id = 0;
  std::uint32_t bytes = 0;  // 0: merged into the one before
  std::int32_t previous = -1;
  std::int32_t next = -1;
};

class Bpe final : public VocabularyModel {
 public:
  Bpe(std::vector<VocabEntry> vocab, const std::vector<std::pair<std::string, std::string>>& merges,
      BpeOptions options, const std::string& path)
      : VocabularyModel(std::move(vocab)),
        options_(std::move(options)),
        bytes_([&](const std::string& token) { return find(token); }),
        merges_(merges.size()) {
    if (options_.unk_token) unk_ = find(*options_.unk_token);
    const std::size_t prefix = count_code_points(options_.continuing_subword_prefix);
    for (std::size_t i = 0; i < merges.size(); ++i) add_merge(merges[i], i, prefix, path);
    note_ambiguity();
    plain_ = options_.continuing_subword_prefix.empty() && options_.end_of_word_suffix.empty();
    in_blocks_ = plain_ && !ambiguous_ && !merges_fallback(merges);
    for (std::size_t c = 0; c < ascii_.size(); ++c) {
      ascii_[c] = find(std::string(1, static_cast<char>(c))).value_or(-1);
    }
  }

  bool append_ids(std::string_view word, std::vector<TokenId>& ids) const override {
    if (!in_blocks_) return false;
    const std::size_t before = ids.size();
    const auto whole = options_.ignore_merges ? find(word) : std::nullopt;
    if (whole) ids.push_back(*whole);
    if (whole || append_runs(word, ids)) return true;
    ids.resize(before);
    return false;
  }

  void tokenize(std::string_view word, std::vector<Piece>& out) const override {
    if (word.empty()) return;
    if (options_.ignore_merges) {
      if (const auto id = find(word)) return out.push_back(whole_word(*id, word));
    }
    if (word.size() <= kShort && !ambiguous_) {
      Short symbols;
      read_symbols(word, symbols);
      merge_short(symbols);
      std::uint32_t at = 0;
      for (std::size_t i = 0; i < symbols.size; ++i) add(symbols[i], at, word, out);
      return;
    }
    Long symbols;
    read_symbols(word, symbols);
    merge_long(symbols.items);
    std::uint32_t at = 0;
    for (const Symbol& symbol : symbols.items) {
      if (symbol.bytes != 0) add(symbol, at, word, out);
    }
  }

 private:
  static constexpr std::size_t kShort = 48;

  struct Short {
    std::array<Symbol, kShort + 1> items;
    std::size_t size = 0;
    void push(TokenId id, std::uint32_t bytes) { items[size++] = {id, bytes, -1, -1}; }
    Symbol& operator[](std::size_t i) { return items[i]; }
  };
  struct Long {
    std::vector<Symbol> items;
    void push(TokenId id, std::uint32_t bytes) {
      const auto at = static_cast<std::int32_t>(items.size());
      items.push_back({id, bytes, at - 1, at + 1});
    }
  };

  void add_merge(const std::pair<std::string, std::string>& merge, std::size_t rank,
                 std::size_t prefix, const std::string& path) {
    const auto& [left, right] = merge;
    const auto id_of = [&](const std::string& token) {
      const auto id = find(token);
      if (!id) {
        throw InputError(path,
                         fmt::format("merge {}: the vocabulary lacks {}", rank, escape(token)));
      }
      return *id;
    };
    const TokenId left_id = id_of(left);
    const TokenId right_id = id_of(right);
    if (right.size() < prefix) {
      throw InputError(
          path, fmt::format("merge {}: {} is shorter than the prefix {}", rank, escape(right),
                            escape(options_.continuing_subword_prefix)));
    }
    merges_.set(left_id, right_id,
                {static_cast<std::uint32_t>(rank), id_of(left + right.substr(prefix))});
  }

  /// Two pairs that become the same token: an entry of the heap that is out of date may then apply
  /// to the other pair, which only the heap reproduces.
  void note_ambiguity() {
    std::vector<TokenId> made;
    merges_.each([&](const Merge& merge) { made.push_back(merge.id); });
    std::sort(made.begin(), made.end());
    ambiguous_ = std::adjacent_find(made.begin(), made.end()) != made.end();
  }

  /// Whether a merge joins the unknown token or a byte's: then it reaches over unknown characters.
  bool merges_fallback(const std::vector<std::pair<std::string, std::string>>& merges) const {
    const auto falls_back = [&](const std::string& token) {
      return (options_.unk_token && token == *options_.unk_token) || bytes_.has(*find(token));
    };
    return std::ranges::any_of(merges, [&](const auto& merge) {
      return falls_back(merge.first) || falls_back(merge.second);
    });
  }

  template <typename Symbols>
  void read_symbols(std::string_view word, Symbols& symbols) const {
    std::uint32_t unknown = 0;  // bytes of the unknown characters that wait for their token
    std::string affixed;
    for (std::size_t begin = 0; begin < word.size();) {
      const std::size_t bytes = char_bytes(word, begin);
      std::string_view character = word.substr(begin, bytes);
      if (!plain_) {
        affixed.clear();
        if (begin > 0) affixed += options_.continuing_subword_prefix;
        affixed += character;
        if (begin + bytes == word.size()) affixed += options_.end_of_word_suffix;
        character = affixed;
      }
      begin += bytes;
      const auto id = id_of(character);
      if (id >= 0) {
        if (unknown > 0) symbols.push(*unk_, unknown);
        unknown = 0;
        symbols.push(id, static_cast<std::uint32_t>(bytes));
      } else if (options_.byte_fallback && bytes_.cover(character)) {
        // Unknown characters that wait stay after these, as in the reference; affixes count too.
        for (const char byte : character) push_byte(bytes_[byte], symbols);
      } else if (options_.unk_token) {
        check_unk();
        if (unknown > 0 && !options_.fuse_unk) {
          symbols.push(*unk_, unknown);
          unknown = 0;
        }
        unknown += static_cast<std::uint32_t>(bytes);
      }
    }
    if (unknown > 0) symbols.push(*unk_, unknown);
  }

  TokenId id_of(std::string_view character) const {
    if (character.size() == 1 && static_cast<unsigned char>(character[0]) < 128) {
      return ascii_[static_cast<unsigned char>(character[0])];
    }
    return find(character).value_or(-1);
  }

  template <typename Symbols>
  static void push_byte(TokenId id, Symbols& symbols) {
    symbols.push(id, 1);
  }

  void check_unk() const {
    if (unk_) return;
    throw InputError(fmt::format("the vocabulary lacks the unknown token {}, needed for a word",
                                 escape(*options_.unk_token)));
  }

  /// All pairs are looked at for each merge: the fastest for a few characters.
  void merge_short(Short& symbols) const {
    std::array<Merge, kShort + 1> pairs;
    const auto pair_at = [&](std::size_t i) {
      return i + 1 < symbols.size ? merges_.find(symbols[i].id, symbols[i + 1].id) : Merge{};
    };
    for (std::size_t i = 0; i < symbols.size; ++i) pairs[i] = pair_at(i);
    while (symbols.size > 1) {
      std::size_t best = 0;
      for (std::size_t i = 1; i + 1 < symbols.size; ++i) {
        if (pairs[i].rank < pairs[best].rank) best = i;
      }
      if (pairs[best].rank == kNoRank) return;
      symbols[best].id = pairs[best].id;
      symbols[best].bytes += symbols[best + 1].bytes;
      --symbols.size;
      for (std::size_t i = best + 1; i < symbols.size; ++i) {
        symbols[i] = symbols[i + 1];
        pairs[i] = pairs[i + 1];
      }
      pairs[best] = pair_at(best);
      if (best > 0) pairs[best - 1] = pair_at(best - 1);
    }
  }

  void merge_long(std::vector<Symbol>& symbols) const;

  bool append_runs(std::string_view word, std::vector<TokenId>& ids) const;
  bool append_run(std::string_view run, std::vector<TokenId>& ids) const;
  std::size_t known_end(std::string_view word, std::size_t begin) const;
  bool stay_apart(TokenId left, TokenId right) const;
  void merge_text(std::string_view text, std::vector<TokenId>& out) const;

  static void add(const Symbol& symbol, std::uint32_t& at, std::string_view word,
                  std::vector<Piece>& out) {
    // Affixes that fell back to bytes reach beyond the word.
    const auto size = static_cast<std::uint32_t>(word.size());
    out.push_back({symbol.id, std::min(at, size - 1), std::min(at + symbol.bytes, size)});
    at += symbol.bytes;
  }

  BpeOptions options_;
  BytePieces bytes_;
  PairTable merges_;
  std::optional<TokenId> unk_;
  bool ambiguous_ = false;
  bool plain_ = true;                 // no affixes
  bool in_blocks_ = false;            // long words can be cut
  std::array<TokenId, 128> ascii_{};  // without affixes
};

void Bpe::merge_long(std::vector<Symbol>& symbols) const {
  if (symbols.empty()) return;
  symbols.back().next = -1;
  struct Entry {
    Merge merge;
    std::int32_t at;
    bool operator<(const Entry& other) const {  // the top of the heap is the largest
      if (merge.rank != other.merge.rank) return merge.rank > other.merge.rank;
      return at > other.at;
    }
  };
  std::vector<Entry> entries;
  const auto symbol = [&](std::int32_t at) -> Symbol& {
    return symbols[static_cast<std::size_t>(at)];
  };
  const auto entry_at = [&](std::int32_t at) {
    return Entry{merges_.find(symbol(at).id, symbol(symbol(at).next).id), at};
  };
  for (std::int32_t at = 0; symbol(at).next >= 0; ++at) {
    const Entry entry = entry_at(at);
    if (entry.merge.rank != kNoRank) entries.push_back(entry);
  }
  std::priority_queue<Entry> heap({}, std::move(entries));
  while (!heap.empty()) {
    const Entry top = heap.top();
    heap.pop();
    Symbol& left = symbol(top.at);
    if (left.bytes == 0 || left.next < 0) continue;
    Symbol& right = symbol(left.next);
    // Out of date, unless the pair that stands here now becomes the same token.
    const Merge now = merges_.find(left.id, right.id);
    if (now.rank == kNoRank || now.id != top.merge.id) continue;
    left.id = top.merge.id;
    left.bytes += right.bytes;
    right.bytes = 0;
    left.next = right.next;
    if (left.next >= 0) symbol(left.next).previous = top.at;
    for (const std::int32_t at : {left.previous, top.at}) {
      if (at < 0 || symbol(at).next < 0) continue;
      const Entry entry = entry_at(at);
      if (entry.merge.rank != kNoRank) heap.push(entry);
    }
  }
}

// Long words in blocks. Tokens t1 … tn are those of a text if and only if for each pair of
// neighbours the tokens of their joined text are the two again: the first merge over the end of a
// token would be the same one, at the same turn, in the text of that pair alone. So a block is
// merged together with the last tokens before it, as many as it takes until the token before these
// stays.

constexpr std::size_t kMergeBlock = std::size_t{1} << 16;  // bytes
constexpr std::size_t kMostBack = 16 * kMergeBlock;        // bytes that a block takes from before

/// The end of the characters from `begin` on that are in the vocabulary.
std::size_t Bpe::known_end(std::string_view word, std::size_t begin) const {
  while (begin < word.size()) {
    const std::size_t bytes = char_bytes(word, begin);
    if (id_of(word.substr(begin, bytes)) < 0) break;
    begin += bytes;
  }
  return begin;
}

/// The tokens of a text of known characters, as one piece.
void Bpe::merge_text(std::string_view text, std::vector<TokenId>& out) const {
  Long symbols;
  symbols.items.reserve(text.size());
  read_symbols(text, symbols);
  merge_long(symbols.items);
  out.clear();
  for (const Symbol& symbol : symbols.items) {
    if (symbol.bytes != 0) out.push_back(symbol.id);
  }
}

/// Whether two tokens are those of their joined text.
bool Bpe::stay_apart(TokenId left, TokenId right) const {
  std::vector<TokenId> ids;
  merge_text(std::string(token(left)) + std::string(token(right)), ids);
  return ids == std::vector<TokenId>{left, right};
}

/// Appends the ids of a text of known characters; false if a block would take too much from before.
bool Bpe::append_run(std::string_view run, std::vector<TokenId>& ids) const {
  const std::size_t first = ids.size();
  std::vector<TokenId> merged;
  for (std::size_t done = 0; done < run.size();) {
    throw_if_interrupted();
    std::size_t end = std::min(done + kMergeBlock, run.size());
    while (end < run.size() && (static_cast<unsigned char>(run[end]) & 0xC0) == 0x80) ++end;
    std::size_t begin = done;
    std::size_t kept = ids.size();
    for (std::size_t wanted = 1;; wanted *= 2) {
      for (; kept > first && ids.size() - kept < wanted; --kept)
        begin -= token(ids[kept - 1]).size();
      if (done - begin > kMostBack) return false;
      merge_text(run.substr(begin, end - begin), merged);
      if (kept == first || stay_apart(ids[kept - 1], merged.front())) break;
    }
    ids.resize(kept);
    ids.insert(ids.end(), merged.begin(), merged.end());
    done = end;
  }
  return true;
}

/// Appends the ids of a word; false if it has to be merged as a whole. Unknown characters are as in
/// read_symbols: no merge reaches over their tokens.
bool Bpe::append_runs(std::string_view word, std::vector<TokenId>& ids) const {
  bool unknown = false;  // an unknown token waits
  for (std::size_t begin = 0; begin < word.size();) {
    const std::size_t end = known_end(word, begin);
    if (end > begin) {
      if (std::exchange(unknown, false)) ids.push_back(*unk_);
      if (!append_run(word.substr(begin, end - begin), ids)) return false;
      begin = end;
      continue;
    }
    const std::string_view character = word.substr(begin, char_bytes(word, begin));
    begin += character.size();
    if (options_.byte_fallback && bytes_.cover(character)) {
      for (const char byte : character) ids.push_back(bytes_[byte]);
    } else if (options_.unk_token) {
      check_unk();
      if (unknown && !options_.fuse_unk) ids.push_back(*unk_);
      unknown = true;
    } else {
      return false;  // it vanishes: its neighbours may merge
    }
  }
  if (unknown) ids.push_back(*unk_);
  return true;
}

}  // namespace

std::shared_ptr<const TokenModel> make_bpe(
    std::vector<VocabEntry> vocab, const std::vector<std::pair<std::string, std::string>>& merges,
    const BpeOptions& options, const std::string& path) {
  return std::make_shared<Bpe>(std::move(vocab), merges, options, path);
}

}  // namespace masque::text
