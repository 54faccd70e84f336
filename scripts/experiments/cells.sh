# shellcheck shell=bash
# What the experiments of scripts/experiments/reproduce have in common: options, trained models, values. Sourced, in the project's folder.
# shellcheck disable=SC2154  # length, batch, steps, layers and width are of the caller
# shellcheck source=scripts/experiments/common.sh
. scripts/experiments/common.sh
shopt -s inherit_errexit
export LC_ALL=C PATH=${MASQUE_BIN:-$PWD/build/bin}:$PATH

# open_experiment NAME OPTION...: sets name, out, tier (smoke, hour or day), seeds (a list), text, dev and smoke, and makes the folder.
#   --tier T      smoke: seconds, checks that everything runs; hour: at most an hour on two processors; day: a night  [hour]
#   --seeds N     seeds 1 to N [3; smoke: 2]; A-B: seeds A to B
#   --cell NAME   only this condition; parts of a run may be made on several machines: put the files of their folders "cells" into one
#   -o DIR        [build/experiments/NAME]
#   --text FILE --eval-text FILE   one sentence or paragraph a line [the King James Bible; smoke: made sentences]
open_experiment() {
  name=$1 tier=hour seeds='' only_cell='' text='' dev='' smoke=no out=build/experiments/$1
  shift
  while [ $# -gt 0 ]; do
    case $1 in
      -o | --tier | --seeds | --cell | --text | --eval-text) [ $# -ge 2 ] || { echo "$name: $1 needs a value" >&2; exit 2; } ;;
    esac
    case $1 in
      -o) out=$(from_caller "$2") ;;
      --tier) tier=$2 ;;
      --seeds) seeds=$2 ;;
      --cell) only_cell=$2 ;;
      --text) text=$(from_caller "$2") ;;
      --eval-text) dev=$(from_caller "$2") ;;
      *) echo "$name: unknown option '$1'; options: --tier smoke|hour|day --seeds N --cell NAME -o DIR --text FILE --eval-text FILE" >&2; exit 2 ;;
    esac
    shift 2
  done
  case $tier in
    smoke) smoke=yes seeds=${seeds:-2} ;;
    hour | day) seeds=${seeds:-3} ;;
    *) echo "$name: found tier '$tier', expected smoke, hour or day" >&2; exit 2 ;;
  esac
  seeds=$(seed_list "$seeds") || exit 2
  found_cell=no
  mkdir -p "$out/cells"
  keep_settings "$name" "$out" "tier $tier text ${text:-default} eval-text ${dev:-default} script $(script_number)"
}

# script_number: of the script and what it sources, without comments. Values of another script are not mixed with its own.
script_number() {
  local files=("scripts/experiments/$name")
  ! grep -qx '\. scripts/experiments/tasks.sh' "${files[0]}" || files+=(scripts/experiments/tasks.sh)
  grep -hv '^ *#' "${files[@]}" | cksum | cut -d ' ' -f 1
}

# cell CONDITION SEED COMMAND...: the values of one trained model. COMMAND prints lines of measure, tab, value; they are kept in the folder cells, with
# the command lines of masque, and what is kept is not measured again.
cell() {
  local kept=$out/cells/$1-$2.tsv begin=$SECONDS
  [ "${only_cell:-$1}" = "$1" ] || return 0
  found_cell=yes
  [ ! -e "$kept" ] || return 0
  echo "$name: $1, seed $2" >&2
  commands=$out/cells/$1-$2.commands
  : >"$commands"
  "${@:3}" >"$kept.part"
  awk -F '\t' 'NF != 2 || $1 == "" || $2 == "" { bad = 1 } END { exit bad || NR == 0 }' "$kept.part" ||
    { echo "$name: a value of $1, seed $2 is missing: $kept.part" >&2; return 3; }
  printf '# %s, %s, %d s\n' "$(lm-train --version | head -n 1)" "$(processor)" $((SECONDS - begin)) >>"$commands"
  mv "$kept.part" "$kept"
}

# masque TOOL ARGUMENT...: runs the tool, with MASQUE_THREADS threads if that is set.
masque() {
  note "$@"
  "$@" ${MASQUE_THREADS:+-j "$MASQUE_THREADS"}
}

# skipping TOOL ARGUMENT...: runs the tool without the lines that are too long for the model; the exit code 3 says that there were some.
skipping() { masque "$@" --policy skip || [ $? -eq 3 ]; }

# note TOOL ARGUMENT...: a command line of this cell, for the report.
note() {
  local line='' word
  for word; do
    case $word in
      '' | *[!A-Za-z0-9_./,:=+-]*) word="'${word//\'/\'\\\'\'}'" ;;
    esac
    line+="$word "
  done
  grep -qxF -- "${line% }" "$commands" || printf '%s\n' "${line% }" >>"$commands"
}

# learn MODEL OPTION...: trains on $text as $out/models/MODEL, unless it is done; goes on with what was interrupted.
learn() {
  local command=(lm-train "$text" -o "$out/models/$1" --resume -q "${@:2}")
  if [ -e "$out/models/$1.done" ]; then
    note "${command[@]}"
    return 0
  fi
  mkdir -p "$out/models"
  masque "${command[@]}" >&2 || return
  touch "$out/models/$1.done"
}

# learn_blocks MODEL SEED OPTION...: $out/models/MODEL-SEED on blocks of text, with the sizes of the caller: length, batch, steps, layers, width. With
# budget= it trains for this time instead of the steps.
learn_blocks() {
  local limit=(--steps "$steps")
  [ -z "${budget:-}" ] || limit=(--budget "$budget")
  learn "$1-$2" --tokenizer "$out/tok" --format blocks --length "$length" --batch-size "$batch" "${limit[@]}" --learning-rate 0.002 \
    --num-hidden-layers "$layers" --hidden-size "$width" --seed "$2" "${@:3}"
}

# last_of FIELD MODEL: the last value of a field in the metrics of $out/models/MODEL.
last_of() { sed -nE "s/.*\"$1\":([^,}]*).*/\1/p" "$out/models/$2/metrics.jsonl" | tail -n 1; }

# speed_of MODEL: the median over the steps of $out/models/MODEL.timing, in tokens a second.
speed_of() {
  sed -E 's/.*"tokens_per_second":([^,}]*).*/\1/' "$out/models/$1.timing" | sort -g | awk '{ speed[NR] = $0 } END { print speed[int((NR + 1) / 2)] }'
}

# pictures: of each measure NAME@N, and NAME_N with at least three numbers N, a curve over N as $out/NAME.svg, with a series for each condition (less
# its own -N at the end). The caller's axis= says what N is.
pictures() {
  local table name
  awk -F '\t' -v folder="$out" "$is_number"'
    NR > 1 && match($3, /[_@][0-9.]+$/) {
      name = substr($3, 1, RSTART - 1); number = substr($3, RSTART + 1); series = $1
      if ($3 ~ /@/) drawn[name]
      else if (!((name, number) in seen)) { seen[name, number]; if (++numbers[name] == 3) drawn[name] }
      if (match(series, /-[0-9.]+$/) && substr(series, RSTART + 1) == number) series = substr(series, 1, RSTART - 1)
      if (is_number($4)) rows[name] = rows[name] series "\t" number "\t" $4 "\n"
    }
    END { for (name in drawn) { table = folder "/" name ".picture"; printf "condition\tat\tvalue\n%s", rows[name] >table; close(table) } }' "$out/values.tsv"
  for table in "$out"/*.picture; do
    [ -e "$table" ] || continue
    name=$(basename "$table" .picture)
    awk -F '\t' -v axis="${axis:-tokens}" -v title="${name//_/ }" -f scripts/experiments/curves.awk "$table" >"$out/$name.svg"
    rm "$table"
  done
}

# finish: values.tsv, means.tsv, pictures and command lines of all cells; prints the means. Measures NAME@N are for the pictures only.
finish() {
  [ "$found_cell" = yes ] || { echo "$name: no condition '$only_cell'" >&2; exit 2; }
  find "$out/cells" -name '*.tsv' -printf '%f\n' | sort -V | while read -r file; do
    awk -F '\t' -v cell="${file%.tsv}" 'BEGIN { at = match(cell, /-[0-9]+$/) } { print substr(cell, 1, at - 1) "\t" substr(cell, at + 1) "\t" $1 "\t" $2 }' "$out/cells/$file"
  done | write_values "$out"
  pictures
  cell_commands
  cat "$out/means.tsv"
}

# cell_commands: $out/commands, the command lines of the first seed of each condition, those of known values last; $out/machines, a line of version,
# processor and seconds for each cell that was measured here.
cell_commands() {
  local file condition before='' known=/dev/null
  [ ! -e "$out/known.commands" ] || known=$out/known.commands
  find "$out/cells" -name '*.commands' -printf '%f\n' | sort -V | while read -r file; do
    condition=${file%-*}
    [ "$condition" != "$before" ] || continue
    before=$condition
    printf '# %s\n' "$condition"
    grep -v '^# ' "$out/cells/$file" || true
  done | awk '/^# / { kept = !($0 in seen); seen[$0] } kept' - "$known" >"$out/commands.part"
  mv "$out/commands.part" "$out/commands"
  find "$out/cells" -name '*.commands' -exec sed -n 's/^# //p' {} + >"$out/machines"
}
