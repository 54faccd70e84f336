#!/usr/bin/env bash
# Installs the build into a prefix, moves that away, and uses it: the tools, their manual pages and
# completions, and the libraries from a program of another project.
#   tests/consumer/check.sh BUILD_DIR CMAKE COMPILER GENERATOR FLAGS BUILD_TYPE
# Needs bash, CMake and the compiler; groff, mandoc, zsh and fish check their part if they are there.
set -euo pipefail
build=$1 cmake=$2 compiler=$3 generator=$4 flags=$5 type=$6
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  printf 'failed: %s\n' "$*" >&2
  exit 1
}
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$*"; }; }
has() { command -v "$1" >/dev/null; }

quietly "$cmake" --install "$build" --prefix "$work/first"
mv "$work/first" "$work/prefix"
prefix=$work/prefix
[ ! -e "$prefix/bin/bench" ] || fail "bench is installed"
if grep -rlF -e "$build" -e "$work/first" "$prefix"/lib*/ --include=*.cmake; then
  fail "the CMake package names a folder of the build"
fi

for tool in "$prefix"/bin/*; do
  name=${tool##*/}
  page=$prefix/share/man/man1/$name.1
  quietly "$tool" --version
  grep -q '^\.SH EXIT STATUS' "$page" || fail "$page is no manual page"
  if has groff; then
    said=$(groff -man -ww -z -Tutf8 "$page" 2>&1) && [ -z "$said" ] || fail "$page: groff: $said"
  fi
  if has mandoc; then
    said=$(mandoc -T lint -W warning "$page" 2>&1 | grep -v 'missing date' || true)
    [ -z "$said" ] || fail "$page: mandoc: $said"
  fi
  quietly bash -n "$prefix/share/bash-completion/completions/$name"
  has zsh && quietly zsh -n "$prefix/share/zsh/site-functions/_$name"
  has fish && quietly fish -n "$prefix/share/fish/vendor_completions.d/$name.fish"
done

# completes EXPECTED WORD…: what bash offers for the last of the words of a command line.
completes() {
  local expected=$1 function
  shift
  # shellcheck disable=SC1090
  source "$prefix/share/bash-completion/completions/$1"
  function=_${1//-/_}
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=(left over)
  "$function" || fail "$function ends with $?"
  [ "${COMPREPLY[*]}" = "$expected" ] || fail "'$*' is completed by '${COMPREPLY[*]}', expected '$expected'"
}
completes "convert" ckpt conv
completes "mlm-correct" embed-fix m
completes "bash zsh fish hf" ckpt --completion ""
completes "raw" ckpt cat model.safetensors --format r
completes "tsv json raw" ckpt cat --format =
completes "json" ckpt cat --format = j
completes "untie" embed-fix mlm-correct bert/ -o out --tied u
completes "--shard-size" ckpt convert bert/ --sh
completes "--version" embed-fix --ver
completes "" ckpt new --seed ""
completes "" ckpt ls ""
completes "" ckpt ls -- --js
completes "" ckpt --version l

quietly "$cmake" -S "$here" -B "$work/build" -G "$generator" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_BUILD_TYPE="$type" -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_PREFIX_PATH="$prefix"
quietly "$cmake" --build "$work/build"
"$work/build/consumer" | diff "$here/expected.txt" - || fail "the consumer's output is another one"
echo "installed: $(cd "$prefix" && find . -type f | wc -l) files, all well"
