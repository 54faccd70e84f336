// A second JSON parser, written apart from lib/base/json and as plainly as possible: the oracle
// that unit tests and fuzz targets compare with.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace masque::test {

struct NaiveMember;

struct NaiveJson {
  char kind = '?';  ///< one of {["0tn: object, array, string, number, bool, null
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string text;  ///< a string unescaped, else the spelling; empty for objects and arrays
  std::vector<NaiveMember> members;
  std::vector<NaiveJson> items;

  const NaiveJson* find(std::string_view name) const;
};

struct NaiveMember {
  std::string name;
  NaiveJson value;
};

/// The document, or nothing if it is not RFC 8259 in valid UTF-8, has a lone surrogate, a duplicate
/// key, a number beyond double, or is nested deeper than `max_depth`.
std::optional<NaiveJson> naive_json(std::string_view text, int max_depth);

}  // namespace masque::test
