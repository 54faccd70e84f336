// BERT's normalisation before Hugging Face: Google's, and bert4keras'.
#pragma once

#include <memory>

#include "text/normalizer.hpp"

namespace masque::text {

/// Google's BasicTokenizer: as BertNormalizer, but characters for private use stay, U+2B820 to
/// U+2B91F are Chinese, and a sigma at the end of a word is ς in lower case. Without `lowercase`
/// accents stay, too.
std::shared_ptr<const Normalizer> make_google_bert(bool lowercase);

/// bert4keras: with `lowercase` lower case and no accents first, then as Google's.
std::shared_ptr<const Normalizer> make_bert4keras(bool lowercase);

}  // namespace masque::text
