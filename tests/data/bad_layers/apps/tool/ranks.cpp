// Knows MPI by itself.
#include <mpi.h>
