// The processes of a run: those that mpirun started, or one.
#pragma once

#include <memory>

#include "train/loss/ranks.hpp"

namespace masque::lm_train {

/// Joins the others, if mpirun (or srun) started this process and the program was built with MPI;
/// without MPI, of several processes each says so and ends. Once in a program, before all else.
class Launch {
 public:
  Launch(int argc, char** argv);
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  ~Launch();

  train::Ranks& ranks() const;
  /// What main returns after the work ended with `code` here: 0 when all are done. Another one ends
  /// all processes with it. Messages of rank 0 are printed; those of another rank only if rank 0
  /// does not come to the same end within a moment.
  int leave(int code);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace masque::lm_train
