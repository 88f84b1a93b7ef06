// Package session is the session on disk: its directory, its files, its record and its lock.
//
// Rules that hold for every file here:
//   - JSON files are replaced, never rewritten in place: temporary file in the same directory, fsync, rename. The
//     fsync of the directory comes where a later step counts on it, and at the end of a run: until then a power cut may
//     bring the old content back, never half of one. Unknown members stay.
//   - JSON-lines files are only appended to, one write(2) of one whole line. A reader skips and counts lines that are
//     no JSON object, so that no line of a damaged file can stop it.
//   - Only the holder of the lock writes. Readers need no lock and never change anything.
//   - Directories are 0700 and files 0600, because prompts and diffs are in them.
package session
