#include "aggregates.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/json_writer.hpp"
#include "commands/result_format.hpp"
#include "commands/result_lines.hpp"
#include "probe/statistics/correlation.hpp"
#include "probe/statistics/proportion.hpp"

namespace masque::lm_score {

namespace {

void add_moments(const probe::Moments& m, JsonWriter& json) {
  json.member("n", m.n).member("mean", m.mean).member("sum_squares", m.sum_squares);
}

/// `correct` is what merge adds; mean and sum_squares are those of numbers that are 1 for a right
/// pair, else 0, as of the other commands.
void add_counts(const probe::PairTally::Row& row, JsonWriter& json) {
  const auto n = static_cast<double>(row.n);
  const auto right = static_cast<double>(row.right);
  json.member("correct", row.right);
  if (row.n == 0) return add_moments({}, json);
  add_moments({row.n, row.accuracy(), right * (n - right) / n}, json);
}

std::string sim_json(const Similarities& s, const Provenance& provenance, bool keep_pairs,
                     const commands::ResultFormat& format) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("command", "sim").member("file", s.file).member("n", s.gold.size());
  json.raw_member("pearson", format.json(probe::pearson(s.gold, s.cosines)));
  json.raw_member("spearman", format.json(probe::spearman(s.gold, s.cosines))).raw(provenance);
  if (keep_pairs) json.key("gold").array(s.gold).key("cosines").array(s.cosines);
  json.end_object();
  return out + "\n";
}

Similarities all_of(const std::vector<Similarities>& files) {
  Similarities all;
  all.file = "all";
  for (const Similarities& s : files) {
    all.gold.insert(all.gold.end(), s.gold.begin(), s.gold.end());
    all.cosines.insert(all.cosines.end(), s.cosines.begin(), s.cosines.end());
  }
  return all;
}

constexpr commands::ResultReader kReader("a line that --json printed");
constexpr std::uint64_t kMostTexts = std::uint64_t{1} << 53;

std::vector<double> list_of(const JsonValue& root, std::string_view name) {
  const JsonValue& list = kReader.member(root, name, JsonKind::kArray);
  std::vector<double> out;
  out.reserve(list.items.size());
  for (const JsonValue& item : list.items) out.push_back(item.number().value_or(0));
  return out;
}

/// The members that are not results, in their order.
Provenance provenance_of(const JsonValue& root) {
  Provenance out;
  JsonWriter members(out);
  for (const std::string_view name : {"model",
                                      "kind",
                                      "precision",
                                      "policy",
                                      "pooling",
                                      "normalize",
                                      "tokenizer",
                                      "family",
                                      "mask",
                                      "kv",
                                      "query",
                                      "max_length",
                                      "no_bos",
                                      "draws",
                                      "whiten",
                                      "dim",
                                      "no_special_in_text",
                                      "pattern",
                                      "labels",
                                      "text_columns",
                                      "label_column",
                                      "length_normalization",
                                      "content_free"}) {
    const JsonValue* value = root.find(name);
    if (value == nullptr) continue;
    members.key(name);
    value->is(JsonKind::kString) ? members.value(value->text) : members.raw(value->text);
  }
  return out;
}

probe::PairTally::Level level_of(const std::string& name) {
  using Level = probe::PairTally::Level;
  for (const Level level : {Level::kParadigm, Level::kTerm, Level::kField}) {
    if (probe::level_name(level) == name) return level;
  }
  return Level::kAll;
}

probe::PairTally::Row row_of(const JsonValue& root) {
  const std::uint64_t n = kReader.count(root, "n");
  const std::uint64_t right = kReader.count(root, "correct");
  if (right > n)
    throw InputError(fmt::format("correct is {} of {}, expected at most all", right, n));
  return {level_of(kReader.text(root, "level")), kReader.text(root, "name"), n, right};
}

/// Throws InputError unless the counts are a square of as many rows as there are names.
Choices choices_of(const JsonValue& root) {
  std::vector<std::string> names;
  for (const JsonValue& name : kReader.member(root, "names", JsonKind::kArray).items)
    names.push_back(name.text);
  const JsonValue& rows = kReader.member(root, "counts", JsonKind::kArray);
  const std::size_t n = names.size();
  if (n < 2 || rows.items.size() != n)
    throw InputError(
        fmt::format("{} names and {} rows of counts, expected equal numbers, at least 2", n,
                    rows.items.size()));
  Choices choices{std::move(names), probe::Confusion(static_cast<Index>(n))};
  for (std::size_t label = 0; label < n; ++label) {
    const std::vector<JsonValue>& row = rows.items[label].items;
    if (row.size() != n)
      throw InputError(fmt::format("counts: {} numbers in a row, expected {}", row.size(), n));
    for (std::size_t chosen = 0; chosen < n; ++chosen) {
      const auto count = row[chosen].integer();
      if (!count || *count > kMostTexts)
        throw InputError("counts: invalid value, expected a number of texts");
      choices.confusion.add(static_cast<Index>(label), static_cast<Index>(chosen), *count);
    }
  }
  return choices;
}

void add_choices(const Choices& from, std::optional<Choices>& to) {
  if (!to) {
    to = from;
    return;
  }
  if (from.names != to->names)
    throw InputError("names of labels differ, expected those of the parts before");
  const Index n = from.confusion.labels();
  for (Index label = 0; label < n; ++label) {
    for (Index chosen = 0; chosen < n; ++chosen)
      to->confusion.add(label, chosen, from.confusion.at(label, chosen));
  }
}

}  // namespace

Provenance with_shard(Provenance provenance, const std::optional<std::string>& shard) {
  if (!shard) return provenance;
  Provenance part;
  JsonWriter(part).member("shard", *shard);
  return part + "," + provenance;
}

namespace {

void check_correlation(const Similarities& similarities) {
  const auto refuse = [&](const std::string& problem) {
    throw InputError(input_name(similarities.file), problem);
  };
  const auto check = [&](const std::vector<double>& values, std::string_view name) {
    if (std::ranges::adjacent_find(values, std::not_equal_to()) == values.end())
      refuse(fmt::format("all {} are equal, expected different ones for a correlation", name));
  };
  if (similarities.gold.empty()) refuse("no pairs, expected at least two for a correlation");
  if (similarities.gold.size() == 1) refuse("one pair, expected at least two for a correlation");
  check(similarities.gold, "scores");
  check(similarities.cosines, "cosines");
}

}  // namespace

void print_pairs(const probe::PairTally& tally, const Provenance& provenance,
                 const cli::CommonOptions& common, cli::Session& session) {
  if (common.json) {
    std::vector<probe::PairTally::Row> rows = tally.rows();
    // A shard without pairs has a line, too: merge knows then that it is there.
    if (rows.empty()) rows.push_back({probe::PairTally::Level::kAll, "all"});
    for (const auto& row : rows) {
      std::string out;
      JsonWriter json(out);
      json.begin_object().member("command", "pairs").member("level", probe::level_name(row.level));
      json.member("name", row.name).member("accuracy", row.accuracy());
      const probe::Interval interval = probe::wilson_interval(row.right, row.n);
      json.member("low", interval.low).member("high", interval.high);
      add_counts(row, json);
      json.raw(provenance).end_object();
      session.print(out + "\n");
    }
    return;
  }
  cli::Table table(session, common, {"level", "name", "n", "accuracy", "low", "high"});
  for (const auto& row : tally.rows()) {
    const probe::Interval interval = probe::wilson_interval(row.right, row.n);
    table.row({probe::level_name(row.level), row.name, row.n, row.accuracy(), interval.low,
               interval.high});
  }
  table.finish();
}

void print_comparison(const probe::PairComparison& comparison, const Provenance& provenance,
                      const Provenance& against, const cli::CommonOptions& common,
                      cli::Session& session) {
  const auto share = [](std::uint64_t right, std::uint64_t n) {
    return static_cast<double>(right) / static_cast<double>(n);
  };
  if (common.json) {
    for (const auto& row : comparison.rows()) {
      std::string out;
      JsonWriter json(out);
      json.begin_object().member("command", "pairs").member("level", probe::level_name(row.level));
      json.member("name", row.name).member("n", row.n);
      json.member("accuracy", share(row.first, row.n));
      json.member("accuracy_against", share(row.second, row.n)).member("only", row.only_first);
      json.member("only_against", row.only_second).member("p", row.p());
      json.raw(provenance).key("against").begin_object().raw(against).end_object().end_object();
      session.print(out + "\n");
    }
    return;
  }
  cli::Table table(
      session, common,
      {"level", "name", "n", "accuracy", "accuracy_against", "only", "only_against", "p"});
  for (const auto& row : comparison.rows()) {
    table.row({probe::level_name(row.level), row.name, row.n, share(row.first, row.n),
               share(row.second, row.n), row.only_first, row.only_second, row.p()});
  }
  table.finish();
}

void print_ppl(const probe::Perplexity& p, const Provenance& provenance,
               const commands::ResultFormat& format, const cli::CommonOptions& common,
               cli::Session& session) {
  if (common.json) {
    std::string out;
    JsonWriter json(out);
    json.begin_object().member("command", "ppl");
    json.raw_member("perplexity", format.json(p.per_token()));
    json.raw_member("bits_per_byte", format.json(p.bits_per_byte()));
    if (p.score_variance) {
      json.raw_member("standard_error", format.json(p.standard_error()));
      json.member("score_variance", *p.score_variance);
    }
    json.member("lines", p.lines).member("bytes", p.bytes);
    add_moments(p.tokens, json);
    json.raw(provenance).end_object();
    session.print(out + "\n");
    return;
  }
  cli::Report report;
  report.add("perplexity", format.cell(p.per_token()));
  if (p.score_variance) report.add("standard_error", format.cell(p.standard_error()));
  report.add("bits_per_byte", format.cell(p.bits_per_byte()));
  report.add("tokens", p.tokens.n);
  report.add("lines", p.lines);
  report.add("bytes", p.bytes);
  const auto parsed = read_json(
      json_text([&](JsonWriter& json) { json.begin_object().raw(provenance).end_object(); }));
  for (const JsonMember& entry : std::get<JsonValue>(parsed).members)
    report.add(entry.name, entry.value.text);
  report.print(session, false);
}

namespace {

void print_table(const std::vector<Similarities>& rows, const commands::ResultFormat& format,
                 const cli::CommonOptions& common, cli::Session& session) {
  cli::Table table(session, common, {"file", "n", "pearson", "spearman"});
  for (const Similarities& s : rows) {
    table.row({s.file, static_cast<std::uint64_t>(s.gold.size()),
               format.cell(probe::pearson(s.gold, s.cosines)),
               format.cell(probe::spearman(s.gold, s.cosines))});
  }
  table.finish();
}

}  // namespace

void print_sim(const std::vector<Similarities>& files, const Provenance& provenance,
               bool keep_pairs, const commands::ResultFormat& format,
               const cli::CommonOptions& common, cli::Session& session) {
  std::vector<Similarities> rows = files;
  if (files.size() > 1 && !keep_pairs) rows.push_back(all_of(files));
  if (common.json) {
    for (const Similarities& s : rows) session.print(sim_json(s, provenance, keep_pairs, format));
  } else {
    print_table(rows, format, common, session);
  }
  if (keep_pairs) return;
  // Last: a file without a correlation costs no other one's.
  session.flush();
  for (const Similarities& file : files) check_correlation(file);
}

void print_choices(const Choices& choices, const Provenance& provenance,
                   const cli::CommonOptions& common, cli::Session& session) {
  const probe::Confusion& c = choices.confusion;
  const probe::Interval interval = probe::wilson_interval(c.right(), c.total());
  if (common.json) {
    std::string out;
    JsonWriter json(out);
    json.begin_object().member("command", "choose").member("texts", c.total());
    json.member("accuracy", c.accuracy()).member("low", interval.low);
    json.member("high", interval.high).member("f1", c.macro_f1()).member("mcc", c.mcc());
    json.key("names").array(choices.names).key("counts").begin_array();
    for (Index label = 0; label < c.labels(); ++label) {
      json.begin_array();
      for (Index chosen = 0; chosen < c.labels(); ++chosen) json.value(c.at(label, chosen));
      json.end_array();
    }
    json.end_array().raw(provenance).end_object();
    session.print(out + "\n");
    return;
  }
  cli::Table table(session, common, {"texts", "accuracy", "low", "high", "f1", "mcc"});
  table.row({c.total(), c.accuracy(), interval.low, interval.high, c.macro_f1(), c.mcc()});
  table.finish();
}

void Merger::add(std::string_view text, const std::string& path) {
  commands::for_each_result(text, path, [&](const JsonValue& root) { add_line(root); });
}

void Merger::add_line(const JsonValue& root) {
  const std::string& command = kReader.text(root, "command");
  const Provenance provenance = provenance_of(root);
  if (!command_.empty() && (command != command_ || provenance != provenance_)) {
    throw InputError(fmt::format("{} with {}, expected {} with {} as in the parts before",
                                 escape(command), provenance, command_, provenance_));
  }
  command_ = command;
  provenance_ = provenance;
  add_shard(root);
  if (command == "pairs") {
    pairs_.add(row_of(root));
  } else if (command == "ppl") {
    perplexity_.add({kReader.count(root, "lines"), kReader.count(root, "bytes"),
                     kReader.moments(root),
                     root.find("score_variance") == nullptr
                         ? std::nullopt
                         : std::optional(kReader.number(root, "score_variance"))});
  } else if (command == "sim") {
    if (root.find("gold") == nullptr)
      throw InputError(
          "sim without its pairs, expected output of sim --shard (for a whole file, use --shard "
          "1/1)");
    const std::string& file = kReader.text(root, "file");
    auto found = std::find_if(files_.begin(), files_.end(),
                              [&](const Similarities& s) { return s.file == file; });
    if (found == files_.end()) found = files_.insert(files_.end(), {file, {}, {}});
    const std::vector<double> gold = list_of(root, "gold");
    const std::vector<double> cosines = list_of(root, "cosines");
    if (gold.size() != cosines.size())
      throw InputError("gold and cosines have different lengths, expected equal ones");
    found->gold.insert(found->gold.end(), gold.begin(), gold.end());
    found->cosines.insert(found->cosines.end(), cosines.begin(), cosines.end());
  } else if (command == "choose") {
    add_choices(choices_of(root), choices_);
  } else {
    throw InputError(
        fmt::format("command {}, expected pairs, ppl, sim or choose", quote_json(command)));
  }
}

void Merger::add_shard(const JsonValue& root) {
  const JsonValue* shard = root.find("shard");
  if (sharded_.value_or(shard != nullptr) != (shard != nullptr))
    throw InputError("only some lines are of shards, expected all or none");
  sharded_ = shard != nullptr;
  if (!*sharded_) return;
  shards_.add(shard->text);
  std::string row;
  for (const std::string_view name : {"file", "level", "name"}) {
    const JsonValue* value = root.find(name);
    if (value != nullptr && row != "all") row += (row.empty() ? "" : " ") + escape(value->text);
  }
  if (rows_[row].add(shard->text)) return;
  throw InputError(fmt::format("shard {}{} appears twice, expected once", escape(shard->text),
                               row.empty() ? "" : fmt::format(" of {}", row)));
}

/// Not every shard has a pair of each group, but all have a row of all pairs.
void Merger::check_shards() const {
  if (sharded_ != true) return;
  shards_.check_complete();
  for (const auto& [row, shards] : rows_) {
    if (command_ != "pairs" || row == "all") shards.check_complete();
  }
}

void Merger::print(const commands::ResultFormat& number, const cli::CommonOptions& common,
                   cli::Session& session) const {
  if (command_.empty())
    throw InputError("nothing to merge, expected JSON lines printed with --shard");
  check_shards();
  if (command_ == "ppl" && perplexity_.tokens.n == 0)
    throw InputError("no tokens in any part, expected a text");
  if (command_ == "pairs" && pairs_.pairs() == 0)
    throw InputError("no pairs in any part, expected some");
  if (command_ == "choose" && choices_->confusion.total() == 0)
    throw InputError("no labelled texts in any part, expected some");
  if (command_ == "pairs") print_pairs(pairs_, provenance_, common, session);
  if (command_ == "ppl") print_ppl(perplexity_, provenance_, number, common, session);
  if (command_ == "choose") print_choices(*choices_, provenance_, common, session);
  if (command_ == "sim") print_sim(files_, provenance_, false, number, common, session);
}

}  // namespace masque::lm_score
