#include "evaluate/score/nbest.hpp"

#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/json/json_text.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "base/string/text_splice.hpp"
#include "base/string/utf8.hpp"
#include "text/unicode/space_marks.hpp"

namespace masque::evaluate {

namespace {

std::optional<double> parse_finite(std::string_view text) {
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

void add_line(std::string_view line, const std::string& path, std::uint64_t number,
              std::vector<Utterance>& out) {
  const std::vector<std::string_view> fields = split(line, '\t');
  const auto refuse = [&](const std::string& what) {
    throw InputError(path, fmt::format("line {}: {}", number, what));
  };
  if (!valid_utf8(line)) refuse("not valid UTF-8");
  if (fields.size() != 3 && fields.size() != 4) {
    refuse(fmt::format(
        "{} fields, expected 3 or 4: utterance, score, hypothesis and (optional) reference",
        fields.size()));
  }
  if (number == 1 && fields[1] == "score") return;
  const std::optional<double> score = parse_finite(fields[1]);
  if (!score) refuse(fmt::format("found '{}', expected a score", escape(fields[1])));
  std::optional<std::string> reference;
  if (fields.size() == 4) reference = fields[3];
  if (out.empty() || out.back().name != fields[0])
    out.push_back({std::string(fields[0]), reference, {}});
  if (out.back().reference != reference)
    refuse("the reference differs from the line before, expected one reference per utterance");
  out.back().hypotheses.push_back({std::string(fields[2]), *score});
}

std::vector<Utterance> read_lines(std::string_view text, const std::string& path) {
  std::vector<Utterance> out;
  std::uint64_t number = 0;
  for_each_line(text, [&](std::string_view line) {
    ++number;
    line = without_return(line);
    if (!line.empty()) add_line(line, path, number, out);
  });
  return out;
}

std::string plain_text(std::string raw) {
  for (const std::string_view token : {"<eos>", "<sos>", "<blank>"}) replace_all(raw, token, "");
  replace_all(raw, text::kSpaceMark, " ");
  replace_all(raw, "<space>", " ");
  std::string out;
  for (const std::string_view word : split_words(raw)) {
    if (!out.empty()) out += ' ';
    out += word;
  }
  return out;
}

const JsonValue& member(const JsonValue& object, std::string_view name, JsonKind kind,
                        const std::string& path, const std::string& utterance) {
  const JsonValue* value = object.find(name);
  if (value == nullptr || !value->is(kind))
    throw InputError(path,
                     fmt::format("utterance '{}': no {}, expected one", escape(utterance), name));
  return *value;
}

double number_member(const JsonValue& object, std::string_view name, const std::string& path,
                     const std::string& utterance) {
  const std::optional<double> value =
      member(object, name, JsonKind::kNumber, path, utterance).number();
  if (!value || !std::isfinite(*value))
    throw InputError(path, fmt::format("utterance '{}': {} is not a finite number, expected one",
                                       escape(utterance), name));
  return *value;
}

Utterance espnet_utterance(const JsonMember& entry, const std::string& path) {
  Utterance out{entry.name, {}, {}};
  const JsonValue& list = member(entry.value, "output", JsonKind::kArray, path, out.name);
  for (const JsonValue& item : list.items) {
    const auto text = [&](std::string_view name) {
      return plain_text(member(item, name, JsonKind::kString, path, out.name).text);
    };
    // Every hypothesis repeats the reference, but one is enough.
    const bool first = out.hypotheses.empty();
    const bool has_text = item.find("text") != nullptr;
    if (first && has_text) out.reference = text("text");
    if (!first && has_text && text("text") != out.reference) {
      throw InputError(path, fmt::format("utterance '{}': hypotheses with different references "
                                         "(text), expected one reference per utterance",
                                         escape(out.name)));
    }
    out.hypotheses.push_back({text("rec_text"), number_member(item, "score", path, out.name)});
  }
  return out;
}

Utterance mlm_scoring_utterance(const JsonMember& entry, const std::string& path) {
  Utterance out{entry.name, {}, {}};
  if (entry.value.find("ref") != nullptr)
    out.reference = member(entry.value, "ref", JsonKind::kString, path, out.name).text;
  for (const JsonMember& hypothesis : entry.value.members) {
    if (!hypothesis.name.starts_with("hyp_")) continue;
    out.hypotheses.push_back(
        {member(hypothesis.value, "text", JsonKind::kString, path, out.name).text,
         number_member(hypothesis.value, "score", path, out.name)});
  }
  return out;
}

std::vector<Utterance> read_document(const std::string& text, const std::string& path) {
  const JsonValue root = parse_json_file(text, path);
  if (!root.is(JsonKind::kObject))
    throw InputError(path, "not a JSON object, expected n-best lists");
  const JsonValue* utts = root.find("utts");
  std::vector<Utterance> out;
  for (const JsonMember& entry : (utts != nullptr ? *utts : root).members) {
    out.push_back(utts != nullptr ? espnet_utterance(entry, path)
                                  : mlm_scoring_utterance(entry, path));
  }
  return out;
}

}  // namespace

std::vector<Utterance> read_nbest(std::string_view text, const std::string& path,
                                  std::uint64_t* lone_surrogates) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool document = first != std::string_view::npos && text[first] == '{';
  std::string json(document ? text : std::string_view());
  const std::uint64_t replaced = replace_lone_surrogates(json);
  if (lone_surrogates != nullptr) *lone_surrogates = replaced;
  std::vector<Utterance> out = document ? read_document(json, path) : read_lines(text, path);
  std::set<std::string_view> names;
  for (const Utterance& utterance : out) {
    if (!names.insert(utterance.name).second) {
      throw InputError(
          path, fmt::format("utterance '{}' occurs twice, expected all its hypotheses in one list",
                            escape(utterance.name)));
    }
    if (utterance.hypotheses.empty()) {
      throw InputError(path, fmt::format("utterance '{}': no hypothesis, expected at least one",
                                         escape(utterance.name)));
    }
    if (utterance.reference.has_value() != out.front().reference.has_value()) {
      throw InputError(
          path, fmt::format("utterance '{}' has {} reference, expected {} as for utterance '{}'",
                            escape(utterance.name), utterance.reference ? "a" : "no",
                            utterance.reference ? "none" : "one", escape(out.front().name)));
    }
  }
  if (out.empty()) throw InputError(path, "no utterances, expected n-best lists");
  return out;
}

double LengthNormalization::divisor(Index tokens) const {
  const auto length = static_cast<double>(tokens);
  switch (kind) {
    case Kind::kNone: return 1;
    case Kind::kGnmt: return std::pow((5 + length) / 6, alpha);
    case Kind::kPower: break;
  }
  // An empty hypothesis has the score 0, whatever divides it.
  return tokens == 0 ? 1 : std::pow(length, alpha);
}

LengthNormalization parse_length_normalization(std::string_view text) {
  using Kind = LengthNormalization::Kind;
  if (text == "none") return {};
  const auto [name, argument] = split_at_first(text, ':');
  const std::optional<double> alpha = argument ? parse_finite(*argument) : std::nullopt;
  if (alpha && *alpha >= 0 && name == "gnmt") return {Kind::kGnmt, *alpha};
  if (alpha && *alpha >= 0 && name == "power") return {Kind::kPower, *alpha};
  throw UsageError(fmt::format("{}: found '{}', expected none, gnmt:ALPHA or power:ALPHA",
                               field("length_normalization"), escape(text)));
}

bool has_references(std::span<const Utterance> utterances) {
  return !utterances.empty() && utterances.front().reference.has_value();
}

double combined_score(const Hypothesis& hypothesis, double weight,
                      const LengthNormalization& length) {
  return hypothesis.score + weight * hypothesis.language_score / length.divisor(hypothesis.tokens);
}

std::size_t choose(const Utterance& utterance, double weight, const LengthNormalization& length) {
  MASQUE_CHECK(!utterance.hypotheses.empty());
  std::size_t best = 0;
  double highest = 0;
  for (std::size_t i = 0; i < utterance.hypotheses.size(); ++i) {
    const double final_score = combined_score(utterance.hypotheses[i], weight, length);
    if (i > 0 && final_score <= highest) continue;
    best = i;
    highest = final_score;
  }
  return best;
}

WordErrors errors_at(std::span<const Utterance> utterances, double weight,
                     const LengthNormalization& length) {
  WordErrors sum;
  for (const Utterance& u : utterances)
    sum.add(word_errors(u.reference.value(), u.hypotheses[choose(u, weight, length)].text));
  return sum;
}

WordErrors oracle_errors(std::span<const Utterance> utterances) {
  WordErrors sum;
  for (const Utterance& u : utterances) {
    WordErrors best;
    for (std::size_t i = 0; i < u.hypotheses.size(); ++i) {
      const WordErrors errors = word_errors(u.reference.value(), u.hypotheses[i].text);
      if (i == 0 || errors.errors() < best.errors()) best = errors;
    }
    sum.add(best);
  }
  return sum;
}

}  // namespace masque::evaluate
