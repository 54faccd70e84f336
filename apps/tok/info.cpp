// tok info: what a tokenizer is made of, or what is in a token folder.
#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "commands.hpp"
#include "input.hpp"
#include "records/token_folder.hpp"

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
  std::vector<text::AddedToken> tokens = tokenizer.added().tokens();
  std::ranges::sort(tokens, {}, &text::AddedToken::id);
  for (const text::AddedToken& token : tokens) {
    table.row({token.id, token.content, token.special, token.normalized, token.single_word,
               token.lstrip, token.rstrip});
  }
  table.finish();
}

/// The length that so many of all sequences do not exceed.
Index quantile(const std::vector<records::LengthCount>& lengths, Index sequences, double share) {
  const auto wanted = static_cast<Index>(std::ceil(share * static_cast<double>(sequences)));
  Index count = 0;
  for (const records::LengthCount& row : lengths) {
    count += row.count;
    if (count >= wanted) return row.length;
  }
  return 0;
}

void print_tokens(const Options& o, cli::Session& session) {
  const auto folder = records::TokenFolder::open(o.tokenizer);
  const records::TokenFolderInfo& info = folder->info();
  const std::vector<records::LengthCount> lengths = folder->lengths();
  cli::Report report;
  report.add("file", o.tokenizer);
  report.add("format", fmt::format("token folder {}", records::kTokenFolderVersion));
  report.add("id_bytes", static_cast<std::uint64_t>(info.id_bytes));
  report.add("vocab_size", static_cast<std::uint64_t>(info.vocab_size));
  report.add("tokenizer", info.tokenizer);
  report.add("lines", static_cast<std::uint64_t>(info.lines));
  report.add("sequences", static_cast<std::uint64_t>(info.sequences));
  report.add("tokens", static_cast<std::uint64_t>(info.tokens));
  report.add("median_length", static_cast<std::uint64_t>(quantile(lengths, info.sequences, 0.5)));
  report.add("p99_length", static_cast<std::uint64_t>(quantile(lengths, info.sequences, 0.99)));
  report.add("longest", static_cast<std::uint64_t>(lengths.empty() ? 0 : lengths.back().length));
  report.add("digest", info.digest);
  report.print(session, o.common);
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  if (records::is_token_folder(o.tokenizer)) {
    if (o.added)
      throw UsageError(
          fmt::format("--added: {} is a token folder, expected a tokenizer", o.tokenizer));
    print_tokens(o, session);
    return cli::ExitCode::kDone;
  }
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
  report.print(session, o.common);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_info(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "info",
      "prints the parts, size and special tokens of a tokenizer, or what a token folder holds");
  c.example("tok info bert-base-uncased/", "steps, size and special tokens");
  c.example("tok info tokens", "sequences, tokens and lengths of a token folder");
  c.argument("TOKENIZER", o->tokenizer, "tokenizer, as for tok encode, or a token folder");
  c.flag("--added", o->added, "prints a table of the added tokens instead");
  add_flavor(c, o->open);
  add_table(c, o->common);
  add_quiet(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::tok
