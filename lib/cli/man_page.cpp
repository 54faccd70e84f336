#include "cli/man_page.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/escape.hpp"
#include "base/string/comma_list.hpp"
#include "base/version.hpp"

namespace masque::cli {

namespace {

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", roff(text)); }
std::string italic(std::string_view text) { return fmt::format("\\fI{}\\fR", roff(text)); }

constexpr const char* kMore = " ...";

std::string upper_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string value_of(const Entry& entry) {
  if (entry.words.empty()) return italic(entry.value);
  std::string out;
  for (const std::string& word : entry.words) out += (out.empty() ? "" : "|\\:") + bold(word);
  return out;
}

/// Text that is filled anyway, in lines of at most 80 bytes where it has spaces.
std::string filled(const std::string& text) {
  constexpr std::size_t kWidth = 80;
  std::string out;
  std::size_t begin = 0;
  while (text.size() - begin > kWidth) {
    std::size_t end = text.rfind(' ', begin + kWidth);
    if (end == std::string::npos || end <= begin) end = text.find(' ', begin + kWidth);
    if (end == std::string::npos) break;
    out += text.substr(begin, end - begin) + '\n';
    begin = end + 1;
    if (text.compare(begin, 1, ".") == 0) out += "\\&";
  }
  return out + text.substr(begin);
}

/// "ckpt convert CHECKPOINT -o OUTPUT [OPTIONS]".
std::string synopsis(const Command& command) {
  std::string out = bold(command.full_name());
  if (!command.acts()) return out + " " + italic("COMMAND") + kMore;
  const std::vector<Entry> all = command.entries();
  for (const Entry& entry : all) {
    if (!entry.positional) continue;
    const std::string name = italic(entry.names) + (entry.repeated ? kMore : "");
    out += entry.required ? " " + name : fmt::format(" [{}]", name);
  }
  for (const Entry& entry : all) {
    if (entry.positional || !entry.required) continue;
    out += " " + bold(entry.spellings().front()) + " " + value_of(entry);
  }
  return out + " [" + italic("OPTIONS") + "]";
}

void append_entries(std::string& out, const Command& command) {
  for (const bool positional : {true, false}) {
    for (const Entry& entry : command.entries()) {
      if (entry.positional != positional) continue;
      std::string tag;
      if (positional) {
        tag = italic(entry.names);
      } else {
        tag = comma_list(entry.spellings(), bold);
        if (!entry.is_flag()) tag += " " + value_of(entry);
      }
      std::string help = roff(entry.help);
      if (!entry.initial.empty()) help += fmt::format(" [{}]", roff(entry.initial));
      out += fmt::format(".TP\n{}\n{}\n", tag, filled(help));
    }
  }
}

void append_examples(std::string& out, const Command& command) {
  for (const auto& [command_line, what] : command.examples()) {
    if (!out.ends_with(".SH EXAMPLES\n")) out += ".PP\n";
    out += fmt::format(".EX\n{}\n.EE\n.RS 4\n{}\n.RE\n", bold(command_line), filled(roff(what)));
  }
}

/// A sub-command and those below it: a heading each.
void append_command(std::string& out, const Command& command) {
  out += fmt::format(".SS {}\n{}\n.PP\n{}\n", roff(command.full_name()),
                     filled(roff(command.summary())), filled(synopsis(command)));
  append_examples(out, command);
  append_entries(out, command);
  for (const auto& child : command.subcommands()) append_command(out, *child);
}

/// The other tools of the family.
void append_see_also(std::string& out, const Command& tool) {
  std::string line;
  std::string_view rest = MASQUE_TOOLS;
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (name == tool.name()) continue;
    line += fmt::format("{}{}(1)", line.empty() ? "" : ", ", bold(name));
  }
  if (!line.empty()) out += fmt::format(".SH SEE ALSO\n{}\n", filled(line));
}

constexpr const char* kExitStatus =
    ".SH EXIT STATUS\n"
    ".TP\n0\nsuccess\n"
    ".TP\n1\nsuccess, and the answer is \\(lqno\\(rq: a difference, a broken rule\n"
    ".TP\n2\nthe command line is wrong\n"
    ".TP\n3\ninput or I/O error\n"
    ".TP\n4\na bug of the tool\n"
    ".TP\n130\ninterrupted (SIGINT); the output is unchanged\n"
    ".TP\n141\nthe reader of the output closed the pipe\n";

}  // namespace

std::string roff(std::string_view text) {
  std::string out;
  if (text.starts_with('.')) out += "\\&";
  while (!text.empty()) {
    char32_t c = 0;
    const int length = std::max(decode_utf8(text, c), 1);
    switch (text.front()) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '\'': out += "\\(aq"; break;
      case '"': out += "\\(dq"; break;
      case '`': out += "\\(ga"; break;
      case '^': out += "\\(ha"; break;
      case '~': out += "\\(ti"; break;
      case '\n': out += ' '; break;
      default:
        if (length == 1) {
          out += text.front();
        } else if (c == U'…') {
          out += "...";  // no terminal without UTF-8 has one
        } else {
          out += fmt::format("\\[u{:04X}]", static_cast<std::uint32_t>(c));
        }
    }
    text.remove_prefix(static_cast<std::size_t>(length));
  }
  return out;
}

std::string man_page(const Command& tool) {
  std::string out =
      fmt::format(".TH {} 1 {} \"masque {}\" \"User Commands\"\n.SH NAME\n{}\n.SH SYNOPSIS\n",
                  roff(upper_case(tool.name())), kVersionDate, roff(kVersion),
                  filled(fmt::format("{} \\- {}", roff(tool.name()), roff(tool.summary()))));
  if (tool.acts()) out += filled(synopsis(tool)) + "\n.br\n";
  for (const auto& child : tool.subcommands()) out += filled(synopsis(*child)) + "\n.br\n";
  out += filled(fmt::format("{} {}|{}|{}|{}", bold(tool.name()), bold("--help"), bold("--version"),
                            bold("--man"), bold("--completion") + " " + italic("SHELL"))) +
         "\n";
  if (!tool.examples().empty()) out += ".SH EXAMPLES\n";
  append_examples(out, tool);
  if (!tool.subcommands().empty()) out += ".SH COMMANDS\n";
  for (const auto& child : tool.subcommands()) append_command(out, *child);
  out += ".SH OPTIONS\n";
  append_entries(out, tool);
  out += kExitStatus;
  append_see_also(out, tool);
  return out;
}

}  // namespace masque::cli
