// hierarchical: position q N + r is made of rows q and r of a table of N.
#include <fmt/format.h>

#include "base/error.hpp"
#include "surgery/positions/position_extension.hpp"

namespace masque::surgery {

namespace {

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

const PositionExtensionRegistration kRegistration(
    {"hierarchical", "ALPHA",
     [](std::optional<double> argument) -> std::unique_ptr<const PositionExtension> {
       const double alpha = argument.value_or(0.4);
       if (!(alpha > 0 && alpha < 1))
         throw UsageError(
             fmt::format("{} hierarchical: expected ALPHA between 0 and 1", field("how")));
       return std::make_unique<Hierarchical>(alpha);
     }});

}  // namespace

}  // namespace masque::surgery
