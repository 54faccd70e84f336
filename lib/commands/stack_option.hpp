// Which part of an encoder–decoder a command shows.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/string/name_table.hpp"
#include "commands/open_model.hpp"

namespace masque::commands {

/// A stack of layers of an encoder–decoder, or what lies between the two.
enum class Stack {
  kEncoder,  ///< the encoder, which reads texts
  kDecoder,  ///< the decoder, which reads targets, each with its source; its attention to the
             ///< target
  kCross,    ///< the decoder's attention to the source
};

/// The names of all stacks, in the order above; the first ones, or some between, are what a command
/// can show. The table is static. In the header alone: a tool that knows masks only need not link
/// this layer.
inline NameTable<Stack> stack_names() {
  static constexpr std::array<std::pair<std::string_view, Stack>, 3> kNames{
      {{"encoder", Stack::kEncoder}, {"decoder", Stack::kDecoder}, {"cross", Stack::kCross}}};
  return kNames;
}

/// What a command shows of an encoder–decoder.
struct StackOption {
  NameTable<Stack> stacks = stack_names();  ///< what it can show
  std::optional<Stack> chosen;              ///< --stack

  /// Whether lines are pairs of a source and its target.
  bool pairs() const { return chosen && *chosen != Stack::kEncoder; }
  /// Whether it is the attention to the source.
  bool of_source() const { return chosen == Stack::kCross; }
};

/// Declares --stack of `command`, with `option` as its target.
void add_stack(cli::Command& command, StackOption& option);

/// open_model() of `options.model`, with the decoder if `option` chooses it; `options`,
/// `with_tokenizer` and `session` as there. The choice is a member of OpenedModel::given. Throws as
/// that, and UsageError for an encoder–decoder without a choice, so that none shows a part that
/// nobody named, and for a choice with any other model.
OpenedModel open_stack(const OpenModelOptions& options, const StackOption& option,
                       bool with_tokenizer, cli::Session& session);

}  // namespace masque::commands
