#include "evaluate/score/text_metrics.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/string/edit_distance.hpp"
#include "base/string/text_splice.hpp"
#include "evaluate/score/word_error_rate.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::evaluate {

namespace {

constexpr std::pair<std::string_view, BleuTokenizer> kBleuTokenizers[] = {
    {"13a", BleuTokenizer::k13a},
    {"intl", BleuTokenizer::kIntl},
    {"char", BleuTokenizer::kChar},
    {"none", BleuTokenizer::kNone},
};

/// Undone one after the other: "&amp;lt;" becomes "<".
constexpr std::pair<std::string_view, std::string_view> kEscapes[] = {
    {"&quot;", "\""}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }

/// [\{-\~\[-\` -\&\(-\+\:-\@\/]
bool is_13a_mark(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

/// Whether Python's str.split, str.strip and str.isspace take the code point `c` for white space.
bool is_python_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return text::is_white_space(c);
}

/// Appends the parts of `text` between white space.
void split_as_python(std::string_view text, std::vector<std::string_view>& out) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t at = i;
    const char32_t c = text::next_char(text, i);
    if (!is_python_space(c)) continue;
    if (at > begin) out.push_back(text.substr(begin, at - begin));
    begin = i;
  }
  if (begin < text.size()) out.push_back(text.substr(begin));
}

std::string_view without_space_at_end(std::string_view line) {
  while (!line.empty()) {
    std::size_t i = line.size();
    if (!is_python_space(text::previous_char(line, i))) break;
    line = line.substr(0, i);
  }
  return line;
}

/// Writes `text` with `between` after the first of two neighbours that match, and `after` after the
/// second, `before` before the first; pairs do not overlap. Bytes are enough: an expression
/// that matches a character outside ASCII matches its bytes, too.
template <class Match>
void space_pairs(std::string_view text, std::string_view before, std::string_view after,
                 const Match& match, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !match(text[i], text[i + 1])) {
      out += text[i];
      continue;
    }
    out += before;
    out += text[i];
    out += ' ';
    out += text[++i];
    out += after;
  }
}

/// Writes the tokens of `line` to `out`, as rouge_score 0.1.2 without its stemmer: lower case, then
/// runs of a–z and 0–9. Letters of other scripts separate tokens.
void cut_for_rouge(std::string_view line, CutText& out) {
  const auto kept = [](char32_t c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  out.text.clear();
  out.tokens.clear();
  for (std::size_t i = 0; i < line.size();) {
    char32_t c = text::next_char(line, i);
    if (c < 0x80) {
      if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
      out.text += kept(c) ? static_cast<char>(c) : ' ';
      continue;
    }
    // A few become ASCII: the Kelvin sign is a k, and İ is i with a dot that goes away.
    const std::u32string_view lower = text::lower_case(c);
    if (lower.empty()) out.text += ' ';
    for (const char32_t part : lower) out.text += kept(part) ? static_cast<char>(part) : ' ';
  }
  split_as_python(out.text, out.tokens);
}

/// An n-gram that no reference has.
constexpr std::uint32_t kNoNgram = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kFewestSlots = 64;

constexpr std::pair<std::string_view, TextMetric> kTextMetrics[] = {
    {"exact_match", TextMetric::kExactMatch},
    {"token_accuracy", TextMetric::kTokenAccuracy},
    {"bleu", TextMetric::kBleu},
    {"chrf", TextMetric::kChrf},
    {"rouge_l", TextMetric::kRougeL},
    {"wer", TextMetric::kWer},
    {"edit_distance", TextMetric::kEditDistance},
};

constexpr std::size_t kBleuOrders = 4;
constexpr std::size_t kChrfOrders = 6;
constexpr double kChrfBetaSquared = 4;

/// BLEU's counts: lengths of hypothesis and reference, matches and n-grams of each order.
constexpr std::size_t kBleuMatches = 2;
constexpr std::size_t kBleuTotals = kBleuMatches + kBleuOrders;
constexpr std::size_t kBleuWidth = kBleuTotals + kBleuOrders;
constexpr std::size_t kChrfWidth = 3 * kChrfOrders;
static_assert(kChrfWidth == kMostCounts && kBleuWidth <= kMostCounts);

/// What follows is sacreBLEU's compute_bleu, step by step.
double bleu_of(std::span<const double> sums, bool effective_order) {
  const double length = sums[0];
  const double reference_length = sums[1];
  const std::span<const double> matches = sums.subspan(kBleuMatches, kBleuOrders);
  const std::span<const double> totals = sums.subspan(kBleuTotals, kBleuOrders);
  if (std::all_of(matches.begin(), matches.end(), [](double m) { return m == 0; })) return 0;
  double penalty = 1;
  if (length < reference_length) penalty = length > 0 ? std::exp(1 - reference_length / length) : 0;
  std::array<double, kBleuOrders> precisions{};
  std::size_t orders = kBleuOrders;
  double smoothing = 1;
  for (std::size_t n = 0; n < kBleuOrders && totals[n] > 0; ++n) {
    if (effective_order) orders = n + 1;
    if (matches[n] == 0) {
      smoothing *= 2;
      precisions[n] = 100 / (smoothing * totals[n]);
    } else {
      precisions[n] = 100 * matches[n] / totals[n];
    }
  }
  double sum = 0;
  for (std::size_t n = 0; n < orders; ++n) {
    if (precisions[n] == 0) return 0;
    sum += std::log(precisions[n]);
  }
  return penalty * std::exp(sum / static_cast<double>(orders));
}

/// _compute_f_score of sacreBLEU's chrF: precision and recall are means over the orders that both
/// texts have.
template <class Number>
double chrf_of(const Number* sums) {
  double precision = 0;
  double recall = 0;
  double orders = 0;
  for (std::size_t n = 0; n < kChrfOrders; ++n) {
    const auto hypothesis = static_cast<double>(sums[3 * n]);
    const auto reference = static_cast<double>(sums[3 * n + 1]);
    const auto matches = static_cast<double>(sums[3 * n + 2]);
    if (hypothesis == 0 || reference == 0) continue;
    precision += matches / hypothesis;
    recall += matches / reference;
    orders += 1;
  }
  if (precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  const double score = (1 + kChrfBetaSquared) * precision * recall;
  return 100 * (score / (kChrfBetaSquared * precision + recall));
}

/// F1 of precision s / h and recall s / r is 2s / (h + r).
double rouge_of(const std::uint32_t* counts) {
  return counts[1] == 0 ? 0 : static_cast<double>(counts[0]) / static_cast<double>(counts[1]);
}

double ratio_of_sums(std::span<const double> sums) {
  return sums[1] == 0 ? std::numeric_limits<double>::quiet_NaN() : sums[0] / sums[1];
}

std::uint32_t count_of(std::size_t n) {
  MASQUE_CHECK(n <= std::numeric_limits<std::uint32_t>::max());
  return static_cast<std::uint32_t>(n);
}

std::uint32_t ngrams_of(std::size_t length, std::size_t order) {
  return length < order ? 0 : count_of(length - order + 1);
}

void put_pair(std::uint32_t* out, std::size_t first, std::size_t second) {
  out[0] = count_of(first);
  out[1] = count_of(second);
}

}  // namespace

NameTable<TextMetric> text_metric_names() { return kTextMetrics; }

std::size_t count_width(TextMetric metric) {
  if (metric == TextMetric::kBleu) return kBleuWidth;
  return metric == TextMetric::kChrf ? kChrfWidth : 2;
}

std::size_t count_width(std::span<const TextMetric> metrics) {
  std::size_t width = 0;
  for (const TextMetric metric : metrics) width += count_width(metric);
  return width;
}

void put_terms(TextMetric metric, const std::uint32_t* counts, double* terms) {
  if (metric == TextMetric::kRougeL) {
    terms[0] = rouge_of(counts);
    terms[1] = 1;
    return;
  }
  std::copy_n(counts, count_width(metric), terms);
}

double metric_value(TextMetric metric, std::span<const double> sums) {
  if (metric == TextMetric::kBleu) return bleu_of(sums, false);
  return metric == TextMetric::kChrf ? chrf_of(sums.data()) : ratio_of_sums(sums);
}

double line_value(TextMetric metric, const std::uint32_t* counts) {
  std::array<double, kChrfWidth> terms{};
  const std::span<double> used(terms.data(), count_width(metric));
  put_terms(metric, counts, used.data());
  return metric == TextMetric::kBleu ? bleu_of(used, true) : metric_value(metric, used);
}

LineCounter::LineCounter(std::vector<TextMetric> metrics, BleuTokenizer tokenizer)
    : metrics_(std::move(metrics)), cutter_(tokenizer) {}

void LineCounter::add(std::string_view hypothesis, std::span<const std::string_view> references,
                      std::vector<std::uint32_t>& counts) {
  MASQUE_CHECK(!references.empty());
  texts_.assign(1, hypothesis);
  texts_.insert(texts_.end(), references.begin(), references.end());
  for (auto* of_texts : {&symbols_, &words_, &characters_, &packed_})
    of_texts->resize(texts_.size());
  cut_.resize(texts_.size());
  const auto has = [this](TextMetric a, TextMetric b) {
    return std::any_of(metrics_.begin(), metrics_.end(),
                       [&](TextMetric m) { return m == a || m == b; });
  };
  if (has(TextMetric::kTokenAccuracy, TextMetric::kWer)) read_words();
  if (has(TextMetric::kChrf, TextMetric::kEditDistance)) read_characters();
  for (const TextMetric metric : metrics_) {
    const std::size_t at = counts.size();
    counts.resize(at + count_width(metric));
    add_metric(metric, counts.data() + at);
  }
}

void LineCounter::add_metric(TextMetric metric, std::uint32_t* out) {
  switch (metric) {
    case TextMetric::kExactMatch: {
      const bool same = std::find(texts_.begin() + 1, texts_.end(), texts_[0]) != texts_.end();
      return put_pair(out, same ? 1 : 0, 1);
    }
    case TextMetric::kTokenAccuracy: return count_accuracy(out);
    case TextMetric::kBleu: return count_bleu(out);
    case TextMetric::kChrf: return count_chrf(out);
    case TextMetric::kRougeL: return count_rouge(out);
    case TextMetric::kWer: return count_wer(out);
    case TextMetric::kEditDistance: return count_edits(out);
  }
}

template <class Cut>
void LineCounter::number_tokens(const Cut& cut) {
  std::size_t tokens = 0;
  for (std::size_t t = 0; t < texts_.size(); ++t) {
    cut(texts_[t], cut_[t]);
    tokens += cut_[t].tokens.size();
  }
  numbers_.start(tokens);
  for (std::size_t t = 0; t < texts_.size(); ++t) {
    symbols_[t].clear();
    for (const std::string_view token : cut_[t].tokens) symbols_[t] += numbers_.number(token);
  }
}

void LineCounter::read_words() {
  number_tokens([](std::string_view line, CutText& out) { out.tokens = split_words(line); });
  std::swap(words_, symbols_);
}

void LineCounter::read_characters() {
  for (std::size_t t = 0; t < texts_.size(); ++t) {
    characters_[t].clear();
    packed_[t].clear();
    for (std::size_t i = 0; i < texts_[t].size();) {
      const char32_t c = text::next_char(texts_[t], i);
      characters_[t] += c;
      if (!is_python_space(c)) packed_[t] += c;
    }
  }
}

void LineCounter::count_bleu(std::uint32_t* out) {
  number_tokens([this](std::string_view line, CutText& cut) { cutter_.cut(line, cut); });
  const std::size_t length = symbols_[0].size();
  const auto distance = [&](std::size_t other) {
    return other > length ? other - length : length - other;
  };
  std::size_t nearest = symbols_[1].size();
  for (std::size_t t = 2; t < symbols_.size(); ++t) {
    const std::size_t other = symbols_[t].size();
    if (std::pair(distance(other), other) < std::pair(distance(nearest), nearest)) nearest = other;
  }
  put_pair(out, length, nearest);
  views_.assign(symbols_.begin() + 1, symbols_.end());
  matcher_.match(symbols_[0], views_, {out + kBleuMatches, kBleuOrders});
  for (std::size_t n = 0; n < kBleuOrders; ++n) out[kBleuTotals + n] = ngrams_of(length, n + 1);
}

void LineCounter::count_chrf(std::uint32_t* out) {
  const std::u32string& hypothesis = packed_[0];
  double best = -1;
  for (std::size_t t = 1; t < packed_.size(); ++t) {
    const std::u32string_view reference = packed_[t];
    std::array<std::uint32_t, kChrfOrders> matches{};
    matcher_.match(hypothesis, {&reference, 1}, matches);
    std::array<std::uint32_t, kChrfWidth> counts{};
    for (std::size_t n = 0; n < kChrfOrders; ++n) {
      const std::uint32_t of_reference = ngrams_of(reference.size(), n + 1);
      counts[3 * n] = of_reference == 0 ? 0 : ngrams_of(hypothesis.size(), n + 1);
      counts[3 * n + 1] = of_reference;
      counts[3 * n + 2] = matches[n];
    }
    const double score = chrf_of(counts.data());
    if (score <= best) continue;
    best = score;
    std::copy(counts.begin(), counts.end(), out);
  }
}

void LineCounter::count_rouge(std::uint32_t* out) {
  number_tokens(cut_for_rouge);
  put_pair(out, 0, 0);
  for (std::size_t t = 1; t < symbols_.size(); ++t) {
    std::array<std::uint32_t, 2> counts{};
    put_pair(counts.data(), 2 * common_subsequence(symbols_[0], symbols_[t]),
             symbols_[0].size() + symbols_[t].size());
    if (rouge_of(counts.data()) > rouge_of(out)) std::copy(counts.begin(), counts.end(), out);
  }
}

void LineCounter::count_accuracy(std::uint32_t* out) const {
  const std::u32string& hypothesis = words_[0];
  for (std::size_t t = 1; t < words_.size(); ++t) {
    const std::u32string& reference = words_[t];
    std::uint64_t right = 0;
    for (std::size_t i = 0; i < std::min(hypothesis.size(), reference.size()); ++i)
      right += hypothesis[i] == reference[i] ? 1U : 0U;
    const std::uint64_t all = std::max(hypothesis.size(), reference.size());
    // Shares are compared without dividing; of two empty texts nothing is wrong.
    if (t == 1 || all == 0 || (out[1] != 0 && right * out[1] > out[0] * all))
      put_pair(out, right, all);
  }
}

void LineCounter::count_wer(std::uint32_t* out) const {
  for (std::size_t t = 1; t < words_.size(); ++t) {
    const auto errors =
        static_cast<std::size_t>(edit_distance(words_[t], words_[0], Exchanges::kTwoEdits));
    if (t == 1 || errors < out[0]) put_pair(out, errors, words_[t].size());
  }
}

void LineCounter::count_edits(std::uint32_t* out) const {
  for (std::size_t t = 1; t < characters_.size(); ++t) {
    const auto edits = static_cast<std::size_t>(edit_distance(characters_[t], characters_[0]));
    if (t == 1 || edits < out[0]) put_pair(out, edits, 1);
  }
}

void WordNumbers::start(std::size_t words) {
  ++round_;
  next_ = 0;
  if (slots_.size() < 2 * words || slots_.empty())
    slots_.assign(std::bit_ceil(std::max(2 * words, kFewestSlots)), {});
}

char32_t WordNumbers::number(std::string_view word) {
  std::size_t at = std::hash<std::string_view>{}(word) & (slots_.size() - 1);
  while (slots_[at].round == round_ && slots_[at].word != word) at = (at + 1) & (slots_.size() - 1);
  Slot& slot = slots_[at];
  if (slot.round != round_) slot = {word, round_, next_++};
  return slot.number;
}

std::size_t NgramMatcher::slot_of(std::uint64_t key) const {
  std::size_t at = (key * 0x9E3779B97F4A7C15U) >> shift_;
  while (slots_[at].round == round_ && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
  return at;
}

std::uint32_t NgramMatcher::intern(std::uint64_t key) {
  Slot& slot = slots_[slot_of(key)];
  if (slot.round != round_) slot = {key, round_, next_++};
  return slot.id;
}

void NgramMatcher::match(std::u32string_view hypothesis,
                         std::span<const std::u32string_view> references,
                         std::span<std::uint32_t> matches) {
  std::size_t all = 0;
  for (const std::u32string_view r : references) all += r.size();
  if (slots_.size() < 2 * all || slots_.empty()) {
    slots_.assign(std::bit_ceil(std::max(2 * all, kFewestSlots)), {});
    shift_ = 64U - static_cast<unsigned>(std::countr_zero(slots_.size()));
  }
  hypothesis_.assign(hypothesis.size(), 0);
  references_.assign(all, 0);
  // An n-gram is the (n − 1)-gram that it begins with, by its number, and its last symbol.
  const auto key = [](std::uint32_t head, char32_t last) {
    return std::uint64_t{head} << 32 | std::uint64_t{last};
  };
  for (std::size_t n = 1; n <= matches.size(); ++n) {
    ++round_;
    next_ = 0;
    most_.assign(all, 0);
    count_.assign(all, 0);
    std::size_t begin = 0;
    for (const std::u32string_view r : references) {
      const std::size_t places = r.size() < n ? 0 : r.size() - n + 1;
      const std::span<std::uint32_t> ids(references_.data() + begin, places);
      for (std::size_t i = 0; i < places; ++i) {
        ids[i] = intern(key(ids[i], r[i + n - 1]));
        most_[ids[i]] = std::max(most_[ids[i]], ++count_[ids[i]]);
      }
      for (const std::uint32_t id : ids) count_[id] = 0;
      begin += r.size();
    }
    matches[n - 1] = 0;
    for (std::size_t i = 0; i + n <= hypothesis.size(); ++i) {
      std::uint32_t& id = hypothesis_[i];
      if (id == kNoNgram) continue;
      const Slot& slot = slots_[slot_of(key(id, hypothesis[i + n - 1]))];
      id = slot.round == round_ ? slot.id : kNoNgram;
      if (id != kNoNgram && count_[id]++ < most_[id]) ++matches[n - 1];
    }
  }
}

NameTable<BleuTokenizer> bleu_tokenizer_names() { return kBleuTokenizers; }

BleuCutter::BleuCutter(BleuTokenizer tokenizer) : tokenizer_(tokenizer) {
  if (tokenizer != BleuTokenizer::kIntl) return;
  categories_ = std::make_unique<Regex>(R"((\p{N})|(\p{P})|(\p{S}))", RegexDialect::kOniguruma,
                                        [](const std::string&) { MASQUE_CHECK(false); });
  for (char32_t c = 0; c < ascii_.size(); ++c) ascii_[c] = find_category(c);
}

BleuCutter::Category BleuCutter::find_category(char32_t c) const {
  std::string character;
  text::append_utf8(character, c);
  RegexSearch search(*categories_, character);
  if (!search.find(0)) return Category::kOther;
  return search.group(1)   ? Category::kNumber
         : search.group(2) ? Category::kPunctuation
                           : Category::kSymbol;
}

BleuCutter::Category BleuCutter::category(char32_t c) {
  if (c < ascii_.size()) return ascii_[c];
  const auto found = known_.find(c);
  if (found != known_.end()) return found->second;
  return known_.emplace(c, find_category(c)).first->second;
}

void BleuCutter::cut(std::string_view line, CutText& out) {
  line = without_space_at_end(line);
  out.tokens.clear();
  switch (tokenizer_) {
    case BleuTokenizer::k13a: return cut_13a(line, out);
    case BleuTokenizer::kIntl: return cut_intl(line, out);
    case BleuTokenizer::kChar:
      out.text = line;
      for (std::size_t i = 0; i < out.text.size();) {
        const std::size_t begin = i;
        if (!is_python_space(text::next_char(out.text, i)))
          out.tokens.push_back(std::string_view(out.text).substr(begin, i - begin));
      }
      return;
    case BleuTokenizer::kNone: break;
  }
  out.text = line;
  split_as_python(out.text, out.tokens);
}

void BleuCutter::cut_13a(std::string_view line, CutText& out) {
  scratch_ = line;
  if (line.find("<skipped>") != std::string_view::npos) replace_all(scratch_, "<skipped>", "");
  if (line.find('&') != std::string_view::npos) {
    for (const auto& [from, to] : kEscapes) replace_all(scratch_, from, to);
  }
  std::string& text = out.text;
  text = "   ";  // a mark, which the space in front of a line is, gets spaces around it
  for (const char c : scratch_) {
    if (is_13a_mark(c)) {
      text += ' ';
      text += c;
      text += ' ';
    } else {
      text += c;
    }
  }
  text += "   ";
  space_pairs(
      text, "", " ", [](char a, char b) { return !is_digit(a) && is_stop(b); }, scratch_);
  space_pairs(
      scratch_, " ", "", [](char a, char b) { return is_stop(a) && !is_digit(b); }, text);
  space_pairs(
      text, "", " ", [](char a, char b) { return is_digit(a) && b == '-'; }, scratch_);
  std::swap(text, scratch_);
  split_as_python(text, out.tokens);
}

void BleuCutter::cut_intl(std::string_view line, CutText& out) {
  characters_.clear();
  for (std::size_t i = 0; i < line.size();) characters_ += text::next_char(line, i);
  const auto pairs = [this](const std::u32string& text, bool punctuation_first,
                            std::u32string& spaced) {
    spaced.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool last = i + 1 == text.size();
      const char32_t a = text[i];
      const char32_t b = last ? U' ' : text[i + 1];
      const char32_t mark = punctuation_first ? a : b;
      const char32_t other = punctuation_first ? b : a;
      if (last || category(mark) != Category::kPunctuation ||
          category(other) == Category::kNumber) {
        spaced += a;
        continue;
      }
      if (punctuation_first) spaced += U' ';
      spaced += a;
      spaced += U' ';
      spaced += b;
      if (!punctuation_first) spaced += U' ';
      ++i;
    }
  };
  pairs(characters_, false, scratch_characters_);
  pairs(scratch_characters_, true, characters_);
  out.text.clear();
  for (const char32_t c : characters_) {
    const bool symbol = category(c) == Category::kSymbol;
    if (symbol) out.text += ' ';
    text::append_utf8(out.text, c);
    if (symbol) out.text += ' ';
  }
  split_as_python(out.text, out.tokens);
}

}  // namespace masque::evaluate
