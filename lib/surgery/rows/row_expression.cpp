#include "surgery/rows/row_expression.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/string/parse_number.hpp"
#include "surgery/rows/row_map.hpp"

namespace masque::surgery {

namespace {

constexpr int kMostDepth = 100;

/// A number, or a row.
struct Value {
  bool is_row = false;
  double number = 0;
  std::vector<double> row;
};

using Function = Value (*)(const std::vector<Value>& rows);

Value sum_of(const std::vector<Value>& rows) {
  Value sum = rows.front();
  for (std::size_t k = 1; k < rows.size(); ++k) {
    for (std::size_t d = 0; d < sum.row.size(); ++d) sum.row[d] += rows[k].row[d];
  }
  return sum;
}

Value mean_of(const std::vector<Value>& rows) {
  Value mean = sum_of(rows);
  for (double& value : mean.row) value /= static_cast<double>(rows.size());
  return mean;
}

Value norm_of(const std::vector<Value>& rows) {
  return {false, std::sqrt(dot(rows.front().row, rows.front().row)), {}};
}

Value unit_of(const std::vector<Value>& rows) {
  Value unit = rows.front();
  const double norm = norm_of(rows).number;
  for (double& value : unit.row) value /= norm;  // 0 gives NaN, which the caller refuses
  return unit;
}

struct NamedFunction {
  std::string_view name;
  bool one;  ///< takes one row, not several
  Function call;
};

constexpr std::array<NamedFunction, 4> kFunctions{{
    {"mean", false, mean_of},
    {"norm", true, norm_of},
    {"sum", false, sum_of},
    {"unit", true, unit_of},
}};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

/// Reads a program and runs it while reading.
class RowProgram {
 public:
  RowProgram(RowExpressions& state, std::string_view text) : state_(state), text_(text) {}

  void run() {
    do {
      skip();
      if (at_ == text_.size()) fail(at_, "expected ROW = EXPRESSION");
      const std::uint64_t row = target();
      skip();
      expect('=', "'=' after the row");
      skip();
      const std::size_t begin = at_;
      Value value = sum(0);
      if (!value.is_row) fail(begin, "found a number, expected a row");
      state_.rows_[row] = std::move(value.row);
      skip();
    } while (accept(';'));
    if (at_ != text_.size()) fail(at_, found() + ", expected an operator, ';' or the end");
  }

 private:
  [[noreturn]] void fail(std::size_t at, const std::string& message) const {
    throw UsageError(fmt::format("'{}': byte {}: {}", escape(text_), at + 1, message));
  }

  std::string found() const {
    if (at_ == text_.size()) return "ends";
    char32_t code = 0;
    const auto size = static_cast<std::size_t>(std::max(1, decode_utf8(text_.substr(at_), code)));
    return fmt::format("found '{}'", escape(text_.substr(at_, size)));
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool accept(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, const char* what) {
    if (!accept(c)) fail(at_, fmt::format("{}, expected {}", found(), what));
  }

  /// A row on the left: as anywhere, or a bare word.
  std::uint64_t target() {
    if (begins_row()) return row();
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_space(text_[at_]) && text_[at_] != '=' && text_[at_] != ';')
      ++at_;
    if (at_ == begin) fail(at_, found() + ", expected a row");
    return row_of(begin, std::string(text_.substr(begin, at_ - begin)));
  }

  bool begins_row() const {
    return at_ < text_.size() &&
           std::string_view("[\"'#").find(text_[at_]) != std::string_view::npos;
  }

  std::uint64_t row() {
    const std::size_t begin = at_;
    if (accept('#')) {
      while (is_digit(peek())) ++at_;
      const auto id = parse_unsigned(text_.substr(begin + 1, at_ - begin - 1));
      if (!id) fail(begin, "expected an id after '#'");
      return within(begin, *id);
    }
    if (peek() == '[') return bracketed();
    const char quote = text_[at_++];
    std::string token;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      token += text_[at_++];
    }
    if (!accept(quote)) fail(begin, "unterminated quote");
    return row_of(begin, token);
  }

  std::uint64_t bracketed() {
    const std::size_t begin = at_;
    int open = 0;
    do {
      if (at_ == text_.size()) fail(begin, "unclosed bracket");
      if (text_[at_] == '[') ++open;
      if (text_[at_] == ']') --open;
      ++at_;
    } while (open > 0);
    const std::string whole(text_.substr(begin, at_ - begin));
    const std::string inner = whole.substr(1, whole.size() - 2);
    const auto plain = state_.names_->id(inner);
    const auto bracket = state_.names_->id(whole);
    if (plain && bracket) {
      fail(begin, fmt::format("'{0}' and '{1}' are both tokens: write \"{0}\" or \"{1}\"",
                              escape(inner), escape(whole)));
    }
    return row_of(begin, bracket ? whole : inner);
  }

  std::uint64_t row_of(std::size_t begin, const std::string& token) const {
    const auto id = state_.names_->id(token);
    if (!id) {
      fail(begin,
           state_.names_->empty()
               ? fmt::format("'{}': {}, expected #ID", escape(token), state_.names_->why_empty())
               : fmt::format("no token '{}' in {}", escape(token), state_.names_->source()));
    }
    return within(begin, *id);
  }

  std::uint64_t within(std::size_t begin, std::uint64_t id) const {
    const std::uint64_t rows = state_.table_->shape[0];
    if (id >= rows) fail(begin, fmt::format("id {}, expected an id below {}", id, rows));
    return id;
  }

  Value sum(int depth) {
    Value left = product(depth);
    for (skip(); peek() == '+' || peek() == '-'; skip()) {
      const std::size_t at = at_;
      const double sign = text_[at_++] == '+' ? 1 : -1;
      const Value right = product(depth);
      if (left.is_row != right.is_row) fail(at, "cannot add or subtract a row and a number");
      left.number += sign * right.number;
      for (std::size_t d = 0; d < left.row.size(); ++d) left.row[d] += sign * right.row[d];
    }
    return left;
  }

  Value product(int depth) {
    Value left = factor(depth);
    for (skip(); peek() == '*' || peek() == '/'; skip()) {
      const std::size_t at = at_;
      const bool divides = text_[at_++] == '/';
      Value right = factor(depth);
      if (divides && right.is_row) fail(at, "cannot divide by a row, expected a number");
      if (left.is_row && right.is_row) fail(at, "cannot multiply two rows");
      if (divides && right.number == 0) fail(at, "division by zero");
      if (right.is_row) std::swap(left, right);
      const auto apply = [&](double value) {
        return divides ? value / right.number : value * right.number;
      };
      left.number = apply(left.number);
      for (double& value : left.row) value = apply(value);
    }
    return left;
  }

  Value factor(int depth) {
    skip();
    if (depth > kMostDepth) fail(at_, fmt::format("nested deeper than {} levels", kMostDepth));
    if (accept('-')) {
      Value value = factor(depth + 1);
      value.number = -value.number;
      for (double& element : value.row) element = -element;
      return value;
    }
    if (accept('(')) {
      Value value = sum(depth + 1);
      skip();
      expect(')', "')'");
      return value;
    }
    if (begins_row()) return {true, 0, read(row())};
    if (is_digit(peek()) || peek() == '.') return {false, number(), {}};
    if (is_letter(peek())) return call(depth);
    fail(at_, found() + ", expected a row, a number, a function or '('");
  }

  double number() {
    std::string_view rest = text_.substr(at_);
    const auto value = take_number<double>(rest);
    if (!value) fail(at_, "expected a number");
    at_ = text_.size() - rest.size();
    return *value;
  }

  Value call(int depth) {
    const std::size_t begin = at_;
    while (is_letter(peek()) || is_digit(peek())) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    const auto found = std::ranges::find(kFunctions, name, &NamedFunction::name);
    if (found == kFunctions.end()) {
      fail(begin, fmt::format("'{0}': expected mean, norm, sum, unit, or a row, written [{0}]",
                              escape(name)));
    }
    skip();
    expect('(', "'('");
    std::vector<Value> rows;
    do {
      skip();
      const std::size_t at = at_;
      rows.push_back(sum(depth + 1));
      if (!rows.back().is_row) fail(at, "found a number, expected a row");
      skip();
    } while (accept(','));
    expect(')', "',' or ')'");
    if (found->one && rows.size() > 1) fail(begin, fmt::format("{} takes one row", name));
    Value value = found->call(rows);
    const auto finite = [](double element) { return std::isfinite(element); };
    if (!std::ranges::all_of(value.row, finite) || !finite(value.number))
      fail(begin, fmt::format("{} of a row with norm 0 or values that are not finite", name));
    return value;
  }

  std::vector<double> read(std::uint64_t row) const {
    const auto found = state_.rows_.find(row);
    return found != state_.rows_.end() ? found->second
                                       : read_row(*state_.checkpoint_, *state_.table_, row);
  }

  RowExpressions& state_;
  std::string_view text_;
  std::size_t at_ = 0;
};

void RowExpressions::run(std::string_view text) { RowProgram(*this, text).run(); }

std::uint64_t find_row(const std::string& token_or_id, const TokenNames& names, std::uint64_t rows,
                       const std::string& path) {
  auto row = parse_unsigned(token_or_id);
  if (!row) row = names.id(token_or_id);
  if (row && *row < rows) return *row;
  throw InputError(
      path,
      fmt::format("no row for '{}', expected a token{} or an id below {}", escape(token_or_id),
                  names.empty() ? fmt::format(" ({})", names.why_empty()) : "", rows));
}

}  // namespace masque::surgery
