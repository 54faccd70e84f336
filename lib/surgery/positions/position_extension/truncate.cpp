// truncate: the first places, no more.
#include "surgery/positions/position_extension.hpp"

namespace masque::surgery {

namespace {

class Truncate final : public PositionExtension {
 public:
  std::string_view about() const override { return "the first places, for a shorter table"; }
  Index fewest(Index /*rows*/) const override { return 1; }
  Index most(Index rows) const override { return rows; }
  TableRows row(Index place, Index /*rows*/, Index /*length*/) const override {
    return {{{{place, 1.0}}}, 1};
  }
};

const PositionExtensionRegistration kRegistration(
    {"truncate", "", [](std::optional<double>) -> std::unique_ptr<const PositionExtension> {
       return std::make_unique<Truncate>();
     }});

}  // namespace

}  // namespace masque::surgery
