# shellcheck shell=bash
# Two network namespaces joined by a pair of virtual devices, in place of two machines. Sourced; needs root, ip and tc (iproute2) and mpirun.
# shellcheck source=scripts/mpirun.sh
. "$(dirname "${BASH_SOURCE[0]}")/mpirun.sh"

# open_hosts FOLDER: makes the namespaces masque-a and masque-b, with 10.77.0.1 and 10.77.0.2, and FOLDER/agent, by which mpirun starts
# processes in the second one. Returns 1, with a line on stdout, where that is not possible. Call close_hosts at the end.
open_hosts() {
  local tool
  for tool in ip tc mpirun; do command -v $tool >/dev/null || { echo "no $tool"; return 1; }; done
  close_hosts
  { ip netns add masque-a && ip netns add masque-b && ip link add masque-a type veth peer name masque-b; } 2>/dev/null ||
    { echo "no right to make network namespaces"; return 1; }
  local host n=1
  for host in masque-a masque-b; do
    ip link set $host netns $host
    ip -n $host addr add 10.77.0.$n/24 dev $host
    ip -n $host link set $host up
    ip -n $host link set lo up
    n=$((n + 1))
  done
  printf '#!/bin/sh\nshift\nexec ip netns exec masque-b sh -c "$*"\n' >"$1/agent"
  chmod +x "$1/agent"
}

close_hosts() {
  ip netns del masque-a 2>/dev/null
  ip netns del masque-b 2>/dev/null
  return 0
}

# limit_rate RATE: what goes through the network each way from now on, as tc spells it: 1gbit.
limit_rate() {
  local host
  for host in masque-a masque-b; do
    ip netns exec $host tc qdisc replace dev $host root tbf rate "$1" burst 512kb latency 50ms
  done
}

# network up|down
network() {
  ip -n masque-a link set masque-a "$1"
  ip -n masque-b link set masque-b "$1"
}

# on_hosts FOLDER COMMAND...: one process of COMMAND in each namespace, joined by TCP alone.
on_hosts() {
  local folder=$1
  shift
  ip netns exec masque-a mpirun "${mpirun_quiet[@]}" --bind-to none --mca plm_rsh_agent "$folder/agent" \
    --host 10.77.0.1:1,10.77.0.2:1 --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 -np 2 "$@"
}
