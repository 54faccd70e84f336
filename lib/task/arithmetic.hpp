// What the arithmetic tasks compute with: binary numbers of any size, expressions with brackets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "task/question_task.hpp"

namespace masque::task {

/// A number in binary, least significant digit first; digits are 0 and 1.
using Bits = std::vector<TokenId>;

/// Uniform in 1 … 2^length − 1, with `length` digits; length ≥ 1.
Bits random_bits(Index length, Draw& draw);
/// Sum and product without zeros at the end, but for 0 itself, which has no digit at all.
Bits add(const Bits& a, const Bits& b);
Bits multiply(const Bits& a, const Bits& b);  ///< cost |a| · |b|
/// ⌊√a⌋ with ⌈|a| / 2⌉ digits; cost |a|².
Bits square_root(const Bits& a);

/// a ∘ b of two binary numbers, least significant digits first, as in Delétang et al. 2022. The
/// question has `length` ids: 1 … length − 2 digits, the operator and the other digits; numbers are
/// uniform but for 0. The answer is the result without zeros at its end, then "."; it has room for
/// `length` + `more_room` ids.
class BinaryTask final : public QuestionTask {
 public:
  using Operation = Bits (*)(const Bits&, const Bits&);
  BinaryTask(std::string_view info, std::string_view sign, bool blanks, Operation operation,
             Index more_room);
  Index shortest() const override { return 3; }

 private:
  Index answer_length(Index length) const override { return length + more_room_; }
  Question ask(Index length, Draw& draw) const override;

  Operation operation_;
  Index more_room_;
};

/// Ids of expressions: the residues 0 … modulus − 1, then these.
struct ExpressionIds {
  TokenId plus, minus, open, close, times;
  explicit ExpressionIds(Index modulus)
      : plus(static_cast<TokenId>(modulus)),
        minus(plus + 1),
        open(plus + 2),
        close(plus + 3),
        times(plus + 4) {}
};
/// Their texts, but for `times`.
std::vector<std::string> expression_texts(Index modulus);

/// Appends a random expression of exactly `length` ids to `ids` and returns its value in
/// 0 … modulus − 1. Lengths 1 … 4 are r, −r, (r), (−r) with a uniform r; longer ones (l ∘ r) with a
/// uniform split and operator, `times` among them if `with_times`. Delétang et al. 2022.
Index random_expression(Index modulus, Index length, bool with_times, Draw& draw,
                        std::vector<TokenId>& ids);

}  // namespace masque::task
