// binary_multiplication: the product of two binary numbers, least significant digits first: 1 0 0 1
// * 0 1 becomes 0 1 0 0 1 .
#include "task/arithmetic.hpp"

namespace masque::task {

namespace {

const TaskRegistration kRegistration("binary_multiplication",
                                     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
                                       return std::make_unique<BinaryTask>(
                                           "the product of two binary numbers; length: ids of the "
                                           "question; Delétang et al. 2022, arXiv:2207.02098",
                                           "*", read_blanks(arguments, true), multiply, 0);
                                     });

}  // namespace

}  // namespace masque::task
