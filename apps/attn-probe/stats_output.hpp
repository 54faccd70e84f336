// Statistics of heads as a table, as JSON lines, as a picture.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run_tool.hpp"
#include "commands/result_format.hpp"
#include "evaluate/attention/attention_totals.hpp"

namespace masque::attn_probe {

/// Where numbers come from: members of a JSON object without the braces.
using Provenance = std::string;

struct OutputOptions {
  std::optional<std::string> fields;  ///< none: a few, and ranks where they were measured
  std::vector<std::string> tokens;    ///< that are measured, besides those in fields and draw
  std::string besides;                ///< with commas: what else is shown where nothing is chosen
  bool pairs = false;
  bool of_source = false;  ///< maps over a source: fields of is_of_source() alone
  std::optional<std::string> picture;
  std::optional<std::string> draw;  ///< none: entropy
  std::optional<std::int64_t> digits;
};

/// --fields, --pairs, -o, --draw, --digits.
void add_output(cli::Command& command, OutputOptions& options);

/// Called before the long run. Throws UsageError for an unknown field or picture format and for
/// options that cannot be combined, InputError if the picture cannot be written.
void check_output(const OutputOptions& options, bool json);

/// The tokens of options.tokens, and those that --fields and --draw name in `options`, each once:
/// HeadTotals::tokens.
std::vector<std::string> shown_tokens(const OutputOptions& options);

/// Whether a shown or drawn field needs `stats --rank`.
bool needs_ranks(const OutputOptions& options);

/// Whether a shown or drawn field compares layers.
bool needs_layers(const OutputOptions& options);

/// Prints one row per head, after a row of the embeddings if fields of states are shown. Writes the
/// picture.
void print_stats(const evaluate::AttentionTotals& totals, const Provenance& provenance,
                 const OutputOptions& options, const commands::ResultFormat& format,
                 const cli::CommonOptions& common, cli::Session& session);

// The fields of attn-probe stats: of heads, and of the states after their layer.

/// A field of a head, or of the states after its layer.
struct Column {
  std::string name;
  std::optional<evaluate::HeadField> head;
  std::optional<std::size_t> token = {};  ///< of HeadTotals::tokens
  evaluate::Moments evaluate::StateTotals::*state = nullptr;
  evaluate::MeasuredPer per = evaluate::MeasuredPer::kSentence;  ///< what it is measured of
  std::string_view formula;

  /// Whether it is a field of heads, not of states.
  bool is_of_heads() const { return head || token; }
};

/// What the name of the field of a token begins with: "token:[SEP]".
inline constexpr std::string_view kTokenField = "token:";

/// All fields, those of heads first, with one for each of `tokens`.
std::vector<Column> all_columns(const std::vector<std::string>& tokens);

}  // namespace masque::attn_probe
