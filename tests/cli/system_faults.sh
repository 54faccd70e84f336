#!/usr/bin/env bash
# Every system call of every command fails once: exit code 3, one line, nothing lost, no half output, no hang; or the command does
# all the same what it does otherwise.
#   tests/cli/system_faults.sh BIN_DIR TOOL_FAULTS [--all] [PATTERN [CALL…]]
# TOOL_FAULTS is the library of tests/support/tool_faults.cpp, which marks where main begins: calls before it are the loader's. PATTERN
# (a regular expression) chooses commands, CALL… calls. One place of a few calls of a third of the commands fails; with --all the first 40 calls of
# each kind, and 10 later ones. A thread counts its own calls, and strace counts from the start of the process: of calls that the
# loader makes, too (openat, read, mmap …), the first ones of other threads than the main one do not fail here.
# Of brk an error cannot be injected: the kernel has none, it returns the old break. Memory that runs out is out_of_memory.sh's.
# Exit codes: 0 all as it should be; 1 a failure; 77 skipped: strace cannot trace here.
# shellcheck disable=SC2154  # every_command, clean, run: of every_command.sh
set -u

faults=$(realpath "${2:?TOOL_FAULTS, the library that marks where main begins}")
# shellcheck source=tests/cli/every_command.sh
. "$(dirname "$0")/every_command.sh"
use_tools "${1:?BIN_DIR, the folder of the tools}" "a sanitizer makes calls of its own"
shift 2
all=
[ "${1-}" = --all ] && all=1 && shift
pattern=${1-.}
shift
calls=${*:-openat read pread64 write pwrite64 copy_file_range mmap mremap madvise mprotect fallocate ftruncate fsync fdatasync
  flock fchmod fchown rename renameat renameat2 mkdirat unlinkat fstat newfstatat statx lseek getdents64 readlink readlinkat poll
  clone clone3 sched_getaffinity getrandom prlimit64 rt_sigaction fcntl ioctl fadvise64 sync_file_range close}
strace -f -qq -o "$work/probe" -e trace=write -e inject=write:error=EIO:when=1 echo probe >/dev/null 2>&1
if ! grep -q INJECTED "$work/probe" 2>/dev/null; then
  echo "skipped: strace cannot trace here"
  exit 77
fi

# What a call fails with.
error_of() {
  case $1 in
    mmap | mremap | madvise | mprotect) echo ENOMEM ;;
    clone | clone3) echo EAGAIN ;;
    prlimit64 | sched_getaffinity | rt_sigaction | fcntl) echo EPERM ;;
    *) echo EIO ;;
  esac
}

# A kernel without the call, or a hint: that it fails changes nothing, and a write after it fails by itself.
# Of any other call that changes a file a failure is an error, whatever comes out.
must_fail() {
  case $1 in
    write | pwrite64 | ftruncate | fsync | fdatasync | rename | renameat | renameat2) return 0 ;;
    *) return 1 ;;
  esac
}

# traced OPTIONS COMMAND: runs it under strace; its exit code.
traced() {
  local code=0
  (cd "$run" && timeout -k 1 60 sh -c "strace -f -qq -E LD_PRELOAD=$faults -o $work/trace $1 $2" </dev/null \
    >"$work/run.out" 2>"$work/run.err") || code=$?
  return $code
}

# The numbers of a call that fail, among those from FIRST to LAST.
chosen() { # FIRST LAST
  local n i
  if [ -z "$all" ]; then
    echo $(($1 + RANDOM % ($2 - $1 + 1)))
    return
  fi
  for ((n = $1; n <= $2 && n < $1 + 40; ++n)); do echo "$n"; done
  for ((i = 0; n <= $2 && i < 10; ++i)); do echo $((n + RANDOM % ($2 - n + 1))); done
}

# What is wrong with a run in which number N of a call failed.
judge_call() { # KIND COMMAND CODE CALL
  local injected
  # A call that another thread's lines cut in two is put together again.
  injected=$(awk '/<unfinished/ { begun[$1] = $0 } /INJECTED/ { print / resumed>/ ? begun[$1] " " $0 : $0 }' "$work/trace")
  case $injected in
    '') ;;  # threads share the work in another way each time: the main one made fewer calls
    # Of what is said on stderr there is nothing left to see.
    *'write(2,'*) [ "$3" = "$clean" ] || [ "$3" = 3 ] || echo "exit $3" ;;
    *)
      # oneDNN goes on without the memory that it writes code into, or does not say what it lacks; the kernels ask before
      # whether there is some.
      if [[ $3 = 139 && $injected =~ (mmap\(NULL,\ 26[0-9]{4},\ PROT_READ\|PROT_WRITE|mprotect\() ]] ||
        { [ "$3" = 4 ] && grep -q 'could not create a primitive' "$work/run.err"; }; then
        echo x >>"$work/library"
      elif [[ $3 = "$clean" && $injected = *'write(1,'* ]] && cmp -s "$work/clean.out" "$work/run.out"; then
        :  # rows of lm-train classify: what did not arrive is written again with what follows
      elif [ "$3" = "$clean" ] && must_fail "$4"; then
        echo "exit $3 though a $4 failed"
      else
        judge "$1" "$2" "$3"
      fi
      ;;
  esac
}

RANDOM=7  # the same places every time
failures=0
# shellcheck disable=SC2086  # a word each
asked=$(printf ',?%s' $calls)
printf 'calls\truns\tsurvived\tfailures\tcommand\n'
while read -r kind command; do
  [[ -n $kind && $command =~ $pattern ]] || continue
  [ -n "$all" ] || [ "$pattern" != . ] || [ $((RANDOM % 3)) = 0 ] || continue
  clean_run "$command"
  fresh "$kind"
  traced "-e trace=?access,?faccessat,?faccessat2$asked" "$command" 2>/dev/null
  # The main thread alone: the others count for themselves.
  awk 'NR == 1 { main = $1 } $1 == main' "$work/trace" | sed -E 's/^[0-9]+ +//' >"$work/calls"
  begin=$(grep -n '"/main begins"' "$work/calls" | head -n 1 | cut -d : -f 1)
  [ -n "$begin" ] || { echo "main is not marked: $command" && exit 1; }
  total=0 runs=0 survived=0 before=$failures
  for call in $calls; do
    first=$(head -n "$begin" "$work/calls" | grep -c "^$call(")
    last=$(grep -c "^$call(" "$work/calls")
    total=$((total + last - first))
    [ "$last" -gt "$first" ] || continue
    # A few of them, unless all are asked for.
    [ -n "$all" ] || [ $# -gt 0 ] || [ $((RANDOM % 12)) = 0 ] || continue
    for n in $(chosen $((first + 1)) "$last"); do
      fresh "$kind"
      code=0
      traced "-e trace=$call -e inject=$call:error=$(error_of "$call"):when=$n" "$command" 2>/dev/null || code=$?
      runs=$((runs + 1))
      [ $code != "$clean" ] || survived=$((survived + 1))
      may_leave=
      [ "$call" != unlinkat ] || may_leave=1
      wrong=$(judge_call "$kind" "$command" $code "$call")
      [ -z "$wrong" ] || { echo "$call number $n ($((n - first)) in main) of $command: $wrong" && failures=$((failures + 1)); }
    done
  done
  printf '%d\t%d\t%d\t%d\t%s\n' $total $runs $survived $((failures - before)) "$command"
done <<<"$every_command"
[ ! -e "$work/library" ] || echo "$(wc -l <"$work/library") runs ended in oneDNN, without memory for its code"
unharmed || failures=$((failures + 1))
[ $failures = 0 ]
