// Which product multiplies with packed weights, of what is measured.
#pragma once

#include "cli/command.hpp"
#include "kernel/product/strip_weights.hpp"

namespace masque::bench {

/// --product: the one that a rule takes, or either of the two for all weights.
inline void add_product(cli::Command& command, kernel::ProductChoice& product) {
  command.choice(
      "--product", product,
      {{"auto", kernel::ProductChoice::kByShape},
       {"few-rows", kernel::ProductChoice::kFewRows},
       {"ours", kernel::ProductChoice::kOurs},
       {"onednn", kernel::ProductChoice::kOneDnn}},
      "which product to use with packed weights; auto: chosen by shape; few-rows: for products "
      "of few rows");
}

}  // namespace masque::bench
