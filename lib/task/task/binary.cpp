// binary_addition and binary_multiplication: a ∘ b of two binary numbers, least significant digits
// first: 1 0 0 1 + 0 1 becomes 1 1 0 1 . and 1 0 0 1 * 0 1 becomes 0 1 0 0 1 .
#include "task/arithmetic.hpp"

namespace masque::task {

namespace {

std::unique_ptr<Task> make_sum(NamedArguments& arguments) {
  return std::make_unique<BinaryTask>(
      "the sum of two binary numbers; length: tokens of the question; Delétang et al. 2022, "
      "arXiv:2207.02098",
      "+", read_blanks(arguments, true), add, 1);
}

std::unique_ptr<Task> make_product(NamedArguments& arguments) {
  return std::make_unique<BinaryTask>(
      "the product of two binary numbers; length: tokens of the question; Delétang et al. 2022, "
      "arXiv:2207.02098",
      "*", read_blanks(arguments, true), multiply, 0);
}

const TaskRegistration kRegistration("binary_addition", make_sum);
const TaskRegistration kProductRegistration("binary_multiplication", make_product);

}  // namespace

}  // namespace masque::task
