// Unicode's normal forms, of the version that Hugging Face's tokenizers follow.
#pragma once

#include "text/step/aligned_text.hpp"

namespace masque::text {

/// Unicode's normal forms: composed or decomposed, canonical or compatible (K).
enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

/// Brings `text` into the normal form `form`. Time O(n log n) for any text. Where marks change
/// places, the alignment does not: it is dealt out in the order of the text, as in the reference.
void normalize(AlignedText& text, NormalForm form);

}  // namespace masque::text
