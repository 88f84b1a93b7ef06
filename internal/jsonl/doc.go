// Package jsonl is how a session's files of lines are written and read: one JSON object a line, appended with one
// write, repaired after a crash, read forwards and backwards in bounded memory.
package jsonl
