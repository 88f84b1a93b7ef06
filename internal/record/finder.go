package record

import "bytes"

// finder finds whether any of some words occurs in a text, in one pass that mostly skips, whatever their number: every
// message of a run passes through here, several times, and hardly ever is there anything to find.
//
// It looks at the last three bytes of a window as long as the shortest word. How far from the end of any word's
// beginning those three can stand says how far the window may move (the method of Wu and Manber).
type finder struct {
	width int // of the window
	shift [1 << 13]uint8
	words map[uint16][][]byte // by the hash of where their window ends
}

const gram = 3 // how many bytes are looked at

func gramHash(b []byte) uint16 {
	return (uint16(b[0])<<8 ^ uint16(b[1])<<4 ^ uint16(b[2])) * 0x9E3B >> 3
}

// newFinder prepares to look for words, each of at least three bytes.
func newFinder(words [][]byte) *finder {
	f := &finder{words: map[uint16][][]byte{}}
	for _, w := range words {
		if f.width == 0 || len(w) < f.width {
			f.width = min(len(w), 255)
		}
	}
	for i := range f.shift {
		f.shift[i] = uint8(max(f.width-gram+1, 1))
	}
	for _, w := range words {
		for end := gram; end <= f.width; end++ {
			h := gramHash(w[end-gram:])
			f.shift[h] = min(f.shift[h], uint8(f.width-end))
		}
		h := gramHash(w[f.width-gram:])
		f.words[h] = append(f.words[h], w)
	}
	return f
}

// in reports whether one of the words is in text.
func (f *finder) in(text []byte) bool {
	if f.width == 0 {
		return false
	}
	for end := f.width; end <= len(text); {
		h := gramHash(text[end-gram : end])
		move := f.shift[h]
		if move > 0 {
			end += int(move)
			continue
		}
		for _, w := range f.words[h] {
			if bytes.HasPrefix(text[end-f.width:], w) {
				return true
			}
		}
		end++
	}
	return false
}
