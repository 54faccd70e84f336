// Models of Hugging Face's tokenizer.json (WordPiece, BPE, Unigram, WordLevel), one file each under
// text/model/, and the simplest tokenizers: characters, bytes, whole words.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.hpp"
#include "base/types.hpp"

namespace masque::text {

/// A token of a word: its id, and the bytes of the word that it covers.
struct Piece {
  TokenId id = 0;           ///< of the token
  std::uint32_t begin = 0;  ///< first byte of the word
  std::uint32_t end = 0;    ///< one past the last byte
  bool operator==(const Piece&) const = default;
};

/// A vocabulary and the way in which a word is cut into its tokens. Immutable and thread-safe.
class TokenModel {
 public:
  TokenModel() = default;
  TokenModel(const TokenModel&) = delete;
  TokenModel& operator=(const TokenModel&) = delete;
  virtual ~TokenModel() = default;

  /// Appends the tokens of one `word` to `out` (the word is the output of the pre-tokenizer, valid
  /// UTF-8). Time O(length · log length) at most, for any word. Throws InputError if a token is
  /// needed that the vocabulary lacks. Spans are not empty; several tokens may share one (byte
  /// fallback). An empty word has no tokens.
  virtual void tokenize(std::string_view word, std::vector<Piece>& out) const = 0;

  /// Appends the ids of the tokens of one word, which may be long, with little memory besides them.
  /// False, and nothing appended, if the model has no way to do so.
  virtual bool append_ids(std::string_view /*word*/, std::vector<TokenId>& /*ids*/) const {
    return false;
  }

  /// Number of ids; ids without a token (gaps) count.
  virtual std::size_t size() const = 0;
  /// Number of tokens: Hugging Face's get_vocab_size. Less than size() if there are gaps.
  virtual std::size_t count() const { return size(); }
  /// The id of `token`; nothing if it has none.
  virtual std::optional<TokenId> find(std::string_view token) const = 0;
  /// The token of `id`; empty for a gap or an id out of range. Lives as long as the model.
  virtual std::string_view token(TokenId id) const = 0;
};

/// A token and its id, as vocab.json lists them. Tokens differ; ids are unique and ≥ 0.
using VocabEntry = std::pair<std::string, TokenId>;

/// The fields of WordPiece.
struct WordPieceOptions {
  std::string unk_token = "[UNK]";               ///< of words that cannot be cut
  std::string continuing_subword_prefix = "##";  ///< of tokens inside a word
  std::size_t max_input_chars_per_word = 100;    ///< in code points; Google's original has 200
  /// A word over the limit that is a token is that token (bert4keras, whose limit is 200), else it
  /// is unknown (Hugging Face, Google).
  bool overlong_may_be_token = false;
};

/// The fields of BPE. Prefix and suffix are put around each character of a word before it is looked
/// up.
struct BpeOptions {
  std::optional<std::string> unk_token;   ///< without it unknown characters vanish
  std::string continuing_subword_prefix;  ///< of all characters but the first of a word
  std::string end_of_word_suffix;         ///< of the last character of a word
  bool fuse_unk = false;                  ///< neighbouring unknown characters are one unknown token
  /// Unknown characters become the pieces of their bytes, if all exist.
  bool byte_fallback = false;
  bool ignore_merges = false;  ///< a word that is a token is that token
};

/// Kinds of pieces, as SentencePiece numbers them.
enum class PieceType { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

/// A piece of a Unigram model, or of a BPE model of SentencePiece. Scores are finite.
struct ScoredPiece {
  std::string text;                     ///< its spelling
  double score = 0;                     ///< log p in Unigram; BPE joins the highest first
  PieceType type = PieceType::kNormal;  ///< only SentencePiece's rules look at it
};

/// Whose rules a SentencePiece model follows: they differ in ties.
enum class PieceRules { kHuggingFace, kSentencePiece };

/// The fields of Unigram, and its rules.
struct UnigramOptions {
  std::optional<TokenId> unk_id;  ///< without it unknown characters are an InputError
  /// Unknown characters become the pieces of their bytes, if all exist.
  bool byte_fallback = false;
  PieceRules rules = PieceRules::kHuggingFace;  ///< whose rules it follows
};

/// WordPiece with `options`; the id of `tokens`[i] is i, and of equal tokens the last has the id
/// (the others are gaps).
std::shared_ptr<const TokenModel> make_wordpiece(std::vector<std::string> tokens,
                                                 const WordPieceOptions& options);
/// WordPiece with `options` over the tokens and ids of `vocab`.
std::shared_ptr<const TokenModel> make_wordpiece(std::vector<VocabEntry> vocab,
                                                 const WordPieceOptions& options);

/// BPE with `options` over `vocab`; the rank of one of `merges` is its index, of equal pairs the
/// last counts. Throws InputError with `path` if a merge names or makes a token that the vocabulary
/// lacks.
std::shared_ptr<const TokenModel> make_bpe(
    std::vector<VocabEntry> vocab, const std::vector<std::pair<std::string, std::string>>& merges,
    const BpeOptions& options, const std::string& path);

/// Unigram with `options`; the id of `pieces`[i] is i. Throws InputError with `path` if unk_id is
/// out of range.
std::shared_ptr<const TokenModel> make_unigram(const std::vector<ScoredPiece>& pieces,
                                               const UnigramOptions& options,
                                               const std::string& path);

/// BPE over `pieces` (id = index) as libsentencepiece does it (model_type 2): the pair whose joined
/// piece has the highest score, leftmost of equals; pieces of type kUnused are taken apart again.
/// Unknown characters become the pieces of their bytes with `byte_fallback`, if all exist, else the
/// piece `unk_id`, neighbours joined. Throws InputError with `path` if `unk_id` is out of range.
std::shared_ptr<const TokenModel> make_sentencepiece_bpe(const std::vector<ScoredPiece>& pieces,
                                                         TokenId unk_id, bool byte_fallback,
                                                         const std::string& path);

/// WordLevel over `vocab`: a word is a token or unknown. Its tokenize() throws InputError for an
/// unknown word if `vocab` lacks `unk_token`.
std::shared_ptr<const TokenModel> make_word_level(std::vector<VocabEntry> vocab,
                                                  std::string unk_token);
/// Every code point is a token of `vocab` or unknown; unknown ones vanish if there is no
/// `unk_token`. Otherwise tokenize() throws InputError for one if `vocab` lacks `unk_token`.
std::shared_ptr<const TokenModel> make_characters(std::vector<VocabEntry> vocab,
                                                  std::optional<std::string> unk_token);
/// Every byte is a token: id = byte + `first`, which is 0 to 0x7FFFFF00; token(id) is that byte.
std::shared_ptr<const TokenModel> make_bytes(TokenId first = 0);

/// The model that `json`, the "model" object of the tokenizer.json at `path`, describes; a missing
/// "type" is guessed by the fields. Throws InputError naming what is wrong or not supported (BPE
/// dropout).
std::shared_ptr<const TokenModel> make_model(const JsonValue& json, const std::string& path);

/// The entries of `tokens` with id = index; of equal tokens the last has the id.
std::vector<VocabEntry> numbered(std::vector<std::string> tokens);

}  // namespace masque::text
