#include "commands/begin_token.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "evaluate/score/sentence.hpp"

namespace masque::commands {

void add_begin(cli::Command& command, BeginOptions& options, std::string_view without) {
  command.flag("--bos", options.bos,
               "put the bos (or eos) token in front of each text if the tokenizer's template puts "
               "none there [causal models of one stream: yes]");
  command.flag("--no-bos", options.no_bos, fmt::format("do not put it there{}", without));
}

bool begins_texts(const model::Design& design) {
  if (design.streams == model::Streams::kTwo || design.source) return false;
  const model::HeadKind head = design.head.kind;
  return head == model::HeadKind::kCausal ||
         (head == model::HeadKind::kNone && design.mask == model::DefaultMask::kCausal);
}

std::optional<TokenId> begin_token_of(const BeginOptions& options, bool by_default,
                                      const OpenedModel& opened, std::string_view what,
                                      cli::Session& session, bool special) {
  if (options.bos && options.no_bos)
    throw UsageError("--bos cannot be combined with --no-bos; use one of them");
  if (options.no_bos && !by_default) {
    throw UsageError(
        fmt::format("--no-bos applies to causal models of one stream, not to {}; remove it", what));
  }
  const auto has_begin = [&] {
    return evaluate::encode_sentence(*opened.tokenizer, "a", {.special = special}).prefix > 0;
  };
  if (options.no_bos && has_begin()) {
    throw UsageError(fmt::format(
        "--no-bos has no effect: the template of the tokenizer {} puts a token in front "
        "of each text; remove it",
        opened.tokenizer->parts().path));
  }
  if (options.no_bos || !(options.bos || by_default)) return std::nullopt;
  const std::optional<TokenId> token = evaluate::begin_token(*opened.tokenizer);
  if (!token && options.bos) {
    throw UsageError(fmt::format("--bos: the tokenizer {} has no bos and no eos token; remove it",
                                 opened.tokenizer->parts().path));
  }
  if (token && !has_begin()) {
    session.detail(fmt::format("{}: '{}' is put in front of each text", opened.path,
                               escape(opened.tokenizer->token(*token))));
  }
  return token;
}

void refuse_begin(const BeginOptions& options) {
  if (!options.bos) return;
  throw UsageError(
      "--bos cannot be combined with an encoder–decoder, whose targets begin with "
      "decoder_start_token_id");
}

std::vector<Given> given_begin(const BeginOptions& options) {
  std::vector<Given> given;
  if (options.bos) given.push_back({"bos", "true", false});
  if (options.no_bos) given.push_back({"no_bos", "true", false});
  return given;
}

}  // namespace masque::commands
