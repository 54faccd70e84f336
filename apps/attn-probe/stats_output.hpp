// Statistics of heads as a table, as JSON lines, as a picture.
#pragma once

#include <optional>
#include <string>

#include "cli/run_tool.hpp"
#include "commands/result_format.hpp"
#include "probe/attention/attention_totals.hpp"

namespace masque::attn_probe {

/// Says where numbers come from: members of a JSON object without the braces.
using Provenance = std::string;

struct OutputOptions {
  std::optional<std::string> fields;  ///< none: a few, and ranks where they were measured
  bool pairs = false;
  std::optional<std::string> picture;
  std::optional<std::string> draw;  ///< none: entropy
  std::optional<std::int64_t> digits;
};

/// --fields, --pairs, -o, --draw, --digits.
void add_output(cli::Command& command, OutputOptions& options);

/// Before the long run: throws UsageError for a field or a name of a picture that there is not, and
/// for options that exclude each other; InputError where the picture cannot be written.
void check_output(const OutputOptions& options, bool json);

/// Whether a field is shown or drawn that only `stats --rank` measures.
bool needs_ranks(const OutputOptions& options);

/// Whether a field is shown or drawn that compares layers.
bool needs_layers(const OutputOptions& options);

/// One row a head, after one of the embeddings if fields of states are shown; writes the picture.
void print_stats(const probe::AttentionTotals& totals, const Provenance& provenance,
                 const OutputOptions& options, const commands::ResultFormat& format,
                 const cli::CommonOptions& common, cli::Session& session);

}  // namespace masque::attn_probe
