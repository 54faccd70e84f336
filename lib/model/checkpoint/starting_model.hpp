// A checkpoint that training starts from, and what is written back: the same names, the same
// config.json, and every tensor that training does not know.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/checkpoint/load.hpp"
#include "model/checkpoint/save.hpp"
#include "store/checkpoint.hpp"
#include "store/config.hpp"
#include "store/names/named_tensors.hpp"

namespace masque::model {

/// What of a checkpoint is opened.
enum class StartingPart {
  kModel,    ///< the model; of an encoder–decoder the encoder, which must be a model of its own
  kEncoder,  ///< the encoder of an encoder–decoder
  kDecoder,  ///< the decoder of an encoder–decoder, with the encoder that it reads
};

/// An opened checkpoint of any family. Immutable; its files stay open.
class StartingModel {
 public:
  /// Reads config and headers; `path` is a folder as load_model takes it. Throws as load_model,
  /// but for values that are not finite; and for a `part` that the checkpoint does not have or that
  /// is no model of its own.
  explicit StartingModel(const std::string& path, StartingPart part = StartingPart::kModel);
  StartingModel(const StartingModel&) = delete;
  StartingModel& operator=(const StartingModel&) = delete;
  ~StartingModel() = default;

  /// The path of the checkpoint.
  const std::string& path() const { return checkpoint_.path(); }
  /// The checkpoint itself.
  const store::Checkpoint& checkpoint() const { return checkpoint_; }
  /// Its design, with the head that it has; one of HeadKind::kText is not looked for.
  const Design& design() const { return found_.design; }
  /// Reads all weights, each time. Throws as load_model.
  ModelWeights<float> weights() const { return read_tensors<float>(found_, checkpoint_); }
  /// Of a decoder, the encoder that it reads; else nullptr. As valid as this.
  const StartingModel* encoder() const { return encoder_.get(); }
  /// Whether both have one word table.
  bool shares_words() const { return shares_words_; }

  /// The head of this `kind`: the model's own if it is of the kind, else the first one that its
  /// family knows; of a family without heads a tied vocabulary alone, if the kind has one. Else
  /// nothing.
  std::optional<HeadDesign> head(HeadKind kind) const;

  /// Whether its family writes `design` with the checkpoint's config.json: the design is the
  /// checkpoint's, but for the head and the mask token.
  bool writes(const Design& design) const;

  /// The family that writes `design`, config.json with `training`, and the names of the parameters:
  /// of the checkpoint's family if it writes the design, else of model::saved_design, else of the
  /// checkpoint's family with changes (changed_family.hpp). Throws UsageError for a design that
  /// none of them has.
  SavedDesign saved_design(const Design& design, const TrainingConfig& training = {}) const;

  /// config.json and weights (f32) of `design`, which was made from this model; `weights` must live
  /// until they are written, and this too. Where another family writes the design (saved_design),
  /// they are those of model_files. Else config.json is the checkpoint's, and has of `training` the
  /// begin token alone; tensors keep the names that the checkpoint has where the head is the
  /// checkpoint's; what it has under several, all. With `unused`, all tensors of the checkpoint
  /// that no part of the model uses go with those, as they are, but for heads that reading would
  /// take instead of the design's, and a classifier's; a TensorFlow checkpoint's are left out. Of a
  /// decoder `encoder` has the weights of its encoder, whose design is the checkpoint's; else it is
  /// nullptr. Throws as saved_design, and UsageError for a weight that is missing.
  ModelFiles files(const Design& design, const ModelWeights<float>& weights,
                   const TrainingConfig& training, bool unused = true,
                   const ModelWeights<float>* encoder = nullptr) const;

 private:
  /// Who writes a design.
  enum class Writer { kFamily, kOther, kChanged };
  /// A design as it is written, and who writes it.
  struct Written {
    Writer writer;
    SavedDesign saved;
  };
  /// Opens the encoder of a decoder; refuses what has none, and two word tables.
  void open_encoder();
  Written written(const Design& design, const TrainingConfig& training) const;
  const HeadPlan* head_plan(const HeadDesign& head) const;
  /// Whether the checkpoint labels texts, which a model of this design does not.
  bool leaves_classifier(const Design& design) const;
  std::string config_text(const Design& design) const;
  /// Adds the tensors of `plan` with their `weights` to `tensors`, under the names that the
  /// checkpoint has where its head is the plan's (`same_head`).
  void add_tensors(const ModelPlan& plan, const ModelWeights<float>& weights, bool same_head,
                   std::vector<store::OutputTensor>& tensors) const;
  bool is_copy(const std::string& a, const std::string& b) const;
  std::vector<std::string> names_in_file(const PlacedTensor& tensor) const;
  std::vector<TensorRow> replaced_rows(const ModelPlan& plan) const;
  void add_unused(const ModelPlan& plan, bool same_head,
                  std::vector<store::OutputTensor>& tensors) const;

  store::Checkpoint checkpoint_;
  store::ModelConfig config_;
  store::NamedTensors names_;
  const Family& family_;
  /// Plan of the family, with the decoder untied where the file has one of its own.
  ModelPlan plan_;
  LoadPlan found_;
  std::unique_ptr<const StartingModel> encoder_;
  bool shares_words_ = false;
};

}  // namespace masque::model
