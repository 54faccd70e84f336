// truncate: the first positions, no more.
#include "surgery/positions/position_extension.hpp"

namespace masque::surgery {

namespace {

class Truncate final : public PositionExtension {
 public:
  std::string_view about() const override { return "the first positions, for a shorter table"; }
  Index fewest(Index /*rows*/) const override { return 1; }
  Index most(Index rows) const override { return rows; }
  TableRows row(Index position, Index /*rows*/, Index /*length*/) const override {
    return {{{{position, 1.0}}}, 1};
  }
};

const PositionExtensionRegistration kRegistration(
    {"truncate", "", [](std::optional<double>) -> std::unique_ptr<const PositionExtension> {
       return std::make_unique<Truncate>();
     }});

}  // namespace

}  // namespace masque::surgery
