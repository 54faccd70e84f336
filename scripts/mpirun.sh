# shellcheck shell=bash
# What every mpirun of scripts and tests needs: mpirun_quiet is its option against messages of its own, which Open MPI 5 has no more; root may
# start it, as in a container. Sourced.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun_quiet=()
# shellcheck disable=SC2034  # used by those that source this
! mpirun -q --version >/dev/null 2>&1 || mpirun_quiet=(-q)
