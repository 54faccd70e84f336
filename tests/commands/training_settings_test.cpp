// What makes a run the same run: every option of a model and of its training is a setting.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "cli/option_values.hpp"
#include "commands/corruption_options.hpp"
#include "commands/training_options.hpp"

namespace masque::commands {
namespace {

using Declare = void (*)(cli::Command&, TrainingOptions&);

std::vector<std::pair<std::string, std::string>> settings_of(const TrainingOptions& options) {
  train::RunOptions run = run_options(options, 100, 0);
  add_trained_settings(options, run);
  return run.settings;
}

/// A value of each option, other than its default; "true": of a flag.
const std::map<std::string, std::string>& other_values() {
  static const std::map<std::string, std::string> kValues{{"num-hidden-layers", "3"},
                                                          {"hidden-size", "48"},
                                                          {"num-attention-heads", "2"},
                                                          {"head-size", "8"},
                                                          {"value-size", "8"},
                                                          {"intermediate-size", "96"},
                                                          {"attention-key-size", "32"},
                                                          {"layer-kind", "gated_attention"},
                                                          {"position", "alibi"},
                                                          {"position-shared", "true"},
                                                          {"late-positions", "1"},
                                                          {"normalizer", "log_n(base=4)"},
                                                          {"norm-placement", "pre"},
                                                          {"no-input-residual", "true"},
                                                          {"norm", "rms"},
                                                          {"hidden-act", "relu"},
                                                          {"gated", "true"},
                                                          {"mixer", "fnet"},
                                                          {"mixer-inner-size", "5"},
                                                          {"mixer-attention-size", "6"},
                                                          {"mixer-kernel-size", "3"},
                                                          {"mixer-dilation", "2"},
                                                          {"mixer-chunk-size", "4"},
                                                          {"talking-heads", "both"},
                                                          {"softmax-heads", "3"},
                                                          {"value-heads", "3"},
                                                          {"largest-keys", "4"},
                                                          {"previous-scores", "one_layer"},
                                                          {"head-shifted", "true"},
                                                          {"untied", "true"},
                                                          {"optimizer", "lamb"},
                                                          {"learning-rate", "0.5"},
                                                          {"warmup", "7"},
                                                          {"decay", "constant"},
                                                          {"decay-floor", "0.5"},
                                                          {"weight-decay", "0.5"},
                                                          {"beta1", "0.5"},
                                                          {"beta2", "0.5"},
                                                          {"clip", "0.5"},
                                                          {"dropout", "0.5"},
                                                          {"attention-dropout", "0.5"},
                                                          {"score-noise", "0.5"},
                                                          {"score-dropout", "0.5"},
                                                          {"initializer-range", "0.5"},
                                                          {"precision", "bf16"},
                                                          {"train", "head"},
                                                          {"freeze", "head"},
                                                          {"rate-of", "head=2"},
                                                          {"layer-decay", "0.5"},
                                                          {"rate", "0.5"},
                                                          {"unit", "word"},
                                                          {"choice", "span"},
                                                          {"span-p", "0.5"},
                                                          {"span-longest", "3"},
                                                          {"split", "0.5:0.25:0.25"},
                                                          {"draws", "4"},
                                                          {"fixed-selection", "true"},
                                                          {"predict", "0.5"},
                                                          {"perm-size", "7"},
                                                          {"alpha", "7"},
                                                          {"beta", "3"},
                                                          {"no-spans", "true"},
                                                          {"causal-blocks", "true"},
                                                          {"source", "0.3"},
                                                          {"mix", "1:1:1:1"},
                                                          {"mae-ratio", "0.5"},
                                                          {"block-size", "4"},
                                                          {"memory", "4"},
                                                          {"latent-layers", "1"},
                                                          {"latent-size", "8"},
                                                          {"kappa", "8"},
                                                          {"learned-kappa", "true"},
                                                          {"kl-weight", "0.5"},
                                                          {"kl-cycle", "10"},
                                                          {"free-nats", "0.5"},
                                                          {"drop", "0.5"},
                                                          {"min-keep", "3"},
                                                          {"renumber", "true"}};
  return kValues;
}

TEST_CASE("every option of a model and of its training changes the settings of its run") {
  const std::vector<Declare> declarations{
      [](cli::Command& c, TrainingOptions& o) { declare_design(c, o); }, declare_optimizer,
      declare_trained, declare_objective};
  const auto usual = settings_of({});
  std::set<std::string> every_command;
  for (const cli::Entry& entry : cli::Command("plain", "").entries())
    every_command.insert(cli::key_of(entry));
  std::size_t options = 0;
  for (const Declare declare : declarations) {
    TrainingOptions unused;
    cli::Command names("names", "");
    declare(names, unused);
    for (const cli::Entry& named : names.entries()) {
      const std::string key = cli::key_of(named);
      // --help and the like; and what only lets a run begin.
      if (every_command.contains(key) || key == "allow-leak") continue;
      CAPTURE(key);
      TrainingOptions changed;
      cli::Command command("command", "");
      declare(command, changed);
      const auto value = other_values().find(key);
      REQUIRE_MESSAGE(value != other_values().end(), "a new option needs a value in this test");
      for (const cli::Entry& entry : command.entries()) {
        if (cli::key_of(entry) == key) entry.set(value->second);
      }
      CHECK(settings_of(changed) != usual);
      ++options;
    }
  }
  CHECK(options == other_values().size());
}

TEST_CASE("every option that an objective reads is declared, so that others can refuse it") {
  TrainingOptions unused;
  std::string replace;
  cli::Command names("names", "");
  declare_objective(names, unused);
  add_replace(names, replace);
  std::set<std::string> declared{"mask", "streams"};  // by lm-train alone
  for (const cli::Entry& entry : names.entries()) declared.insert(cli::key_of(entry));
  for (const train::NamedObjective& objective : train::all_objectives()) {
    CAPTURE(objective.name);
    for (const std::string_view option : objective.traits.options)
      CHECK(declared.contains(cli::key_of(option)));
  }
}

TEST_CASE("of a checkpoint's design no option is a setting") {
  TrainingOptions options;
  options.design_of_checkpoint = true;
  const auto usual = settings_of(options);
  options.design.normalizer = "relu2";
  options.design.hidden_size = 48;
  CHECK(settings_of(options) == usual);
}

}  // namespace
}  // namespace masque::commands
