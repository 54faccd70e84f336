// length-gen treatments: what can be done to positions.
#include <memory>

#include "commands.hpp"
#include "model/treatment.hpp"

namespace masque::length_gen {

void declare_treatments(cli::Command& tool) {
  auto o = std::make_shared<cli::CommonOptions>();
  cli::Command& c =
      tool.subcommand("treatments", "lists the treatments of positions for eval and probe");
  c.example("length-gen treatments", "name, parameters with their defaults, and effect");
  cli::add_table(c, *o);
  c.action([o](cli::Session& session) {
    session.configure(*o);
    cli::Table table(session, *o, {"treatment", "parameters", "about"});
    for (const model::PositionTreatmentInfo& info : model::position_treatments())
      table.row({info.name, info.parameters, info.about});
    table.finish();
    return cli::ExitCode::kDone;
  });
}

}  // namespace masque::length_gen
