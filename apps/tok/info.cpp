// tok info: what a tokenizer is made of.
#include <memory>

#include <fmt/format.h>

#include "commands.hpp"
#include "input.hpp"

namespace masque::tok {

namespace {

struct Options {
  std::string tokenizer;
  text::TokenizerOptions open;
  bool added = false;
  cli::CommonOptions common;
};

void print_added(const text::Tokenizer& tokenizer, const Options& o, cli::Session& session) {
  cli::Table table(session, o.common,
                   {"id", "content", "special", "normalized", "single_word", "lstrip", "rstrip"});
  for (const text::AddedToken& token : tokenizer.added().tokens()) {
    table.row({token.id, token.content, token.special, token.normalized, token.single_word,
               token.lstrip, token.rstrip});
  }
  table.finish();
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const text::Tokenizer tokenizer = open_tokenizer(o.tokenizer, o.open, session);
  if (o.added) {
    print_added(tokenizer, o, session);
    return cli::ExitCode::kDone;
  }
  cli::Report report;
  report.add("file", tokenizer.parts().path);
  report.add("format", tokenizer.parts().format);
  for (const auto& [name, value] : tokenizer.parts().summary) report.add(name, value);
  report.add("tokens", static_cast<std::uint64_t>(tokenizer.parts().steps.model->count()));
  report.add("ids", static_cast<std::uint64_t>(tokenizer.size()));
  report.add("added_tokens", static_cast<std::uint64_t>(tokenizer.added().tokens().size()));
  if (tokenizer.parts().post_processor) {
    report.add("template_tokens",
               static_cast<std::uint64_t>(tokenizer.parts().post_processor->added(false)));
  }
  for (const auto& [role, member] : text::kRoleFields) {
    const auto id = tokenizer.roles().*member;
    if (id) report.add(std::string(role), fmt::format("{} {}", *id, tokenizer.token(*id)));
  }
  report.print(session, o.common.json);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_info(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("info", "prints the parts, size and special tokens of a tokenizer");
  c.example("tok info bert-base-uncased/", "steps, size and special tokens");
  c.argument("TOKENIZER", o->tokenizer, "tokenizer, as for tok encode");
  c.flag("--added", o->added, "prints a table of the added tokens instead");
  add_flavor(c, o->open);
  add_table(c, o->common);
  add_quiet(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::tok
