#!/bin/sh
#SBATCH --job-name=tilth
#SBATCH --array=1-12
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@30
# sbatch docs/fleet/slurm.sh, in the clone: each job of the array drains the sessions of the remote, in a clone of its own.
# A job that is preempted is told to end, pushes, gives its session back, and is queued again; whichever job comes first
# goes on with the session.
set -eu
clone=${TILTH_CLONES:-$HOME/tilth-clones}/$SLURM_ARRAY_JOB_ID-$SLURM_ARRAY_TASK_ID
export TILTH_SESSIONS_DIR=$clone.sessions
remote=$(git -C "$SLURM_SUBMIT_DIR" remote get-url origin)
[ -d "$clone/.git" ] || git clone -q "$remote" "$clone"
cd "$clone"
exec git-tilth work --drain
