#include "text/train/pair_trainer.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <unordered_map>

#include "base/types.hpp"
#include "base/utf8.hpp"
#include "text/pair_table.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

using Pair = std::uint64_t;

TokenId left_of(Pair pair) { return static_cast<TokenId>(pair >> 32); }
TokenId right_of(Pair pair) { return static_cast<TokenId>(pair & 0xFFFFFFFF); }

struct Word {
  std::vector<TokenId> symbols;
  std::uint64_t count = 0;
};

/// A pair and how often it occurred when this was put into the queue.
struct Candidate {
  std::uint64_t count = 0;
  Pair pair = 0;
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class Trainer {
 public:
  Trainer(const std::vector<CountedWord>& words, const PairTrainerOptions& options)
      : options_(options) {
    for (const std::string& token : options.special) id_of(token);
    add_alphabet(words);
    for (const CountedWord& word : words) split(word);
    for (std::size_t i = 0; i < words_.size(); ++i) count_pairs(i);
    for (const auto& [pair, count] : counts_) queue_.push({count, pair});
  }

  TrainedVocabulary run() {
    while (out_.tokens.size() < options_.size && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const auto now = counts_.find(best.pair);
      if (now == counts_.end() || now->second == 0) continue;
      if (now->second != best.count) {
        queue_.push({now->second, best.pair});
        continue;
      }
      if (best.count < options_.min_count) break;
      join(best.pair);
    }
    return std::move(out_);
  }

 private:
  TokenId id_of(const std::string& token) {
    const auto [place, added] = ids_.emplace(token, static_cast<TokenId>(out_.tokens.size()));
    if (added) out_.tokens.push_back(token);
    return place->second;
  }

  void add_alphabet(const std::vector<CountedWord>& words) {
    std::map<std::string, std::uint64_t, std::less<>> characters;
    for (const CountedWord& word : words) {
      for (std::size_t i = 0; i < word.text.size(); i += char_bytes(word.text, i))
        characters[word.text.substr(i, char_bytes(word.text, i))] += word.count;
    }
    std::vector<CountedWord> ordered;
    ordered.reserve(characters.size());
    for (const auto& [text, count] : characters) ordered.push_back({text, count});
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const auto& a, const auto& b) { return a.count > b.count; });
    if (ordered.size() > options_.max_alphabet) ordered.resize(options_.max_alphabet);
    std::vector<std::string> kept = options_.alphabet;
    kept.reserve(kept.size() + ordered.size());
    for (const CountedWord& character : ordered) kept.push_back(character.text);
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    // A vocabulary too small for both forms of every character keeps those that begin words.
    for (const std::string& character : kept)
      if (out_.tokens.size() < options_.size) id_of(character);
    if (options_.prefix.empty()) return;
    for (const std::string& character : kept)
      if (out_.tokens.size() < options_.size) id_of(options_.prefix + character);
  }

  void split(const CountedWord& word) {
    if (count_code_points(word.text) > options_.max_characters) return;
    Word out{{}, word.count};
    for (std::size_t i = 0; i < word.text.size(); i += char_bytes(word.text, i)) {
      std::string character = word.text.substr(i, char_bytes(word.text, i));
      if (i > 0) character.insert(0, options_.prefix);
      const auto id = ids_.find(character);
      if (id == ids_.end()) return;
      out.symbols.push_back(id->second);
    }
    if (out.symbols.size() > 1) words_.push_back(std::move(out));
  }

  void count_pairs(std::size_t index) {
    const Word& word = words_[index];
    for (std::size_t i = 0; i + 1 < word.symbols.size(); ++i) {
      const Pair pair = pair_key(word.symbols[i], word.symbols[i + 1]);
      counts_[pair] += word.count;
      auto& where = where_[pair];
      if (where.empty() || where.back() != index) where.push_back(index);
    }
  }

  std::string joined(Pair pair) const {
    const std::string& left = out_.tokens[static_cast<std::size_t>(left_of(pair))];
    const std::string& right = out_.tokens[static_cast<std::size_t>(right_of(pair))];
    return left + right.substr(options_.prefix.size());
  }

  void join(Pair pair) {
    const TokenId merged = id_of(joined(pair));
    out_.merges.emplace_back(out_.tokens[static_cast<std::size_t>(left_of(pair))],
                             out_.tokens[static_cast<std::size_t>(right_of(pair))]);
    const std::vector<std::size_t> places = std::move(where_[pair]);
    where_.erase(pair);
    changed_.clear();
    for (const std::size_t index : places) rewrite(index, pair, merged);
    counts_.erase(pair);
    std::sort(changed_.begin(), changed_.end());
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (const Pair other : changed_) {
      if (const auto now = counts_.find(other); now != counts_.end())
        queue_.push({now->second, other});
    }
  }

  void change(TokenId left, TokenId right, const Word& word, bool more, std::size_t index) {
    const Pair pair = pair_key(left, right);
    auto& count = counts_[pair];
    if (!more) {
      count -= std::min(count, word.count);
      return;
    }
    count += word.count;
    auto& where = where_[pair];
    if (where.empty() || where.back() != index) where.push_back(index);
    changed_.push_back(pair);
  }

  /// Joins a pair in a word, from the left.
  void rewrite(std::size_t index, Pair pair, TokenId merged) {
    Word& word = words_[index];
    auto& symbols = word.symbols;
    bool found = false;
    for (std::size_t i = 0; i + 1 < symbols.size() && !found; ++i)
      found = pair_key(symbols[i], symbols[i + 1]) == pair;
    if (!found) return;  // an entry of before
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
      change(symbols[i], symbols[i + 1], word, false, index);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      const bool here = i + 1 < symbols.size() && pair_key(symbols[i], symbols[i + 1]) == pair;
      symbols[kept++] = here ? merged : symbols[i];
      if (here) ++i;
    }
    symbols.resize(kept);
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
      change(symbols[i], symbols[i + 1], word, true, index);
  }

  const PairTrainerOptions& options_;
  TrainedVocabulary out_;
  std::unordered_map<std::string, TokenId> ids_;
  std::vector<Word> words_;
  std::unordered_map<Pair, std::uint64_t> counts_;
  std::unordered_map<Pair, std::vector<std::size_t>> where_;
  std::vector<Pair> changed_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

TrainedVocabulary train_pairs(const std::vector<CountedWord>& words,
                              const PairTrainerOptions& options) {
  return Trainer(words, options).run();
}

}  // namespace masque::text
