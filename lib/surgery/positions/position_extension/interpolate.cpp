// interpolate: the table stretched; its first and last rows stay the first and the last.
#include "surgery/positions/position_extension.hpp"

namespace masque::surgery {

namespace {

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

const PositionExtensionRegistration kRegistration(
    {"interpolate", "", [](std::optional<double>) -> std::unique_ptr<const PositionExtension> {
       return std::make_unique<Interpolate>();
     }});

}  // namespace

}  // namespace masque::surgery
