// The mean of the pieces that the tokenizer made of the token before it had it. Rows without a
// token get the mean of all that have one.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "surgery/rows/row_init.hpp"
#include "surgery/rows/token_form.hpp"
#include "text/tokenizer.hpp"

namespace masque::surgery {
namespace {

std::vector<std::uint64_t> pieces_of(const RowInitContext& context,
                                     const text::Tokenizer& tokenizer, const std::string& token) {
  const TokenForms forms(tokenizer);
  const std::vector<std::uint64_t> rows = forms.pieces(forms.text_of_new(token)).ids;
  for (const std::uint64_t row : rows) {
    if (row < context.rows) continue;
    throw InputError(context.checkpoint.path(),
                     fmt::format("the piece '{}' of '{}' has id {}, but the table has {} rows",
                                 escape(tokenizer.token(static_cast<TokenId>(row))), escape(token),
                                 row, context.rows));
  }
  if (rows.empty()) {
    throw InputError(context.checkpoint.path(),
                     fmt::format("{} subword: the tokenizer splits '{}' into no tokens",
                                 field("init"), escape(token)));
  }
  const auto unknown = tokenizer.roles().unk;
  if (unknown && context.notes != nullptr &&
      std::ranges::count(rows, static_cast<std::uint64_t>(*unknown)) > 0) {
    context.notes->push_back(fmt::format(
        "'{}' has pieces that the tokenizer does not know: the mean includes the row of '{}'",
        escape(token), escape(tokenizer.token(*unknown))));
  }
  return rows;
}

RowMeans subword_means(const RowInitContext& context, const std::string& /*argument*/) {
  if (context.names.empty()) {
    throw InputError(
        context.checkpoint.path(),
        fmt::format("{} subword: no tokenizer file, expected one of mean, random, zero, cov",
                    field("init")));
  }
  const text::Tokenizer tokenizer = text::Tokenizer::open(context.checkpoint.folder());
  RowMeans out;
  for (std::size_t id = 0; id < context.change.from.size(); ++id) {
    if (context.change.from[id] != VocabularyChange::kNew) continue;
    const std::string& token = context.change.tokens[id];
    out.push_back(token.empty() ? std::vector<std::uint64_t>()
                                : pieces_of(context, tokenizer, token));
  }
  return out;
}

const RowInit kInit{.name = "subword",
                    .argument = "",
                    .help = "the mean of the rows of its pieces, as the old tokenizer splits it",
                    .means = subword_means,
                    .values = nullptr};
const RowInitRegistration kRegistration{kInit};

}  // namespace
}  // namespace masque::surgery
