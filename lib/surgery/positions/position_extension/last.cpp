// last: every position beyond the table has its last row.
#include "surgery/positions/position_extension.hpp"

namespace masque::surgery {

namespace {

class Last final : public PositionExtension {
 public:
  std::string_view about() const override {
    return "the last row at every position beyond the table";
  }
  TableRows row(Index position, Index rows, Index /*length*/) const override {
    return table_rows(position, rows, 0);
  }
};

const PositionExtensionRegistration kRegistration(
    {"last", "", [](std::optional<double>) -> std::unique_ptr<const PositionExtension> {
       return std::make_unique<Last>();
     }});

}  // namespace

}  // namespace masque::surgery
