// Replacements in a text: of one piece by another, or collected and then made at once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace masque {

/// Edits of one text; every other byte stays. Cost of apply(): O(text + edits · log edits).
class TextSplice {
 public:
  /// Bytes [`begin`, `end`) become `with`. Ranges must not overlap: a MASQUE_CHECK of apply(). An
  /// empty one inserts, before an edit that begins at the same place.
  void replace(std::size_t begin, std::size_t end, std::string with);

  /// Whether there is no edit.
  bool empty() const { return edits_.empty(); }
  /// Returns `text` with all edits made.
  std::string apply(const std::string& text) const;
  /// Returns bytes [`begin`, `end`) of `text` with the edits made, which must all lie in there.
  std::string apply(const std::string& text, std::size_t begin, std::size_t end) const;

 private:
  struct Edit {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string with;
  };
  std::vector<Edit> edits_;
};

/// Replaces every occurrence in `text` of `from`, which is not empty, by `to`, from the left.
void replace_all(std::string& text, std::string_view from, std::string_view to);

}  // namespace masque
