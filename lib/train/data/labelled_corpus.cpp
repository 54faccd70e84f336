#include "train/data/labelled_corpus.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "base/string/utf8.hpp"
#include "train/data/line_encoder.hpp"

namespace masque::train {

namespace {

constexpr std::uint64_t kLongest = std::uint64_t{1} << 34;

/// Lines of a file to items.
class Reader {
 public:
  Reader(const text::Tokenizer& tokenizer, const LabelledOptions& options, LabelledCorpus& to)
      : options_(options),
        lines_(tokenizer, {.format = options.text_columns.size() == 2 ? CorpusFormat::kPairs
                                                                      : CorpusFormat::kLines,
                           .length = options.length,
                           .policy = options.policy}),
        encoder_(tokenizer.id_encoder({})),
        to_(to) {
    if (options.text_columns.empty() || options.text_columns.size() > 2)
      throw UsageError(fmt::format("{}: expected one or two columns", field("text_columns")));
    if (!options.header) choose({});
  }

  void add(std::string_view line) {
    ++line_;
    const std::vector<std::string_view> columns = split(without_return(line), '\t');
    if (options_.header && line_ == 1) return choose(columns);
    const std::size_t most = std::max(*std::ranges::max_element(texts_), label_);
    if (columns.size() <= most) {
      refuse(fmt::format("{}, expected at least {}", counted(columns.size(), "column"), most + 1));
    }
    if (columns[label_].empty()) refuse("empty label");
    // config.json, which keeps the labels, can hold nothing else.
    if (!valid_utf8(columns[label_])) {
      refuse(fmt::format("label '{}' is not valid UTF-8", escape(columns[label_])));
    }
    text_ = columns[texts_.front()];
    if (texts_.size() == 2) text_ += fmt::format("\t{}", columns[texts_.back()]);
    piece_.text = text_;
    lines_.encode(encoder_, piece_);
    to_.corpus.add_repaired(piece_.repaired);
    const bool one = texts_.size() == 1;
    if (piece_.ids.empty() && piece_.cut.sequences == 0) refuse("text without tokens");
    const bool taken = one ? lines_.is_taken(piece_.ids.size(), piece_) : !piece_.ids.empty();
    if (!piece_.problem.empty()) refuse(piece_.problem);
    to_.corpus.add_cut(piece_.cut);
    if (!taken) return;
    if (one) {
      to_.corpus.add(lines_.shape().sequence(piece_.ids));
    } else {
      to_.corpus.add(piece_.ids, piece_.segments);
    }
    to_.labels.emplace_back(columns[label_]);
    to_.lines.push_back(line_);
  }

 private:
  [[noreturn]] void refuse(const std::string& problem) const {
    throw InputError(to_.path, fmt::format("line {}: {}", line_, problem));
  }

  void choose(const std::vector<std::string_view>& names) {
    for (const std::string& column : options_.text_columns) texts_.push_back(place(column, names));
    label_ = place(options_.label_column, names);
    if (texts_.size() == 2 && texts_.front() == texts_.back())
      throw UsageError(
          fmt::format("column {} is given for both texts, expected two columns", texts_[0] + 1));
    if (std::ranges::find(texts_, label_) != texts_.end()) {
      throw UsageError(fmt::format(
          "column {} is given for text and label, expected different columns", label_ + 1));
    }
  }

  std::size_t place(const std::string& column, const std::vector<std::string_view>& names) const {
    const auto found = std::ranges::find(names, column);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    const std::optional<std::int64_t> number = parse_number<std::int64_t>(column);
    if (!number && options_.header) {
      throw InputError(to_.path, fmt::format("no column '{}', expected one of {}", escape(column),
                                             escape(fmt::format("{}", fmt::join(names, ", ")))));
    }
    if (!number || *number < 1 || *number > 1'000'000) {
      throw UsageError(fmt::format("column '{}', expected a number from 1{}", escape(column),
                                   options_.header ? "" : ", or a name with a header"));
    }
    return static_cast<std::size_t>(*number - 1);
  }

  const LabelledOptions& options_;
  LineEncoder lines_;
  text::IdEncoder encoder_;
  LabelledCorpus& to_;
  std::vector<std::size_t> texts_;
  std::size_t label_ = 0;
  Index line_ = 0;
  std::string text_;
  EncodedLines piece_;
};

/// Whether a column is usually called so.
bool is_column_name(std::string_view label) {
  constexpr std::array<std::string_view, 13> kNames{
      "label",  "labels", "class", "category",   "target",    "gold",      "score",
      "rating", "intent", "topic", "gold_label", "sentiment", "similarity"};
  std::string lower(label);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::ranges::find(kNames, lower) != kNames.end();
}

/// Throws InputError if the label of the first line can only be the name of its column.
void refuse_header(const LabelledCorpus& corpus) {
  if (corpus.labels.size() < 2 || corpus.lines.front() != 1) return;
  const std::string& first = corpus.labels.front();
  const auto others = std::span(corpus.labels).subspan(1);
  const auto is_number = [](const std::string& label) {
    return parse_number<double>(label).has_value();
  };
  const bool only_word =
      others.size() > 1 && !is_number(first) && std::ranges::all_of(others, is_number);
  const bool is_name = is_column_name(first) && std::ranges::find(others, first) == others.end();
  if (!only_word && !is_name) return;
  throw InputError(corpus.path,
                   fmt::format("line 1: label '{}', which no other line has; is this a header "
                               "line? {} takes the column names from it",
                               escape(first), field("header")));
}

}  // namespace

LabelledCorpus read_labelled(const std::string& path, const text::Tokenizer& tokenizer,
                             const LabelledOptions& options) {
  LabelledCorpus out;
  out.path = input_name(path);
  Reader reader(tokenizer, options, out);
  for_each_line(read_text(path, kLongest), [&](std::string_view line) { reader.add(line); });
  if (out.labels.empty() && out.corpus.cut_text().sequences > 0) {
    throw InputError(out.path, evaluate::all_too_long("lines", options.length));
  }
  if (out.labels.empty()) throw InputError(out.path, "no line with a text and a label");
  if (!options.header) refuse_header(out);
  out.corpus.set_source(out.path);
  return out;
}

std::vector<std::string> label_names(const LabelledCorpus& corpus) {
  std::vector<std::string> names = corpus.labels;
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.size() < 2) {
    throw InputError(corpus.path,
                     fmt::format("all labels are '{}', expected at least two different ones",
                                 escape(names.front())));
  }
  const auto is_number = [](const std::string& name) {
    return parse_number<std::int64_t>(name).has_value();
  };
  if (std::ranges::all_of(names, is_number))
    std::ranges::stable_sort(
        names, {}, [](const std::string& name) { return *parse_number<std::int64_t>(name); });
  return names;
}

/// Models hold floats, and squares of such numbers must be some.
constexpr double kLargestValue = 1e30;

std::vector<double> label_values(const LabelledCorpus& corpus) {
  std::vector<double> values;
  values.reserve(corpus.labels.size());
  for (const std::string& label : corpus.labels) {
    const std::optional<double> value = parse_number<double>(label);
    if (!value || !(std::abs(*value) <= kLargestValue)) {
      throw InputError(corpus.path, fmt::format("line {}: '{}', expected a number of at most 1e30",
                                                corpus.lines[values.size()], escape(label)));
    }
    values.push_back(*value);
  }
  return values;
}

std::vector<TokenId> label_numbers(const LabelledCorpus& corpus,
                                   const std::vector<std::string>& names) {
  std::map<std::string, TokenId, std::less<>> places;
  for (std::size_t i = 0; i < names.size(); ++i) places[names[i]] = static_cast<TokenId>(i);
  std::vector<TokenId> numbers;
  numbers.reserve(corpus.labels.size());
  for (const std::string& label : corpus.labels) {
    const auto found = places.find(label);
    if (found == places.end()) {
      throw InputError(corpus.path, fmt::format("line {}: label '{}', expected one of {}",
                                                corpus.lines[numbers.size()], escape(label),
                                                escape(fmt::format("{}", fmt::join(names, ", ")))));
    }
    numbers.push_back(found->second);
  }
  return numbers;
}

}  // namespace masque::train
