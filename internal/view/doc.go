// Package view shows sessions: tables on a terminal, the page chat.html, the live
// viewer and OpenTelemetry traces.
//
// Rules that hold here:
//   - A view reads. The only file that it writes is chat.html, by rename.
//   - What is in a record is foreign. On a terminal its control characters are made
//     harmless, in a page it is text and never markup, in an export it is a value.
//   - Nothing costs memory in proportion to the length of a record.
package view
