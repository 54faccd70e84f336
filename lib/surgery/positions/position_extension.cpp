#include "surgery/positions/position_extension.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/comma_list.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/parse_number.hpp"
#include "base/split.hpp"

namespace masque::surgery {

namespace {

/// truncate: the first positions, no more.
class Truncate final : public PositionExtension {
 public:
  std::string_view about() const override { return "the first positions, for a shorter table"; }
  Index fewest(Index /*rows*/) const override { return 1; }
  Index most(Index rows) const override { return rows; }
  TableRows row(Index position, Index /*rows*/, Index /*length*/) const override {
    return {{{{position, 1.0}}}, 1};
  }
};

/// repeat: the table once more after itself, as Longformer was begun.
class Repeat final : public PositionExtension {
 public:
  std::string_view about() const override {
    return "the table, repeated: Beltagy et al. 2020, arXiv:2004.05150";
  }
  TableRows row(Index position, Index rows, Index /*length*/) const override {
    return {{{{position % rows, 1.0}}}, 1};
  }
};

/// last: every position beyond the table has its last row.
class Last final : public PositionExtension {
 public:
  std::string_view about() const override {
    return "the last row at every position beyond the table";
  }
  TableRows row(Index position, Index rows, Index /*length*/) const override {
    return table_rows(position, rows, 0);
  }
};

/// interpolate: the table stretched; its first and last rows stay the first and the last.
class Interpolate final : public PositionExtension {
 public:
  std::string_view about() const override {
    return "linear interpolation between neighbouring rows; the first and last rows stay";
  }
  Index fewest(Index /*rows*/) const override { return 1; }
  TableRows row(Index position, Index rows, Index length) const override {
    if (length == 1) return {{{{0, 1.0}}}, 1};
    const auto at = static_cast<double>(position) * static_cast<double>(rows - 1);
    return table_rows_between(at / static_cast<double>(length - 1), rows);
  }
};

/// hierarchical: position q N + r is made of rows q and r of a table of N.
class Hierarchical final : public PositionExtension {
 public:
  explicit Hierarchical(double alpha) : alpha_(alpha) {}
  std::string_view about() const override {
    return "alpha u_q + (1 - alpha) u_r at position q N + r: Su 2020, kexue.fm/archives/7947";
  }
  Index most(Index rows) const override { return table_positions(rows, alpha_); }
  TableRows row(Index position, Index rows, Index /*length*/) const override {
    return table_rows(position, rows, alpha_);
  }

 private:
  double alpha_;
};

template <class T>
std::unique_ptr<const PositionExtension> make_plain(std::optional<double> /*argument*/) {
  return std::make_unique<T>();
}

constexpr PositionExtensionInfo kExtensions[] = {
    {"hierarchical", "ALPHA",
     [](std::optional<double> argument) -> std::unique_ptr<const PositionExtension> {
       const double alpha = argument.value_or(0.4);
       if (!(alpha > 0 && alpha < 1))
         throw UsageError(
             fmt::format("{} hierarchical: expected ALPHA between 0 and 1", field("how")));
       return std::make_unique<Hierarchical>(alpha);
     }},
    {"interpolate", "", make_plain<Interpolate>},
    {"last", "", make_plain<Last>},
    {"repeat", "", make_plain<Repeat>},
    {"truncate", "", make_plain<Truncate>},
};

}  // namespace

std::span<const PositionExtensionInfo> position_extensions() { return kExtensions; }

std::string position_extension_spellings() {
  return comma_list(kExtensions, [](const PositionExtensionInfo& info) {
    return fmt::format("{}{}", info.name,
                       info.argument.empty() ? "" : fmt::format("[:{}]", info.argument));
  });
}

std::unique_ptr<const PositionExtension> parse_position_extension(std::string_view text) {
  const auto [name, value] = split_at_first(text, ':');
  const auto found = std::ranges::find(kExtensions, name, &PositionExtensionInfo::name);
  if (found == std::end(kExtensions)) {
    throw UsageError(fmt::format("{}: found '{}', expected one of {}", field("how"), escape(text),
                                 position_extension_spellings()));
  }
  std::optional<double> argument;
  if (value) {
    argument = parse_number<double>(*value);
    if (found->argument.empty() || !argument) {
      throw UsageError(fmt::format("{}: found '{}', expected {}", field("how"), escape(text),
                                   found->argument.empty()
                                       ? std::string(found->name)
                                       : fmt::format("a number after '{}:'", found->name)));
    }
  }
  return found->make(argument);
}

}  // namespace masque::surgery
