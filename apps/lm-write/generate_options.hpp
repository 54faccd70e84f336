// The options of lm-write generate, and what they mean for each kind of model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/open_model.hpp"
#include "commands/text_stream.hpp"
#include "evaluate/write/beam_search.hpp"
#include "evaluate/write/generation.hpp"
#include "evaluate/write/generation_config.hpp"
#include "evaluate/write/masked_generation.hpp"
#include "evaluate/write/masked_writer.hpp"
#include "text/tokenizer.hpp"

namespace masque::lm_write {

// What lm-write generate gives a model for a line.

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
  /// that begins texts in front where the template has nothing. `target_begin`: target_begin().
  Prompts(const commands::OpenedModel& opened, Continuation kind, const Sources* sources, bool bos,
          std::optional<TokenId> target_begin);

  /// No ids: there is nothing to begin with.
  evaluate::Prompt prompt(std::uint64_t id, std::string_view line);
  /// The line, `count` masks after it.
  evaluate::MaskedText masked(std::uint64_t id, std::string_view line, Index count);

 private:
  const commands::OpenedModel& opened_;
  Continuation kind_;
  const Sources* sources_;
  text::IdEncoder encoder_;
  text::TemplateTokens around_;
  std::optional<TokenId> begin_;
  std::optional<TokenId> target_begin_;  ///< of an encoder–decoder: what begins its targets
};

// The options.

/// The settings are those of the command line, and of settled() those of the model too.
struct GenerateOptions : evaluate::GenerationSettings {
  commands::OpenModelOptions open;
  commands::StreamOptions stream;
  Continuation kind = Continuation::kCausal;
  std::optional<std::string> source;
  bool bos = false, no_bos = false;
  bool sample = false, no_sample = false;  ///< --do-sample, --no-do-sample
  /// Lists of ids as they are spelled; a word is one --bad-words-ids.
  std::optional<std::string> forced_eos, suppressed, begin_suppressed;
  std::vector<std::string> bad_words;
  std::optional<std::int64_t> decoder_start_token_id;  ///< of encoder–decoders
  std::optional<std::uint64_t> seed;
  std::optional<evaluate::MaskedWay> how;
  std::optional<std::int64_t> length;
  std::optional<std::int64_t> lead_out;
  std::optional<std::int64_t> sweeps;
  std::optional<evaluate::SweepOrder> order;
  std::optional<std::int64_t> burn_in;
  std::optional<std::int64_t> iterations;
  std::optional<std::int64_t> block_size;
  std::optional<evaluate::UnmaskTimes> times;
  std::optional<double> order_temperature;
  std::optional<std::string> eos_token_id;
  bool ignore_generation_config = false;
  /// Of settled(): the file with the model's defaults, and the names of those that are used.
  std::string config_path = {};
  std::vector<std::string> from_config = {};

  bool masked() const { return kind == Continuation::kMasked; }
  evaluate::MaskedWay way() const { return how.value_or(evaluate::MaskedWay::kLeftToRight); }
  bool gibbs() const { return masked() && way() == evaluate::MaskedWay::kGibbs; }
  /// The ancestral sampler of masked diffusion.
  bool ancestral() const { return masked() && way() == evaluate::MaskedWay::kRandom; }
  /// Whether a few masks at a time get their tokens: masked diffusion.
  bool unmasks() const { return masked() && evaluate::unmask_order(way()).has_value(); }
  /// Whether masks are filled at random places.
  bool shuffles() const {
    return ancestral() || (masked() && way() == evaluate::MaskedWay::kShuffled);
  }
  /// Whether sweeps of gibbs after the burn-in take the likeliest token, as the published code.
  bool likeliest_at_last() const { return burn_in && !top_k && !top_p; }
  /// Whether tokens are sampled.
  bool samples() const {
    return do_sample.value_or(ancestral()) || (gibbs() && !(likeliest_at_last() && *burn_in == 0));
  }
  /// Whether anything depends on the seed: tokens, places, or the order of gibbs.
  bool draws() const {
    return samples() || shuffles() || (gibbs() && order == evaluate::SweepOrder::kRandom);
  }
  std::int64_t texts() const { return num_return_sequences.value_or(1); }
  std::int64_t new_tokens() const { return (masked() ? length : max_new_tokens).value_or(20); }
};

/// Those of texts that are written token by token: length, draws, beams.
void declare_text_options(cli::Command& command, GenerateOptions& options);

/// All but the options of the model and the stream.
void declare_generate_options(cli::Command& command, GenerateOptions& options);

/// The options with what flags and lists say; of kCausal also with the defaults of the model's
/// generation_config.json that they do not set, which a note names. Throws UsageError for a list
/// that is none, and InputError for defaults that cannot be used or do not fit each other.
GenerateOptions settled(const GenerateOptions& options, cli::Session& session);

/// Throws UsageError for settled options that do not fit each other.
void check_generate_options(const GenerateOptions& options);

/// The same of a command that has only declare_text_options' of them.
void check_text_options(const GenerateOptions& options);

/// Says what the model's files ask for and the command does not do. Throws InputError for settings
/// that would change the tokens, unless they are to be ignored.
void check_generation_config(const GenerateOptions& options, const commands::OpenedModel& opened,
                             cli::Session& session);

/// Of the kinds causal and unilm. Throws UsageError for beams that the vocabulary is too small for,
/// and InputError for tokens that it does not have or that exclude each other; a setting of the
/// model's file is then named as one.
evaluate::GenerateOptions generate_options(const GenerateOptions& options,
                                           const commands::OpenedModel& opened);
/// Of the kind masked. The tokenizer has a mask token.
evaluate::MaskedGenerateOptions masked_options(const GenerateOptions& options,
                                               const commands::OpenedModel& opened);

/// Whether a text of kCausal begins with the token that begins texts where the template has
/// nothing: as requested, else as the model's config.json says of its training. Throws UsageError
/// if no such token is requested and the template has one.
bool begins_texts(const GenerateOptions& options, const commands::OpenedModel& opened);
/// The token in front of the targets of the encoder–decoder `opened`: as requested, else as its
/// files say; nothing for other models. Throws InputError where nobody says, and UsageError for an
/// option that another model does not have, or that does not fit.
std::optional<TokenId> target_begin(const GenerateOptions& options,
                                    const commands::OpenedModel& opened);
/// "greedy, at most 20 tokens".
std::string generate_description(const GenerateOptions& options);
/// What decided the texts, as far as it was in force: members of a JSON object.
std::string generate_provenance(const GenerateOptions& options,
                                const commands::OpenedModel& opened);

}  // namespace masque::lm_write
