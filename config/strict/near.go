package strict

import "github.com/anteroom/anteroom"

// DidYouMean returns the known word nearest to word, or "".
func DidYouMean(word string, known []string) string {
	return anteroom.Nearest(word, known, max(1, len(word)/3))
}
