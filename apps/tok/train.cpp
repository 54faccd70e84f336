#include "commands.hpp"
namespace masque::tok {
void declare_train(cli::Command& /*tool*/) {}
}
