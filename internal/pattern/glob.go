package pattern

// maxAlternatives is the maximum number of alternatives of a glob to try with each name.
const maxAlternatives = 4096

// Endless reports whether a glob with {a,b} has too many alternatives to try them all.
func Endless(glob string) bool {
	ways, open := 1, []int{}
	for _, c := range []byte(glob) {
		switch last := len(open) - 1; {
		case c == '{':
			open = append(open, 1)
		case c == ',' && last >= 0:
			open[last]++
		case c == '}' && last >= 0:
			ways *= open[last]
			open = open[:last]
		}
		if ways > maxAlternatives {
			return true
		}
	}
	return false
}
