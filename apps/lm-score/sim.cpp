// lm-score sim: do vectors agree with human judgements of similarity?
#include <memory>

#include "aggregates.hpp"
#include "base/error.hpp"
#include "base/file/file.hpp"
#include "commands.hpp"
#include "commands/files.hpp"
#include "commands/result_format.hpp"
#include "commands/scoring.hpp"
#include "commands/text_stream.hpp"
#include "evaluate/states/similarity_pair.hpp"
#include "vector_options.hpp"

namespace masque::lm_score {

namespace {

struct Options {
  VectorCommand vectors;
  std::optional<evaluate::Similarity> similarity;
  std::vector<std::string> files;
  std::optional<std::string> shard;
};

/// Similarities of the pairs, in their order; with a whitening when all are there.
class PairVectors {
 public:
  PairVectors(const OpenedVectors& opened, std::vector<Similarities>& files)
      : opened_(opened),
        files_(files),
        whitened_(opened),
        maker_(*opened.opened.model, opened.options,
               [this](std::uint64_t, std::vector<double>&& vector) { take(std::move(vector)); }) {}

  void add(const commands::FileLine& line) {
    const evaluate::SimilarityPair pair = evaluate::parse_similarity_pair(line.text);
    for (const std::string_view text : {pair.first, pair.second}) {
      const evaluate::Sentence sentence = opened_.sentence_of(text);
      if (const auto problem = maker_.length_problem(sentence)) throw InputError(*problem);
    }
    files_[line.file].gold.push_back(pair.score);
    file_of_.push_back(line.file);
    for (const std::string_view text : {pair.first, pair.second})
      maker_.add(0, opened_.sentence_of(text));
  }

  const evaluate::ShortenedTexts& shortened() const { return maker_.shortened(); }

  void finish() {
    maker_.flush();
    if (!opened_.whiten || file_of_.empty()) return;
    whitened_.fit();
    for (Index i = 0; i < whitened_.count(); i += 2)
      put(similarity(opened_.similarity, whitened_.get(i), whitened_.get(i + 1)));
  }

 private:
  void take(std::vector<double>&& vector) {
    if (opened_.whiten) {
      whitened_.add(vector);
    } else if (first_.empty()) {
      first_ = std::move(vector);
    } else {
      put(similarity(opened_.similarity, first_, vector));
      first_.clear();
    }
  }

  void put(double similar) { files_[file_of_[done_++]].cosines.push_back(similar); }

  const OpenedVectors& opened_;
  std::vector<Similarities>& files_;
  std::vector<std::size_t> file_of_;  ///< of each pair
  std::size_t done_ = 0;
  std::vector<double> first_;
  WhitenedVectors whitened_;
  evaluate::VectorMaker maker_;
};

cli::ExitCode run(Options& o, cli::Session& session) {
  cli::CommonOptions& common = o.vectors.open.common;
  session.configure(common);
  if (o.shard && o.vectors.whiten)
    throw UsageError("--whiten cannot be combined with --shard: it is fitted to all pairs");
  commands::print_part_as_json(common, o.shard);
  const OpenedVectors opened = open_vectors(o.vectors, &o.similarity, session);
  std::vector<Similarities> files;
  for (const std::string& path : o.files) files.push_back({path, {}, {}});
  PairVectors vectors(opened, files);
  const auto add = [&](const commands::FileLine& line) { vectors.add(line); };
  const auto bad =
      o.vectors.long_texts == LongTexts::kSkip ? cli::BadLines::kSkip : cli::BadLines::kError;
  commands::InputPart part;
  const cli::ExitCode code = commands::each_line_of(o.files, o.shard, add, session, bad, &part);
  vectors.finish();
  session.clear_progress();
  commands::note_shortened(vectors.shortened(), session);
  print_sim(files, with_shard(opened.provenance, o.shard, opened.opened, part), o.shard.has_value(),
            commands::ResultFormat::of(opened.opened.model->precision(), o.vectors.open.digits),
            common, session);
  return code;
}

}  // namespace

void declare_sim(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("sim", "correlation of similarities of vectors with human judgements");
  c.example("lm-score sim all-MiniLM-L6-v2/ sts/*.tsv",
            "Pearson and Spearman correlations, by file and over all");
  c.example("lm-score sim bert-base-uncased/ sts/*.tsv --pooling first-last --whiten",
            "the same, with whitened vectors");
  add_vectors(c, o->vectors);
  c.choice("--similarity", o->similarity, evaluate::similarity_names(),
           "how vectors are compared: by cosine, dot product, or minus a distance [the folder's; "
           "else cosine]");
  c.arguments("FILE", o->files,
              "lines of score, sentence, sentence, separated by tabs; - is standard input");
  commands::add_file_shard(c, o->shard);
  commands::add_digits(c, o->vectors.open.digits);
  add_table(c, o->vectors.open.common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::lm_score
