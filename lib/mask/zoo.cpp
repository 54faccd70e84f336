#include "mask/zoo.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/registry/registry.hpp"
#include "base/string/edit_distance.hpp"
#include "base/string/parse_number.hpp"

namespace masque::mask {

namespace {

constexpr Index kMaxNumber = Index{1} << 32;
constexpr Index kMostNumbers = 10'000'000;

using MaskKinds = Registry<MaskKind>;

std::optional<Index> parse_index(std::string_view text) {
  const auto value = parse_unsigned(text);
  if (!value || *value > static_cast<std::uint64_t>(kMaxNumber)) return std::nullopt;
  return static_cast<Index>(*value);
}

std::optional<ListItem> parse_item(std::string_view text) {
  const std::size_t sign = text.find_first_of("-@");
  ListItem item;
  const auto a = parse_index(text.substr(0, sign));
  if (!a) return std::nullopt;
  item.a = *a;
  if (sign == std::string_view::npos) return item;
  const auto b = parse_index(text.substr(sign + 1));
  if (!b) return std::nullopt;
  if (text[sign] == '-') {
    if (*b < *a) return std::nullopt;
    item.to = *b;
  } else {
    item.at = *b;
  }
  return item;
}

std::string signature(const MaskKind& kind) {
  std::string out(kind.name);
  for (std::size_t i = 0; i < kind.parameters.size(); ++i) {
    const MaskParameter& parameter = kind.parameters[i];
    out += fmt::format("{}{}", i == 0 ? "(" : ",", parameter.name);
    if (parameter.kind == MaskParameterKind::kList) out += ",…";
  }
  return kind.parameters.empty() ? out : out + ")";
}

}  // namespace

/// Matches arguments to parameters.
class ValueReader {
 public:
  ValueReader(const MaskKind& kind, const std::vector<MaskArgument>& arguments)
      : kind_(kind), arguments_(arguments) {}

  std::optional<MaskProblem> problem;

  MaskValues read() {
    for (const MaskParameter& parameter : kind_.parameters) {
      if (text_of(parameter) != nullptr || parameter.kind == MaskParameterKind::kList) continue;
      const double fallback = parameter.fallback.value_or(0);
      values_.values_.push_back(
          {parameter.name, fallback, static_cast<std::uint64_t>(fallback), false});
    }
    for (const MaskArgument& argument : arguments_) {
      if (!problem) place(argument);
    }
    for (std::size_t i = 0; i < kind_.parameters.size() && !problem; ++i) {
      const MaskParameter& parameter = kind_.parameters[i];
      const std::string* text = text_of(parameter);
      const bool missing = parameter.kind == MaskParameterKind::kList ? values_.list_.empty()
                           : text != nullptr                          ? text->empty()
                                                                      : !value_of(parameter).given;
      if (missing && !parameter.fallback) {
        problem = {fmt::format("{} needs {}", signature(kind_), parameter.name), 0};
      }
    }
    return std::move(values_);
  }

 private:
  /// Where the value of a path or text goes; nullptr for other kinds.
  std::string* text_of(const MaskParameter& parameter) {
    if (parameter.kind == MaskParameterKind::kFile) return &values_.file_;
    return parameter.kind == MaskParameterKind::kText ? &values_.text_ : nullptr;
  }

  MaskValues::Value& value_of(const MaskParameter& parameter) {
    return *std::find_if(values_.values_.begin(), values_.values_.end(),
                         [&](const auto& value) { return value.name == parameter.name; });
  }

  void fail(const MaskArgument& argument, const std::string& message) {
    problem = MaskProblem{message, argument.column};
  }

  const MaskParameter* parameter_for(const MaskArgument& argument) {
    if (argument.name.empty()) {
      // A list takes everything from its place on.
      if (next_ < kind_.parameters.size()) {
        const MaskParameter& parameter = kind_.parameters[next_];
        if (parameter.kind != MaskParameterKind::kList) ++next_;
        return &parameter;
      }
      return nullptr;
    }
    for (const MaskParameter& parameter : kind_.parameters) {
      if (parameter.name == argument.name && parameter.kind != MaskParameterKind::kList)
        return &parameter;
    }
    return nullptr;
  }

  void place(const MaskArgument& argument) {
    const MaskParameter* parameter = parameter_for(argument);
    if (parameter == nullptr) {
      return fail(argument, argument.name.empty()
                                ? fmt::format("too many arguments, expected {}", signature(kind_))
                                : fmt::format("no parameter '{}', expected {}",
                                              escape(argument.name), signature(kind_)));
    }
    const auto expected = [&](std::string_view what) {
      fail(argument, fmt::format("{}: found '{}', expected {}", parameter->name,
                                 escape(argument.value), what));
    };
    if (std::string* text = text_of(*parameter)) {
      *text = argument.value;
      return;
    }
    if (parameter->kind == MaskParameterKind::kList) {
      const auto item = parse_item(argument.value);
      if (!item) return expected("a whole number, a-b or a@b");
      values_.list_.push_back(*item);
      return;
    }
    MaskValues::Value& value = value_of(*parameter);
    if (value.given) return fail(argument, fmt::format("{} is given twice", parameter->name));
    value.given = true;
    if (parameter->kind == MaskParameterKind::kShare) {
      const auto share = parse_number<double>(argument.value);
      if (!share || !(*share >= 0 && *share <= 1)) return expected("a number from 0 to 1");
      value.number = *share;
      return;
    }
    if (parameter->kind == MaskParameterKind::kSeed) {
      const auto seed = parse_unsigned(argument.value);
      if (!seed) return expected("a seed: a whole number");
      value.seed = *seed;
      return;
    }
    const auto number = parse_index(argument.value);
    if (!number || *number < parameter->least) {
      return expected(fmt::format("a whole number from {} to {}", parameter->least, kMaxNumber));
    }
    value.number = static_cast<double>(*number);
  }

  const MaskKind& kind_;
  const std::vector<MaskArgument>& arguments_;
  MaskValues values_;
  std::size_t next_ = 0;
};

const MaskValues::Value& MaskValues::get(std::string_view name) const {
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [&](const Value& value) { return value.name == name; });
  MASQUE_CHECK(found != values_.end());
  return *found;
}

Index MaskValues::count(std::string_view name) const {
  return static_cast<Index>(get(name).number);
}
double MaskValues::share(std::string_view name) const { return get(name).number; }
std::uint64_t MaskValues::seed(std::string_view name) const { return get(name).seed; }
bool MaskValues::given(std::string_view name) const { return get(name).given; }

std::vector<Index> MaskValues::numbers() const {
  std::vector<Index> out;
  for (const ListItem& item : list_) {
    const Index last = item.to.value_or(item.a);
    if (last - item.a > kMostNumbers - static_cast<Index>(out.size())) {
      throw UsageError(fmt::format("a list of more than {} numbers", kMostNumbers));
    }
    for (Index i = item.a; i <= last; ++i) out.push_back(i);
  }
  return out;
}

MaskRegistration::MaskRegistration(const MaskKind& kind) { MaskKinds::of_process().add(kind); }

std::span<const MaskKind* const> mask_kinds() { return MaskKinds::of_process().all(); }

const MaskKind* find_mask_kind(std::string_view name) { return MaskKinds::of_process().find(name); }

bool has_mask_parameter(std::string_view name, MaskParameterKind kind) {
  const MaskKind* known = find_mask_kind(name);
  return known != nullptr &&
         std::ranges::any_of(known->parameters, [&](const auto& p) { return p.kind == kind; });
}

std::optional<MaskProblem> check_mask(const NamedMask& named, bool open) {
  const MaskKind* kind = find_mask_kind(named.name);
  if (kind == nullptr) {
    std::vector<std::string_view> names;
    for (const MaskKind* known : mask_kinds()) names.push_back(known->name);
    const std::string suggestion = did_you_mean(named.name, names);
    return MaskProblem{fmt::format("no mask '{}'{}", escape(named.name),
                                   suggestion.empty() ? "; mask-viz list shows all" : suggestion),
                       0};
  }
  if (open && kind->open == Open::kWords && named.arguments.empty()) return std::nullopt;
  ValueReader reader(*kind, named.arguments);
  reader.read();
  return reader.problem;
}

Open open_part(const NamedMask& named) {
  const MaskKind& kind = *find_mask_kind(named.name);
  const bool left = kind.open == Open::kWords  ? named.arguments.empty()
                    : kind.open == Open::kSeed ? !mask_values(named).given("seed")
                                               : false;
  return left ? kind.open : Open::kNothing;
}

MaskValues mask_values(const NamedMask& named) {
  return ValueReader(*find_mask_kind(named.name), named.arguments).read();
}

std::optional<Lengths> mask_lengths(const NamedMask& named) {
  const MaskKind& kind = *find_mask_kind(named.name);
  if (open_part(named) == Open::kWords) return std::nullopt;
  const MaskValues values = mask_values(named);
  if (kind.fits == Fits::kParts) {
    const Index sum = values.count(kind.parameters[0].name) + values.count(kind.parameters[1].name);
    return Lengths{sum, sum};
  }
  if (kind.own == nullptr) return std::nullopt;
  return kind.own(values);
}

Mask build_mask(const NamedMask& named, Lengths lengths) {
  const MaskKind& kind = *find_mask_kind(named.name);
  if (kind.fits != Fits::kAny && lengths.queries != lengths.keys) {
    throw UsageError(fmt::format("{}: {} queries and {} keys, expected equal numbers", kind.name,
                                 lengths.queries, lengths.keys));
  }
  if (kind.fits == Fits::kHalves && lengths.queries % 2 != 0) {
    throw UsageError(fmt::format("{}: length {}, expected an even length for two halves", kind.name,
                                 lengths.queries));
  }
  if (open_part(named) == Open::kWords) {
    throw UsageError(
        fmt::format("{}: expected the lengths of the words: {}", kind.name, signature(kind)));
  }
  return kind.build(mask_values(named), lengths);
}

}  // namespace masque::mask
