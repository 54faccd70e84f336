// Any bytes as text: two ways of replacing what is not UTF-8 agree, and leave valid text that stays
// as it is.
#include <string>

#include "base/string/utf8.hpp"
#include "fuzz/fuzz.hpp"
#include "support/naive_utf8.hpp"

namespace masque {
namespace {

const char* wrong(std::string_view data) {
  std::string first;
  std::string second;
  const std::uint64_t replaced = append_replacing_invalid(data, first);
  if (test::naive_repair_utf8(data, second) != replaced) return "another number of replacements";
  if (first != second) return "another text";
  if (valid_utf8_prefix(first) != first.size() || !test::naive_valid_utf8(first))
    return "not valid";
  if ((valid_utf8_prefix(data) == data.size()) != (replaced == 0)) return "another verdict";
  if (replaced == 0 && first != data) return "valid text was changed";
  std::string again;
  if (append_replacing_invalid(first, again) != 0 || again != first) return "not stable";
  return count_code_points(first) <= first.size() ? nullptr : "too many code points";
}

}  // namespace
}  // namespace masque

MASQUE_FUZZ_TARGET(masque::wrong)
