// Package judge keeps the judged checkout: <session>/judge/, which contains exactly the tree that will be committed.
// Validators and evaluator programs run there, and never in the worker's worktree.
//
// # Content
//
// The files of the tree, as git checks them out. A separate git directory, judge/.git: HEAD is the session's branch at
// the attempt's base, the index is the judged tree, the tags are the repository's, and the objects are borrowed as an
// alternate. A test can ask git for a version; a test that writes with git writes here and not in the user's
// repository, which has no entry for this checkout. This package writes the settings of that git directory: line ends,
// filters and Git LFS as in the user's repository when the run began. A worker's later settings have no effect.
//
// The files of tilth.copy and of setup, which runs once in a run and again when a lock file of the tree changed.
// Nothing comes from the worker's worktree. The checkout has a separate target directory of Cargo, because cargo would
// use the worker's build instead of the judged code.
//
// Nothing else: before each judgement all other files are removed, including those of the last judgement's tests.
//
// # Why the files are the tree's
//
// Nothing on disk is trusted. The process keeps in memory the index as git wrote it and a stamp of every file and
// directory: device, inode, mode, size, mtime and ctime. A file with the same size and a reset mtime has another ctime,
// which no call can set; a file written within a clock tick of its stamp is compared by content as well. A changed file
// is removed and checked out again, from objects verified by their hashes. The stamps are lost with the process, so a
// new run starts with an empty checkout. Between judgements the directory is closed (mode 0): that stops accidents, not
// a worker that owns the files and wants in. A worker's child that still runs during a judgement could write between
// check and use; the run ends all leftovers of a turn before it judges, and the sandbox holds against hidden ones.
//
// If the sandbox can make layers, validators write into a layer over the checkout, which is removed after the judgement
// (loop's overPlace). Cargo's trees have no such layer, because builds serve the next judgement.
//
// # Cost
//
// One lstat of each tracked file, one `git read-tree -u` for another tree, and a few small files for the git directory.
//
// # A crash
//
// The state on disk after each step, and the next command's reaction:
//
//  1. the old checkout half removed     the first judgement of the next run removes the rest
//  2. judge/ with part of a tree        the same
//  3. judge/ complete, closed or open   the same: its stamps died with the process
//
// resume does not read it; `reset --to-seed` and `reset` remove it.
package judge
