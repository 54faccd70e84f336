#include "merger.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"

namespace masque::lm_score {

namespace {

constexpr commands::ResultReader kReader("a line that --json printed");
constexpr std::uint64_t kMostTexts = std::uint64_t{1} << 53;

std::vector<double> list_of(const JsonValue& root, std::string_view name) {
  const JsonValue& list = kReader.member(root, name, JsonKind::kArray);
  std::vector<double> out;
  out.reserve(list.items.size());
  for (const JsonValue& item : list.items) out.push_back(item.number().value_or(0));
  return out;
}

/// What is added up or made of sums; all other members say how a result was made.
constexpr std::array<std::string_view, 28> kResults{"command",
                                                    "shard",
                                                    "level",
                                                    "name",
                                                    "accuracy",
                                                    "low",
                                                    "high",
                                                    "correct",
                                                    "n",
                                                    "mean",
                                                    "sum_squares",
                                                    "perplexity",
                                                    "bits_per_byte",
                                                    "standard_error",
                                                    "score_variance",
                                                    "lines",
                                                    "bytes",
                                                    "file",
                                                    "pearson",
                                                    "spearman",
                                                    "gold",
                                                    "cosines",
                                                    "texts",
                                                    "f1",
                                                    "mcc",
                                                    "names",
                                                    "counts",
                                                    commands::kLeftOut};

evaluate::PairTally::Level level_of(const std::string& name) {
  using Level = evaluate::PairTally::Level;
  for (const Level level : {Level::kParadigm, Level::kTerm, Level::kField}) {
    if (evaluate::level_name(level) == name) return level;
  }
  return Level::kAll;
}

evaluate::PairTally::Row row_of(const JsonValue& root) {
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
  Choices choices{std::move(names), evaluate::Confusion(static_cast<Index>(n))};
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

void Merger::add(std::string_view text, const std::string& path) {
  commands::for_each_result(text, path, [&](const JsonValue& root) { add_line(root); });
}

void Merger::add_line(const JsonValue& root) {
  const std::string& command = kReader.text(root, "command");
  if (!command_.empty() && command != command_) {
    throw InputError(
        fmt::format("{}, expected {} as in the parts before", escape(command), command_));
  }
  commands::ProvenanceMembers provenance = commands::provenance_of(root, kResults);
  if (!command_.empty()) commands::check_provenance(command, provenance, provenance_);
  command_ = command;
  provenance_ = std::move(provenance);
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
  if (shards_.add(shard->text) && root.find(commands::kLeftOut) != nullptr)
    left_out_ += kReader.count(root, commands::kLeftOut);
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

const char* Merger::missing() const {
  if (command_ == "ppl" && perplexity_.tokens.n == 0)
    return "no tokens in any part, expected a text";
  if (command_ == "pairs" && pairs_.pairs() == 0) return "no pairs in any part, expected some";
  if (command_ == "choose" && choices_->confusion.total() == 0)
    return "no labelled texts in any part, expected some";
  return nullptr;
}

void Merger::print(const std::optional<std::int64_t>& digits, const cli::CommonOptions& common,
                   cli::Session& session) const {
  if (command_.empty())
    throw InputError("nothing to merge, expected JSON lines printed with --shard");
  check_shards();
  // What was left out may be all.
  if (const char* problem = missing(); left_out_ == 0 && problem != nullptr)
    throw InputError(problem);
  const Provenance provenance = commands::provenance_text(commands::without_contents(provenance_));
  const auto number = commands::ResultFormat::of(commands::precision_of(provenance_), digits);
  if (command_ == "pairs") print_pairs(pairs_, provenance, common, session);
  if (command_ == "ppl") print_ppl(perplexity_, provenance, number, common, session);
  if (command_ == "choose") print_choices(*choices_, provenance, common, session);
  if (command_ == "sim") print_sim(files_, provenance, false, number, common, session);
}

}  // namespace masque::lm_score
