#include "classify_results.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/file/output_file.hpp"
#include "base/file/output_folder.hpp"
#include "base/input/digest_line.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "evaluate/statistics/correlation.hpp"
#include "evaluate/statistics/summary.hpp"

namespace masque::lm_train {

namespace {

/// In result.json: digests of the other files.
constexpr const char* kFiles = "files";

using Names = std::array<const char*, kMeasures>;

const Names& measure_names(train::ProblemType problem) {
  static constexpr Names kLabels = {"loss", "accuracy", "f1", "mcc"};
  static constexpr Names kNumbers = {"loss", "rmse", "pearson", "spearman"};
  return problem == train::ProblemType::kRegression ? kNumbers : kLabels;
}

std::vector<std::string> columns(train::ProblemType problem) {
  std::vector<std::string> all = {"seed", "data", "texts"};
  const Names& names = measure_names(problem);
  all.insert(all.end(), names.begin(), names.end());
  return all;
}

const JsonValue& member(const JsonValue& of, std::string_view name, const std::string& path) {
  const JsonValue* found = of.find(name);
  if (found == nullptr)
    throw InputError(path, fmt::format("no key '{}', expected a result of classify", name));
  return *found;
}

}  // namespace

SeedResult result_of(const train::Classified& found) {
  if (!found.numbers.empty()) {
    double squares = 0;
    for (std::size_t i = 0; i < found.numbers.size(); ++i) {
      const double error = found.predicted_numbers[i] - found.numbers[i];
      squares += error * error;
    }
    SeedResult result{
        found.numbers.size(),
        {found.report.mean(), std::sqrt(squares / static_cast<double>(found.numbers.size())),
         evaluate::pearson(found.numbers, found.predicted_numbers),
         evaluate::spearman(found.numbers, found.predicted_numbers)}};
    // Without a sign, whatever the processor gives it.
    for (double& value : result.measures)
      if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
    return result;
  }
  const evaluate::Confusion& c = found.confusion;
  return {c.total(), {found.report.mean(), c.accuracy(), c.f1(), c.mcc()}};
}

std::string predictions(const train::Classified& found, const std::vector<std::string>& names) {
  std::string out = "id\tlabel\tpredicted";
  if (!found.numbers.empty()) {
    out += '\n';
    for (std::size_t i = 0; i < found.numbers.size(); ++i)
      out += fmt::format("{}\t{}\t{:.7g}\n", i, found.numbers[i], found.predicted_numbers[i]);
    return out;
  }
  for (const std::string& name : names) out += fmt::format("\tp({})", escape(name));
  out += '\n';
  const std::size_t width = names.size();
  for (std::size_t i = 0; i < found.labels.size(); ++i) {
    out += fmt::format("{}\t{}\t{}", i, escape(names[static_cast<std::size_t>(found.labels[i])]),
                       escape(names[static_cast<std::size_t>(found.predicted[i])]));
    for (std::size_t k = 0; k < width; ++k)
      out += fmt::format("\t{:.6g}", found.probabilities[i * width + k]);
    out += '\n';
  }
  return out;
}

std::string record_text(const Settings& settings, train::ProblemType problem,
                        const SeedResult& result) {
  std::string text;
  JsonWriter json(text, JsonLayout::kLines);
  json.begin_object().key("settings").begin_object();
  for (const auto& [name, value] : settings) json.member(name, value);
  json.end_object().member("texts", result.texts);
  for (std::size_t i = 0; i < kMeasures; ++i)
    json.member(measure_names(problem)[i], result.measures[i]);
  json.key(kFiles).begin_object();
  for (const auto& [name, digest] : result.files) json.member(name, digest);
  json.end_object().end_object();
  return text + "\n";
}

std::optional<SeedResult> find_record(const std::string& folder, const Settings& settings,
                                      train::ProblemType problem) {
  if (!is_taken(folder)) return std::nullopt;
  const std::string path = join(folder, kResultName);
  if (!is_folder(folder) || !exists(path))
    throw InputError(
        folder, fmt::format("folder exists, but has no {} of a run: choose another", kResultName));
  const std::string text = read_text(path, std::uint64_t{1} << 24);
  const JsonValue root = parse_json_file(text, path);
  check_digest_member(text, path);
  const JsonValue& was = member(root, "settings", path);
  const auto changed = train::changed_settings(settings, [&](const std::string& name) {
    const JsonValue* found = was.find(name);
    return found == nullptr ? std::nullopt : std::optional(found->text);
  });
  if (changed) throw InputError(path, *changed);
  SeedResult result;
  result.texts = member(root, "texts", path).integer().value_or(0);
  for (std::size_t i = 0; i < kMeasures; ++i) {
    result.measures[i] = member(root, measure_names(problem)[i], path)
                             .number()
                             .value_or(std::numeric_limits<double>::quiet_NaN());
  }
  if (const JsonValue* files = root.find(kFiles)) {
    for (const auto& [name, begin, digest] : files->members)
      result.files.emplace_back(name, digest.text);
  }
  return result;
}

void check_files(const std::string& folder, const SeedResult& result) {
  if (result.files.empty()) {
    throw InputError(join(folder, kResultName),
                     "no digests of the other files, expected a result of this version");
  }
  train::check_digests(folder, result.files);
}

Results::Results(const ClassifyCommand& options, cli::Session& session)
    : options_(options),
      session_(session),
      data_(options.eval_data.value_or(options.text)),
      table_(session, options.common, columns(options.problem)),
      text_(fmt::format("{}\n", fmt::join(columns(options.problem), "\t"))) {}

void Results::add(std::uint64_t seed, const SeedResult& result) {
  for (std::size_t i = 0; i < kMeasures; ++i) columns_[i].push_back(result.measures[i]);
  texts_ = result.texts;
  print(seed, result.texts, result.measures);
  // A terminal's table is aligned, and so comes at the end alone.
  if (session_.stdout_is_terminal() && !options_.common.json && !options_.common.csv)
    session_.note(fmt::format("seed {}: {} {:.4f}", seed, measure_names(options_.problem)[1],
                              result.measures[1]));
  session_.flush_quietly();
}

void Results::keep() const {
  if (options_.output && options_.seeds > 1)
    replace_text(join(*options_.output, "results.tsv"), text_);
}

void Results::finish() {
  if (columns_[0].size() > 1) {
    std::array<double, kMeasures> means{};
    std::array<double, kMeasures> spreads{};
    for (std::size_t i = 0; i < kMeasures; ++i) {
      const evaluate::Summary summary = evaluate::summarise(columns_[i]);
      means[i] = summary.mean;
      spreads[i] = summary.sd;
    }
    print("mean", texts_, means);
    print("sd", texts_, spreads);
  }
  keep();
  table_.finish();
}

void Results::print(const cli::Cell& name, std::uint64_t texts,
                    const std::array<double, kMeasures>& measures) {
  std::vector<cli::Cell> cells = {name, data_, texts};
  for (const double value : measures) cells.push_back(cli::Cell::rounded(value));
  table_.row(cells);
  for (std::size_t i = 0; i < cells.size(); ++i)
    text_ += fmt::format("{}{}", cells[i].text(), i + 1 < cells.size() ? '\t' : '\n');
}

}  // namespace masque::lm_train
