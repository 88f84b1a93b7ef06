#!/bin/sh
# docs/fleet/ssh.sh PATH HOST...: a worker on each host, in the clone at PATH there. `pkill -TERM git-tilth` on a host ends
# its worker: what there is is pushed, and the others go on with it.
set -eu
path=$1
shift
for host; do
	ssh "$host" "cd '$path' && nohup git-tilth work --drain >>work.log 2>&1 </dev/null &" &
done
wait
