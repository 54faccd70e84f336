#include "aggregates.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "commands/provenance.hpp"
#include "commands/result_format.hpp"
#include "evaluate/statistics/correlation.hpp"
#include "evaluate/statistics/summary.hpp"

namespace masque::lm_score {

namespace {

void add_moments(const evaluate::Moments& m, JsonWriter& json) {
  json.member("n", m.n).member("mean", m.mean).member("sum_squares", m.sum_squares);
}

/// `correct` is what merge adds; mean and sum_squares are those of numbers that are 1 for a right
/// pair, else 0, as of the other commands.
void add_counts(const evaluate::PairTally::Row& row, JsonWriter& json) {
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
  json.raw_member("pearson", format.json(evaluate::pearson(s.gold, s.cosines)));
  json.raw_member("spearman", format.json(evaluate::spearman(s.gold, s.cosines))).raw(provenance);
  if (keep_pairs) json.key("gold").array(s.gold).key("cosines").array(s.cosines);
  json.end_object();
  return out;
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

void print_table(const std::vector<Similarities>& rows, const commands::ResultFormat& format,
                 const cli::CommonOptions& common, cli::Session& session) {
  cli::Table table(session, common, {"file", "n", "pearson", "spearman"});
  for (const Similarities& s : rows) {
    table.row({s.file, static_cast<std::uint64_t>(s.gold.size()),
               format.cell(evaluate::pearson(s.gold, s.cosines)),
               format.cell(evaluate::spearman(s.gold, s.cosines))});
  }
  table.finish();
}

/// The lines of a shard, which merge reads again, have digests.
void print_objects(const std::vector<std::string>& objects, const Provenance& provenance,
                   cli::Session& session) {
  if (provenance.starts_with("\"shard\":")) return session.print(commands::part_lines(objects));
  for (const std::string& object : objects) session.print(object + "\n");
}

}  // namespace

Provenance with_shard(Provenance provenance, const std::optional<std::string>& shard,
                      const commands::OpenedModel& opened, const commands::InputPart& input) {
  if (!shard) return provenance;
  return commands::part_members(*shard, opened, input) + "," + provenance;
}

void print_pairs(const evaluate::PairTally& tally, const Provenance& provenance,
                 const cli::CommonOptions& common, cli::Session& session) {
  if (common.json) {
    std::vector<evaluate::PairTally::Row> rows = tally.rows();
    // A shard without pairs has a line, too: merge knows then that it is there.
    if (rows.empty()) rows.push_back({evaluate::PairTally::Level::kAll, "all"});
    std::vector<std::string> objects;
    for (const auto& row : rows) {
      std::string& out = objects.emplace_back();
      JsonWriter json(out);
      json.begin_object()
          .member("command", "pairs")
          .member("level", evaluate::level_name(row.level));
      json.member("name", row.name).member("accuracy", row.accuracy());
      const evaluate::Interval interval = evaluate::wilson_interval(row.right, row.n);
      json.member("low", interval.low).member("high", interval.high);
      add_counts(row, json);
      json.raw(provenance).end_object();
    }
    return print_objects(objects, provenance, session);
  }
  cli::Table table(session, common, {"level", "name", "n", "accuracy", "low", "high"});
  for (const auto& row : tally.rows()) {
    const evaluate::Interval interval = evaluate::wilson_interval(row.right, row.n);
    table.row({evaluate::level_name(row.level), row.name, row.n, row.accuracy(), interval.low,
               interval.high});
  }
  table.finish();
}

void print_comparison(const evaluate::PairComparison& comparison, const Provenance& provenance,
                      const Provenance& against, const cli::CommonOptions& common,
                      cli::Session& session) {
  const auto share = [](std::uint64_t right, std::uint64_t n) {
    return static_cast<double>(right) / static_cast<double>(n);
  };
  if (common.json) {
    std::vector<std::string> objects;
    for (const auto& row : comparison.rows()) {
      std::string& out = objects.emplace_back();
      JsonWriter json(out);
      json.begin_object()
          .member("command", "pairs")
          .member("level", evaluate::level_name(row.level));
      json.member("name", row.name).member("n", row.n);
      json.member("accuracy", share(row.first, row.n));
      json.member("accuracy_against", share(row.second, row.n)).member("only", row.only_first);
      json.member("only_against", row.only_second).member("p", row.p());
      json.raw(provenance).key("against").begin_object().raw(against).end_object().end_object();
    }
    return print_objects(objects, provenance, session);
  }
  cli::Table table(
      session, common,
      {"level", "name", "n", "accuracy", "accuracy_against", "only", "only_against", "p"});
  for (const auto& row : comparison.rows()) {
    table.row({evaluate::level_name(row.level), row.name, row.n, share(row.first, row.n),
               share(row.second, row.n), row.only_first, row.only_second, row.p()});
  }
  table.finish();
}

void print_ppl(const evaluate::Perplexity& p, const Provenance& provenance,
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
    return print_objects({out}, provenance, session);
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
  report.print(session, common);
}

void print_sim(const std::vector<Similarities>& files, const Provenance& provenance,
               bool keep_pairs, const commands::ResultFormat& format,
               const cli::CommonOptions& common, cli::Session& session) {
  std::vector<Similarities> rows = files;
  if (files.size() > 1 && !keep_pairs) rows.push_back(all_of(files));
  if (common.json) {
    std::vector<std::string> objects;
    for (const Similarities& s : rows)
      objects.push_back(sim_json(s, provenance, keep_pairs, format));
    print_objects(objects, provenance, session);
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
  const evaluate::Confusion& c = choices.confusion;
  const evaluate::Interval interval = evaluate::wilson_interval(c.right(), c.total());
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
    return print_objects({out}, provenance, session);
  }
  cli::Table table(session, common, {"texts", "accuracy", "low", "high", "f1", "mcc"});
  table.row({c.total(), c.accuracy(), interval.low, interval.high, c.macro_f1(), c.mcc()});
  table.finish();
}

}  // namespace masque::lm_score
