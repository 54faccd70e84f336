#!/usr/bin/env bash
# The calls on the page "Tables in Python and R", run by real pandas and real R on words and names that tables can be misread at:
# what they read is what was written. Skipped (77) where neither is installed.  tables.sh BIN DATA PAGE
set -euo pipefail
bin=$1 data=$2 page=$3
python=
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import pandas' 2> /dev/null; then python=$candidate && break; fi
done
r=$(command -v Rscript || true)
if [ -z "$python$r" ]; then
  echo 'skipped: neither pandas nor R (scripts/setup --tables)'
  exit 77
fi
[ -n "$python" ] || echo 'no pandas (scripts/setup --tables): only R is tested'
[ -n "$r" ] || echo 'no R (scripts/setup --tables): only pandas is tested'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export LC_ALL=C.UTF-8 PATH=$bin:$PATH

# Words, each on a line of its own. Between them are blanks, so that none holds a blank.
cat > words <<'END'
"
"quoted"
""
say"hi
'
'tis
NA
nan
NaN
NULL
null
None
-
-nan
inf
Infinity
007
00
1e5
0x1F
1,5
,
TRUE
false
T
#comment
\
\n
\t
\x1b
\\"
a\tb
“curly”
größe
埋め込み
‏עברית
;
=1+1
%d
END
mkdir bert
cp "$data/model/bert/config.json" "$data/model/bert/model.safetensors" bert
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the a cat cats dog dogs sat sits sit on mat . > bert/vocab.txt
tr '\n' ' ' < words > text
for form in csv tsv; do
  lm-score score bert --per-word --policy chunk -q $([ $form = tsv ] || echo --csv) < text > words.$form
done
lm-score score bert --per-word --policy chunk -q --json < text > lists.jsonl

# Tensors whose names hold what words cannot: tabs, ends of lines, blanks. Each name is an item of a JSON list, too.
names='["NA","007","a\tb"," blank ","two\nlines","say \"hi\", \"you\"","back\\slash","\\t","end\n","1e5","-","'"'"'","nan"]'
header={ at=0
while IFS= read -r name; do
  header+="$name:{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[$at,$((at + 4))]},"
  at=$((at + 4))
done < <(printf '%s\n' "$names" | sed 's/^\[//; s/\]$//; s/","/"\n"/g')
header="${header%,}}"
printf "\\x$(printf %x $((${#header} % 256)))\\x$(printf %x $((${#header} / 256)))\\x0\\x0\\x0\\x0\\x0\\x0%s" "$header" > names.safetensors
head -c "$at" /dev/zero >> names.safetensors
for form in csv tsv; do ckpt ls names.safetensors $([ $form = tsv ] || echo --csv) > names.$form; done
ckpt ls names.safetensors --json > names.jsonl

# block LANGUAGE N: the Nth block of code of the page.
block() {
  awk -v fence="\`\`\`$1" -v wanted="$2" '$0 == "```" { inside = 0 } inside && count == wanted { print }
    $0 == fence { ++count; inside = 1 }' "$page"
}
# The same calls for the table of names.
for_names() { sed 's/words/names/g; s/\btext\b/name/g'; }

if [ -n "$python" ]; then
  block python 3 | for_names > listed.py
  grep -q DataFrame listed.py
  # Numbers that are missing or not finite, with a word of the same form in each row.
  printf '"text","log_probability"\n"NaN",NaN\n"",\n"-",Inf\n"NA",-1.5\n' > gaps.csv
  printf 'text\tlog_probability\nNaN\tnan\n\t-\n-\tinf\nNA\t-1.5\n' > gaps.tsv
  # A word without tokens has no probability.
  for form in csv tsv; do
    printf 'the \u202e cat\n' | lm-score score bert --per-word -q $([ $form = tsv ] || echo --csv) > without.$form
  done
  for form in 1:csv 2:tsv; do
    block python ${form%:*} > call.py
    for table in gaps without; do block python ${form%:*} | sed "s/words/$table/g" >> call.py; done
    block python ${form%:*} | for_names >> call.py
    grep -q "words.${form#*:}" call.py
    cat listed.py > all.py
    sed 's/^names =/exact =/; s/^words =/exact =/' -i all.py
    cat call.py >> all.py
    cat >> all.py <<'END'
import math
import sys
written = open('words', encoding='utf-8').read().split('\n')[:-1]
lists = [json.loads(line) for line in open('lists.jsonl', encoding='utf-8')][0]
assert written == words['text'].tolist(), (written, words['text'].tolist())
assert exact['name'].tolist() == names['name'].tolist(), names['name'].tolist()
assert names['bytes'].tolist() == [4] * len(names) and names['dtype'].tolist() == ['F32'] * len(names)
assert str(words['log_probability'].dtype) == 'float64'
assert words['id'].tolist() == [0] * len(words) and str(words['tokens'].dtype) == 'int64'
for number, listed in zip(words['log_probability'], lists['word_log_probabilities']):
    assert math.isclose(number, listed, rel_tol=1e-14), (number, listed)
assert gaps['text'].tolist() == ['NaN', '', '-', 'NA'], gaps['text'].tolist()
assert str(gaps['log_probability'].dtype) == 'float64'
assert gaps['log_probability'].isna().tolist() == [True, True, False, False], gaps
assert gaps['log_probability'].tolist()[2:] == [math.inf, -1.5], gaps
assert str(without['log_probability'].dtype) == 'float64', without
assert without['log_probability'].isna().tolist() == [False, True, False], without
print('pandas', pd.__version__, sys.argv[1], len(words), 'words,', len(names), 'names')
END
    "$python" all.py "${form#*:}"
  done
fi

if [ -n "$r" ]; then

  cp words expected
  for form in 1:csv 2:tsv; do
    { block r ${form%:*}; block r ${form%:*} | for_names; } > call.R
    grep -q "words.${form#*:}" call.R
    cat >> call.R <<'END'
stopifnot(is.numeric(words$log_probability), is.numeric(names$bytes), !anyNA(words$text))
con <- file("read", "wb"); writeLines(words$text, con, useBytes = TRUE); close(con)
con <- file("read.names", "wb"); writeLines(names$name, con, sep = "\001", useBytes = TRUE); close(con)
cat(R.version.string, nrow(words), "words,", nrow(names), "names, sum", format(sum(words$log_probability), digits = 12), "\n")
END
    "$r" call.R
    cmp expected read
    printf '%s' "$names" | sed 's/^\["//; s/"\]$/","/; s/","/\x01/g; s/\\n/\n/g; s/\\\\t/\x02/; s/\\t/\t/g; s/\\"/"/g; s/\\\\/\\/g; s/\x02/\\t/' > expected.names
    cmp expected.names read.names
  done
fi

# NaN and infinity are numbers in both. A vector of a whitened constant is not finite, and rates without words are not.
printf 'x\n\n' > empty.txt
lm-score compare empty.txt empty.txt --metrics wer,chrf --per-line --csv -q > numbers.csv
if [ -n "$python" ]; then
  "$python" -c "
import pandas as pd
t = pd.read_csv('numbers.csv')
assert str(t['wer'].dtype) == 'float64' and t['wer'].isna().tolist() == [False, True], t"
fi
if [ -n "$r" ]; then
  "$r" -e 't <- read.csv("numbers.csv", na.strings = character()); stopifnot(is.numeric(t$wer), identical(is.nan(t$wer), c(FALSE, TRUE)))'
fi
# What has no value is an empty field.
printf 'a b\n' > one.txt
lm-score compare one.txt one.txt --metrics wer --samples 0 --csv -q | grep -qx '"wer",0,,,1'
