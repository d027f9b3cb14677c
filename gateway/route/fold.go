package route

import (
	"unicode"
	"unicode/utf8"
)

func fold(s string) string { return string(appendFold(nil, s, len(s)*utf8.UTFMax)) }

// appendFold appends s with case removed, and stops after the character that brings the
// result to at least the given number of bytes. Two strings that any origin could take for
// equal but for case fold to the same: simple folding (Unicode CaseFolding.txt, so the Kelvin sign is a
// k and the long s an s), and both Turkish i's, which upper-casing and lower-casing make
// the plain one.
func appendFold(out []byte, s string, enough int) []byte {
	for i := 0; i < len(s) && len(out) < enough; {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 'A' && c <= 'Z' {
				c += 'a' - 'A'
			}
			out = append(out, c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			out = append(out, c)
		} else {
			out = utf8.AppendRune(out, foldRune(r))
		}
		i += n
	}
	return out
}

// foldRune returns the lower-case ASCII letter among the characters that fold to the same
// as r, or the smallest of them.
func foldRune(r rune) rune {
	if r == 0x130 || r == 0x131 {
		return 'i'
	}
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	if least >= 'A' && least <= 'Z' {
		least += 'a' - 'A'
	}
	return least
}
