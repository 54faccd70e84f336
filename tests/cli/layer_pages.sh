#!/usr/bin/env bash
# The page of each layer names every header of the layer, and no file that is not there.
#   layer_pages.sh LIB
# lib/README.md draws the layers as lib/LAYERS has them, and names files that are there.
# A name is a word in backticks in the first column of a table headed `file`: `stem`, `folder/stem`, `folder/`, `prefix_*`,
# `*_rows.hpp`. A folder of variants (one file each, without headers) needs its own name only.
set -euo pipefail
cd "$1"
bad=0
for layer in $(awk -F: '/^[a-z]/ { print $1 }' LAYERS); do
  page=$layer/README.md
  [ -f "$page" ] || { echo "$page: missing"; bad=1; continue; }
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
done
# lib/README.md: what it names by a path is there, in a layer or in the folder next to it.
while IFS= read -r name; do
  [ -e "$name" ] || [ -e "../$name" ] || { echo "README.md: names '$name', which is not there"; bad=1; }
done < <(grep -o '`[a-z_]*/[A-Za-z0-9_./-]*`' README.md | tr -d '`' | grep -vE 'TOOL|NAME' | sort -u)
../scripts/layers --check || bad=1
exit $bad
