// What lm-write generate gives a model for a line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/open_model.hpp"
#include "probe/write/generation.hpp"
#include "probe/write/masked_writer.hpp"
#include "text/template_tokens.hpp"

namespace masque::lm_write {

/// What a line is, and how the model goes on with it.
enum class Continuation {
  kCausal,  ///< the beginning of a text
  kUnilm,   ///< a source, or the beginning of the target of one
  kMasked,  ///< the beginning of a text, or of the target of a source, before masks
};

/// Lines of a file, one for each line of standard input.
class Sources {
 public:
  /// Throws InputError for a file that cannot be read or is not UTF-8.
  explicit Sources(const std::string& path);
  std::uint64_t count() const { return lines_.size(); }
  /// That of a line of standard input, counted from 0. Throws InputError if there is none.
  std::string_view line(std::uint64_t id) const;
  /// Throws InputError unless standard input had so many lines.
  void check_count(std::uint64_t lines) const;

 private:
  [[noreturn]] void refuse() const;
  std::string path_;
  std::string text_;
  std::vector<std::string_view> lines_;
};

/// Lines to tokens: what the model reads first of the tokenizer's template, and the line. For one
/// thread.
class Prompts {
 public:
  /// `sources` may be nullptr, and is borrowed like `opened`. `bos`: of kCausal, puts the token
  /// that begins texts in front where the template has nothing.
  Prompts(const commands::OpenedModel& opened, Continuation kind, const Sources* sources, bool bos);

  /// No ids: there is nothing to begin with.
  probe::Prompt prompt(std::uint64_t id, std::string_view line);
  /// The line, `count` masks after it.
  probe::MaskedText masked(std::uint64_t id, std::string_view line, Index count);

 private:
  const commands::OpenedModel& opened_;
  Continuation kind_;
  const Sources* sources_;
  text::IdEncoder encoder_;
  text::TemplateTokens around_;
  std::optional<TokenId> begin_;
};

}  // namespace masque::lm_write
