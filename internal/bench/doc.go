// Package bench measures git-tilth against floors that are taken in the same run: the git commands that a command runs,
// run alone; a raw replay of a run's requests; the same session with a small record. `make bench` prints one row per
// figure. A figure over its target is marked and does not fail, because other work on the machine slows it down.
//
// How it measures:
//   - The binary is bin/git-tilth, built as for users and started as a separate process.
//   - A figure and its floor take turns, and each is the median of its rounds, after one round that does not count.
//   - A separate round records the git commands of a command: a git on PATH writes down arguments, environment,
//     standard input and the worker's files. The replay runs exactly these commands in a copy of the repository at
//     the same path, and writes the files in between. Dates are fixed, so the object ids are the same.
//   - Every round begins from the same files on disk.
package bench
