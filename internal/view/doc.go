// Package view shows sessions: tables on a terminal, the page chat.html and the live viewer.
//
// Rules that hold here:
//   - A view reads. The only file of a session that it writes is chat.html, by rename.
//   - The contents of a record are untrusted. On a terminal their control characters are made visible, in a page they
//     are text and never markup.
//   - A reader of events is a switch over the structs of internal/record that names each of them (events_test.go).
//   - The memory of a view does not grow with the length of a record.
package view
