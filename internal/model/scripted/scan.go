package scripted

import "bytes"

// fields splits a JSON object into its members' raw values, without decoding them: requests hold whole conversations,
// and what the endpoint needs of them is mostly at the top. Malformed input gives what could be read.
func fields(object []byte) map[string][]byte {
	out := map[string][]byte{}
	i := skipSpace(object, 0)
	if i >= len(object) || object[i] != '{' {
		return out
	}
	for i++; ; {
		i = skipSpace(object, i)
		if i >= len(object) || object[i] != '"' {
			return out
		}
		end := skipString(object, i)
		key := string(object[i+1 : max(i+1, end-1)])
		i = skipSpace(object, end)
		if i >= len(object) || object[i] != ':' {
			return out
		}
		start := skipSpace(object, i+1)
		i = skipValue(object, start)
		if i <= start {
			return out
		}
		out[key] = bytes.TrimSpace(object[start:i])
		i = skipSpace(object, i)
		if i >= len(object) || object[i] != ',' {
			return out
		}
		i++
	}
}

// elements splits a JSON array in the same way.
func elements(array []byte) [][]byte {
	var out [][]byte
	i := skipSpace(array, 0)
	if i >= len(array) || array[i] != '[' {
		return nil
	}
	for i++; ; i++ {
		start := skipSpace(array, i)
		i = skipValue(array, start)
		if i <= start {
			return out
		}
		out = append(out, bytes.TrimSpace(array[start:i]))
		i = skipSpace(array, i)
		if i >= len(array) || array[i] != ',' {
			return out
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString gives the index after the string that begins at i.
func skipString(b []byte, i int) int {
	for i++; i < len(b); {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n + 1
		slashes := 0
		for j := i - 2; j >= 0 && b[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
	return len(b)
}

// skipValue gives the index after the value that begins at i.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			if depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}
