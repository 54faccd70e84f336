#include "text/tokenizer.hpp"

namespace masque::text {

namespace {

constexpr TokenId kHere = -1;  ///< stands for the text in a template

/// The template's tokens before and after a text; false if it is not there exactly once.
bool surrounding(const PostProcessor* processor, std::vector<TokenId>& before,
                 std::vector<TokenId>& after) {
  if (processor == nullptr) return true;
  std::vector<Encoding> parts(1);
  parts[0].push_back(kHere, "", {}, 0, false);
  processor->process(parts, true);
  int found = 0;
  for (const Encoding& part : parts) {
    for (const TokenId id : part.ids) {
      if (id == kHere) {
        ++found;
      } else {
        (found == 0 ? before : after).push_back(id);
      }
    }
  }
  return found == 1;
}

}  // namespace

IdEncoder::IdEncoder(const Tokenizer& tokenizer, const EncodeOptions& options)
    : tokenizer_(tokenizer), options_(options) {
  const TokenizerParts& parts = tokenizer.parts();
  // Tokens that are found in normalised text need that text.
  fast_ = !(tokenizer.added().any(true) && parts.steps.normalizer) && parts.make_fast != nullptr;
  if (fast_ && options.special) fast_ = surrounding(parts.post_processor.get(), before_, after_);
  if (!fast_) return;
  first_ = parts.make_fast(parts.steps, true);
  other_ = parts.make_fast(parts.steps, false);
}

void IdEncoder::encode(std::string_view text, std::vector<TokenId>& ids) {
  if (!fast_) {
    EncodeOptions options = options_;
    options.unit = OffsetUnit::kByte;
    options.truncation.reset();
    const Encoding encoding = tokenizer_.encode(text, options);
    ids.insert(ids.end(), encoding.ids.begin(), encoding.ids.end());
    return;
  }
  ids.insert(ids.end(), before_.begin(), before_.end());
  const AddedTokens& added = tokenizer_.added_;
  added.split(text, false, options_.special_in_text, split_);
  std::vector<AddedTokens::Part> inner;
  for (const AddedTokens::Part& part : split_) {
    const std::string_view piece = text.substr(part.begin, part.end - part.begin);
    if (part.token != nullptr) {
      ids.push_back(part.token->id);
    } else if (!added.any(true)) {
      (part.begin == 0 ? first_ : other_)->encode(piece, ids);
    } else {
      added.split(piece, true, options_.special_in_text, inner);
      for (const AddedTokens::Part& p : inner) {
        if (p.token != nullptr) {
          ids.push_back(p.token->id);
        } else {
          FastEncoder& encoder = part.begin + p.begin == 0 ? *first_ : *other_;
          encoder.encode(piece.substr(p.begin, p.end - p.begin), ids);
        }
      }
    }
  }
  ids.insert(ids.end(), after_.begin(), after_.end());
}

}  // namespace masque::text
