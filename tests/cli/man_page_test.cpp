#include "cli/man_page.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "small_tool.hpp"
#include "support/message.hpp"

namespace masque::test {
namespace {

using cli::roff;

TEST_CASE("roff: nothing in a text is taken for a command") {
  CHECK(roff(".SH x") == "\\&.SH x");
  CHECK(roff("'br") == "\\(aqbr");
  CHECK(roff("a.b") == "a.b");
  CHECK(roff("\\fB--x\\") == "\\efB\\-\\-x\\e");
  CHECK(roff("\"~^`") == "\\(dq\\(ti\\(ha\\(ga");
  CHECK(roff("two\n.lines") == "two .lines");
  CHECK(roff("E′ ≤ …𝄞") == "E\\[u2032] \\[u2264] ...\\[u1D11E]");
  CHECK(roff("").empty());
}

TEST_CASE("the page has its sections in order, the examples before the commands") {
  const SmallTool small;
  const std::string page = cli::man_page(small.tool);
  CHECK(page.starts_with(".TH SMALL\\-TOOL 1 2"));
  CHECK(contains(page, ".SH NAME\nsmall\\-tool \\- makes .things and it\\(aqs \\e done\n"));
  std::size_t at = 0;
  for (const char* section :
       {"NAME", "SYNOPSIS", "EXAMPLES", "COMMANDS", "OPTIONS", "EXIT STATUS", "SEE ALSO"}) {
    const auto found = page.find(std::string("\n.SH ") + section + "\n", at);
    CAPTURE(section);
    REQUIRE(found != std::string::npos);
    at = found;
  }
  CHECK(contains(page.substr(at), "\\fBckpt\\fR(1)"));
}

TEST_CASE("every command has its synopsis, examples and options") {
  const SmallTool small;
  const std::string page = cli::man_page(small.tool);
  CHECK(contains(page,
                 "\n\\fBsmall\\-tool paint\\fR \\fIINPUT\\fR \\fB\\-o\\fR \\fIOUT_FILE\\fR "
                 "[\\fIOPTIONS\\fR]\n"));
  CHECK(contains(page, "\n\\fBsmall\\-tool list\\fR \\fINAME\\fR ... [\\fIOPTIONS\\fR]\n"));
  CHECK(contains(page, "\n.SS small\\-tool paint\npaints \\[u2013] in [two] shades: a, b\n"));
  CHECK(contains(page,
                 "\n.EX\n\\fBsmall\\-tool paint a.txt \\-o \\(aqb c\\(aq\\fR\n.EE\n"
                 ".RS 4\n\\&.begins with a dot\n.RE\n"));
  CHECK(contains(page, "\n.TP\n\\fB\\-k\\fR, \\fB\\-\\-count\\fR \\fIN\\fR\nhow many [3]\n"));
  CHECK(
      contains(page, "\n.TP\n\\fB\\-\\-shade\\fR \\fBlight\\fR|\\:\\fBdark\\fR\nwhich [light]\n"));
  CHECK(contains(page, "\n.TP\n141\n"));
}

TEST_CASE("the page is ASCII, and no line begins a macro that is not ours") {
  const SmallTool small;
  const std::string page = cli::man_page(small.tool);
  CHECK(std::all_of(page.begin(), page.end(),
                    [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  const std::vector<std::string> ours = {"TH", "SH", "SS", "PP", "TP",
                                         "EX", "EE", "RS", "RE", "br"};
  for (std::size_t at = page.find("\n."); at != std::string::npos; at = page.find("\n.", at + 1)) {
    const std::string macro = page.substr(at + 2, 2);
    CAPTURE(macro);
    CHECK(std::find(ours.begin(), ours.end(), macro) != ours.end());
  }
}

}  // namespace
}  // namespace masque::test
