// Unicode's normal forms, of the version that Hugging Face's tokenizers follow.
#pragma once

#include "text/aligned_text.hpp"

namespace masque::text {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

/// Brings a text into a normal form. Time O(n log n) for any text. Where marks change places, the
/// alignment does not: it is dealt out in the order of the text, as in the reference.
void normalize(AlignedText& text, NormalForm form);

}  // namespace masque::text
