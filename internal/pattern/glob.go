package pattern

// maxAlternatives is how many ways of reading a glob are tried with each name.
const maxAlternatives = 4096

// Endless reports whether a glob with {a,b} in it has so many alternatives that to try them all takes for ever.
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
