// What all modes share: where records come from, which tokens they have, how they are written.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/input_lines.hpp"
#include "cli/session.hpp"
#include "commands/similar_tokens.hpp"
#include "records/binary_filter.hpp"
#include "records/record_filter.hpp"

namespace masque::text {
class Tokenizer;
}

namespace masque::droptoken {

/// Which tokens there are: by a tokenizer, or by numbers.
struct TokenOptions {
  std::optional<std::string> tokenizer;
  std::optional<std::int64_t> mask_token;
  std::optional<std::int64_t> vocab_size;
  std::vector<std::string> special_tokens;
};

/// The options of a stream of records.
struct RecordStreamOptions {
  std::string input = "-";
  records::LineFormat format = records::LineFormat::kAuto;
  bool special = false;
  TokenOptions tokens;
  std::uint64_t epochs = 1;
  std::uint64_t copies = 1;
  std::uint64_t first_record = 0;
  std::optional<std::string> shard;
  cli::BadLines bad = cli::BadLines::kSkip;  ///< a filter in the middle of a pipe goes on
  std::optional<std::string> stats;
  std::uint64_t max_line = 64 << 20;
  int binary = 0;  ///< bytes of an id in binary files; 0: none is read
  records::BinaryLayout layout = records::BinaryLayout::kNanogpt;
  std::int64_t length = 512;
  std::optional<std::string> output;
  cli::CommonOptions common;
};

/// Options of reading: FILE, --input, --tokenizer, --policy …
void add_reading(cli::Command& command, RecordStreamOptions& options);
/// The same for text that stays text.
void add_text_reading(cli::Command& command, RecordStreamOptions& options);
/// Options of a random corruption: --seed, --epochs, --dup.
void add_randomness(cli::Command& command, RecordStreamOptions& options);
/// --binary, --layout, --length, -o.
void add_binary(cli::Command& command, RecordStreamOptions& options);

/// The tokens that the options describe.
class Tokens {
 public:
  explicit Tokens(const RecordStreamOptions& options);
  const records::TokenTable& table() const { return table_; }
  const std::shared_ptr<const text::Tokenizer>& tokenizer() const { return tokenizer_; }
  commands::TokenParser names() const { return {tokenizer_.get(), table_}; }

 private:
  records::TokenTable table_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
};

/// Runs a corruption over the stream, prints what was left out and the totals.
cli::ExitCode run_stream(const RecordStreamOptions& options, const Tokens& tokens,
                         const records::Corruption* corruption, cli::Session& session);

/// The same for text, whose words are counted. `pairs`: prints lines of noisy TAB original.
cli::ExitCode run_text_stream(const RecordStreamOptions& options,
                              const records::Corruption& corruption, bool pairs,
                              cli::Session& session);

/// run_stream() for the corruption that `make` makes of `options`, whose seed is that of the
/// stream.
template <class Options>
cli::ExitCode run_corruption(const RecordStreamOptions& stream, Options options,
                             std::unique_ptr<records::Corruption> (*make)(const Options&,
                                                                          records::TokenTable),
                             cli::Session& session) {
  session.configure(stream.common);
  const Tokens tokens(stream);
  options.seed = stream.common.seed;
  const auto corruption = make(options, tokens.table());
  return run_stream(stream, tokens, corruption.get(), session);
}

/// The filter of the options, whose output goes to the session.
records::RecordFilter filter_of(const RecordStreamOptions& options, const Tokens& tokens,
                                cli::Session& session);

/// Says which records were left out, and what was not UTF-8; kInput if there were any.
cli::ExitCode report_bad(const RecordStreamOptions& options, const records::FilterResult& result,
                         cli::Session& session);

}  // namespace masque::droptoken
