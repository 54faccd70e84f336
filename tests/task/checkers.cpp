#include "task/checkers.hpp"

#include <algorithm>
#include <set>

namespace masque::test {

namespace {

int number(const std::string& word) { return std::stoi(word); }

std::ptrdiff_t count(const Words& words, const std::string& word) {
  return std::count(words.begin(), words.end(), word);
}

Words ordered(Words words) {
  std::stable_sort(words.begin(), words.end(), [](const std::string& a, const std::string& b) {
    return number(a) < number(b);
  });
  return words;
}

Words backwards(const Words& words) { return {words.rbegin(), words.rend()}; }

/// Whole numbers as decimal digits, smallest first, without zeros at the end.
using Decimal = std::vector<int>;

Decimal settle(Decimal digits) {
  int carry = 0;
  for (int& digit : digits) {
    carry += digit;
    digit = carry % 10;
    carry /= 10;
  }
  for (; carry > 0; carry /= 10) digits.push_back(carry % 10);
  while (!digits.empty() && digits.back() == 0) digits.pop_back();
  return digits;
}

Decimal plus(const Decimal& a, const Decimal& b) {
  Decimal sum(std::max(a.size(), b.size()), 0);
  for (std::size_t i = 0; i < a.size(); ++i) sum[i] += a[i];
  for (std::size_t i = 0; i < b.size(); ++i) sum[i] += b[i];
  return settle(sum);
}

Decimal times(const Decimal& a, const Decimal& b) {
  Decimal product;
  for (std::size_t i = 0; i < a.size(); ++i) {
    Decimal row(i, 0);
    for (const int digit : b) row.push_back(digit * a[i]);
    product = plus(product, settle(row));
  }
  return product;
}

bool less(const Decimal& a, const Decimal& b) {
  if (a.size() != b.size()) return a.size() < b.size();
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

/// Of digits in any base up to 10, largest first.
Decimal decimal(const Words& digits, int base) {
  Decimal value;
  for (const std::string& digit : digits) {
    value = plus(times(settle({base}), value), settle({number(digit)}));
  }
  return value;
}

/// The two operands of a binary question and its answer without ".", as numbers.
template <class Operation>
bool binary(const Words& question, const Words& answer, const std::string& sign,
            Operation operation) {
  const auto at = std::find(question.begin(), question.end(), sign);
  if (count(question, sign) != 1 || answer.back() != "." || answer[answer.size() - 2] != "1") {
    return false;
  }
  const Words a(question.begin(), at);
  const Words b(at + 1, question.end());
  const Words digits(answer.begin(), answer.end() - 1);
  return operation(decimal(backwards(a), 2), decimal(backwards(b), 2)) ==
         decimal(backwards(digits), 2);
}

/// Recursive descent: sums of products of residues, −x, brackets.
class Evaluator {
 public:
  Evaluator(const Words& words, int x) : words_(words), x_(x) {}
  /// The value modulo 5, or -1 where the words are no expression.
  int value() {
    const int all = sum();
    return good_ && at_ == words_.size() ? ((all % 5) + 5) % 5 : -1;
  }

 private:
  bool take(const std::string& word) {
    if (at_ == words_.size() || words_[at_] != word) return false;
    ++at_;
    return true;
  }
  int sum() {
    int all = product();
    while (true) {
      if (take("+")) {
        all += product();
      } else if (take("-")) {
        all -= product();
      } else {
        return all % 5;
      }
    }
  }
  int product() {
    int all = factor();
    while (take("*")) all = all * factor() % 5;
    return all;
  }
  int factor() {
    if (take("-")) return -factor();
    if (take("(")) {
      const int inner = sum();
      good_ = good_ && take(")");
      return inner;
    }
    if (take("x")) return x_;
    for (int digit = 0; digit < 5; ++digit) {
      if (take(std::to_string(digit))) return digit;
    }
    good_ = false;
    return 0;
  }

  const Words& words_;
  int x_;
  std::size_t at_ = 0;
  bool good_ = true;
};

bool modular(const Words& question, const Words& answer) {
  return answer == Words{std::to_string(Evaluator(question, 0).value())};
}

bool equation(const Words& question, const Words& answer) {
  if (question.size() < 3 || question[question.size() - 2] != "=" || count(question, "x") != 1) {
    return false;
  }
  const Words left(question.begin(), question.end() - 2);
  Words solutions;
  for (int x = 0; x < 5; ++x) {
    if (std::to_string(Evaluator(left, x).value()) == question.back()) {
      solutions.push_back(std::to_string(x));
    }
  }
  return answer == solutions;  // one, and no other
}

bool root(const Words& question, const Words& answer) {
  const Decimal x = decimal(question, 2);
  const Decimal r = decimal(answer, 2);
  const Decimal next = plus(r, settle({1}));
  return answer.size() == (question.size() + 1) / 2 && !x.empty() && !less(x, times(r, r)) &&
         less(x, times(next, next));
}

bool stack(const Words& question, const Words& answer) {
  std::string pile;
  for (const std::string& word : question) {
    if (word == "pop") {
      pile = pile.substr(0, pile.empty() ? 0 : pile.size() - 1);
    } else {
      pile += word.back();
    }
  }
  Words expected;
  for (const char c : pile) expected.insert(expected.begin(), std::string(1, c));
  expected.emplace_back(".");
  return answer == expected;
}

bool missing(const Words& question, const Words& answer) {
  const std::size_t half = question.size() / 2;
  if (count(question, "#") != 1 || (question.size() % 2 == 1) != (question.back() == "-")) {
    return false;
  }
  bool right = true;
  for (std::size_t i = 0; i < half; ++i) {
    const std::string& a = question[i];
    const std::string& b = question[half + i];
    right =
        right && (a == b || (a == "#" && answer == Words{b}) || (b == "#" && answer == Words{a}));
  }
  return right;
}

bool sum_of_digits(const Words& question, const Words& answer) {
  const std::size_t n = question.size() / 2;
  const Words a(question.begin(), question.begin() + static_cast<std::ptrdiff_t>(n));
  const Words b(question.end() - static_cast<std::ptrdiff_t>(n), question.end());
  return question[n] == "+" && answer.size() == n + 1 &&
         plus(decimal(a, 10), decimal(b, 10)) == decimal(answer, 10);
}

bool needle(const Words& question, const Words& answer) {
  const auto at = std::find(question.begin(), question.end(), question.back());
  return question.end() - at > 5 && answer == Words(at + 1, at + 5);
}

bool changes(const Words& question, const Words& answer) {
  int met = 0;
  for (std::size_t i = 1; i < question.size(); ++i) met += question[i] != question[i - 1] ? 1 : 0;
  return answer == Words{std::to_string(met % 2)};
}

bool ones(const Words& question, const Words& answer) {
  return answer == Words{std::to_string(count(question, "1") % 2)};
}

bool same(const Words& question, const Words& answer) { return answer == question; }
bool reversed(const Words& question, const Words& answer) { return answer == backwards(question); }
bool in_order(const Words& question, const Words& answer) { return answer == ordered(question); }

bool walk(const Words& question, const Words& answer) {
  const auto place = (count(question, "+1") - count(question, "-1")) % 5;
  return answer == Words{std::to_string((place + 5) % 5)};
}

bool twice(const Words& question, const Words& answer) {
  Words all = question;
  for (const std::string& word : question) all.push_back(word);
  return answer == all;
}

bool odds(const Words& question, const Words& answer) {
  Words odd, even;
  for (std::size_t place = 1; place <= question.size(); ++place) {
    (place % 2 == 1 ? odd : even).push_back(question[place - 1]);
  }
  for (const std::string& word : even) odd.push_back(word);
  return answer == odd;
}

bool after_mark(const Words& question, const Words& answer) {
  const auto at = std::find(question.begin(), question.end(), "?");
  return count(question, "?") == 1 && question.end() - at > 1 && answer == Words{at[1]};
}

}  // namespace

Printed printed(const task::Task& task, const task::TaskExample& example) {
  Printed out;
  for (std::size_t i = 0; i < example.ids.size(); ++i) {
    if (example.targets[i] != task::kNoTarget) {
      out.answer.push_back(task.token_text(example.targets[i]));
    } else if (out.answer.empty()) {
      out.question.push_back(task.token_text(example.ids[i]));
    }
  }
  return out;
}

const std::map<std::string, std::function<bool(const Words&, const Words&)>>& checkers() {
  static const std::map<std::string, std::function<bool(const Words&, const Words&)>> all = {
      {"copy", same},
      {"reverse", reversed},
      {"sort", in_order},
      {"parity", ones},
      {"addition", sum_of_digits},
      {"induction", after_mark},
      {"needle", needle},
      {"even_pairs", changes},
      {"modular_arithmetic_simple", modular},
      {"parity_check", ones},
      {"cycle_navigation", walk},
      {"stack_manipulation", stack},
      {"reverse_string", reversed},
      {"modular_arithmetic", modular},
      {"solve_equation", equation},
      {"duplicate_string", twice},
      {"missing_duplicate", missing},
      {"odds_first", odds},
      {"binary_addition", [](const Words& q, const Words& a) { return binary(q, a, "+", plus); }},
      {"binary_multiplication",
       [](const Words& q, const Words& a) { return binary(q, a, "*", times); }},
      {"compute_sqrt", root},
      {"bucket_sort", in_order},
  };
  return all;
}

}  // namespace masque::test
