#include "text/train/trained_tokenizer.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/utf8.hpp"
#include "base/thread/interrupt.hpp"
#include "base/types.hpp"
#include "text/model/pair_table.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

// Vocabularies by joining the most frequent pairs: byte-pair encoding, and WordPiece made the same
// way.

/// What train_pairs() makes.
struct PairTrainerOptions {
  std::size_t size = 30000;           ///< tokens, special ones and the alphabet included
  std::vector<std::string> special;   ///< first in the vocabulary
  std::vector<std::string> alphabet;  ///< always in the vocabulary
  std::size_t max_alphabet = 1000;    ///< characters, the most frequent ones; besides `alphabet`
  std::string prefix;                 ///< of pieces inside a word ("##")
  std::uint64_t min_count = 2;        ///< a rarer pair is not joined
  std::size_t max_characters = 100;   ///< longer words are left out
};

/// What train_pairs() made.
struct TrainedVocabulary {
  std::vector<std::string> tokens;                          ///< id = index
  std::vector<std::pair<std::string, std::string>> merges;  ///< best first
};

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
      throw_if_interrupted();
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
      throw_if_interrupted();
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
    throw_if_interrupted();
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
    throw_if_interrupted();
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
    throw_if_interrupted();
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

/// Trains on `words` (as WordCounts::sorted gives them) with `options`. Of equally frequent pairs
/// the one with the smaller ids is joined first: the result depends on the words and their counts
/// alone. A word with a character outside of the alphabet is left out. Special tokens, and
/// `alphabet` with the most frequent characters as far as `size` allows, come first.
TrainedVocabulary train_pairs(const std::vector<CountedWord>& words,
                              const PairTrainerOptions& options) {
  return Trainer(words, options).run();
}

// The files.

constexpr std::string_view kByteLevel =
    R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";

std::string normalizer_json(const TrainOptions& options) {
  if (options.kind == TrainedKind::kByteLevelBpe) return "null";
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "BertNormalizer").member("clean_text", true);
  json.member("handle_chinese_chars", true).key("strip_accents").null();
  json.member("lowercase", options.lowercase).end_object();
  return out;
}

std::string words_json(const TrainOptions& options) {
  return options.kind == TrainedKind::kByteLevelBpe ? std::string(kByteLevel)
                                                    : R"({"type":"BertPreTokenizer"})";
}

/// The characters that stand for the 256 bytes.
std::vector<std::string> byte_alphabet() {
  std::vector<std::string> out;
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    std::string character;
    append_utf8(character, itself ? byte : next++);
    out.push_back(std::move(character));
  }
  return out;
}

std::vector<std::string> special_tokens(const TrainOptions& options) {
  std::vector<std::string> out{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  if (options.kind == TrainedKind::kByteLevelBpe) out = {"<|endoftext|>"};
  for (const std::string& token : options.special)
    if (std::find(out.begin(), out.end(), token) == out.end()) out.push_back(token);
  return out;
}

void add_special(const std::vector<std::string>& special, JsonWriter& json) {
  json.begin_array();
  for (std::size_t i = 0; i < special.size(); ++i) {
    json.begin_object().member("id", i).member("content", special[i]).member("single_word", false);
    json.member("lstrip", false).member("rstrip", false).member("normalized", false);
    json.member("special", true).end_object();
  }
  json.end_array();
}

void add_vocabulary(const std::vector<std::string>& tokens, JsonWriter& json) {
  json.begin_object();
  for (std::size_t i = 0; i < tokens.size(); ++i) json.member(tokens[i], i);
  json.end_object();
}

void add_model(const TrainedVocabulary& vocabulary, TrainedKind kind, JsonWriter& json) {
  json.begin_object();
  if (kind == TrainedKind::kByteLevelBpe) {
    json.raw(
        R"("type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":false)");
    add_vocabulary(vocabulary.tokens, json.key("vocab"));
    json.key("merges").begin_array();
    for (const auto& [left, right] : vocabulary.merges)
      json.begin_array().value(left).value(right).end_array();
    json.end_array();
  } else {
    json.raw(
        R"("type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100)");
    add_vocabulary(vocabulary.tokens, json.key("vocab"));
  }
  json.end_object();
}

/// cls and sep are tokens 2 and 3.
constexpr std::string_view kBertTemplate =
    R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},)"
    R"({"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}}],)"
    R"("pair":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},)"
    R"({"SpecialToken":{"id":"[SEP]","type_id":0}},{"Sequence":{"id":"B","type_id":1}},)"
    R"({"SpecialToken":{"id":"[SEP]","type_id":1}}],"special_tokens":)"
    R"({"[CLS]":{"id":"[CLS]","ids":[2],"tokens":["[CLS]"]},)"
    R"("[SEP]":{"id":"[SEP]","ids":[3],"tokens":["[SEP]"]}}})";

std::string tokenizer_json(const TrainedVocabulary& vocabulary, const TrainOptions& options,
                           const std::vector<std::string>& special) {
  const bool bpe = options.kind == TrainedKind::kByteLevelBpe;
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("version", "1.0").key("truncation").null().key("padding").null();
  add_special(special, json.key("added_tokens"));
  json.raw_member("normalizer", normalizer_json(options));
  json.raw_member("pre_tokenizer", words_json(options));
  json.raw_member("post_processor", bpe ? kByteLevel : kBertTemplate);
  json.raw_member("decoder",
                  bpe ? kByteLevel : R"({"type":"WordPiece","prefix":"##","cleanup":true})");
  add_model(vocabulary, options.kind, json.key("model"));
  json.end_object();
  return out + "\n";
}

std::string config_json(const TrainOptions& options) {
  if (options.kind == TrainedKind::kByteLevelBpe) {
    return R"({"tokenizer_class":"GPT2Tokenizer","add_prefix_space":false,"bos_token":"<|endoftext|>","eos_token":"<|endoftext|>","unk_token":"<|endoftext|>"})"
           "\n";
  }
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("tokenizer_class", "BertTokenizer");
  json.member("do_lower_case", options.lowercase);
  json.raw(
      R"("strip_accents":null,"tokenize_chinese_chars":true,"pad_token":"[PAD]","unk_token":"[UNK]","cls_token":"[CLS]","sep_token":"[SEP]","mask_token":"[MASK]")");
  json.end_object();
  return out + "\n";
}

}  // namespace

void WordCounts::add(std::string_view word, std::uint64_t count) {
  if (const auto found = counts_.find(word); found != counts_.end()) {
    found->second += count;
  } else {
    counts_.emplace(word, count);
  }
}

void WordCounts::prune() {
  while (counts_.size() > max_words_) {
    ++forgotten_;
    std::erase_if(counts_, [this](const auto& entry) { return entry.second <= forgotten_; });
  }
}

std::vector<CountedWord> WordCounts::sorted() const {
  std::vector<CountedWord> words;
  words.reserve(counts_.size());
  for (const auto& [text, count] : counts_) words.push_back({text, count});
  std::sort(words.begin(), words.end(), [](const CountedWord& a, const CountedWord& b) {
    return a.count != b.count ? a.count > b.count : a.text < b.text;
  });
  return words;
}

WordCutter::WordCutter(const TrainOptions& options) {
  const auto parse = [](const std::string& json) { return parse_json_file(json, "tok train"); };
  steps_.normalizer = make_normalizer(parse(normalizer_json(options)), "tok train");
  steps_.pre_tokenizer = make_pre_tokenizer(parse(words_json(options)), "tok train");
}

void WordCutter::cut(std::string_view line,
                     const std::function<void(std::string_view)>& use) const {
  if (line.empty()) return;
  std::vector<AlignedText> words;
  words.push_back(AlignedText::from(line));
  if (steps_.normalizer) steps_.normalizer->apply(words.front());
  if (words.front().text.empty()) return;
  steps_.pre_tokenizer->split(words, true);
  for (const AlignedText& word : words) {
    throw_if_interrupted();
    use(word.text);
  }
}

std::vector<TrainedFile> train_tokenizer(const std::vector<CountedWord>& words,
                                         const TrainOptions& options) {
  const bool bpe = options.kind == TrainedKind::kByteLevelBpe;
  PairTrainerOptions pairs;
  pairs.size = options.size;
  pairs.min_count = options.min_count;
  pairs.special = special_tokens(options);
  pairs.max_alphabet = bpe ? 256 : options.max_alphabet;
  if (bpe) {
    pairs.alphabet = byte_alphabet();
    pairs.max_characters = 1000;
  } else {
    pairs.prefix = "##";
  }
  const TrainedVocabulary vocabulary = train_pairs(words, pairs);
  std::vector<TrainedFile> files;
  if (bpe) {
    std::string vocab;
    JsonWriter json(vocab);
    add_vocabulary(vocabulary.tokens, json);
    files.emplace_back("vocab.json", vocab + "\n");
    std::string merges = "#version: 0.2\n";
    for (const auto& [left, right] : vocabulary.merges)
      merges.append(left).append(" ").append(right).append("\n");
    files.emplace_back("merges.txt", std::move(merges));
  } else {
    std::string lines;
    for (const std::string& token : vocabulary.tokens) lines += token + "\n";
    files.emplace_back("vocab.txt", std::move(lines));
  }
  files.emplace_back("tokenizer_config.json", config_json(options));
  files.emplace_back("tokenizer.json", tokenizer_json(vocabulary, options, pairs.special));
  return files;
}

}  // namespace masque::text
