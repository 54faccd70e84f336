#include "evaluate/states/similarity_pair.hpp"

#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"

namespace masque::evaluate {

SimilarityPair parse_similarity_pair(std::string_view line) {
  const std::vector<std::string_view> fields = split(line, '\t');
  if (fields.size() != 3)
    throw InputError(
        fmt::format("{} columns, expected 3: score, sentence, sentence", fields.size()));
  const auto score = parse_number<double>(fields[0]);
  if (!score || !std::isfinite(*score))
    throw InputError(fmt::format("found '{}', expected a score{}", escape(fields[0]),
                                 fields[0].find_first_of("0123456789") == std::string_view::npos
                                     ? "; is this a header line?"
                                     : ""));
  return {*score, fields[1], fields[2]};
}

}  // namespace masque::evaluate
