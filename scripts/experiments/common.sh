# shellcheck shell=bash
# What experiments have in common. Sourced.

# from_caller PATH: of the folder that the script was called in; the script has changed it once.
from_caller() { (cd "${OLDPWD:-$PWD}" && realpath -m "$1"); }

# seed_list N or A-B: the seeds from 1 to N, or from A to B.
seed_list() {
  if ! [[ $1 =~ ^[1-9][0-9]*(-[0-9]+)?$ ]] || [ "${1%-*}" -gt "${1#*-}" ]; then
    printf "%s: found --seeds '%s', expected N or A-B\n" "${0##*/}" "$1" >&2
    return 2
  fi
  case $1 in *-*) seq "${1%-*}" "${1#*-}" ;; *) seq "$1" ;; esac
}

# keep_settings NAME FOLDER SETTINGS: a folder with results of other settings is refused.
keep_settings() {
  mkdir -p "$2"
  [ -e "$2/settings" ] || printf '%s\n' "$3" >"$2/settings"
  [ "$3" = "$(cat "$2/settings")" ] || { printf '%s: %s holds a run with other settings: %s\n' "$1" "$2" "$(cat "$2/settings")" >&2; exit 2; }
}

# split_bible FOLDER: bible.txt, and of it train.txt and the last 3,000 verses as dev.txt.
split_bible() {
  [ ! -e "$1/dev.txt" ] || return 0
  bible -f 'gen1:1-rev22:21' | sed 's/^[^ ]* *//' >"$1/bible.txt"
  head -n -3000 "$1/bible.txt" >"$1/train.txt"
  made "$1/dev.txt" tail -n 3000 "$1/bible.txt"
}

# made FILE COMMAND...: the output of the command as FILE, unless it is there: a file is whole, or not there.
made() { [ -e "$1" ] || { "${@:2}" >"$1.part" && mv "$1.part" "$1"; }; }

# pieces FILE NUMBER SIZE...: the words of a file as so many lines of SIZE words, the sizes in turn.
pieces() {
  awk -v most="$2" -v list="${*:3}" '
    BEGIN { sizes = split(list, size, " ") }
    { for (i = 1; i <= NF; ++i) {
        line = line (words++ ? " " : "") $i
        if (words == size[lines % sizes + 1]) { print line; line = ""; words = 0; if (++lines == most) exit } } }' "$1"
}

# processor: its name and number of threads.
processor() { printf '%s, threads: %s' "$(sed -nE 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)"; }

# make_clauses TRAIN DEV: 1,500 lines of made sentences, the same each time.
make_clauses() {
  awk -v train="$1" -v dev="$2" '
    function pick(n) { state = state * 16807 % 2147483647; return int(state / 1000) % n + 1 }
    BEGIN {
      state = 1
      subjects = split("dog cat bird child king queen", subject, " "); verbs = split("saw heard followed loved", verb, " ")
      adjectives = split("old small quick", adjective, " ")
      for (i = 0; i < 1500; ++i) print "the " adjective[pick(adjectives)] " " subject[pick(subjects)] " " verb[pick(verbs)] " a " \
        subject[pick(subjects)] ", and the " subject[pick(subjects)] " " verb[pick(verbs)] " it." >(i < 1200 ? train : dev)
    }'
}

# shellcheck disable=SC2154  # out and smoke are of the caller
# prepare_text SIZE: without text= of the caller that of --smoke or the Bible as text and dev; a vocabulary of SIZE tokens of it in $out/tok.
prepare_text() {
  if [ -z "$text" ]; then
    text=$out/train.txt dev=$out/dev.txt
    if [ "$smoke" = yes ]; then make_clauses "$text" "$dev"; else split_bible "$out"; fi
  fi
  : "${dev:?--text needs --eval-text}"
  [ -e "$out/tok" ] || tok train -o "$out/tok" --size "$1" -q <"$text"
}

# A function of awk: nan and inf are no numbers.
is_number='function is_number(text) { return text ~ /^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$/ }'

# write_values FOLDER: lines of condition, seed, measure and value as FOLDER/values.tsv, their means over the seeds as FOLDER/means.tsv.
write_values() {
  { printf 'condition\tseed\tmeasure\tvalue\n' && cat; } >"$1/values.tsv"
  awk -F '\t' "$is_number"'
    NR == 1 { print "condition\tmeasure\tseeds\tmean\tsd"; next }
    { key = $1 "\t" $3; if (!(key in n)) { order[++keys] = key; n[key] = 0 }
      if (is_number($4)) { ++n[key]; sum[key] += $4; squares[key] += $4 * $4 } }
    END { for (k = 1; k <= keys; ++k) { key = order[k]; v = n[key] > 1 ? (squares[key] - sum[key] ^ 2 / n[key]) / (n[key] - 1) : 0
      mean = n[key] ? sprintf("%.4g", sum[key] / n[key]) : "-"; sd = n[key] > 1 ? sprintf("%.2g", v > 0 ? sqrt(v) : 0) : "-"
      print key "\t" n[key] "\t" mean "\t" sd } }
  ' "$1/values.tsv" >"$1/means.tsv"
}
