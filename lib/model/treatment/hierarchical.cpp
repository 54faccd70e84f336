// hierarchical: a learned table of N rows reaches N² positions, as sums of two of them.
#include "base/named_arguments.hpp"
#include "model/treatment.hpp"

namespace masque::model {

namespace {

class Hierarchical final : public PositionTreatment {
 public:
  explicit Hierarchical(NamedArguments& arguments)
      : alpha_(arguments.number("alpha", 0.4, 0.01, 0.99)) {}
  std::string_view about() const override {
    return "learned rows: alpha of u_q and 1 - alpha of u_r at position q N + r: Su 2020, "
           "kexue.fm/archives/7947";
  }
  void apply(const LengthExtension& extension, TreatedPositions& positions) const override {
    positions.plain_table();
    if (!positions.table) refuse(positions.design, "learned ones");
    if (extension.length <= extension.trained) return;
    positions.longest = table_positions(extension.trained, alpha_);
    if (extension.length > positions.longest) return;
    for (Index p = 0; p < extension.length; ++p)
      positions.rows.push_back(table_rows(p, extension.trained, alpha_));
  }

 private:
  double alpha_;
};

const PositionTreatmentRegistration kRegistration(
    "hierarchical", [](NamedArguments& arguments) -> std::unique_ptr<PositionTreatment> {
      return std::make_unique<Hierarchical>(arguments);
    });

}  // namespace

}  // namespace masque::model
