// A larger checkpoint, wider or deeper or both, of a trained model of any family and format.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grow/growth.hpp"
#include "store/checkpoint_writer.hpp"

namespace masque::grow {

/// A larger model, planned from the headers of a checkpoint before anything is written: the same
/// names, types and format, with the sizes of config.json as asked. Tensors that no part of the
/// model uses grow where their shape says how (a pooler, a classifier), else they are left out,
/// with a note. For one thread.
class ModelGrowth {
 public:
  /// Reads config and headers of the folder `in` and plans what `request` says. Throws UsageError
  /// and InputError for what cannot grow: as wider_design and deeper_layers, and for a family whose
  /// config.json cannot say the larger design.
  ModelGrowth(const std::string& in, const GrowthRequest& request);
  ~ModelGrowth();

  /// What will be written: a reference into this object.
  const GrowthReport& report() const;

  /// Writes the new folder `out`; returns notes. To be called once. `input` of `options` is set
  /// here. Numbers are computed in double and rounded once. Memory: a few rows for each thread.
  /// Throws as surgery::write_edit; `out` is then as it was.
  std::vector<std::string> write(const std::string& out, store::WriteOptions options);

 private:
  class Plan;
  std::unique_ptr<Plan> plan_;
};

}  // namespace masque::grow
