#!/usr/bin/env bash
# The page of each layer names every header of the layer and every source without one, and no file that is not there.
#   layer_pages.sh LIB
# lib/README.md draws the layers as lib/LAYERS has them, and names files that are there.
# A name is a word in backticks in the first column of a table headed `file`: `stem`, `folder/stem`, `folder/`, `prefix_*`,
# `*_rows.hpp`. A folder of variants (one file each, without headers) needs its own name only.
# Elsewhere on a page what looks like a path of the tree, by its first folder or its ending, must be there too; NAME and
# FOLDER stand for anything. A name with underscores (a function, a member, an option's field) is somewhere in the sources, the tests or
# the scripts. "May include …" of a page is what lib/LAYERS says.
set -euo pipefail
cd "$1"
bad=0
# there LAYER PATH: a file or folder of the layer, of lib/ or of the tree, with or without its ending; a name without a
# folder stands anywhere in the layer or in tests/.
there() {
  local path=${2//NAME/*} at end
  path=${path//FOLDER/*}
  case $path in
    */*) ;;
    *) [ -n "$(find "$1" ../tests ../scripts -name "$path" -print -quit)" ]; return ;;
  esac
  for at in "$1/$path" "$path" "../$path"; do
    for end in "" .hpp .cpp -inl.hpp; do
      compgen -G "${at%/}$end" >/dev/null && return 0
    done
  done
  return 1
}
# paths LAYER PAGE: words in backticks that look like paths of the tree, code blocks left out.
paths() {
  awk '/^```/ { code = !code; next } !code' "$2" | grep -oE '`[A-Za-z0-9_.*/-]+' | tr -d '`' | sort -u |
    while IFS= read -r name; do
      case $name in
        */*) first=${name%%/*} ;;
        *) first= ;;
      esac
      if [[ $name =~ [A-Za-z0-9_*]\.(hpp|cpp|md|sh|cmake|py)$ ]] ||
        { [ -n "$first" ] && { [ -d "$1/$first" ] || [ -d "$first" ] || [ -d "../$first" ]; }; }; then
        echo "$name"
      fi
    done
}
# Names in the tree, and of oneDNN's instruction sets.
words=$(mktemp)
trap 'rm -f "$words"' EXIT
{
  echo avx512_core
  grep -rIohE --exclude='*.md' --exclude-dir=data --exclude-dir=corpus '[A-Za-z][A-Za-z0-9_]*_[A-Za-z0-9_]+' . ../apps ../tests ../scripts
} | sort -u >"$words"
for layer in $(awk -F: '/^[a-z]/ { print $1 }' LAYERS); do
  page=$layer/README.md
  [ -f "$page" ] || { echo "$page: missing"; bad=1; continue; }
  allowed=$(sed -n "s/^$layer: *//p" LAYERS | tr ' ' '\n' | sort | xargs)
  stated=$(tr '\n' ' ' <"$page" | grep -oE 'May include [^.;]*' | head -n 1 | grep -o '`[^`]*`' | tr '` ' '\n' | sort | xargs || true)
  if [ "$stated" != "$allowed" ]; then
    echo "$page: may include '$stated', expected '$allowed'"
    bad=1
  fi
  while IFS= read -r name; do
    [ -n "$name" ] || continue
    there "$layer" "$name" || { echo "$page: names '$name', which is not there"; bad=1; }
  done < <(paths "$layer" "$page")
  while IFS= read -r name; do
    echo "$page: names '$name', which is not there"
    bad=1
  done < <(awk '/^```/ { code = !code; next } !code' "$page" | grep -oE '`[a-z][a-z0-9]*(_[a-z0-9]+)+(\(\))?`' |
    tr -d '`()' | sort -u | comm -23 - "$words")
  names=$(awk -F'|' '/^\| file \|/ { table = 1; next } !/^\|/ { table = 0 } table { print $2 }' "$page" | grep -o '`[^`]*`' | tr -d '`' || true)
  named=()
  while IFS= read -r name; do
    [ -n "$name" ] || continue
    found=()
    for at in "$layer"/${name%/} "$layer"/$name.hpp "$layer"/$name.cpp "$layer"/$name-inl.hpp; do
      [ -e "$at" ] && found+=("$at")
    done
    if [ ${#found[@]} -eq 0 ]; then
      echo "$page: names '$name', which is not there"
      bad=1
    fi
    named+=(${found[@]+"${found[@]}"})
  done <<<"$names"
  while IFS= read -r header; do
    stem=${header%.hpp} stem=${stem%-inl}
    for at in ${named[@]+"${named[@]}"}; do
      case $at in "$header" | "$stem" | "$stem".* | "$stem"-inl.hpp) continue 2 ;; esac
      # A folder stands for what is in it, if it says so with a slash.
      if [ -d "$at" ] && [[ $header == "$at"/* ]]; then continue 2; fi
    done
    echo "$page: does not name ${header#"$layer"/}"
    bad=1
  done < <(find "$layer" -name '*.hpp' ! -name '*.in' | sort)
  # Sources without a header, one by one or by the folder of variants that they are in.
  while IFS= read -r source; do
    stem=${source%.cpp}
    [ ! -e "$stem.hpp" ] && [ ! -e "$stem-inl.hpp" ] || continue
    for at in ${named[@]+"${named[@]}"}; do
      [ "$at" != "$source" ] || continue 2
      if [ -d "$at" ] && [[ $source == "$at"/* ]]; then continue 2; fi
    done
    echo "$page: does not name ${source#"$layer"/}"
    bad=1
  done < <(find "$layer" -name '*.cpp' | sort)
done
# lib/README.md: what it names by a path is there, in a layer or in the folder next to it.
while IFS= read -r name; do
  [ -e "$name" ] || [ -e "../$name" ] || { echo "README.md: names '$name', which is not there"; bad=1; }
done < <(grep -o '`[a-z_]*/[A-Za-z0-9_./-]*`' README.md | tr -d '`' | grep -vE 'TOOL|NAME' | sort -u)
../scripts/layers --check || bad=1
exit $bad
