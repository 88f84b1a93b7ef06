package crashtest

// oldChanges are calls that only older machines have.
var oldChanges = map[uint64]change{}
