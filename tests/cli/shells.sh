#!/usr/bin/env bash
# Completions in the shells themselves, and manual pages under mandoc: shells.sh BIN. What is not installed is left out, and named.
set -eu
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export PATH=$bin:$PATH
tools="attn-probe ckpt ckpt-grow droptoken embed-fix length-gen lm-score lm-train lm-write mask-viz tok"
tried=0
failed=0
# What SHELL must offer: of a command, of an option, of an option's value.
expect() {
  local shell=$1 line=$2 wanted=$3 offered=$4
  grep -qx -- "$wanted" <<<"$offered" && return 0
  echo "$shell: '$line' does not offer $wanted, but: $(tr '\n' ' ' <<<"$offered")" >&2
  failed=1
}
# The lines that are completed, and one word that must be offered.
cases() {
  printf '%s\t%s\n' 'ckpt con' convert 'ckpt convert --dt' --dtype 'mask-viz flow --predict cl' clean 'lm-train --obj' --objective \
    'attn-probe check le' leak 'lm-score pairs --aga' --against 'ckpt ls hf:Own/s' "${1-}Own/small" \
    'lm-train --init hf:Own/s' "${1-}Own/small"
}

# Models of a Hugging Face cache; bash is offered what follows the colon alone.
mkdir -p hub/models--Own--small hub/models--gpt2
export HF_HUB_CACHE=$work/hub

# bash: the function of the tool, called as readline calls it.
cat >complete.bash <<'END'
line=$1
read -ra COMP_WORDS <<<"${line/:/ : }"  # a colon is a word of its own, as to readline
source <("${COMP_WORDS[0]}" --completion bash)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line}
function=$(complete -p "${COMP_WORDS[0]}" | sed 's/.*-F \([^ ]*\).*/\1/')
"$function" "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]%% }"
END
while IFS=$'\t' read -r line wanted; do
  expect bash "$line" "$wanted" "$(bash complete.bash "$line" 2>&1)"
done < <(cases)
tried=$((tried + 1))

if command -v fish >/dev/null; then
  while IFS=$'\t' read -r line wanted; do
    expect fish "$line" "$wanted" "$(HOME=$work fish --no-config -c "${line%% *} --completion fish | source; complete -C '$line'" 2>&1 | cut -f 1)"
  done < <(cases hf:)
  tried=$((tried + 1))
else
  echo "left out: fish is not installed (scripts/setup --shells)"
fi

if command -v zsh >/dev/null; then
  # In a terminal of its own: what stands on the line after TAB.
  cat >complete.zsh <<'END'
zmodload zsh/zpty
tool=${1%% *}
"$tool" --completion zsh >_"$tool"
zpty -b shell "PS1='> ' TERM=dumb zsh -f -i"
zpty -w shell "PS1='> '; fpath=($PWD \$fpath); autoload -Uz compinit; compinit -u -D; bindkey '^X' expand-or-complete; echo ready"
zpty -r -m shell seen '*ready*ready*' || exit 1
zpty -w -n shell "$1"$'\C-X'
sleep 0.5
zpty -w -n shell $'\C-A'"echo '<"$'\C-E'">'"$'\n'
for i in {1..50}; do
  sleep 0.1
  while zpty -r -t shell part; do seen+=$part; done
  [[ $seen == *$'\n''<'*'>'* ]] && break
done
zpty -d shell
print -r -- "$seen" | tr -d '\r' | sed -n 's/^<\(.*\)>$/\1/p' | tail -n 1 | awk '{ print $NF }' | sed 's/=$//'
END
  while IFS=$'\t' read -r line wanted; do
    expect zsh "$line" "$wanted" "$(HOME=$work zsh -f complete.zsh "$line" 2>&1)"
  done < <(cases hf:)
  tried=$((tried + 1))
else
  echo "left out: zsh is not installed (scripts/setup --shells)"
fi

if command -v mandoc >/dev/null; then
  for tool in $tools; do
    "$tool" --man >"$tool.1"
    mandoc -T lint "$tool.1" >lint || { sed "s/^/$tool: /" lint >&2; failed=1; }
  done
  tried=$((tried + 1))
else
  echo "left out: mandoc is not installed (scripts/setup --shells)"
fi
[ "$failed" = 0 ] || exit 1
echo "shells: $tried parts passed"
