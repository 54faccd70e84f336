// repeat: the table once more after itself, as Longformer was begun.
#include "surgery/positions/position_extension.hpp"

namespace masque::surgery {

namespace {

class Repeat final : public PositionExtension {
 public:
  std::string_view about() const override {
    return "the table, repeated: Beltagy et al. 2020, arXiv:2004.05150";
  }
  TableRows row(Index position, Index rows, Index /*length*/) const override {
    return {{{{position % rows, 1.0}}}, 1};
  }
};

const PositionExtensionRegistration kRegistration(
    {"repeat", "", [](std::optional<double>) -> std::unique_ptr<const PositionExtension> {
       return std::make_unique<Repeat>();
     }});

}  // namespace

}  // namespace masque::surgery
