// The options of tok encode, and one thread's encoder that follows them.
#pragma once

#include "binary_output.hpp"
#include "input.hpp"
#include "record.hpp"

namespace masque::tok {

struct EncodeCommand {
  std::string tokenizer;
  text::TokenizerOptions open;
  InputOptions input;
  bool special = false;
  bool no_special_in_text = false;
  bool pair = false;
  std::optional<std::int64_t> max_length;
  text::TruncationStrategy strategy = text::TruncationStrategy::kLongestFirst;
  bool cut_left = false;
  bool records = false;
  std::string with_text;
  bool bytes = false;
  int binary = 0;  ///< bytes of an id in a binary file; 0: none is written
  records::BinaryLayout layout = records::BinaryLayout::kNanogpt;
  std::optional<std::string> output;
  std::optional<std::string> folder;  ///< of tokens, which is written
  bool resume = false;                ///< goes on with a folder that an interrupted run left
  std::optional<std::string> shard;   ///< "I/N": only this part of a file
  RecordFields with;
  cli::CommonOptions common;
};

void add_encode(cli::Command& command, EncodeCommand& options);
/// Throws UsageError if options do not fit together; fills `with`.
void check(EncodeCommand& options);

/// Encodes lines on one thread.
class LineTokenizer {
 public:
  LineTokenizer(const text::Tokenizer& tokenizer, const EncodeCommand& options);

  /// The ids alone, valid until the next call.
  const std::vector<TokenId>& ids(std::string_view line);
  /// Throws InputError for a pair that has no tab, or cannot be cut.
  text::Encoding encode(std::string_view line) const;

 private:
  const text::Tokenizer& tokenizer_;
  text::EncodeOptions options_;
  bool pair_;
  text::IdEncoder encoder_;
  std::vector<TokenId> ids_;
};

}  // namespace masque::tok
