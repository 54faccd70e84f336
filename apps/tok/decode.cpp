// tok decode: the text of ids.
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "base/thread/ordered_work.hpp"
#include "commands.hpp"
#include "input.hpp"

namespace masque::tok {

namespace {

struct Options {
  std::string tokenizer;
  text::TokenizerOptions open;
  bool skip_special = false;
  InputOptions input;  // max_line and bad alone
  cli::CommonOptions common;
};

struct DecodeBatch {
  LineBatch lines;
  std::string out;
};

/// Numbers between white space. Returns what is wrong with them.
std::optional<std::string> parse_ids(std::string_view line, const text::Tokenizer& tokenizer,
                                     std::vector<TokenId>& ids) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!line.empty()) {
    if (is_space(line.front())) {
      line.remove_prefix(1);
      continue;
    }
    std::string_view rest = line;
    const auto id = take_number<TokenId>(rest);
    const bool whole = id && (rest.empty() || is_space(rest.front()));
    if (!whole || *id < 0 || static_cast<std::size_t>(*id) >= tokenizer.size())
      return fmt::format("found '{}', expected ids of the tokenizer", escape(line.substr(0, 40)));
    ids.push_back(*id);
    line = rest;
  }
  return std::nullopt;
}

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.common);
  need_stream(command);
  const text::Tokenizer tokenizer = open_tokenizer(o.tokenizer, o.open, session);
  LineInput input(0, kStandardInput, o.input.max_line);
  InputLines lines(o.input);
  lines.leave_out_long(input);
  OrderedSteps<DecodeBatch> steps;
  steps.read = [&](DecodeBatch& batch) { return input.read(batch.lines); };
  steps.ready = [&] { return input.ready(); };
  steps.work = [&](DecodeBatch& batch, int) {
    batch.out.clear();
    std::vector<TokenId> ids;
    std::uint64_t number = batch.lines.first_line;
    for_each_line(batch.lines.text, [&](std::string_view line) {
      ids.clear();
      const std::uint64_t here = number++;
      if (const auto problem = parse_ids(line, tokenizer, ids)) return lines.refuse(here, *problem);
      batch.out += tokenizer.decode(ids, o.skip_special);
      batch.out += '\n';
    });
  };
  steps.write = [&](DecodeBatch& batch) {
    session.print(batch.out);
    if (session.stdout_is_terminal() || !input.ready()) session.flush();
  };
  ordered_work(o.common.threads, steps);
  return lines.finish(session);
}

}  // namespace

void declare_decode(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("decode", "prints the text of token ids on standard input");
  c.example("tok decode bert-base-uncased/ --skip-special < ids",
            "one line of text per line of ids");
  c.argument("TOKENIZER", o->tokenizer, "tokenizer, as for tok encode");
  c.flag("--skip-special", o->skip_special, "omits special tokens");
  cli::add_max_line(c, o->input.max_line);
  cli::add_policy(c, o->input.bad);
  add_flavor(c, o->open);
  add_threads(c, o->common);
  add_quiet(c, o->common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::tok
