// Lengths of runs of ASCII letters and digits, 16 bytes at a time where the processor can.
#pragma once

#include <bit>
#include <cstddef>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace masque::text {

/// Whether `c` is a letter of ASCII, in either case.
inline bool ascii_letter(char c) {
  const auto lower = static_cast<unsigned char>(static_cast<unsigned char>(c) | 0x20U);
  return lower >= 'a' && lower <= 'z';
}
/// Whether `c` is a digit of ASCII.
inline bool ascii_digit(char c) { return c >= '0' && c <= '9'; }

/// The end of the run of ASCII letters (and digits, if kDigits) that begins at byte `at` of `text`.
template <bool kDigits>
std::size_t ascii_run_end(std::string_view text, std::size_t at) {
#ifdef __SSE2__
  for (; text.size() - at >= 16; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at));
    // Signed comparisons: bytes from 0x80 are negative and in no range.
    const __m128i lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
    __m128i in = _mm_and_si128(_mm_cmpgt_epi8(lower, _mm_set1_epi8('a' - 1)),
                               _mm_cmplt_epi8(lower, _mm_set1_epi8('z' + 1)));
    if constexpr (kDigits) {
      in = _mm_or_si128(in, _mm_and_si128(_mm_cmpgt_epi8(bytes, _mm_set1_epi8('0' - 1)),
                                          _mm_cmplt_epi8(bytes, _mm_set1_epi8('9' + 1))));
    }
    const auto out = ~static_cast<unsigned>(_mm_movemask_epi8(in)) & 0xFFFFU;
    if (out != 0) return at + static_cast<std::size_t>(std::countr_zero(out));
  }
#endif
  while (at < text.size() && (ascii_letter(text[at]) || (kDigits && ascii_digit(text[at])))) ++at;
  return at;
}

}  // namespace masque::text
