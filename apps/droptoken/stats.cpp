// droptoken stats: what a stream of corrupted records shows.
#include <memory>
#include <mutex>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "commands/selection_options.hpp"
#include "records/undo.hpp"
#include "stream.hpp"

namespace masque::droptoken {

using commands::parse_shares;

namespace {

struct Options {
  RecordStreamOptions stream;
  double rate = 0.15;
  std::string split = "0.8:0.1:0.1";
};

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// What the branches come to when a random token happens to be the mask or the token itself.
std::vector<double> effective(const std::vector<double>& split, TokenId size) {
  if (size <= 0) return split;
  const double hit = split[2] / static_cast<double>(size);
  return {split[0] + hit, split[1] + hit, split[2] - 2 * hit};
}

void add_test(const std::string& of, const records::ChiSquared& test, cli::Report& report) {
  report.add(of + "_chi_squared", test.statistic);
  report.add(of + "_degrees", static_cast<std::uint64_t>(test.degrees));
  report.add(of + "_p", test.p);
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.stream.common);
  const Tokens tokens(o.stream);
  const std::vector<double> split = parse_shares("split", o.split, 3, 3);
  std::mutex mutex;
  records::CorruptionStats stats;
  records::RecordFilter filter = filter_of(o.stream, tokens, session);
  filter.sink = [](std::string_view) {};
  filter.inspect = [&](const records::Record& record) {
    records::CorruptionStats one;
    one.see(record, tokens.table());
    const std::lock_guard lock(mutex);
    stats.add(one);
  };
  const records::FilterResult result = filter_records(filter, nullptr);
  const records::Tally& t = stats.tally;
  if (t.records == 0 && result.bad == 0 && !o.stream.shard)
    throw InputError(input_name(o.stream.input), "no lines, expected records");
  // What was dropped can have no label.
  const std::uint64_t left = stats.remaining;
  cli::Report report;
  report.add("records", t.records);
  report.add("bad_records", result.bad);
  report.add("tokens", t.tokens_in);
  report.add("ordinary", t.ordinary);
  report.add("dropped", t.dropped);
  report.add("dropped_rate", share(t.dropped, t.ordinary));
  report.add("selected", t.selected);
  report.add("selected_rate", share(t.selected, left));
  report.add("masked_rate", share(t.masked, t.selected));
  report.add("kept_rate", share(t.kept, t.selected));
  report.add("random_rate", share(t.random, t.selected));
  report.add("replaced", stats.replaced_labels);
  report.add("replaced_rate", share(stats.replaced_labels, left));
  if (t.selected > 0) {
    add_test("rate",
             records::chi_squared({t.selected, left > t.selected ? left - t.selected : 0},
                                  {o.rate, 1 - o.rate}),
             report);
    add_test(
        "split",
        records::chi_squared({t.masked, t.kept, t.random}, effective(split, tokens.table().size)),
        report);
  }
  report.print(session, o.stream.common);
  return report_bad(o.stream, result, session);
}

}  // namespace

void declare_stats(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "stats", "reports the observed rates of corrupted records, with chi-squared tests");
  c.example("droptoken stats --tokenizer bert-base/ < records",
            "rates of selected, masked, kept and random tokens, tested against --rate and --split");
  c.option("--rate", "P", o->rate, cli::AllowedRange{0, 1}, "expected share of selected tokens");
  c.option("--split", "M:K:R", o->split, "expected shares of [MASK], kept and random tokens");
  add_reading(c, o->stream);
  add_report(c, o->stream.common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::droptoken
