// A whole tokenizer: from text to ids and back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/added_tokens.hpp"
#include "text/fast/fast_encoder.hpp"
#include "text/model/model.hpp"
#include "text/roles.hpp"
#include "text/step/decoder.hpp"
#include "text/step/encoding.hpp"
#include "text/step/normalizer.hpp"
#include "text/step/post_processor.hpp"
#include "text/step/pre_tokenizer.hpp"

namespace masque::text {

/// Which text of a pair is cut, as Hugging Face names the ways.
enum class TruncationStrategy { kLongestFirst, kOnlyFirst, kOnlySecond };

/// How much is cut, and where.
struct Truncation {
  std::size_t max_length = 0;  ///< tokens of the template included
  TruncationStrategy strategy = TruncationStrategy::kLongestFirst;  ///< which text is cut
  bool from_left = false;  ///< cuts the begin of a text, not its end
};

/// Cuts `first` and `second`, which may be nullptr, to `truncation.max_length` tokens together as
/// Hugging Face's tokenizers do; here that does not count the template's tokens. Throws InputError
/// if the chosen text is too short to be cut so far, UsageError if it is not there.
void truncate(Encoding& first, Encoding* second, const Truncation& truncation);

/// Whose rules a file without tokenizer.json is read by.
enum class Flavor { kAuto, kHuggingFace, kGoogle, kBert4Keras, kSentencePiece };

/// How Tokenizer::open() reads files.
struct TokenizerOptions {
  Flavor flavor = Flavor::kAuto;  ///< kAuto: as transformers reads the files
  /// Tokens with a role ("cls"), read as if tokenizer_config.json named them; what the folder names
  /// itself goes first. They should be in the vocabulary: others are added to it.
  std::vector<std::pair<std::string, std::string>> roles = {};
  /// The model that it is for: a folder, or a file in one. What the tokenizer's own folder does not
  /// say of its kind is what the model's config.json says. Empty: none.
  std::string model = {};
  /// The text of a config.json that counts in place of the folder's; empty: the folder's.
  std::string config = {};
};

/// In what offsets count: bytes of UTF-8, or code points.
enum class OffsetUnit { kByte, kCodePoint };

/// How a text is encoded.
struct EncodeOptions {
  bool special = false;                      ///< with the tokens of the template
  bool special_in_text = true;               ///< special tokens that stand in the text are found
  OffsetUnit unit = OffsetUnit::kCodePoint;  ///< of Encoding::offsets
  std::optional<Truncation> truncation;      ///< absent: nothing is cut
  bool target =
      false;  ///< as a target (transformers' text_target): TokenizerParts::target_processor
};

/// How a tokenizer marks the words in its tokens.
enum class WordMark {
  kEveryToken,    ///< every token is a word
  kContinuation,  ///< a prefix ("##") says that the word goes on
  kSpace,         ///< a character (Ġ, ▁) in front says that a word begins
};

/// TokenizerParts::format of a file with a token a line, which is named "chars:FILE" or
/// "whitespace:FILE".
inline constexpr std::string_view kLinesFormat = "one token a line";
/// TokenizerParts::format of "ids:N": ids of which nobody says what text they stand for.
inline constexpr std::string_view kIdsFormat = "ids without texts";

/// What a tokenizer is made of.
struct TokenizerParts {
  std::string path;    ///< of the file or folder, for messages
  std::string format;  ///< "tokenizer.json", "vocab.txt", …
  /// Whose template and rules a vocabulary was read by: "bert", "roberta", …; empty: the file says
  /// all.
  std::string kind = {};
  Steps steps;                                          ///< the model must be there
  std::shared_ptr<const PostProcessor> post_processor;  ///< nullptr: none
  /// Around targets, of classes that put their language there (mBART's tgt_lang); nullptr: the
  /// same.
  std::shared_ptr<const PostProcessor> target_processor = nullptr;
  std::shared_ptr<const Decoder> decoder;  ///< nullptr: tokens with spaces between
  /// Decoded text is cleaned up: CleanUp::kTransformers.
  bool cleans_up = false;
  std::vector<AddedToken> added;  ///< moved into Tokenizer::added(); empty in a Tokenizer
  /// Which token has a role ("mask"), where a file says so; the others are guessed by usual names.
  std::vector<std::pair<std::string, std::string>> role_names;
  /// The token that the model's config.json says hides others, where no file gives one the role:
  /// LLaDA's.
  std::optional<TokenId> mask_of_model;
  /// The unknown token whose text is that of the word (Unigram).
  std::optional<TokenId> unknown_as_text;
  WordMark word_mark = WordMark::kEveryToken;  ///< what `word_prefix` says
  std::string word_prefix;                     ///< "##", "Ġ" or "▁"; empty for kEveryToken
  std::string word_suffix;  ///< "</w>" of tokens that end a word (CLIP, GPT-1); else empty
  /// Makes the fast encoder for text at the start of a line (true) or after an added token.
  std::function<std::unique_ptr<FastEncoder>(const Steps&, bool first)> make_fast;
  std::vector<std::string> warnings;  ///< for people: what was odd about the files
  std::vector<std::pair<std::string, std::string>> summary;  ///< component, what it is
};

class IdEncoder;
class Tokenizer;

/// Members of tokenizer_config.json and their values, which are JSON.
using TokenizerSettings = std::vector<std::pair<std::string, std::string>>;
/// The settings without which a folder with the text `config` as config.json would read the
/// vocabulary in another way than `tokenizer` was: its class, and the roles of the class that no
/// token has. Empty if it would not. Reads the files again.
TokenizerSettings needed_settings(const Tokenizer& tokenizer, const std::string& config);

/// Whether `folder`, or the folder of the file of that path, has a file that Tokenizer::open()
/// would read, whatever it holds.
bool has_tokenizer(const std::string& folder);

/// A tokenizer. Immutable and thread-safe. Same ids, tokens and offsets as Hugging Face's
/// tokenizers 0.23.
class Tokenizer {
 public:
  /// Opens `path` as `options` say: a folder (tokenizer.json, else vocab.txt, vocab.json and
  /// merges.txt, tekken.json, spiece.model or tiktoken.model, read as the class that the folder
  /// names reads them in transformers 5), one of these files, a FILE.tiktoken, a file
  /// of weights (its folder), or "chars:FILE", "whitespace:FILE" (one token a line), "bytes" or
  /// "ids:N": ids 0 … N − 1 without texts, whose roles may follow ("ids:1000,pad=0,mask=3"); it
  /// encodes nothing but "". Throws InputError for what is not there, wrong, or not supported (by
  /// name).
  static Tokenizer open(const std::string& path, const TokenizerOptions& options = {});

  /// A tokenizer of `parts`, which have a model.
  explicit Tokenizer(TokenizerParts parts);

  /// Encodes `text`, which is valid UTF-8 of less than 4 GiB, with `options`. Throws InputError if
  /// a token is needed that the vocabulary lacks, and where a step exceeds its limits; UsageError
  /// if the template alone is longer than the truncation.
  Encoding encode(std::string_view text, const EncodeOptions& options) const;
  /// Encodes the texts `first` and `second` with the template of two; offsets count in each text.
  /// `options` and errors are those of encode(), and those of truncate().
  Encoding encode_pair(std::string_view first, std::string_view second,
                       const EncodeOptions& options) const;
  /// An encoder for ids alone, faster where there is a way: for one thread, and no longer than this
  /// object stays where it is. Of `options` truncation and offset unit are not used.
  IdEncoder id_encoder(const EncodeOptions& options) const;

  /// The text of `ids`, as Hugging Face's decode: ids without a token are left out, special tokens
  /// too with `skip_special`. Throws what the decoder throws.
  std::string decode(const std::vector<TokenId>& ids, bool skip_special) const;

  /// The token of `id`; empty if there is none. Of an added token as decoding shows it. Lives as
  /// long as this object stays where it is.
  std::string_view token(TokenId id) const;
  /// The id of `token`, an added token first; nothing if there is none.
  std::optional<TokenId> find(std::string_view token) const;
  /// One more than the highest id.
  std::size_t size() const;
  /// Whether `id` is that of a special added token.
  bool is_special(TokenId id) const;
  /// Whether a word begins with the token `id`: no "##" in front, or "Ġ" or "▁"; true for added
  /// tokens.
  bool begins_word(TokenId id) const;

  /// Which tokens have roles.
  const Roles& roles() const { return roles_; }
  /// Its added tokens.
  const AddedTokens& added() const { return added_; }
  /// What it is made of, without `added`.
  const TokenizerParts& parts() const { return parts_; }
  /// What was odd about the files, one line each.
  const std::vector<std::string>& warnings() const { return parts_.warnings; }

 private:
  friend class IdEncoder;
  Encoding encode_text(std::string_view text, const EncodeOptions& options,
                       std::uint32_t type_id) const;
  void encode_part(AlignedText part, bool special_in_text, Encoding& out,
                   std::uint32_t type_id) const;
  void encode_words(AlignedText part, Encoding& out, std::uint32_t type_id) const;
  Encoding finish(std::vector<Encoding> texts, const EncodeOptions& options) const;

  TokenizerParts parts_;
  AddedTokens added_;
  Roles roles_;
};

/// Whether `tokenizer` is one of ids without texts, "ids:N": it can neither encode texts nor say
/// where words begin.
inline bool has_ids_only(const Tokenizer& tokenizer) {
  return tokenizer.parts().format == kIdsFormat;
}

/// Text to ids for one thread.
class IdEncoder {
 public:
  /// As Tokenizer::id_encoder() with `options`; `tokenizer` must outlive it and stay where it is.
  IdEncoder(const Tokenizer& tokenizer, const EncodeOptions& options);

  /// Appends the ids of `text` to `ids`: those of Tokenizer::encode() without truncation, with the
  /// same errors.
  void encode(std::string_view text, std::vector<TokenId>& ids);

 private:
  const Tokenizer& tokenizer_;
  EncodeOptions options_;
  bool fast_ = false;
  std::vector<TokenId> before_;  ///< the template's tokens
  std::vector<TokenId> after_;
  std::unique_ptr<FastEncoder> first_;  ///< for text at the start
  std::unique_ptr<FastEncoder> other_;  ///< for text after an added token
  std::vector<AddedTokens::Part> split_;
};

// A tokenizer that reads text in lower case.

/// `tokenizer` with a normalizer "Lowercase" of Hugging Face's tokenizers in front of its own: what
/// do_lower_case of a sentence-transformers folder means. Special tokens in the text are found
/// before it.
Tokenizer lowercased(const Tokenizer& tokenizer);

// Whether two tokenizers are the same.

/// Returns the XXH3 hash of all tokens of `tokenizer` in the order of their ids, and of the ids
/// that it makes of a few lines in several scripts, in hexadecimal digits: tokenizers with
/// different digests are different. O(vocabulary).
std::string tokenizer_digest(const Tokenizer& tokenizer);
/// Whether `a` and `b` have the same digest and put the same tokens around a text.
bool read_alike(const Tokenizer& a, const Tokenizer& b);

// What a tokenizer's template puts around texts.

/// Tokens around one text, or around and between two.
struct TemplateTokens {
  std::vector<TokenId> before,  ///< before the first text
      between,                  ///< between two texts; empty for one
      after;                    ///< after the last text

  /// How many there are.
  Index size() const { return std::ssize(before) + std::ssize(between) + std::ssize(after); }
};

/// The tokens that `tokenizer` puts around one text or two (`texts`); none where it has no
/// template; with `target` around a target (EncodeOptions::target). Throws InputError for a
/// template that repeats texts or reverses their order.
TemplateTokens template_tokens(const Tokenizer& tokenizer, std::size_t texts, bool target = false);

/// The tokens that `tokenizer` puts around a source and its target: where the template has nothing
/// between them, the sep token, else the eos token, and the same one after the target if there is
/// nothing either. Throws UsageError for a tokenizer without any of these.
TemplateTokens pair_tokens(const Tokenizer& tokenizer);

}  // namespace masque::text
