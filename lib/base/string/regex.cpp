#include "base/string/regex.hpp"

#include <oniguruma.h>

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/utf8.hpp"
#include "base/thread/interrupt.hpp"

namespace masque {

namespace {

constexpr std::size_t kMostExpressionBytes = 1 << 16;
constexpr unsigned kMostDepth = 500;
// Steps back in a match from one place: Oniguruma's own limit, which Hugging Face's tokenizers
// keep.
constexpr unsigned long kMostRetries = 10'000'000;
// Steps back, and remembered places, in all searches through a text together.
constexpr unsigned long kRetriesOfText = 100'000'000;
constexpr unsigned long kRetriesPerByte = 256;
// Steps back that one search may take before it is counted, and how much more each further try may.
constexpr unsigned long kFreeRetries = kRetriesPerByte;
constexpr unsigned long kMoreRetries = 4;
// A step back may look at as many remembered places as the text has bytes. A search that may take
// more than this many looks, about 0.1 s, can be ended by a signal.
constexpr unsigned long kShortSearch = 1UL << 26;
constexpr unsigned kPlacesOfSearch = 1U << 20;
constexpr unsigned kPlacesPerByte = 4;
// Oniguruma's positions are of type int.
constexpr std::size_t kMostSearchedBytes = std::numeric_limits<int>::max() / 2;

const OnigUChar* onig_bytes(std::string_view text) {
  return reinterpret_cast<const OnigUChar*>(text.empty() ? "" : text.data());
}

/// Oniguruma's words for a code, safe to print.
std::string reason_of(int code, OnigErrorInfo* info) {
  if (onig_is_error_code_needs_param(code) != 0 && info == nullptr) return "not supported";
  std::array<OnigUChar, ONIG_MAX_ERROR_MESSAGE_LEN> words{};
  const int size = info == nullptr ? onig_error_code_to_str(words.data(), code)
                                   : onig_error_code_to_str(words.data(), code, info);
  return escape({reinterpret_cast<const char*>(words.data()), static_cast<std::size_t>(size)});
}

void throw_without_memory(int code) {
  if (code == ONIGERR_MEMORY) throw std::bad_alloc();
}

/// Compiling writes tables that all expressions share.
std::mutex& compile_lock() {
  static std::mutex lock;
  return lock;
}

void initialize_oniguruma() {
  static const int kDone = [] {
    std::array<OnigEncoding, 2> encodings{ONIG_ENCODING_UTF8, ONIG_ENCODING_ASCII};
    onig_set_parse_depth_limit(kMostDepth);
    return onig_initialize(encodings.data(), static_cast<int>(encodings.size()));
  }();
  throw_without_memory(kDone);
  MASQUE_CHECK(kDone == ONIG_NORMAL);
}

}  // namespace

struct Regex::Compiled {
  std::string expression;  // error messages of Oniguruma point into it
  RegexDialect dialect;
  Refuse refuse;
  OnigRegex regex = nullptr;

  Compiled(std::string_view text, RegexDialect how, Refuse what)
      : expression(text), dialect(how), refuse(std::move(what)) {}
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    if (regex != nullptr) onig_free(regex);
  }
};

Regex::Regex(std::string_view expression, RegexDialect dialect, Refuse refuse) {
  auto compiled = std::make_unique<Compiled>(expression, dialect, std::move(refuse));
  if (expression.size() > kMostExpressionBytes) {
    compiled->refuse(
        fmt::format("{} bytes, expected at most {}", expression.size(), kMostExpressionBytes));
  }
  const bool unicode = dialect == RegexDialect::kOniguruma;
  if (unicode && !valid_utf8(expression)) compiled->refuse("not UTF-8");
  OnigErrorInfo info{};
  int code = ONIG_NORMAL;
  {
    const std::lock_guard guard(compile_lock());
    initialize_oniguruma();
    const OnigUChar* begin = onig_bytes(compiled->expression);
    code = onig_new(&compiled->regex, begin, begin + expression.size(), ONIG_OPTION_NONE,
                    unicode ? ONIG_ENCODING_UTF8 : ONIG_ENCODING_ASCII,
                    unicode ? ONIG_SYNTAX_ONIGURUMA : ONIG_SYNTAX_PERL_NG, &info);
  }
  throw_without_memory(code);
  if (code != ONIG_NORMAL) compiled->refuse(reason_of(code, &info));
  MASQUE_CHECK(code == ONIG_NORMAL);
  compiled_ = std::move(compiled);
}

Regex::~Regex() = default;

struct RegexSearch::State {
  unsigned long retries_left = 0;  ///< steps back that searches through the text may still take
  OnigRegion region{};
  OnigMatchParam* limits = onig_new_match_param();

  State() { onig_region_init(&region); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    onig_region_free(&region, 0);
    if (limits != nullptr) onig_free_match_param(limits);
  }
};

RegexSearch::RegexSearch(const Regex& regex, std::string_view text)
    : regex_(regex), text_(text), state_(std::make_unique<State>()) {
  const auto& refuse = regex.compiled_->refuse;
  if (text.size() > kMostSearchedBytes) {
    refuse(fmt::format("a text of {} bytes, expected at most {}", text.size(), kMostSearchedBytes));
  }
  // Oniguruma reads beyond the end of a character that is cut off.
  if (regex.compiled_->dialect == RegexDialect::kOniguruma && !valid_utf8(text)) {
    refuse("a text that is not UTF-8");
  }
  if (state_->limits == nullptr) throw std::bad_alloc();
  const auto size = static_cast<unsigned long>(text.size());
  const unsigned long places =
      std::min<unsigned long>(kPlacesOfSearch + kPlacesPerByte * size, 1UL << 30);
  onig_initialize_match_param(state_->limits);
  onig_set_retry_limit_in_match_of_match_param(state_->limits, kMostRetries);
  state_->retries_left = kRetriesOfText + kRetriesPerByte * size;
  onig_set_match_stack_limit_size_of_match_param(state_->limits, static_cast<unsigned>(places));
}

RegexSearch::~RegexSearch() = default;

int RegexSearch::search(std::size_t from, unsigned long retries) {
  onig_set_retry_limit_in_search_of_match_param(state_->limits, retries);
  const OnigUChar* first = onig_bytes(text_);
  const OnigUChar* last = first + text_.size();
  std::optional<SignalsKill> long_call;
  if (retries > kShortSearch / (text_.size() + 1)) long_call.emplace();
  return onig_search_with_param(regex_.compiled_->regex, first, last, first + from, last,
                                &state_->region, ONIG_OPTION_NONE, state_->limits);
}

bool RegexSearch::find(std::size_t from) {
  MASQUE_CHECK(from <= text_.size());
  throw_if_interrupted();
  // Oniguruma does not say how many steps a search took: with more and more of them at each try,
  // the last limit is at most a few times that number.
  int at = search(from, kFreeRetries);
  for (unsigned long retries = kFreeRetries * kMoreRetries;
       at == ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER && state_->retries_left > 0;
       retries *= kMoreRetries) {
    retries = std::min(retries, state_->retries_left);
    at = search(from, retries);
    state_->retries_left -= retries;
  }
  if (at == ONIG_MISMATCH) return false;
  throw_without_memory(at);
  if (at < 0) refuse_code(at);
  if (begin() < from || end() < begin()) {
    regex_.compiled_->refuse("a match that ends before it begins");
  }
  return true;
}

void RegexSearch::refuse_code(int code) const {
  const std::string reason = reason_of(code, nullptr);
  regex_.compiled_->refuse(
      code == ONIGERR_RETRY_LIMIT_IN_MATCH_OVER || code == ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER ||
              code == ONIGERR_MATCH_STACK_LIMIT_OVER
          ? fmt::format("takes too long on a text of {} bytes ({})", text_.size(), reason)
          : reason);
}

std::size_t RegexSearch::begin() const { return static_cast<std::size_t>(state_->region.beg[0]); }

std::size_t RegexSearch::end() const { return static_cast<std::size_t>(state_->region.end[0]); }

std::size_t RegexSearch::groups() const {
  return static_cast<std::size_t>(state_->region.num_regs);
}

std::optional<std::string_view> RegexSearch::group(std::size_t number) const {
  if (number >= groups()) return std::nullopt;
  const int first = state_->region.beg[number];
  const int last = state_->region.end[number];
  if (first < 0 || last < first) return std::nullopt;
  return text_.substr(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
}

}  // namespace masque
