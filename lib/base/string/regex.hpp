// Regular expressions out of files and command lines, run by Oniguruma within limits.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace masque {

/// How an expression is written, and what it runs over.
enum class RegexDialect {
  kOniguruma,  ///< Oniguruma's own, over UTF-8: the one of Hugging Face's tokenizers
  kPerl,       ///< Perl's, over any bytes; its classes know ASCII only
};

/// A compiled expression. Immutable: searches of several threads may share it.
class Regex {
 public:
  /// Throws an error that says why the expression, or a search with it, is refused. Must not
  /// return.
  using Refuse = std::function<void(const std::string& why)>;

  /// Compiles `expression`, written in `dialect`. Calls `refuse` if it is not valid, has more than
  /// 65536 bytes or is nested more than 500 levels deep; a search calls it later, so what it refers
  /// to must live as long.
  Regex(std::string_view expression, RegexDialect dialect, Refuse refuse);
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;
  ~Regex();

 private:
  friend class RegexSearch;
  struct Compiled;
  std::unique_ptr<const Compiled> compiled_;
};

/// A search through one text, for one thread. The expression and the text must outlive it.
class RegexSearch {
 public:
  /// Searches for `regex` in `text`. Calls the expression's `refuse` for a text that is not UTF-8
  /// where the dialect expects it, or that has 1 GiB or more.
  RegexSearch(const Regex& regex, std::string_view text);
  RegexSearch(const RegexSearch&) = delete;
  RegexSearch& operator=(const RegexSearch&) = delete;
  ~RegexSearch();

  /// Goes to the first match that begins at byte `from` (at most the size of the text) or after it;
  /// false if there is none. Calls `refuse` if all calls together take more steps, or this one more
  /// memory, than a text of this size may cost (an expression may need time exponential in its
  /// length), or if the match begins before `from` or ends before it begins (`\K` in what only
  /// looks). Throws Interrupted; while one search takes long, a signal ends the process
  /// (SignalsKill).
  bool find(std::size_t from);

  /// First byte of the last match in the text. This and what follows: only after a find() that
  /// returned true.
  std::size_t begin() const;
  /// One past the last byte of the last match.
  std::size_t end() const;
  /// Number of groups, the whole match included.
  std::size_t groups() const;
  /// What the group `number` found, 0 being the whole match, as a view of the text; nothing if it
  /// took no part in the match or there is no such group.
  std::optional<std::string_view> group(std::size_t number) const;

 private:
  int search(std::size_t from, unsigned long retries);
  void refuse_code(int code) const;

  struct State;
  const Regex& regex_;
  std::string_view text_;
  std::unique_ptr<State> state_;
};

}  // namespace masque
