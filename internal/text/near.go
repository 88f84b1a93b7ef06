package text

// Nearest returns the known word with the fewest typing errors from word, and their number. An error is an extra,
// missing or wrong letter, or two swapped letters. It returns "" if no word is near, which means at most one error in
// three letters, or a single known word of which parts are left out.
func Nearest(word string, known []string) (best string, slips int) {
	slips = max(len(word), 3)/3 + 1
	for _, k := range known {
		if n := distance(word, k); n < slips {
			best, slips = k, n
		}
	}
	if slips <= 2 && best != "" || len(word) < 5 {
		return best, slips
	}
	var whole []string
	for _, k := range known {
		if isPart(word, k) {
			whole = append(whole, k)
		}
	}
	if len(whole) == 1 {
		return whole[0], len(whole[0]) - len(word)
	}
	return best, slips
}

// isPart reports whether a word is another one with letters removed.
func isPart(word, of string) bool {
	for i := 0; i < len(of) && word != ""; i++ {
		if of[i] == word[0] {
			word = word[1:]
		}
	}
	return word == ""
}

// distance counts the slips between two words.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			other := 1
			if a[i-1] == b[j-1] {
				other = 0
			}
			n := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+other)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				n = min(n, rows[i-2][j-2]+1)
			}
			rows[i][j] = n
		}
	}
	return rows[len(a)][len(b)]
}
