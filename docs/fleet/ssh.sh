#!/bin/sh
# docs/fleet/ssh.sh PATH HOST... starts a worker on each host, in the host's clone at PATH. `pkill -TERM git-tilth` on a
# host stops its worker, which pushes its session. The other workers continue with it.
set -eu
path=$1
shift
for host; do
	ssh "$host" "cd '$path' && nohup git-tilth work --drain >>work.log 2>&1 </dev/null &" &
done
wait
