package h1

import (
	"strings"
	"testing"
)

// TestEveryByteOfAValue puts each byte into each place of values of each length up to twice sixteen, with every neighbour that could
// borrow from it.
func TestEveryByteOfAValue(t *testing.T) {
	for length := 1; length <= 33; length++ {
		for at := range length {
			for c := range 256 {
				for _, fill := range "a\t \x80~" {
					text := []byte(strings.Repeat(string([]byte{byte(fill)}), length))
					text[at] = byte(c)
					value, clear := true, true
					for _, b := range text {
						control := b < 0x20 && b != '\t' || b == 0x7f
						value, clear = value && !control, clear && !control && b < 0x80
					}
					if isValue(text) != value || isClear(string(text)) != clear {
						t.Fatalf("%q: a value: %t, clear: %t", text, isValue(text), isClear(string(text)))
					}
				}
			}
		}
	}
}

func BenchmarkIsValue(b *testing.B) {
	v := strings.Repeat("theme=dark; ", 40)
	for b.Loop() {
		if !isValue(v) {
			b.Fatal("a value is none")
		}
	}
}
