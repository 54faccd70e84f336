// What the arithmetic tasks compute with: binary numbers of any size, expressions with brackets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "task/task.hpp"

namespace masque::task {

/// A number in binary, least significant digit first; digits are 0 and 1.
using Bits = std::vector<TokenId>;

/// Draws a number uniform in 1 … 2^length − 1 from `draw`. It has `length` digits (from 1 on),
/// zeros at the end included.
Bits random_bits(Index length, Draw& draw);
/// Returns a + b without zeros at the end: 0 has no digit.
Bits add(const Bits& a, const Bits& b);
/// Returns a · b without zeros at the end: 0 has no digit. Cost |a| · |b|.
Bits multiply(const Bits& a, const Bits& b);
/// Returns ⌊√a⌋ with ⌈|a| / 2⌉ digits, zeros at the end included. Cost |a|².
Bits square_root(const Bits& a);

/// a ∘ b of two binary numbers, least significant digits first, as in Delétang et al. 2022,
/// arXiv:2207.02098. The question has `length` ids: 1 … length − 2 digits, the operator and the
/// other digits; numbers are uniform but for 0. The answer is the result without zeros at its end,
/// then "."; it has room for `length` + `more_room` ids.
class BinaryTask final : public QuestionTask {
 public:
  /// Computes the result of two numbers without zeros at its end.
  using Operation = Bits (*)(const Bits&, const Bits&);
  /// The text of the operator is `sign`. `operation` must give at most length − 1 + `more_room`
  /// digits for numbers that have length − 1 digits together. `info` and `blanks` are as in
  /// QuestionTask.
  BinaryTask(std::string_view info, std::string_view sign, bool blanks, Operation operation,
             Index more_room);
  Index shortest() const override { return 3; }

 private:
  Index answer_length(Index length) const override { return length + more_room_; }
  Question ask(Index length, Draw& draw) const override;

  Operation operation_;
  Index more_room_;
};

/// Ids of expressions: the residues 0 … modulus − 1, then these five, one after the other.
struct ExpressionIds {
  TokenId plus,  ///< "+"
      minus,     ///< "-", of two numbers and of one
      open,      ///< opening bracket
      close,     ///< closing bracket
      times;     ///< "*", the last one: tasks without products have no such id
  /// Sets the ids for residues of `modulus`.
  explicit ExpressionIds(Index modulus)
      : plus(static_cast<TokenId>(modulus)),
        minus(plus + 1),
        open(plus + 2),
        close(plus + 3),
        times(plus + 4) {}
};
/// Returns the texts of the ids 0 … modulus + 3: `modulus` residues, then "+", "-", "(", ")".
/// ExpressionIds::times has no text here.
std::vector<std::string> expression_texts(Index modulus);

/// Appends a random expression of exactly `length` ids to `ids` and returns its value in 0 …
/// modulus − 1, with random numbers from `draw`. Lengths 1 … 4 are r, −r, (r), (−r) with a uniform
/// r; longer ones (l ∘ r) with a uniform split and operator, ExpressionIds::times among them if
/// `with_times`. `length` is at least 1, `modulus` at least 2. Delétang et al. 2022,
/// arXiv:2207.02098.
Index random_expression(Index modulus, Index length, bool with_times, Draw& draw,
                        std::vector<TokenId>& ids);

}  // namespace masque::task
