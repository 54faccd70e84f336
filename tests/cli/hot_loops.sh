#!/usr/bin/env bash
# The innermost loops of hot functions touch no stack: a compiler that lowers vectors through it makes
# them ten times slower, and nothing else shows that.
#   hot_loops.sh OBJDUMP ARCHIVE…
set -euo pipefail
objdump=$1
shift
case $(uname -m) in x86_64) ;; *) exit 77 ;; esac
command -v "$objdump" >/dev/null || exit 77
# Without optimisation everything is on the stack.
[ "$("$objdump" -d --no-show-raw-insn "$1" | grep -c vfmadd)" -gt 0 ] || exit 77
# An innermost loop: from the target of a backward jump to the jump, with no other such jump inside.
"$objdump" -d -C --no-show-raw-insn "$@" | awk '
  function hot(name) {
    return name ~ /N_(AVX2|AVX3|SSE4)::multiply_(strips|edge)|N_(AVX2|AVX3|SSE4|SCALAR)::(exp_shifted_floats|exp_floats|sigmoid_floats|weights_floats|gradients_floats|inner_floats|add_scaled_floats|norm_row|sum_of_row)|N_(AVX2|AVX3)::(sum_rows|sum_spreads)|on_avx(2|512)<.*(finish_row|activate_row|add_slope_row|adamw|exp_below|softmax_row|exp_sum|scale_columns|drop_floats|add_row)/
  }
  function finish(   i, j, target, inner) {
    if (name == "" || !hot(name)) return
    ++functions
    for (i = 1; i <= lines; ++i) {
      if (text[i] !~ /^j[a-z]+ / || text[i] ~ /^jmp /) continue  # a loop ends with a condition
      split(text[i], word, " ")
      target = place[word[2]]
      if (target == "" || target > i) continue
      inner = 1
      for (j = target; j < i; ++j) if (loops[j] && loops[j] >= target) inner = 0
      loops[i] = target
      if (!inner) continue
      # Only loops over vectors: a rest of a row, or a call to exp in double, may do as it likes.
      vectors = stack = calls = 0
      for (j = target; j <= i; ++j) {
        if (text[j] ~ /^(v?(mul|add|sub|div|fmadd[0-9]*|fnmadd[0-9]*)p[sd]) /) ++vectors
        # A constant may be read from there; what a store keeps there is a number without a register.
        if (text[j] ~ /^v?mov[a-z0-9]+ %[xyz]mm[0-9]+,[-0-9a-fx]*\(%r[sb]p/) ++stack
        if (text[j] ~ /^call /) ++calls
      }
      if (vectors < 4 || calls) continue
      ++checked
      # Sixteen registers of 16 bytes are few: there one instruction in sixteen may. g++ 14 keeps one number of the loop of
      # exp_sum on AVX2 there; nothing else may.
      if (name ~ /AVX|avx/ ? stack > (name ~ /on_avx2.*exp_sum_loop/ ? 1 : 0) : stack * 16 > i - target + 1) {
        printf "%s: %d of %d instructions of an inner loop store to the stack\n", name, stack, i - target + 1
        ++bad
      }
    }
  }
  /^[0-9a-f]+ <.*>:$/ {
    finish()
    name = $0; sub(/^[0-9a-f]+ </, "", name); sub(/>:$/, "", name)
    lines = 0; delete text; delete place; delete loops
    next
  }
  /^ +[0-9a-f]+:/ {
    ++lines
    address = $1; sub(/:$/, "", address)
    place[address] = lines
    line = $0; sub(/^ +[0-9a-f]+:[ \t]+/, "", line); gsub(/[ \t]+/, " ", line)
    text[lines] = line
  }
  END {
    finish()
    printf "%d hot functions, %d inner loops looked at\n", functions, checked
    if (functions < 20 || checked < 20) { print "too few: their names have changed"; exit 1 }
    exit bad > 0
  }'
