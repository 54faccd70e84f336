// The tasks, one after the other, and the list of them.
#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/registry/maker.hpp"
#include "base/string/named_arguments.hpp"
#include "task/arithmetic.hpp"
#include "task/task.hpp"

namespace masque::task {

namespace {

// The tasks that are a map from a string to another: rows of a table.

using Symbols = std::vector<TokenId>;

Symbols same(Symbols symbols) { return symbols; }

Symbols reversed(Symbols symbols) {
  std::reverse(symbols.begin(), symbols.end());
  return symbols;
}

Symbols sorted(Symbols symbols) {
  std::sort(symbols.begin(), symbols.end());
  return symbols;
}

Symbols twice(Symbols symbols) {
  symbols.resize(2 * symbols.size());
  std::copy_n(symbols.begin(), symbols.size() / 2, symbols.begin() + std::ssize(symbols) / 2);
  return symbols;
}

/// x₁ x₃ x₅ … x₂ x₄ …, as the paper has it; its code puts x₂ x₄ … first.
Symbols odds_first(Symbols symbols) {
  Symbols out;
  out.reserve(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); i += 2) out.push_back(symbols[i]);
  for (std::size_t i = 1; i < symbols.size(); i += 2) out.push_back(symbols[i]);
  return out;
}

struct StringTaskRow {
  std::string_view name;
  std::string_view info;
  Index alphabet;  ///< standard value
  bool blanks;     ///< standard value
  StringTask::Map map;
  Index copies = 1;
};

constexpr StringTaskRow kStringTasks[] = {
    {"bucket_sort", "a string sorted; length: its symbols; Delétang et al. 2022, arXiv:2207.02098",
     5, true, sorted},
    {"copy", "a string repeated once; length: its symbols; Graves et al. 2014, arXiv:1410.5401", 16,
     false, same},
    {"duplicate_string",
     "a string twice; length: its symbols; Delétang et al. 2022, arXiv:2207.02098", 2, true, twice,
     2},
    {"odds_first",
     "symbols at odd positions, then those at even ones; length: symbols of the string; Delétang "
     "et al. 2022, arXiv:2207.02098",
     2, true, odds_first},
    {"reverse", "a string reversed; length: its symbols; Kazemnejad et al. 2023, arXiv:2305.19466",
     16, false, reversed},
    {"reverse_string",
     "a string reversed; length: its symbols; Delétang et al. 2022, arXiv:2207.02098", 2, true,
     reversed},
    {"sort", "a string sorted; length: its symbols; Kazemnejad et al. 2023, arXiv:2305.19466", 16,
     false, sorted},
};

std::unique_ptr<Task> make_string_task(NamedArguments& arguments) {
  const auto* row = std::ranges::find(kStringTasks, arguments.name(), &StringTaskRow::name);
  MASQUE_CHECK(row != std::end(kStringTasks));
  return std::make_unique<StringTask>(row->info, arguments, row->alphabet, row->blanks, row->map,
                                      row->copies);
}

/// addition: of two numbers of n digits; the sum has n + 1, zeros included. Digits are written from
/// the largest to the smallest; `reversed` is what is written the other way: nothing, the sum, all.
class Addition final : public QuestionTask {
 public:
  Addition(Index base, bool reversed_question, bool reversed_answer, bool blanks)
      : QuestionTask(
            "the sum of two numbers; length: digits of each; Nogueira et al. 2021, "
            "arXiv:2102.13019; reversed: Lee et al. 2023, arXiv:2307.03381",
            texts(base), blanks),
        base_(base),
        reversed_question_(reversed_question),
        reversed_answer_(reversed_answer) {}

 private:
  static std::vector<std::string> texts(Index base) {
    std::vector<std::string> all = numbered(base);
    all.emplace_back("+");
    return all;
  }
  Index question_length(Index length) const override { return 2 * length + 1; }
  Index answer_length(Index length) const override { return length + 1; }
  Question ask(Index length, Draw& draw) const override {
    const auto base = static_cast<TokenId>(base_);
    std::vector<TokenId> a = random_string(length, base_, draw);
    std::vector<TokenId> b = random_string(length, base_, draw);
    Question question;
    TokenId carry = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const TokenId digit = a[i] + b[i] + carry;
      question.answer.push_back(digit % base);
      carry = digit / base;
    }
    question.answer.push_back(carry);
    if (!reversed_answer_) std::reverse(question.answer.begin(), question.answer.end());
    if (!reversed_question_) {
      std::reverse(a.begin(), a.end());
      std::reverse(b.begin(), b.end());
    }
    question.prompt = std::move(a);
    question.prompt.push_back(base);
    question.prompt.insert(question.prompt.end(), b.begin(), b.end());
    return question;
  }

  Index base_;
  bool reversed_question_;
  bool reversed_answer_;
};

// binary_addition and binary_multiplication: a ∘ b of two binary numbers, least significant digits
// first: 1 0 0 1 + 0 1 becomes 1 1 0 1 . and 1 0 0 1 * 0 1 becomes 0 1 0 0 1 .

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

/// compute_sqrt: the whole part of a square root in binary, largest digits first: 1 0 0 1 0 1
/// becomes 1 1 0.
class ComputeSqrt final : public QuestionTask {
 public:
  explicit ComputeSqrt(bool blanks)
      : QuestionTask(
            "the integer square root of a binary number; length: its digits; Delétang et al. 2022, "
            "arXiv:2207.02098",
            numbered(2), blanks) {}

 private:
  Index answer_length(Index length) const override { return (length + 1) / 2; }
  Question ask(Index length, Draw& draw) const override {
    Question question;
    question.prompt = random_bits(length, draw);
    question.answer = square_root(question.prompt);
    std::reverse(question.prompt.begin(), question.prompt.end());
    std::reverse(question.answer.begin(), question.answer.end());
    return question;
  }
};

// modular_arithmetic_simple: the value of r ∘ r ∘ … ∘ r with +, − and ×, which binds tighter. An
// even length gives the question of the odd length below it. The paper's code calls it
// modular_arithmetic.

std::vector<std::string> simple_texts(Index modulus) {
  std::vector<std::string> all = numbered(modulus);
  all.insert(all.end(), {"+", "-", "*"});
  return all;
}

class ModularArithmeticSimple final : public QuestionTask {
 public:
  ModularArithmeticSimple(Index modulus, bool blanks)
      : QuestionTask(
            "the value of an expression without brackets; length: tokens of the question, if odd; "
            "Delétang et al. 2022, arXiv:2207.02098",
            simple_texts(modulus), blanks),
        modulus_(modulus) {}

 private:
  Index question_length(Index length) const override { return length - (length + 1) % 2; }
  Index answer_length(Index /*length*/) const override { return 1; }
  Question ask(Index length, Draw& draw) const override {
    Question question;
    Index sum = 0;
    Index term = draw.below(modulus_);  // with its sign
    question.prompt.push_back(static_cast<TokenId>(term));
    while (std::ssize(question.prompt) < question_length(length)) {
      const Index sign = draw.below(3);
      const Index residue = draw.below(modulus_);
      question.prompt.push_back(static_cast<TokenId>(modulus_ + sign));
      question.prompt.push_back(static_cast<TokenId>(residue));
      if (sign == 2) {
        term = term * residue % modulus_;
      } else {
        sum += term;
        term = sign == 0 ? residue : modulus_ - residue;
      }
    }
    question.answer = {static_cast<TokenId>((sum + term) % modulus_)};
    return question;
  }

  Index modulus_;
};

// modular_arithmetic: the value of an expression of residues with brackets around every operation.
// The paper's code calls it modular_arithmetic_brackets.

std::vector<std::string> bracket_texts(Index modulus) {
  std::vector<std::string> all = expression_texts(modulus);
  all.emplace_back("*");
  return all;
}

class ModularArithmetic final : public QuestionTask {
 public:
  ModularArithmetic(Index modulus, bool with_times, bool blanks)
      : QuestionTask(
            "the value of an expression with brackets; length: tokens of the question; Delétang et "
            "al. 2022, arXiv:2207.02098",
            bracket_texts(modulus), blanks),
        modulus_(modulus),
        with_times_(with_times) {}

 private:
  Index answer_length(Index /*length*/) const override { return 1; }
  Question ask(Index length, Draw& draw) const override {
    Question question;
    const Index value = random_expression(modulus_, length, with_times_, draw, question.prompt);
    question.answer = {static_cast<TokenId>(value)};
    return question;
  }

  Index modulus_;
  bool with_times_;
};

// solve_equation: an expression with brackets, one residue replaced by x, and its value: what is x?
// There is no product, so that there is one answer.

std::vector<std::string> solve_equation_texts(Index modulus) {
  std::vector<std::string> all = expression_texts(modulus);
  all.insert(all.end(), {"x", "="});
  return all;
}

class SolveEquation final : public QuestionTask {
 public:
  SolveEquation(Index modulus, bool blanks)
      : QuestionTask(
            "the value of x in an equation with +, - and brackets; length: tokens of the question; "
            "Delétang et al. 2022, arXiv:2207.02098",
            solve_equation_texts(modulus), blanks),
        modulus_(modulus) {}
  Index shortest() const override { return 3; }

 private:
  Index answer_length(Index /*length*/) const override { return 1; }
  Question ask(Index length, Draw& draw) const override {
    const auto unknown = static_cast<TokenId>(modulus_ + 4);
    Question question;
    std::vector<TokenId>& ids = question.prompt;
    const Index value = random_expression(modulus_, length - 2, false, draw, ids);
    // The first residue from a random place on, as in the paper's code.
    auto at = static_cast<std::size_t>(draw.below(length - 2));
    while (ids[at] >= modulus_) at = (at + 1) % ids.size();
    question.answer = {ids[at]};
    ids[at] = unknown;
    ids.insert(ids.end(), {unknown + 1, static_cast<TokenId>(value)});
    return question;
  }
  double exact_chance(Index /*length*/) const override { return 1 / static_cast<double>(modulus_); }

  Index modulus_;
};

/// even_pairs: whether the number of places where 0 meets 1 is even (0) or odd (1).
class EvenPairs final : public QuestionTask {
 public:
  explicit EvenPairs(bool blanks)
      : QuestionTask(
            "whether 01 and 10 together occur an even (0) or odd (1) number of times; length: "
            "bits; Delétang et al. 2022, "
            "arXiv:2207.02098",
            numbered(2), blanks) {}

 private:
  Index answer_length(Index /*length*/) const override { return 1; }
  Question ask(Index length, Draw& draw) const override {
    std::vector<TokenId> bits = random_string(length, 2, draw);
    const bool odd = bits.front() != bits.back();  // every change is undone by the next one
    return {std::move(bits), {odd ? 1 : 0}};
  }
  double exact_chance(Index length) const override { return length == 1 ? 1 : 0.5; }
};

/// even_token_prediction: the targets are the tokens at places 2, 4, 6, …, then a constant to the
/// end.
class EvenTokenPrediction final : public InPlaceTask {
 public:
  EvenTokenPrediction(Index alphabet, bool ends)
      : InPlaceTask(
            "the tokens at even positions, then a constant; length: tokens without [CLS] and "
            "[SEP]; Luo et al. 2022, arXiv:2205.13401",
            alphabet, {"-"}, ends) {}

 private:
  std::vector<TokenId> targets(const std::vector<TokenId>& symbols) const override {
    std::vector<TokenId> all(symbols.size(), label(0));
    for (std::size_t i = 0; 2 * i + 1 < symbols.size(); ++i) all[i] = symbols[2 * i + 1];
    return all;
  }
  double exact_chance(Index length) const override {
    const Index guessed = length - length / 2;
    return static_cast<double>(guessed) / static_cast<double>(length);
  }
};

/// parity: of bits, at once or after every bit ("steps"), which spells the way to the answer out.
class Parity final : public QuestionTask {
 public:
  Parity(bool steps, bool blanks)
      : QuestionTask(
            "whether the number of ones is odd; with steps=true after every bit; length: bits; "
            "Anil et al. 2022, arXiv:2207.04901",
            numbered(2), blanks),
        steps_(steps) {}

 private:
  Index answer_length(Index length) const override { return steps_ ? length : 1; }
  Question ask(Index length, Draw& draw) const override {
    Question question;
    question.prompt = random_string(length, 2, draw);
    TokenId odd = 0;
    for (std::size_t i = 0; i < question.prompt.size(); ++i) {
      odd ^= question.prompt[i];
      if (steps_ || i + 1 == question.prompt.size()) question.answer.push_back(odd);
    }
    return question;
  }
  double exact_chance(Index /*length*/) const override { return 0.5; }

  bool steps_;
};

/// parity_check: whether the number of ones is even (0) or odd (1).
class ParityCheck final : public QuestionTask {
 public:
  explicit ParityCheck(bool blanks)
      : QuestionTask(
            "whether the number of ones is odd; length: bits; Delétang et al. 2022, "
            "arXiv:2207.02098",
            numbered(2), blanks) {}

 private:
  Index answer_length(Index /*length*/) const override { return 1; }
  Question ask(Index length, Draw& draw) const override {
    std::vector<TokenId> bits = random_string(length, 2, draw);
    const TokenId ones = std::accumulate(bits.begin(), bits.end(), 0);
    return {std::move(bits), {ones % 2}};
  }
  double exact_chance(Index /*length*/) const override { return 0.5; }
};

// cycle_navigation: where a walk on a circle of five places ends that begins at place 0.

constexpr Index kPlaces = 5;
constexpr Index kMoves = 3;

std::vector<std::string> move_texts() {
  std::vector<std::string> all = numbered(kPlaces);
  all.insert(all.end(), {"-1", "+0", "+1"});
  return all;
}

class CycleNavigation final : public QuestionTask {
 public:
  explicit CycleNavigation(bool blanks)
      : QuestionTask(
            "the end of a walk on a cycle of five states; length: moves; Delétang et al. 2022, "
            "arXiv:2207.02098",
            move_texts(), blanks) {}

 private:
  Index answer_length(Index /*length*/) const override { return 1; }
  Question ask(Index length, Draw& draw) const override {
    Question question;
    question.prompt = random_string(length, kMoves, draw);
    Index place = 0;
    for (TokenId& move : question.prompt) {
      place = (place + move - 1 + kPlaces) % kPlaces;
      move += static_cast<TokenId>(kPlaces);
    }
    question.answer = {static_cast<TokenId>(place)};
    return question;
  }
  double exact_chance(Index length) const override {
    std::array<double, kPlaces> shares{1};
    for (Index move = 0; move < length; ++move) {
      std::array<double, kPlaces> next{};
      for (std::size_t place = 0; place < next.size(); ++place) {
        const double sum =
            shares[(place + kPlaces - 1) % kPlaces] + shares[place] + shares[(place + 1) % kPlaces];
        next[place] = sum / kMoves;
      }
      if (next == shares) break;  // the same for all longer walks
      shares = next;
    }
    return *std::ranges::max_element(shares);
  }
};

// stack_manipulation: a stack of bits from its bottom, then pushes and pops; what is left, from its
// top, then ".". Pops of an empty stack do nothing.

constexpr TokenId kStackPop = 2;
constexpr TokenId kStackPush0 = 3;
constexpr TokenId kStackEnd = 5;

class StackManipulation final : public QuestionTask {
 public:
  explicit StackManipulation(bool blanks)
      : QuestionTask(
            "the stack after pushes and pops; length: tokens of the question; Delétang et al. "
            "2022, arXiv:2207.02098",
            {"0", "1", "pop", "push0", "push1", "."}, blanks) {}

 private:
  Index answer_length(Index length) const override { return length + 1; }
  Question ask(Index length, Draw& draw) const override {
    const Index height = length == 1 ? 1 : 1 + draw.below(length - 1);
    std::vector<TokenId> stack = random_string(height, 2, draw);
    Question question;
    question.prompt = stack;
    while (std::ssize(question.prompt) < length) {
      const auto action = static_cast<TokenId>(kStackPop + draw.below(3));
      question.prompt.push_back(action);
      if (action != kStackPop) {
        stack.push_back(action - kStackPush0);
      } else if (!stack.empty()) {
        stack.pop_back();
      }
    }
    question.answer.assign(stack.rbegin(), stack.rend());
    question.answer.push_back(kStackEnd);
    return question;
  }
};

// missing_duplicate: a string of bits twice, one bit of the two hidden: which? An odd length ends
// with a filler. The paper's code calls it missing_duplicate_string.

constexpr TokenId kHidden = 2;
constexpr TokenId kFiller = 3;

class MissingDuplicate final : public QuestionTask {
 public:
  explicit MissingDuplicate(bool blanks)
      : QuestionTask(
            "the hidden bit of a string that occurs twice; length: tokens of the question; "
            "Delétang et al. 2022, arXiv:2207.02098",
            {"0", "1", "#", "-"}, blanks) {}
  Index shortest() const override { return 2; }

 private:
  Index answer_length(Index /*length*/) const override { return 1; }
  Question ask(Index length, Draw& draw) const override {
    const std::vector<TokenId> once = random_string(length / 2, 2, draw);
    Question question;
    question.prompt = once;
    question.prompt.insert(question.prompt.end(), once.begin(), once.end());
    TokenId& hidden = question.prompt[static_cast<std::size_t>(draw.below(2 * (length / 2)))];
    question.answer = {hidden};
    hidden = kHidden;
    if (length % 2 == 1) question.prompt.push_back(kFiller);
    return question;
  }
  double exact_chance(Index /*length*/) const override { return 0.5; }
};

/// position_identification: the target of the i-th token is i, whatever the token is.
class PositionIdentification final : public InPlaceTask {
 public:
  PositionIdentification(Index alphabet, Index longest, bool ends)
      : InPlaceTask(
            "the position of every token; length: tokens without [CLS] and [SEP]; Luo et al. 2022, "
            "arXiv:2205.13401",
            alphabet, texts(longest), ends) {}
  Index longest() const override { return label_count(); }

 private:
  static std::vector<std::string> texts(Index longest) {
    std::vector<std::string> all;
    all.reserve(static_cast<std::size_t>(longest));
    for (Index i = 1; i <= longest; ++i) all.push_back("p" + std::to_string(i));
    return all;
  }
  std::vector<TokenId> targets(const std::vector<TokenId>& symbols) const override {
    std::vector<TokenId> all(symbols.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = label(static_cast<Index>(i));
    return all;
  }
  double exact_chance(Index length) const override { return 1 / static_cast<double>(length); }
};

/// associative_recall: pairs of a key and a value, no key twice; then some or all keys again, in
/// random order: each is followed by its value, which is the target. "k7 v2 k1 v5 k1 v5 k7 v2".
class AssociativeRecall final : public Task {
 public:
  AssociativeRecall(Index keys, Index values, Index queries)
      : keys_(keys), values_(values), queries_(queries) {}

  std::string_view info() const override {
    return "the values of keys seen before; length: pairs; Arora et al. 2023, arXiv:2312.04927";
  }
  Index vocab_size() const override { return keys_ + values_; }
  std::string token_text(TokenId id) const override {
    MASQUE_CHECK(id >= 0 && id < vocab_size());
    return id < keys_ ? fmt::format("k{}", id) : fmt::format("v{}", id - keys_);
  }
  bool causal() const override { return true; }
  Index shortest() const override { return 1; }
  Index longest() const override { return keys_; }
  Index tokens(Index length) const override { return 2 * (length + query_count(length)); }

 private:
  Index query_count(Index length) const {
    return queries_ == 0 ? length : std::min(queries_, length);
  }

  TaskExample make(Index length, Draw& draw) const override {
    TaskExample example;
    const auto put = [&](Index key, Index value, bool is_target) {
      const auto value_id = static_cast<TokenId>(keys_ + value);
      example.ids.insert(example.ids.end(), {static_cast<TokenId>(key), value_id});
      example.targets.insert(example.targets.end(), {is_target ? value_id : kNoTarget, kNoTarget});
    };
    const std::vector<Index> keys = random_order(keys_, draw);
    std::vector<Index> values(static_cast<std::size_t>(length));
    for (std::size_t pair = 0; pair < values.size(); ++pair) {
      values[pair] = draw.below(values_);
      put(keys[pair], values[pair], false);
    }
    std::vector<Index> order = random_order(length, draw);
    order.resize(static_cast<std::size_t>(query_count(length)));
    for (const Index pair : order) {
      put(keys[static_cast<std::size_t>(pair)], values[static_cast<std::size_t>(pair)], true);
    }
    return example;
  }
  double exact_chance(Index /*length*/) const override { return 1 / static_cast<double>(values_); }

  Index keys_;
  Index values_;
  Index queries_;
};

/// induction: what followed the mark the first time? The mark is at a random place of a random
/// string and again at its end.
class Induction final : public QuestionTask {
 public:
  Induction(Index alphabet, bool blanks)
      : QuestionTask(
            "the symbol that followed the first of two marks; length: symbols, including both "
            "marks; Olsson et al. 2022, arXiv:2209.11895; Fu et al. 2022, arXiv:2212.14052",
            numbered(alphabet), blanks),
        alphabet_(alphabet) {}
  Index shortest() const override { return 3; }

 private:
  // The mark at the end is the one after every question.
  Index question_length(Index length) const override { return length - 1; }
  Index answer_length(Index /*length*/) const override { return 1; }
  Question ask(Index length, Draw& draw) const override {
    Question question;
    question.prompt = random_string(length - 1, alphabet_, draw);
    const auto at = static_cast<std::size_t>(draw.below(length - 2));
    question.prompt[at] = mark();
    question.answer = {question.prompt[at + 1]};
    return question;
  }
  double exact_chance(Index /*length*/) const override {
    return 1 / static_cast<double>(alphabet_);
  }

  Index alphabet_;
};

// needle: names with their numbers, lost in random letters; at the end, one of the names: which
// number? "b d A 4 1 7 c a B 0 3 3 d A ?" asks for 4 1 7.

constexpr Index kDigits = 10;

/// Digits, letters of the haystack, names.
std::vector<std::string> needle_texts(Index alphabet, Index needles) {
  std::vector<std::string> all = numbered(kDigits);
  for (const std::string& i : numbered(alphabet)) all.push_back("h" + i);
  for (const std::string& i : numbered(needles)) all.push_back("N" + i);
  return all;
}

class Needle final : public QuestionTask {
 public:
  Needle(Index needles, Index digits, Index alphabet, bool blanks)
      : QuestionTask(
            "the number that follows a name among random letters; length: haystack with needles; "
            "Mohtashami and Jaggi 2023, arXiv:2305.16300; Hsieh et al. 2024, arXiv:2404.06654",
            needle_texts(alphabet, needles), blanks),
        needles_(needles),
        digits_(digits),
        alphabet_(alphabet) {}
  Index shortest() const override { return needles_ * (1 + digits_); }

 private:
  Index question_length(Index length) const override { return length + 1; }
  Index answer_length(Index /*length*/) const override { return digits_; }
  Question ask(Index length, Draw& draw) const override {
    const auto first_name = static_cast<TokenId>(kDigits + alphabet_);
    const Index wanted = draw.below(needles_);
    const std::vector<Index> order = random_order(needles_, draw);
    // A needle takes one slot, as a letter does: then all places are equally likely.
    const std::vector<bool> is_needle = random_subset(length - needles_ * digits_, needles_, draw);
    Question question;
    std::size_t needle = 0;
    for (const bool here : is_needle) {
      if (!here) {
        question.prompt.push_back(static_cast<TokenId>(kDigits + draw.below(alphabet_)));
        continue;
      }
      const Index name = order[needle++];
      const std::vector<TokenId> number = random_string(digits_, kDigits, draw);
      question.prompt.push_back(first_name + static_cast<TokenId>(name));
      question.prompt.insert(question.prompt.end(), number.begin(), number.end());
      if (name == wanted) question.answer = number;
    }
    question.prompt.push_back(first_name + static_cast<TokenId>(wanted));
    return question;
  }
  double exact_chance(Index /*length*/) const override { return 1.0 / kDigits; }

  Index needles_;
  Index digits_;
  Index alphabet_;
};

// The list, by name.

constexpr Maker<Task> kTasks[] = {
    {"addition",
     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
       constexpr std::array<std::string_view, 3> kReversed = {"none", "answer", "all"};
       const Index base = arguments.count("base", 10, 2, 1000);
       const std::string reversed = arguments.choice("reversed", "none", kReversed);
       return std::make_unique<Addition>(base, reversed == "all", reversed != "none",
                                         read_blanks(arguments, false));
     }},
    {"associative_recall",
     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
       const Index keys = arguments.count("keys", 512, 1, 65536);
       const Index values = arguments.count("values", 64, 2, 65536);
       const Index queries = arguments.count("queries", 0, 0, 65536);  // 0: every key
       if (queries > keys) {
         throw UsageError(
             fmt::format("associative_recall: queries is {}, expected at most "
                         "{}, the number of keys",
                         queries, keys));
       }
       return std::make_unique<AssociativeRecall>(keys, values, queries);
     }},
    {"binary_addition", make_sum},
    {"binary_multiplication", make_product},
    {"bucket_sort", make_string_task},
    {"compute_sqrt",
     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
       return std::make_unique<ComputeSqrt>(read_blanks(arguments, true));
     }},
    {"copy", make_string_task},
    {"cycle_navigation",
     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
       return std::make_unique<CycleNavigation>(read_blanks(arguments, true));
     }},
    {"duplicate_string", make_string_task},
    {"even_pairs",
     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
       return std::make_unique<EvenPairs>(read_blanks(arguments, true));
     }},
    {"even_token_prediction",
     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
       const Index alphabet = arguments.count("alphabet", 980, 1, 65536);
       return std::make_unique<EvenTokenPrediction>(alphabet, arguments.flag("ends", false));
     }},
    {"induction",
     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
       const Index alphabet = arguments.count("alphabet", 16, 2, 65536);
       return std::make_unique<Induction>(alphabet, read_blanks(arguments, false));
     }},
    {"missing_duplicate",
     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
       return std::make_unique<MissingDuplicate>(read_blanks(arguments, true));
     }},
    {"modular_arithmetic",
     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
       const Index modulus = arguments.count("modulus", 5, 2, 1000);
       const bool with_times = arguments.flag("times", true);
       return std::make_unique<ModularArithmetic>(modulus, with_times,
                                                  read_blanks(arguments, true));
     }},
    {"modular_arithmetic_simple",
     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
       const Index modulus = arguments.count("modulus", 5, 2, 1000);
       return std::make_unique<ModularArithmeticSimple>(modulus, read_blanks(arguments, true));
     }},
    {"needle",
     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
       const Index needles = arguments.count("needles", 1, 1, 1000);
       const Index digits = arguments.count("digits", 4, 1, 1000);
       const Index alphabet = arguments.count("alphabet", 16, 1, 65536);
       return std::make_unique<Needle>(needles, digits, alphabet, read_blanks(arguments, false));
     }},
    {"odds_first", make_string_task},
    {"parity",
     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
       const bool steps = arguments.flag("steps", false);
       return std::make_unique<Parity>(steps, read_blanks(arguments, false));
     }},
    {"parity_check",
     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
       return std::make_unique<ParityCheck>(read_blanks(arguments, true));
     }},
    {"position_identification",
     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
       const Index alphabet = arguments.count("alphabet", 980, 1, 65536);
       const Index longest = arguments.count("longest", 1024, 1, 65536);
       return std::make_unique<PositionIdentification>(alphabet, longest,
                                                       arguments.flag("ends", false));
     }},
    {"reverse", make_string_task},
    {"reverse_string", make_string_task},
    {"solve_equation",
     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
       const Index modulus = arguments.count("modulus", 5, 2, 1000);
       return std::make_unique<SolveEquation>(modulus, read_blanks(arguments, true));
     }},
    {"sort", make_string_task},
    {"stack_manipulation",
     [](NamedArguments& arguments) -> std::unique_ptr<Task> {
       return std::make_unique<StackManipulation>(read_blanks(arguments, true));
     }},
};

const Makers<Task>& all_tasks() {
  static const Makers<Task> kAll(kTasks);
  return kAll;
}

}  // namespace

std::vector<std::string> task_names() { return all_tasks().names(); }

std::string task_parameters(std::string_view name) {
  NamedArguments arguments(name);
  all_tasks().make("task", arguments);
  return arguments.standards();
}

std::unique_ptr<const Task> parse_task(std::string_view text) {
  NamedArguments arguments(text);
  std::unique_ptr<Task> task = all_tasks().make("task", arguments);
  task->name_ = arguments.name();
  return task;
}

}  // namespace masque::task
