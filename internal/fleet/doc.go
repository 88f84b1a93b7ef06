// Package fleet moves sessions between machines through a git remote, or a file, and keeps each on one machine at a
// time. Nothing else is between the machines, and the user's repository gets no ref but the session's branch.
//
// On the remote a session is three refs, which one atomic push moves together:
//
//	refs/heads/session/<id>       the branch
//	refs/tilth/sessions/<id>      the session commit: the files of the session's directory
//	refs/tilth/claims/<id>        the claim commit: who works on it until when, and in short how it stands
//
// The tree of the session commit has a directory for each file, which holds it in chunks of 64 KiB, 256 of them to a
// directory. The record only grows, so that a later push sends its last chunk, as a difference to the one before.
// The message is the state: the branch's tip and, of a session that is not running, a commit of the uncommitted work.
// Both are parents, and so is the session commit before. Ignored files, the undos, chat.html and what can be made again
// stay at home; so do the ids of agent programs' conversations, which mean nothing elsewhere.
//
// The claim commit has no parent and no files. Its message is the [Claim]. It is moved by compare-and-swap alone
// (--force-with-lease), so that of two who take it one is refused. The push of a state carries its claim: whoever has
// lost the claim can push nothing over the next holder's state. A released claim stays, without a holder.
//
// A push is one git process: all objects are written before, in the scratch repository travel/ of the session's
// directory, which reads those of the user's repository. Its refs say what the remote had when it was last heard of. A
// kill at any moment leaves at home objects without a ref, and on the remote all three refs as before or all three as
// after. A push whose answer was lost is found by reading the claim again.
//
// In a dry run the scratch repository is another one, in a temporary directory, with the objects and refs of this one.
// What comes from the remote is fetched there, so that what would be made of it is known, and refused as it would be.
// The remote is asked whether it would take a push. Nothing is written anywhere else.
//
// What comes from a remote is foreign. Every name, mode, size and number of files is checked before one is written,
// into a directory that is no session yet; the files are read as what they are to be; places are this machine's.
package fleet
