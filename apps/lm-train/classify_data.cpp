#include "classify_data.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/parallel.hpp"
#include "commands/corpus_notes.hpp"
#include "commands/model_notes.hpp"
#include "exchange/read_masks.hpp"
#include "mask/expression.hpp"

namespace masque::lm_train {

namespace {

Index choose_length(const ClassifyCommand& o, const train::ClassifierStart& start) {
  constexpr Index kUsual = 128;
  const Index most = start.design.max_position_embeddings;
  if (!o.length) return most > 0 ? std::min(kUsual, most) : kUsual;
  if (most == 0 || *o.length <= most) return *o.length;
  throw UsageError(fmt::format("{} {}: expected at most {}, the positions of the model",
                               field("length"), *o.length, most));
}

train::ClassifierStart open_start(const ClassifyCommand& o, const text::Tokenizer& tokenizer) {
  const auto tokens = static_cast<Index>(tokenizer.size());
  if (!o.model) {
    train::DesignRecipe recipe = classify_options(o, 1, o.common.seed).design;
    recipe.vocab_size = tokens;
    recipe.max_position_embeddings = o.length.value_or(128);
    return train::start_of(recipe, tokenizer);
  }
  train::ClassifierStart start = train::start_of(*o.model, o.mask == "full");
  if (start.problem != o.problem) start.names.clear();
  if (tokens > start.design.vocab_size) {
    throw InputError(
        tokenizer.parts().path,
        fmt::format("the tokenizer has {} tokens, expected at most {}, the vocabulary of the model",
                    tokens, start.design.vocab_size));
  }
  return start;
}

std::int64_t choose_steps(const ClassifyCommand& o, Index texts) {
  if (o.steps) return *o.steps;
  const double batches = std::ceil(static_cast<double>(texts) / static_cast<double>(o.batch_size));
  if (o.epochs == 0) return 0;
  return std::max<std::int64_t>(1, std::llround(o.epochs.value_or(3) * batches));
}

/// Hugging Face writes LABEL_0, LABEL_1, … where nobody named the labels: they become numbers, if
/// the texts have such.
void name_by_number(const train::LabelledCorpus& texts, train::ClassifierStart& start) {
  std::vector<std::string> numbers;
  numbers.reserve(start.names.size());
  for (std::size_t i = 0; i < start.names.size(); ++i) {
    if (start.names[i] != fmt::format("LABEL_{}", i)) return;
    numbers.push_back(fmt::format("{}", i));
  }
  const auto is_known = [&](const std::string& label) {
    return std::ranges::find(numbers, label) != numbers.end();
  };
  if (std::ranges::all_of(texts.labels, is_known)) start.names = numbers;
}

/// Those of the model, if it knows all labels of the texts; else those of the texts.
std::vector<std::string> choose_names(const ClassifyCommand& o, const train::ClassifierStart& start,
                                      const train::LabelledCorpus& texts, cli::Session& session) {
  const auto is_known = [&](const std::string& label) {
    return std::ranges::find(start.names, label) != start.names.end();
  };
  const auto unknown = std::ranges::find_if_not(texts.labels, is_known);
  if (!start.names.empty() && unknown == texts.labels.end()) {
    session.note(fmt::format("{}: continues with its {} labels", *o.model, start.names.size()));
    return start.names;
  }
  if (o.epochs == 0 && start.problem == train::ProblemType::kRegression) {
    throw InputError(*o.model, fmt::format("the model is one of regression, expected {} regression",
                                           field("problem_type")));
  }
  const std::string known = escape(fmt::format("{}", fmt::join(start.names, ", ")));
  if (o.epochs == 0) {
    throw InputError(
        *o.model, start.names.empty()
                      ? "the model has no labels; --epochs 0 needs a trained classifier"
                      : fmt::format("the labels of the model are {}; --epochs 0 needs texts with "
                                    "these labels",
                                    known));
  }
  if (!start.names.empty()) {
    session.note(fmt::format(
        "{}: its labels are {}, but the texts have '{}'; the label layer is initialized", *o.model,
        known, escape(*unknown)));
  }
  return train::label_names(texts);
}

/// Of regression: its numbers, and that there is something to learn.
void open_numbers(const ClassifyCommand& o, ClassifyData& all, cli::Session& session) {
  train::LabelledTexts& learnt = all.train.texts;
  if (o.epochs == 0 && all.start.names.empty()) {
    throw InputError(
        *o.model, fmt::format("the model has no regression output of one number, which {} 0 needs",
                              field("epochs")));
  }
  if (!all.start.names.empty())
    session.note(fmt::format("{}: continues with its regression output", *o.model));
  const auto [least, most] = std::ranges::minmax(learnt.numbers);
  // What is nearer than that is the same number in a float.
  constexpr double kNearest = 1e-6;
  const double size = std::max(std::abs(least), std::abs(most));
  if (o.epochs != 0 && !(most - least > std::max(1e-30, kNearest * size))) {
    throw InputError(
        all.train.read.path,
        fmt::format("the labels are numbers from {} to {}, expected numbers that differ "
                    "by more than a millionth of the largest",
                    least, most));
  }
  all.names = {"LABEL_0"};
}

/// What `read` has to be learnt or predicted.
train::LabelledTexts texts_of(const ClassifyCommand& o, const LabelledData& data,
                              const std::vector<std::string>& names) {
  if (o.problem == train::ProblemType::kRegression) {
    return {&data.read.corpus, std::vector<TokenId>(data.read.labels.size(), 0),
            train::label_values(data.read)};
  }
  return {&data.read.corpus, train::label_numbers(data.read, names), {}};
}

void check_pooling(const ClassifyData& all) {
  if (all.steps > 0 || !all.start.pooling || all.pooling == *all.start.pooling) return;
  throw UsageError(fmt::format("{} {}: {} 0 needs the pooling of the model, {}", field("pooling"),
                               train::pooling_name(all.pooling), field("epochs"),
                               train::pooling_name(*all.start.pooling)));
}

void choose_mask(const ClassifyCommand& o, ClassifyData& all) {
  all.mask = all.start.mask;
  if (o.mask == "model" || o.mask == "full") return;
  std::string mask;
  const auto problem = usage_error_message([&] {
    mask = exchange::with_files_read(o.mask);
    mask::parse_open_mask(mask);
  });
  if (problem) throw UsageError(fmt::format("{}: {}", field("mask"), *problem));
  if (all.steps == 0 && mask != all.start.mask) {
    throw UsageError(fmt::format("{} {}: {} 0 needs the mask of the model{}", field("mask"),
                                 escape(o.mask), field("epochs"),
                                 all.start.mask && all.start.mask->size() > 80
                                     ? ", another one"
                                     : fmt::format(", {}", all.start.mask.value_or("model"))));
  }
  all.mask = mask;
}

}  // namespace

void open_data(const ClassifyCommand& o, ClassifyData& all, cli::Session& session) {
  for (const std::string& warning : all.tokenizer.warnings()) session.note(warning);
  all.start = open_start(o, all.tokenizer);
  if (o.model) commands::note_model(*o.model, all.start.model->design(), session);
  train::LabelledOptions reading = labelled_options(o);
  reading.length = choose_length(o, all.start);
  all.train.read = train::read_labelled(o.text, all.tokenizer, reading);
  commands::note_corpus(all.train.read.corpus, session);
  if (o.problem == train::ProblemType::kRegression) {
    all.train.texts = texts_of(o, all.train, {});
    open_numbers(o, all, session);
  } else {
    name_by_number(all.train.read, all.start);
    all.names = choose_names(o, all.start, all.train.read, session);
    all.train.texts = texts_of(o, all.train, all.names);
  }
  if (o.eval_data) {
    LabelledData& eval = all.eval.emplace();
    eval.read = train::read_labelled(*o.eval_data, all.tokenizer, reading);
    commands::note_corpus(eval.read.corpus, session);
    eval.texts = texts_of(o, eval, all.names);
  }
  all.steps = choose_steps(o, all.train.read.corpus.size());
  all.pooling = o.pooling.value_or(all.start.pooling.value_or(train::ClassifierPooling::kFirst));
  check_pooling(all);
  choose_mask(o, all);
}

}  // namespace masque::lm_train
