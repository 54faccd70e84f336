#include "task/arithmetic.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace masque::task {

namespace {

void drop_zeros(Bits& bits) {
  while (!bits.empty() && bits.back() == 0) bits.pop_back();
}

/// a −= b for a ≥ b; digits beyond a's are 0.
void subtract(Bits& a, const Bits& b) {
  TokenId borrow = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const TokenId left = a[i] - borrow - (i < b.size() ? b[i] : 0);
    borrow = left < 0 ? 1 : 0;
    a[i] = left + 2 * borrow;
  }
}

/// Whether a ≤ b.
bool at_most(const Bits& a, const Bits& b) {
  for (std::size_t i = std::max(a.size(), b.size()); i-- > 0;) {
    const TokenId x = i < a.size() ? a[i] : 0;
    const TokenId y = i < b.size() ? b[i] : 0;
    if (x != y) return x < y;
  }
  return true;
}

}  // namespace

Bits random_bits(Index length, Draw& draw) {
  Bits bits(static_cast<std::size_t>(length));
  bool zero = true;
  while (zero) {
    for (TokenId& bit : bits) bit = static_cast<TokenId>(draw.below(2));
    zero = std::find(bits.begin(), bits.end(), 1) == bits.end();
  }
  return bits;
}

Bits add(const Bits& a, const Bits& b) {
  Bits sum(std::max(a.size(), b.size()) + 1);
  TokenId carry = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const TokenId digit = carry + (i < a.size() ? a[i] : 0) + (i < b.size() ? b[i] : 0);
    sum[i] = digit % 2;
    carry = digit / 2;
  }
  drop_zeros(sum);
  return sum;
}

Bits multiply(const Bits& a, const Bits& b) {
  // Columns are summed before carries: a column has at most as many ones as the shorter number.
  Bits product(a.size() + b.size(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == 0) continue;
    for (std::size_t j = 0; j < b.size(); ++j) product[i + j] += b[j];
  }
  TokenId carry = 0;
  for (TokenId& digit : product) {
    carry += digit;
    digit = carry % 2;
    carry /= 2;
  }
  drop_zeros(product);
  return product;
}

// The school method in base 2: two digits of `a` are brought down at a time, and a digit of the
// root is 1 where 4·root + 1 fits into what is left.
Bits square_root(const Bits& a) {
  Bits root, left;
  const std::size_t pairs = (a.size() + 1) / 2;
  for (std::size_t pair = pairs; pair-- > 0;) {
    left.insert(left.begin(), {a[2 * pair], 2 * pair + 1 < a.size() ? a[2 * pair + 1] : 0});
    Bits trial = root;
    trial.insert(trial.begin(), {1, 0});
    const bool fits = at_most(trial, left);
    if (fits) subtract(left, trial);
    drop_zeros(left);
    root.insert(root.begin(), fits ? 1 : 0);
  }
  return root;
}

BinaryTask::BinaryTask(std::string_view info, std::string_view sign, bool blanks,
                       Operation operation, Index more_room)
    : QuestionTask(info, {"0", "1", std::string(sign), "."}, blanks),
      operation_(operation),
      more_room_(more_room) {}

QuestionTask::Question BinaryTask::ask(Index length, Draw& draw) const {
  constexpr TokenId kSign = 2;
  constexpr TokenId kEnd = 3;
  const Index first = 1 + draw.below(length - 2);
  const Bits a = random_bits(first, draw);
  const Bits b = random_bits(length - 1 - first, draw);
  Question question;
  question.prompt = a;
  question.prompt.push_back(kSign);
  question.prompt.insert(question.prompt.end(), b.begin(), b.end());
  question.answer = operation_(a, b);
  question.answer.push_back(kEnd);
  return question;
}

std::vector<std::string> expression_texts(Index modulus) {
  std::vector<std::string> texts = numbered(modulus);
  texts.insert(texts.end(), {"+", "-", "(", ")"});
  return texts;
}

Index random_expression(Index modulus, Index length, bool with_times, Draw& draw,
                        std::vector<TokenId>& ids) {
  MASQUE_CHECK(length >= 1 && modulus >= 2);
  const ExpressionIds id(modulus);
  if (length > 2) ids.push_back(id.open);
  Index value = 0;
  if (length <= 4) {
    value = draw.below(modulus);
    const bool negative = length % 2 == 0;
    if (negative) ids.push_back(id.minus);
    ids.push_back(static_cast<TokenId>(value));
    if (negative) value = (modulus - value) % modulus;
  } else {
    const Index left_length = 1 + draw.below(length - 4);
    const Index left = random_expression(modulus, left_length, with_times, draw, ids);
    const Index operation = draw.below(with_times ? 3 : 2);
    ids.push_back(operation == 0 ? id.plus : operation == 1 ? id.minus : id.times);
    const Index right = random_expression(modulus, length - 3 - left_length, with_times, draw, ids);
    value = operation == 0 ? left + right : operation == 1 ? left - right + modulus : left * right;
    value %= modulus;
  }
  if (length > 2) ids.push_back(id.close);
  return value;
}

}  // namespace masque::task
