#include "mask/expression.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/comma_list.hpp"
#include "base/error.hpp"
#include "base/parallel.hpp"
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

}  // namespace masque::mask
