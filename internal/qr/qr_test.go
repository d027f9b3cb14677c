package qr

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

// most is the longest text, in bytes.
const most = 2953

// Codes as an independent encoder draws them with level L and mask 0, as SHA-256 of their rows. An independent reader found the text in
// each but that of 1,091 bytes.
func TestCodes(t *testing.T) {
	text := "https://shop.example.com/?" + strings.Repeat("aB3-_x9", 420)
	for _, c := range []struct {
		length, size int
		sum          string
	}{
		{3, 21, "ce3b6ac481d7855a"}, {17, 21, "c8dca8de172d0b92"}, {18, 25, "4be3199ef0c0ce58"}, {100, 37, "1c507849109cd343"},
		{154, 45, "9057a66780cb8569"}, {192, 49, "29c5440699aa8857"}, {230, 53, "38f9ee66a5ca5bee"}, {231, 57, "87a7e0abe8ee7d1d"},
		{300, 61, "4a0c7429a57bb161"}, {400, 69, "b7695bc17384beba"}, {520, 77, "32ce55fd9d6b64bd"}, {586, 81, "02498e154c3a6a1e"},
		{644, 85, "a2db78e2fdd36342"}, {718, 89, "814367a88df6f1f5"}, {792, 93, "0848380264e6b751"}, {858, 97, "b5d1e146022de713"},
		{859, 101, "0a527a19f350e58d"}, {1003, 105, "d5457416a1af8db2"}, {1091, 109, "4265fcf68cb7ecca"}, {1171, 113, "65df2e366f803f07"},
		{1273, 117, "7387cc5203c469b5"}, {1367, 121, "b02a62a6c8143344"}, {1465, 125, "4c3a1dde40d77fb9"}, {1528, 129, "6fd0fe2eecff1a6d"},
		{1628, 133, "67f3b1a910e4ba01"}, {1732, 137, "1ad9143f4dc47d9f"}, {1840, 141, "d70a9489cc055065"}, {1952, 145, "2569208acbeef7eb"},
		{2068, 149, "9a1bae81597efefa"}, {2188, 153, "8f4d12c7ba53cd0c"}, {2303, 157, "f108fac1af9340ab"}, {2431, 161, "98bee751586d11e6"},
		{2563, 165, "1898dc44d501ec13"}, {2699, 169, "eeffc87beb8e8121"}, {2809, 173, "26dffe014690e954"}, {most, 177, "5fa3b60a97fcc00a"},
	} {
		code := Of(text[:c.length])
		h := sha256.New()
		for y := range code.Size {
			for x := range code.Size {
				h.Write([]byte{map[bool]byte{true: '#', false: '.'}[code.Dark(x, y)]})
			}
			h.Write([]byte("\n"))
		}
		if sum := hex.EncodeToString(h.Sum(nil)[:8]); code.Size != c.size || sum != c.sum {
			t.Errorf("%d bytes: size %d, sum %s; want %d, %s", c.length, code.Size, sum, c.size, c.sum)
		}
	}
	if Of(text[:most+1]) != nil {
		t.Error("a text beyond the bound has a code")
	}
	if Of("") == nil {
		t.Error("no text has no code")
	}
}
