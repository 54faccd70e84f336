#include "latent_texts.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "base/interrupt.hpp"
#include "base/json.hpp"
#include "base/parallel.hpp"
#include "base/parse_number.hpp"
#include "base/split.hpp"
#include "base/utf8.hpp"
#include "probe/write/generate.hpp"
#include "tensor/convert.hpp"
#include "text/template_tokens.hpp"

namespace masque::lm_write {

namespace {

/// Brings each point to length 1. Throws InputError for one that has none.
void normalize_points(const model::LatentDesign& latent, probe::LatentPoints& points) {
  for (std::size_t first = 0; first < points.size();
       first += static_cast<std::size_t>(latent.size)) {
    const std::span<double> point =
        std::span(points).subspan(first, static_cast<std::size_t>(latent.size));
    double largest = 0;
    for (const double x : point) {
      if (!std::isfinite(x)) throw InputError("a number is not finite, expected finite numbers");
      largest = std::max(largest, std::abs(x));
    }
    if (largest == 0) throw InputError("a point is all zeros, expected a direction");
    double squares = 0;
    for (double& x : point) {
      x /= largest;
      squares += x * x;
    }
    for (double& x : point) x /= std::sqrt(squares);
  }
}

void check_count(std::size_t found, const model::LatentDesign& latent) {
  if (found != static_cast<std::size_t>(latent.layers * latent.size)) {
    throw InputError(fmt::format("{} numbers, expected {}: {} points of {} numbers", found,
                                 latent.layers * latent.size, latent.layers, latent.size));
  }
}

/// A list of numbers, or one of lists, one a point.
void add_numbers(const JsonValue& list, const model::LatentDesign& latent,
                 std::vector<double>& out) {
  const auto add = [&](const JsonValue& value) {
    const auto number = value.number();
    if (!number) throw InputError("latents: expected numbers, or a list of numbers for each point");
    out.push_back(*number);
  };
  for (const JsonValue& item : list.items) {
    if (!item.is(JsonKind::kArray)) {
      add(item);
      continue;
    }
    if (std::ssize(item.items) != latent.size)
      throw InputError(fmt::format("latents: a point of {} numbers, expected {}", item.items.size(),
                                   latent.size));
    for (const JsonValue& number : item.items) add(number);
  }
}

}  // namespace

commands::OpenedModel open_latent_model(const commands::OpenModelOptions& options,
                                        cli::Session& session) {
  if (options.mask)
    throw UsageError("--mask cannot be used: points are computed with the model's own masks");
  commands::OpenedModel opened = commands::open_model(options, options.model, true, session);
  if (const auto problem =
          input_error_message([&] { probe::check_latents(opened.model->design()); }))
    throw InputError(opened.path, *problem);
  const model::LatentDesign& latent = *opened.model->design().variants.latent;
  session.note(fmt::format("{}: {}; latent bottlenecks: {}, of {} numbers", opened.path,
                           opened.description(), latent.layers, latent.size));
  return opened;
}

Words read_words(const std::string& path) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 26;
  const std::string text = read_text(path, kMostBytes);
  if (!valid_utf8(text)) throw InputError(path, "not UTF-8, expected words");
  Words words;
  for (const std::string_view word : split_at_blanks(text, " \t\r\n")) words.emplace(word);
  if (words.empty()) throw InputError(path, "no word, expected words separated by blanks or lines");
  return words;
}

LatentLines::LatentLines(const commands::OpenedModel& opened, std::int64_t batch_tokens,
                         std::size_t texts, Take take)
    : opened_(opened),
      texts_(texts),
      take_(std::move(take)),
      encoder_(*opened.model, batch_tokens, [this](std::uint64_t id, probe::LatentPoints&& points) {
        waiting_.push_back(std::move(points));
        if (waiting_.size() < texts_) return;
        take_(id, std::move(waiting_));
        waiting_.clear();
      }) {}

std::optional<std::string> LatentLines::add(std::uint64_t id, std::string_view line) {
  const std::vector<std::string_view> parts =
      texts_ == 1 ? std::vector<std::string_view>{line} : split(line, '\t');
  if (parts.size() != texts_)
    return fmt::format("{} texts separated by tabs, expected {}", parts.size(), texts_);
  std::vector<probe::Sentence> sentences;
  for (const std::string_view part : parts) {
    sentences.push_back(probe::encode_sentence(*opened_.tokenizer, part, {}));
    if (auto problem = encoder_.length_problem(sentences.back())) return problem;
  }
  for (const probe::Sentence& sentence : sentences) encoder_.add(id, sentence);
  return std::nullopt;
}

LatentWriter::LatentWriter(const GenerateOptions& options, const commands::OpenedModel& opened,
                           Take take)
    : options_(options), opened_(opened), take_(std::move(take)) {
  generate_ = generate_options(options, opened);
  const std::vector<TokenId> before = text::template_tokens(*opened.tokenizer, 1).before;
  if (before.empty())
    throw InputError(opened.path, "the tokenizer adds no token in front of a text, expected one");
  begin_ = before.front();
}

void LatentWriter::add(std::uint64_t id, std::int64_t number, probe::LatentPoints points) {
  probe::Prompt prompt;
  prompt.id = id;
  prompt.ids = {begin_, begin_};
  prompt.source = 1;
  prompt.latents = std::move(points);
  prompts_.push_back(std::move(prompt));
  numbers_.emplace_back(id, number);
  const std::int64_t each =
      options_.new_tokens() *
      std::max<std::int64_t>(options_.num_return_sequences, generate_.beams.num_beams);
  if (std::ssize(prompts_) * each >= options_.open.batch_tokens) flush();
}

void LatentWriter::flush() {
  if (prompts_.empty()) return;
  const std::vector<probe::Generated> texts = probe::generate(*opened_.model, prompts_, generate_);
  const std::size_t each = texts.size() / prompts_.size();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const probe::Generated& text = texts[i];
    take_({.id = numbers_[i / each].first,
           .number = numbers_[i / each].second,
           .sample = text.sample,
           .score = text.score,
           .log_probability = text.log_probability,
           .ended = text.ended,
           .ids = text.ids,
           .text = opened_.tokenizer->decode(text.ids, true),
           .points = &prompts_[i / each].latents});
  }
  prompts_.clear();
  numbers_.clear();
}

PointFile::PointFile(const std::string& path, const model::LatentDesign& latent)
    : path_(path), latent_(latent), file_(store::open_checkpoint(path)) {
  const std::vector<store::TensorInfo>& tensors = file_.tensors();
  const store::TensorInfo* tensor = file_.find("latents");
  if (tensor == nullptr && tensors.size() == 1) tensor = &tensors.front();
  if (tensor == nullptr) throw InputError(path, "no tensor 'latents', expected one");
  const auto width = static_cast<std::uint64_t>(latent.layers * latent.size);
  if ((tensor->dtype != DType::kF64 && tensor->dtype != DType::kF32) || tensor->shape.size() != 2 ||
      tensor->shape[1] != width) {
    throw InputError(path, fmt::format("'{}': {} of type {}, expected (texts, {}) of F32 or F64",
                                       escape(tensor->name), shape_text(tensor->shape),
                                       dtype_name(tensor->dtype), width));
  }
  tensor_ = *tensor;
  read([](probe::LatentPoints&&) {});
}

void PointFile::read(const std::function<void(probe::LatentPoints&& points)>& take) const {
  const auto width = static_cast<std::size_t>(tensor_.shape[1]);
  std::vector<std::byte> row(width * dtype_bits(tensor_.dtype) / 8);
  for (std::uint64_t i = 0; i < tensor_.shape[0]; ++i) {
    throw_if_interrupted();
    file_.read(tensor_, i * row.size(), row);
    probe::LatentPoints points(width);
    to_double(tensor_.dtype, row, points);
    if (const auto problem = input_error_message([&] { normalize_points(latent_, points); }))
      throw InputError(path_, fmt::format("row {}: {}", i + 1, *problem));
    take(std::move(points));
  }
}

probe::LatentPoints parse_points(std::string_view line, const model::LatentDesign& latent) {
  probe::LatentPoints points;
  if (trim(line).starts_with('{')) {
    const JsonValue value = parse_json_file(line, "JSON");
    const JsonValue* list = value.find("latents");
    if (list == nullptr || !list->is(JsonKind::kArray))
      throw InputError("no field 'latents', expected a list");
    add_numbers(*list, latent, points);
  } else {
    for (const std::string_view part : split(line, '\t')) {
      const auto number = parse_number<double>(part);
      if (!number) throw InputError(fmt::format("'{}', expected a number", escape(part)));
      points.push_back(*number);
    }
  }
  check_count(points.size(), latent);
  normalize_points(latent, points);
  return points;
}

}  // namespace masque::lm_write
