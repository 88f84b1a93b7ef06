// Package judge keeps the place where a change is judged: <session>/judge/, in which exactly the tree that will be
// committed is laid out. Validators and evaluator programs run there, and never in the worker's worktree.
//
// # What is there
//
// The files of the tree, as git checks them out. A git directory of its own, judge/.git: HEAD is the session's branch
// at the commit at which the attempt began, the index is the judged tree, the tags are the repository's, and the
// objects are borrowed as an alternate. A test that asks git for the version is answered; one that writes with git
// writes here and not in the user's repository, in which this place has no entry. The settings of that git directory
// are written by this package: line ends, filters and Git LFS as the user's repository had them when the run began.
// What a worker adds there later has no say.
//
// What tilth.copy and the setup put there, once in a run and again when a lock file of the tree changed. Nothing comes
// from the worker's worktree. Cargo's target is the checkout's own: cargo would take what the worker built for what is
// judged.
//
// Nothing else: before each judgement all other files go, those that the last judgement's tests left included.
//
// # Why what is there is what was laid out
//
// Nothing on disk is believed. The process keeps in memory the index as git wrote it and a stamp of every file and
// directory: device, inode, mode, size, mtime and ctime. A file with the same size and an mtime that was set back has
// another ctime, which no call can set; a file that was written within the clock's tick of its stamp is compared by
// content as well. What differs is removed and checked out again, from objects that are known by their hashes. Another
// process knows nothing of that, so a new run begins with an empty place. Between judgements the directory is closed
// (mode 0): that stops a worker which stumbles in, not one which owns the files and wants to. A worker's child that
// still runs while its change is judged could write between check and use; the run ends what a worker leaves behind
// before it judges, and the sandbox is what holds against one that hides.
//
// Where the sandbox can make layers, what validators write comes into one over the place, which goes with the judgement
// (loop's overPlace). Cargo's trees have no such layer, because what is built there serves the next judgement.
//
// # Cost
//
// One lstat of each tracked file, one `git read-tree -u` where the tree is another one, and a
// few small files for the git directory.
//
// # A crash
//
// On disk after each step, and what the next command makes of it:
//
//  1. the old place half removed       the first judgement of the next run removes the rest
//  2. judge/ with a half-laid-out tree  the same
//  3. judge/ whole, closed or open      the same: its stamps died with the process
//
// resume does not look at it, `reset --to-seed` and `reset` remove it.
package judge
