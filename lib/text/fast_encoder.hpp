// Text to ids only, as fast as one thread can: no offsets, words looked up in a cache.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "text/bert.hpp"
#include "text/model.hpp"
#include "text/normalizer.hpp"
#include "text/pre_tokenizer.hpp"

namespace masque::text {

/// Encodes text as one tokenizer's normalizer, pre-tokenizer and model do: the same ids. Knows no
/// added tokens and no post-processor. One object per thread; memory is bounded.
class FastEncoder {
 public:
  FastEncoder() = default;
  FastEncoder(const FastEncoder&) = delete;
  FastEncoder& operator=(const FastEncoder&) = delete;
  virtual ~FastEncoder() = default;

  /// Appends the ids of a text (valid UTF-8).
  virtual void encode(std::string_view text, std::vector<TokenId>& ids) = 0;
};

/// The steps of any tokenizer, which a fast encoder falls back on; each may be null.
struct Steps {
  std::shared_ptr<const Normalizer> normalizer;
  std::shared_ptr<const PreTokenizer> pre_tokenizer;
  std::shared_ptr<const TokenModel> model;
};

/// Any steps, one after the other: the reference, and what there is for tokenizers that have no
/// faster encoder below.
std::unique_ptr<FastEncoder> make_plain_encoder(Steps steps);

/// A BertNormalizer with these fields (strip_accents already resolved), a BertPreTokenizer, any
/// model. Of `steps` only the model is used.
using BertFields = BertOptions;
std::unique_ptr<FastEncoder> make_bert_encoder(Steps steps, const BertFields& fields);

/// No normalizer; ByteLevel with use_regex and this add_prefix_space; any model. Of `steps` only
/// the model is used.
std::unique_ptr<FastEncoder> make_byte_level_encoder(Steps steps, bool add_prefix_space);

/// Metaspace with replacement U+2581 and split; any normalizer, any model. The text begins where
/// the user's does, for kFirst.
enum class Prepend { kAlways, kFirst, kNever };
std::unique_ptr<FastEncoder> make_metaspace_encoder(Steps steps, Prepend prepend);

}  // namespace masque::text
