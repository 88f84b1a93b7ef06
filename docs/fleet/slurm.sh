#!/bin/sh
#SBATCH --job-name=tilth
#SBATCH --array=1-12
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@30
# Run `sbatch docs/fleet/slurm.sh` in the clone. Each job of the array runs sessions of the remote in a separate clone.
# A preempted job gets SIGTERM, pushes and releases its session, and is queued again. The next free job continues the
# session.
set -eu
clone=${TILTH_CLONES:-$HOME/tilth-clones}/$SLURM_ARRAY_JOB_ID-$SLURM_ARRAY_TASK_ID
export TILTH_SESSIONS_DIR=$clone.sessions
remote=$(git -C "$SLURM_SUBMIT_DIR" remote get-url origin)
[ -d "$clone/.git" ] || git clone -q "$remote" "$clone"
cd "$clone"
exec git-tilth work --drain
