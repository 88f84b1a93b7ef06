package session

import (
	"encoding/binary"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// idLayout is the time part of an id; sorted by name, sessions are sorted by time.
const idLayout = "20060102-150405"

// NewID makes the id of a session that begins at now: YYYYMMDD-HHMMSS in UTC and six hex digits. The first four of
// them are the part of the second that has passed, so that two sessions of one second sort by time as well; the last
// two are random.
func NewID(now time.Time) string {
	part := uint16(uint64(now.Nanosecond()) << 16 / uint64(time.Second))
	digits := binary.BigEndian.AppendUint16(nil, part)
	u := uuid.New()
	return now.UTC().Format(idLayout) + "-" + hex.EncodeToString(append(digits, u[0]))
}

// IsWorkplace reports whether a directory lies where a session is worked on or judged, whatever sessions root.
func IsWorkplace(dir string) bool {
	elems := strings.Split(dir, string(filepath.Separator))
	for i, name := range elems[:len(elems)-1] {
		if ValidID(name) && slices.Contains([]string{WorkspaceDir, JudgeDir, LanesDir}, elems[i+1]) {
			return true
		}
	}
	return false
}

// ValidID reports whether name has the form of a session id. It asks for the digits only, not for a date that exists: a
// directory with such a name was made by a session, whatever its clock said.
func ValidID(name string) bool {
	const digits = "0123456789"
	date, rest, _ := strings.Cut(name, "-")
	clock, part, _ := strings.Cut(rest, "-")
	only := func(s string, n int, these string) bool { return len(s) == n && strings.Trim(s, these) == "" }
	return only(date, 8, digits) && only(clock, 6, digits) && only(part, 6, digits+"abcdef")
}

// IDTime is the time that an id carries, taken as UTC. ok is false when the id is invalid or its digits are
// no date.
func IDTime(id string) (t time.Time, ok bool) {
	if !ValidID(id) {
		return time.Time{}, false
	}
	t, err := time.Parse(idLayout, id[:len(idLayout)])
	return t, err == nil
}

// DraftPrefix begins the name of a directory in which a session is begun that has no name yet. Where a kill leaves one,
// the next session that is made removes it.
const DraftPrefix = ".fork-"
