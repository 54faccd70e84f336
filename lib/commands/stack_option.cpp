#include "commands/stack_option.hpp"

#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/checkpoint/load.hpp"

namespace masque::commands {

namespace {

/// What must be said of an encoder–decoder, of which `option` can show some parts.
std::string stack_wanted(const StackOption& option) {
  if (option.stacks.size() == 1) {
    return fmt::format("of which this command shows the {0} alone: expected {1} {0}",
                       option.stacks.front().first, field("stack"));
  }
  std::string list;
  for (std::size_t i = 0; i < option.stacks.size(); ++i) {
    if (i > 0) list += i + 1 == option.stacks.size() ? " or " : ", ";
    list += option.stacks[i].first;
  }
  return fmt::format("expected {} {}: what to show of it", field("stack"), list);
}

}  // namespace

void add_stack(cli::Command& command, StackOption& option) {
  std::string help = "of an encoder–decoder:";
  const char* mark = " ";
  for (const auto& [name, stack] : option.stacks) {
    switch (stack) {
      case Stack::kEncoder: help += std::string(mark) + "the encoder, of texts"; break;
      case Stack::kDecoder:
        help += std::string(mark) +
                "the decoder, of lines with a source and its target, separated by a tab";
        break;
      case Stack::kCross:
        help += std::string(mark) + "the attention of the decoder to the source, of such lines";
        break;
    }
    mark = "; ";
  }
  command.choice("--stack", option.chosen, option.stacks, help);
}

OpenedModel open_stack(const OpenModelOptions& options, const StackOption& option,
                       bool with_tokenizer, cli::Session& session) {
  OpenModelOptions own = options;
  own.decoder = option.pairs();
  OpenedModel opened = open_model(own, own.model, with_tokenizer, session);
  const bool both = opened.model->encoder() != nullptr ||
                    model::is_encoder_decoder(opened.folder, {.family = opened.options.family});
  if (both && !option.chosen) {
    throw UsageError(fmt::format("{}: an encoder–decoder, {}", opened.path, stack_wanted(option)));
  }
  if (!option.chosen) return opened;
  const std::string name(name_in(stack_names(), *option.chosen));
  if (!both) {
    throw UsageError(
        fmt::format("{} {}: only with an encoder–decoder that has its decoder, found {}",
                    field("stack"), name, opened.description()));
  }
  opened.given.push_back({"stack", name});
  return opened;
}

}  // namespace masque::commands
