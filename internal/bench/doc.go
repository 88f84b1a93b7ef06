// Package bench measures git-tilth against floors that are taken in the same run: the git commands that a command runs,
// run alone; a raw replay of a run's requests; the same session with a small record. `make bench` prints one row per
// figure. A figure over its target is marked, not failed: what a machine is busy with otherwise is no fault of the
// code.
//
// How it measures:
//   - The binary is bin/git-tilth, as its users have it, started as a process of its own.
//   - A figure and its floor take turns, and each is the median of its rounds, after one round that does not count.
//   - Which git commands a command runs is recorded in a round of its own, by a git on PATH that writes down
//     arguments, environment and standard input, and which of the worker's files were there. The replay runs exactly
//     these, in a copy of the repository at the same path, with the files written in between; dates are fixed, so
//     that even the object ids are the same.
//   - Every round begins from the same files on disk.
package bench
