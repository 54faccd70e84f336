// bench corrupt: the speed of corruption alone, on records in memory.
#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "records/drop.hpp"
#include "records/mdlm.hpp"
#include "records/mlm.hpp"
#include "records/perm.hpp"
#include "timing.hpp"

namespace masque::bench {

namespace {

struct Options {
  int length = 512;
  int records = 2000;
  int repeats = 9;
  cli::CommonOptions common;
};

records::TokenTable table() {
  records::TokenTable tokens;
  tokens.size = 30522;
  tokens.mask = 103;
  tokens.special.assign(30522, 0);
  for (const std::size_t id : {0UL, 100UL, 101UL, 102UL, 103UL}) tokens.special[id] = 1;
  tokens.begins_word.assign(30522, 1);
  for (std::size_t id = 0; id < 30522; id += 5) tokens.begins_word[id] = 0;
  return tokens;
}

std::vector<TokenId> ids_of(std::uint64_t record, std::size_t n) {
  std::vector<std::uint32_t> words(n);
  RandomStream(1, "bench corrupt", record).words(n, words.data());
  std::vector<TokenId> ids;
  ids.reserve(n);
  for (const std::uint32_t word : words) ids.push_back(static_cast<TokenId>(word % 30522));
  return ids;
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  std::vector<std::vector<TokenId>> data;
  data.reserve(static_cast<std::size_t>(o.records));
  for (int i = 0; i < o.records; ++i) {
    data.push_back(ids_of(static_cast<std::uint64_t>(i), static_cast<std::size_t>(o.length)));
  }
  records::MlmOptions words;
  words.selection.unit = records::Unit::kWord;
  std::vector<std::pair<const char*, std::unique_ptr<records::Corruption>>> modes;
  modes.emplace_back("drop", make_drop({}, table()));
  modes.emplace_back("mlm", make_mlm({}, table()));
  modes.emplace_back("mlm --unit word", make_mlm(words, table()));
  modes.emplace_back("mdlm", make_mdlm({}, table()));
  modes.emplace_back("mae", make_mae({}, table()));
  modes.emplace_back("perm", make_perm({}, table()));
  cli::Table out(session, o.common, {"mode", "million_tokens_per_s", "ms", "ms_min", "ms_max"});
  for (const auto& [name, corruption] : modes) {
    records::Record record;
    records::Scratch scratch;
    records::Tally tally;
    const Timing timing = time_of(o.repeats, [&, &mode = *corruption] {
      for (std::size_t i = 0; i < data.size(); ++i) {
        record.clear();
        record.number = i;
        record.ids = data[i];
        mode.apply(record, scratch, tally);
      }
    });
    const double tokens = static_cast<double>(o.records) * o.length;
    out.row({name, tokens / timing.median / 1e3, timing.median, timing.least, timing.most});
  }
  out.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_corrupt(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("corrupt", "speed of corruption alone, on one thread");
  c.example("bench corrupt", "millions of tokens per second");
  c.option("--length", "N", o->length, cli::AllowedRange{1, 1e6}, "tokens in each record");
  c.option("--records", "N", o->records, cli::AllowedRange{1, 1e6}, "number of records");
  add_repeats(c, o->repeats);
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::bench
