#include "mask/expression.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/string/comma_list.hpp"
#include "base/thread/parallel.hpp"
#include "mask/zoo.hpp"

namespace masque::mask {

struct MaskExpression::Node {
  Kind kind = Kind::kName;
  NamedMask named;
  std::vector<MaskExpression> operands;
};

MaskExpression::MaskExpression(std::string name, std::vector<MaskArgument> arguments,
                               std::size_t column)
    : node_(std::make_shared<Node>(
          Node{Kind::kName, {std::move(name), std::move(arguments), column}, {}})) {}

MaskExpression::MaskExpression(Kind kind, MaskExpression a, std::optional<MaskExpression> b,
                               std::size_t column) {
  auto node = std::make_shared<Node>();
  node->kind = kind;
  node->named.column = column;
  node->operands.push_back(std::move(a));
  if (b) node->operands.push_back(*std::move(b));
  node_ = std::move(node);
}

MaskExpression::MaskExpression(std::vector<MaskExpression> heads)
    : node_(std::make_shared<Node>(Node{Kind::kHeads, {}, std::move(heads)})) {
  MASQUE_CHECK(!operands().empty());
}

MaskExpression::Kind MaskExpression::kind() const { return node_->kind; }
const NamedMask& MaskExpression::named() const { return node_->named; }
const std::vector<MaskExpression>& MaskExpression::operands() const { return node_->operands; }

std::span<const MaskExpression> MaskExpression::heads() const {
  return kind() == Kind::kHeads ? std::span(operands()) : std::span<const MaskExpression>();
}

MaskExpression MaskExpression::any_head() const {
  if (kind() != Kind::kHeads) return *this;
  MaskExpression any = operands().front();
  for (std::size_t head = 1; head < operands().size(); ++head) {
    const MaskExpression& own = operands()[head];
    if (own != operands()[head - 1]) any = MaskExpression(Kind::kOr, std::move(any), own);
  }
  return any;
}

bool MaskExpression::operator==(const MaskExpression& other) const {
  return node_->kind == other.node_->kind && name() == other.name() &&
         arguments() == other.arguments() && node_->operands == other.node_->operands;
}

namespace {

std::string argument_text(const MaskArgument& argument, std::size_t most) {
  const bool cut = argument.value.size() > most;
  std::string value = argument.value.substr(0, cut ? most : std::string::npos);
  if (argument.quoted || !is_mask_word(value)) {
    const std::string plain = std::exchange(value, "\"");
    for (const char c : plain) {
      if (c == '"' || c == '\\') value += '\\';
      value += c;
    }
    value += cut ? "…\"" : "\"";
  } else if (cut) {
    value += "…";
  }
  return argument.name.empty() ? value : fmt::format("{}={}", argument.name, value);
}

int precedence(MaskExpression::Kind kind) {
  if (kind == MaskExpression::Kind::kOr) return 0;
  return kind == MaskExpression::Kind::kAnd ? 1 : 2;
}

std::string list_text(const std::vector<MaskLayer>& layers, std::size_t most);

/// `mask` in the language; of kText at most `most` bytes.
std::string text_of(const MaskExpression& mask, std::size_t most) {
  using Kind = MaskExpression::Kind;
  if (mask.kind() == Kind::kName) {
    std::string out = mask.name();
    const std::vector<MaskArgument>& arguments = mask.arguments();
    if (!has_mask_parameter(out, MaskParameterKind::kText)) most = std::string::npos;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      out += fmt::format("{}{}", i == 0 ? "(" : ",", argument_text(arguments[i], most));
    return arguments.empty() ? out : out + ")";
  }
  if (mask.kind() == Kind::kHeads) {
    std::vector<MaskLayer> runs;
    for (const MaskExpression& head : mask.operands()) {
      if (!runs.empty() && runs.back().mask == head) {
        ++runs.back().count;
      } else {
        runs.push_back({1, head});
      }
    }
    return fmt::format("[{}]", list_text(runs, most));
  }
  // & and | group to the left: only a right operand of the same kind keeps its parentheses.
  const auto side = [&](const MaskExpression& operand, bool right) {
    const bool loose = precedence(operand.kind()) < precedence(mask.kind()) ||
                       (right && operand.kind() == mask.kind());
    return loose ? fmt::format("({})", text_of(operand, most)) : text_of(operand, most);
  };
  if (mask.kind() == Kind::kNot) return "~" + side(mask.operands()[0], false);
  return fmt::format("{} {} {}", side(mask.operands()[0], false),
                     mask.kind() == Kind::kAnd ? "&" : "|", side(mask.operands()[1], true));
}

std::string list_text(const std::vector<MaskLayer>& layers, std::size_t most) {
  return comma_list(layers, [&](const MaskLayer& layer) {
    const std::string mask = text_of(layer.mask, most);
    return layer.count == 1 ? mask : fmt::format("{}*{}", layer.count, mask);
  });
}

/// Of kText in messages.
constexpr std::size_t kMostShown = 40;

}  // namespace

std::string MaskExpression::text() const { return text_of(*this, std::string::npos); }

std::string MaskExpression::shown() const { return text_of(*this, kMostShown); }

Mask MaskExpression::bind(Lengths lengths) const {
  switch (kind()) {
    case Kind::kAnd: return operands()[0].bind(lengths) & operands()[1].bind(lengths);
    case Kind::kOr: return operands()[0].bind(lengths) | operands()[1].bind(lengths);
    case Kind::kNot: return ~operands()[0].bind(lengths);
    case Kind::kHeads:
      throw UsageError("masks that differ between heads, expected one mask for all heads");
    default: return build_mask(named(), lengths);
  }
}

void MaskExpression::check_sequence(Index length) const {
  const Lengths wanted{length, length};
  const Lengths own = own_lengths().value_or(wanted);
  if (own == wanted) return;
  throw UsageError(fmt::format("'{}' for a sequence of {} tokens: the mask is for {} × {} tokens",
                               shown(), length, own.queries, own.keys));
}

Mask MaskExpression::bind_sequence(Index length) const {
  check_sequence(length);
  std::optional<Mask> bound;
  if (const auto problem = usage_error_message([&] { bound = bind({length, length}); }))
    throw UsageError(
        fmt::format("'{}' for a sequence of {} tokens: {}", shown(), length, *problem));
  return *std::move(bound);
}

std::optional<Lengths> MaskExpression::own_lengths() const {
  if (kind() == Kind::kName) return mask_lengths(named());
  for (const MaskExpression& operand : operands()) {
    if (const auto found = operand.own_lengths()) return found;
  }
  return std::nullopt;
}

bool MaskExpression::open() const {
  if (kind() == Kind::kName) return open_part(named()) != Open::kNothing;
  return std::ranges::any_of(operands(), [](const MaskExpression& part) { return part.open(); });
}

MaskExpression MaskExpression::closed(std::span<const Index> words, std::uint64_t seed) const {
  if (kind() == Kind::kHeads) {
    std::vector<MaskExpression> all;
    all.reserve(operands().size());
    for (const MaskExpression& head : operands()) all.push_back(head.closed(words, seed));
    return MaskExpression(std::move(all));
  }
  if (kind() != Kind::kName) {
    std::optional<MaskExpression> second;
    if (operands().size() > 1) second = operands()[1].closed(words, seed);
    return {kind(), operands()[0].closed(words, seed), std::move(second)};
  }
  std::vector<MaskArgument> given = arguments();
  const auto add = [&](std::string argument, std::string value) {
    given.push_back({std::move(argument), std::move(value), false, 0});
  };
  switch (open_part(named())) {
    case Open::kNothing: return *this;
    case Open::kSeed: add("seed", std::to_string(seed)); break;
    case Open::kWords:
      for (const Index length : words) add("", std::to_string(length));
      break;
  }
  return {name(), std::move(given)};
}

std::string layers_text(const std::vector<MaskLayer>& layers) {
  return list_text(layers, std::string::npos);
}

std::string shown_layers(const std::vector<MaskLayer>& layers) {
  return list_text(layers, kMostShown);
}

// Reads the mask language: what expression.hpp declares as parse_….

namespace {

constexpr int kMaxDepth = 200;
// Chains of operators are trees that lean to the left: as deep as they are long.
constexpr int kMaxNames = 1000;

/// Recursive descent over one line of text.
class Parser {
 public:
  Parser(std::string_view text, bool open, MaskFiles files)
      : text_(text), open_(open), files_(files) {}

  MaskExpression mask_to_end() {
    MaskExpression mask = parse_or(0);
    if (!at_end()) fail(found() + ", expected &, | or the end");
    return mask;
  }

  std::vector<MaskLayer> layers_to_end() {
    std::vector<MaskLayer> layers;
    do {
      const Index count = parse_count("layers");
      layers.push_back({count, take('[') ? parse_heads() : parse_item()});
    } while (take(','));
    if (!at_end()) fail(found() + ", expected &, |, a comma or the end");
    return layers;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    // Of a long text, what stands around the place.
    constexpr std::size_t kAround = 60;
    const std::size_t begin = text_.size() > 3 * kAround && at_ > kAround ? at_ - kAround : 0;
    const std::string_view shown = text_.substr(begin, 3 * kAround);
    throw UsageError(fmt::format("'{}{}{}': column {}: {}", begin > 0 ? "…" : "", escape(shown),
                                 begin + shown.size() < text_.size() ? "…" : "", at_ + 1, message));
  }

  std::string found() {
    skip_space();
    if (at_ >= text_.size()) return "found the end";
    char32_t c = 0;
    const int length = std::max(1, decode_utf8(text_.substr(at_), c));
    return fmt::format("found '{}'", escape(text_.substr(at_, static_cast<std::size_t>(length))));
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n'))
      ++at_;
  }

  bool at_end() {
    skip_space();
    return at_ >= text_.size();
  }

  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string_view word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_mask_word(text_.substr(at_, 1))) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  /// The number in front of an item of a list of `what`; without one 1.
  Index parse_count(std::string_view what) {
    skip_space();
    if (at_ >= text_.size() || !std::isdigit(static_cast<unsigned char>(text_[at_]))) return 1;
    const std::size_t column = at_;
    const auto number = parse_unsigned(word());
    if (!number || *number == 0 || *number > 100000) {
      at_ = column;
      fail(fmt::format("expected a number of {} from 1 to 100000", what));
    }
    if (!take('*')) fail(found() + ", expected *");
    return static_cast<Index>(*number);
  }

  MaskExpression parse_heads() {
    std::vector<MaskExpression> heads;
    do {
      const auto count = static_cast<std::size_t>(parse_count("heads"));
      if (heads.size() + count > 100000) fail("more than 100000 heads");
      heads.insert(heads.end(), count, parse_item());
    } while (take(','));
    if (!take(']')) fail(found() + ", expected &, |, a comma or ]");
    return MaskExpression(std::move(heads));
  }

  /// A mask of a list, in which each has its own number of names.
  MaskExpression parse_item() {
    names_ = 0;
    return parse_or(0);
  }

  MaskExpression parse_or(int depth) {
    MaskExpression left = parse_and(depth);
    while (take('|')) {
      left = MaskExpression(MaskExpression::Kind::kOr, std::move(left), parse_and(depth));
    }
    return left;
  }

  MaskExpression parse_and(int depth) {
    MaskExpression left = parse_unary(depth);
    while (take('&')) {
      left = MaskExpression(MaskExpression::Kind::kAnd, std::move(left), parse_unary(depth));
    }
    return left;
  }

  MaskExpression parse_unary(int depth) {
    if (depth > kMaxDepth) fail(fmt::format("nested deeper than {} levels", kMaxDepth));
    if (take('~')) {
      return {MaskExpression::Kind::kNot, parse_unary(depth + 1), std::nullopt};
    }
    if (take('(')) {
      MaskExpression inner = parse_or(depth + 1);
      if (!take(')')) fail(found() + ", expected )");
      return inner;
    }
    return parse_name();
  }

  MaskExpression parse_name() {
    skip_space();
    const std::size_t column = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) {
      ++at_;
    }
    const std::string name(text_.substr(column, at_ - column));
    if (at_ < text_.size() && static_cast<unsigned char>(text_[at_]) >= 0x80) {
      fail(found() + ", expected a mask");
    }
    if (++names_ > kMaxNames) fail(fmt::format("more than {} names", kMaxNames));
    if (name.empty()) fail(found() + ", expected a mask");
    std::vector<MaskArgument> arguments;
    if (take('(')) {
      if (!take(')')) {
        do {
          arguments.push_back(parse_argument());
        } while (take(','));
        if (!take(')')) fail(found() + ", expected a comma or )");
      }
    }
    MaskExpression expression(name, std::move(arguments), column + 1);
    if (const auto problem = check_mask(expression.named(), open_)) {
      at_ = problem->column == 0 ? column : problem->column - 1;
      fail(problem->message);
    }
    if (files_ == MaskFiles::kRefused && has_mask_parameter(name, MaskParameterKind::kFile)) {
      at_ = column;
      fail(fmt::format("{} reads a file, which is not allowed here", name));
    }
    return expression;
  }

  MaskArgument parse_argument() {
    skip_space();
    MaskArgument argument;
    argument.column = at_ + 1;
    if (at_ < text_.size() && text_[at_] == '"') {
      argument.value = quoted();
      argument.quoted = true;
      return argument;
    }
    argument.value = word();
    if (take('=')) {
      argument.name = std::move(argument.value);
      skip_space();
      if (at_ < text_.size() && text_[at_] == '"') {
        argument.value = quoted();
        argument.quoted = true;
      } else {
        argument.value = bare();
      }
    } else {
      argument.value += bare();
    }
    if (argument.value.empty()) fail(found() + ", expected an argument");
    return argument;
  }

  /// The rest of an unquoted value: a path may hold more than words do.
  std::string bare() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           std::string_view(",()\" \t&|~=*").find(text_[at_]) == std::string_view::npos) {
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted() {
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      value += text_[at_];
    }
    if (at_ >= text_.size()) fail("found the end, expected a closing quote");
    ++at_;
    return value;
  }

  std::string_view text_;
  bool open_;
  MaskFiles files_;
  std::size_t at_ = 0;
  int names_ = 0;
};

}  // namespace

MaskExpression parse_mask(std::string_view text, MaskFiles files) {
  return Parser(text, false, files).mask_to_end();
}

std::vector<MaskLayer> parse_mask_layers(std::string_view text, MaskFiles files) {
  return Parser(text, false, files).layers_to_end();
}

MaskExpression parse_open_mask(std::string_view text) {
  return Parser(text, true, MaskFiles::kRefused).mask_to_end();
}

std::vector<MaskLayer> parse_open_mask_layers(std::string_view text, MaskFiles files) {
  return Parser(text, true, files).layers_to_end();
}

}  // namespace masque::mask
