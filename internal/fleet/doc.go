// Package fleet moves sessions between machines through a git remote, and keeps each on one machine at a time. The
// machines share nothing else, and the user's repository gets no ref but the session's branch.
//
// On the remote a session is three refs, which one atomic push moves together:
//
//	refs/heads/session/<id>       the branch
//	refs/tilth/sessions/<id>      the session commit: the files of the session's directory
//	refs/tilth/claims/<id>        the claim commit: the holder, the expiry, a summary of the state
//
// The tree of the session commit has a directory for each file, which holds it in chunks of 64 KiB, 256 of them to a
// directory. The record only grows, so that a later push sends its last chunk, as a difference to the one before.
// The message is the state: the branch's tip and, of a session that is not running, a commit of the uncommitted work.
// Both are parents, and so is the session commit before. Ignored files, the undos, chat.html and what can be made again
// stay at home; so do the ids of agent programs' conversations, which mean nothing elsewhere.
//
// The claim commit has no parent and no files. Its message is the [Claim]. It moves only by compare-and-swap
// (--force-with-lease), so only one of two machines can take it. The push of a state includes its claim: a machine that
// lost the claim can push nothing over the next holder's state. A released claim stays, without a holder.
//
// A push is one git process: all objects are written before it, in the scratch repository travel/ of the session's
// directory, which borrows the user's objects. Its refs are the remote's refs as last seen. A kill at any moment leaves
// objects without a ref here, and on the remote either all three old refs or all three new ones. Reading the claim
// again shows whether a push with a lost answer succeeded.
//
// In a dry run a temporary scratch repository replaces this one, with its objects and refs. The remote's session is
// fetched there, so that the result is known, and refused as in a real run. The remote is asked whether it would accept
// a push. Nothing is written anywhere else.
//
// Data from a remote is foreign. Every name, mode, size and number of files is checked before a file is written, into a
// directory that is no session yet. Each file is parsed in its format, and paths are this machine's.
package fleet
