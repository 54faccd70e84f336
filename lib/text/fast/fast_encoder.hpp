// Text to ids only, as fast as one thread can: no offsets, words looked up in a cache.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "text/model/model.hpp"
#include "text/step/bert.hpp"
#include "text/step/normalizer.hpp"
#include "text/step/pre_tokenizer.hpp"

namespace masque::text {

/// Encodes text as one tokenizer's normalizer, pre-tokenizer and model do: the same ids. Knows no
/// added tokens and no post-processor. One object per thread; memory is bounded.
class FastEncoder {
 public:
  FastEncoder() = default;
  FastEncoder(const FastEncoder&) = delete;
  FastEncoder& operator=(const FastEncoder&) = delete;
  virtual ~FastEncoder() = default;

  /// Appends the ids of `text` (valid UTF-8) to `ids`. Throws what the steps throw.
  virtual void encode(std::string_view text, std::vector<TokenId>& ids) = 0;
};

/// The steps of any tokenizer, which a fast encoder falls back on; each may be null.
struct Steps {
  std::shared_ptr<const Normalizer> normalizer;       ///< nullptr: the text stays
  std::shared_ptr<const PreTokenizer> pre_tokenizer;  ///< nullptr: the text is one word
  std::shared_ptr<const TokenModel> model;            ///< cuts words; needed to encode
};

/// Any `steps`, one after the other: the reference, and what there is for tokenizers that have no
/// faster encoder below.
std::unique_ptr<FastEncoder> make_plain_encoder(Steps steps);

/// The fields of a BertNormalizer, strip_accents already resolved.
using BertFields = BertOptions;
/// A BertNormalizer with these `fields`, a BertPreTokenizer, any model. Of `steps` only the model
/// is used.
std::unique_ptr<FastEncoder> make_bert_encoder(Steps steps, const BertFields& fields);

/// No normalizer; ByteLevel with use_regex and this `add_prefix_space`; any model. Of `steps` only
/// the model is used.
std::unique_ptr<FastEncoder> make_byte_level_encoder(Steps steps, bool add_prefix_space);

/// When Metaspace puts a mark in front of a text: always, if the text begins where the user's does,
/// or never.
enum class PrependMark { kAlways, kFirst, kNever };
/// Metaspace with replacement U+2581, split and `prepend`; any normalizer, any model. Of `steps`
/// the pre-tokenizer is not used. For kFirst every text begins where the user's does.
std::unique_ptr<FastEncoder> make_metaspace_encoder(Steps steps, PrependMark prepend);

}  // namespace masque::text
