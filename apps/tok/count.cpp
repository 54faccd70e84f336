// tok count: how many tokens a text has.
#include <atomic>
#include <memory>

#include "base/file/file.hpp"
#include "base/thread/ordered_work.hpp"
#include "commands.hpp"
#include "input.hpp"

namespace masque::tok {

namespace {

struct Options {
  std::string tokenizer;
  text::TokenizerOptions open;
  InputOptions input;
  bool special = false;
  cli::CommonOptions common;
};

struct Counts {
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;
  std::uint64_t tokens = 0;
  std::uint64_t unknown = 0;
  std::uint64_t words = 0;
  std::uint64_t longest = 0;
};

struct CountBatch {
  LineBatch lines;
  Counts counts;
};

double ratio(std::uint64_t a, std::uint64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

void add(Counts& sum, const Counts& part) {
  sum.lines += part.lines;
  sum.bytes += part.bytes;
  sum.tokens += part.tokens;
  sum.unknown += part.unknown;
  sum.words += part.words;
  sum.longest = std::max(sum.longest, part.longest);
}

void count_line(std::string_view line, const std::vector<TokenId>& ids,
                const std::vector<bool>& begins, std::optional<TokenId> unknown, Counts& counts) {
  ++counts.lines;
  counts.bytes += line.size() + 1;
  counts.tokens += ids.size();
  counts.longest = std::max<std::uint64_t>(counts.longest, ids.size());
  bool first = true;
  for (const TokenId id : ids) {
    counts.words += first || begins[static_cast<std::size_t>(id)] ? 1U : 0U;
    counts.unknown += id == unknown ? 1U : 0U;
    first = false;
  }
}

void print(const Counts& counts, const cli::CommonOptions& common, cli::Session& session) {
  cli::Report report;
  report.add("lines", counts.lines);
  report.add("bytes", counts.bytes);
  report.add("tokens", counts.tokens);
  report.add("words", counts.words);
  report.add("unknown", counts.unknown);
  report.add("longest_line", counts.longest);
  report.add("bytes_per_token", ratio(counts.bytes, counts.tokens));
  report.add("tokens_per_word", ratio(counts.tokens, counts.words));
  report.add("unknown_share", ratio(counts.unknown, counts.tokens));
  report.print(session, common);
}

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.common);
  need_stream(command);
  const text::Tokenizer tokenizer = open_tokenizer(o.tokenizer, o.open, session);
  text::EncodeOptions options;
  options.special = o.special;
  std::vector<bool> begins(tokenizer.size());
  for (std::size_t i = 0; i < begins.size(); ++i)
    begins[i] = tokenizer.begins_word(static_cast<TokenId>(i));
  const int threads = o.common.threads > 0 ? o.common.threads : default_threads();
  std::vector<std::unique_ptr<text::IdEncoder>> encoders;
  encoders.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i)
    encoders.push_back(std::make_unique<text::IdEncoder>(tokenizer, options));
  LineInput input = cli::open_lines(0, kStandardInput, o.input);
  InputLines lines(o.input);
  lines.leave_out_long(input);
  Counts total;
  OrderedSteps<CountBatch> steps;
  steps.read = [&](CountBatch& batch) { return input.read(batch.lines); };
  steps.work = [&](CountBatch& batch, int worker) {
    batch.counts = {};
    std::vector<TokenId> ids;
    lines.each(batch.lines, [&](std::uint64_t, std::string_view line) {
      ids.clear();
      encoders[static_cast<std::size_t>(worker)]->encode(line, ids);
      count_line(line, ids, begins, tokenizer.roles().unk, batch.counts);
    });
  };
  steps.write = [&](CountBatch& batch) { add(total, batch.counts); };
  ordered_work(threads, steps);
  print(total, o.common, session);
  return lines.finish(session);
}

}  // namespace

void declare_count(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("count", "counts tokens, bytes per token and unknown tokens of a text");
  c.example("tok count gpt2/ < text", "how many tokens are in a text?");
  c.argument("TOKENIZER", o->tokenizer, "tokenizer, as for tok encode");
  c.flag("--special", o->special, "counts the special tokens of the template as well");
  add_flavor(c, o->open);
  add_input(c, o->input);
  cli::add_policy(c, o->input.bad);
  add_threads(c, o->common);
  add_report(c, o->common);
  add_quiet(c, o->common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::tok
