// Package qr draws QR codes (ISO/IEC 18004) of addresses: bytes, error correction level L, versions 1 to 40, always mask 0. A reader takes
// any mask; choosing one matters for print and for texts with patterns.
package qr

// most is the longest text, in bytes.
const most = 2953

// Of level L, by version: error correction codewords of a block, and blocks.
var (
	corrections = [...]int{0, 7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28,
		28, 28, 30, 30, 26, 28, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30}
	blocks = [...]int{0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8,
		8, 9, 9, 10, 12, 12, 12, 13, 14, 15, 16, 17, 18, 19, 19, 20, 21, 22, 24, 25}
)

// Code is a square of modules.
type Code struct {
	Size int
	dark []bool
	set  []bool // belongs to a pattern: no data there
}

// Dark reports whether the module in a column and row is dark.
func (c *Code) Dark(x, y int) bool { return c.dark[y*c.Size+x] }

// Of returns the code of a text, the smallest there is; nil if the text is longer than most.
func Of(text string) *Code {
	for version := 1; version < len(blocks); version++ {
		length := 1 // bytes of the text's length
		if version > 9 {
			length = 2
		}
		room := codewords(version) - corrections[version]*blocks[version]
		if (4+8*length+8*len(text)+7)/8 > room {
			continue
		}
		c := &Code{Size: 17 + 4*version}
		c.dark, c.set = make([]bool, c.Size*c.Size), make([]bool, c.Size*c.Size)
		c.patterns(version)
		c.fill(corrected(version, data(text, length, room)))
		return c
	}
	return nil
}

// codewords is how many bytes there are in a version.
func codewords(version int) int {
	bits := (16*version+128)*version + 64
	if version >= 2 {
		n := version/7 + 2
		bits -= (25*n-10)*n - 55
		if version >= 7 {
			bits -= 36
		}
	}
	return bits / 8
}

// data are the codewords of a text: mode, length, text, end, and padding.
func data(text string, length, room int) []byte {
	out := make([]byte, 0, room)
	half := byte(4) // half a byte is always open: that of the mode at first
	add := func(b byte) { out, half = append(out, half<<4|b>>4), b&15 }
	if length == 2 {
		add(byte(len(text) >> 8))
	}
	add(byte(len(text)))
	for i := range len(text) {
		add(text[i])
	}
	out = append(out, half<<4)
	for pad := byte(0xec); len(out) < room; pad ^= 0xec ^ 0x11 {
		out = append(out, pad)
	}
	return out
}

// corrected cuts data into blocks, adds error correction to each, and interleaves them.
func corrected(version int, data []byte) []byte {
	n, ec := blocks[version], corrections[version]
	short, long := len(data)/n, len(data)%n // the last ones have a byte more
	var parts, checks [][]byte
	for i := range n {
		size := short
		if i >= n-long {
			size++
		}
		parts, data = append(parts, data[:size]), data[size:]
		checks = append(checks, remainder(parts[i], ec))
	}
	var out []byte
	for _, all := range [][][]byte{parts, checks} {
		for i := range max(short+1, ec) {
			for _, part := range all {
				if i < len(part) {
					out = append(out, part[i])
				}
			}
		}
	}
	return out
}

// remainder is the Reed-Solomon code of a block: what is left of it divided by (x-1)(x-2)(x-4)…, n factors, over GF(256).
func remainder(block []byte, n int) []byte {
	divisor := make([]byte, n)
	divisor[n-1] = 1
	root := byte(1)
	for range n {
		for j := range divisor {
			if divisor[j] = times(divisor[j], root); j+1 < n {
				divisor[j] ^= divisor[j+1]
			}
		}
		root = times(root, 2)
	}
	out := make([]byte, n)
	for _, b := range block {
		factor := b ^ out[0]
		copy(out, out[1:])
		out[n-1] = 0
		for i := range out {
			out[i] ^= times(divisor[i], factor)
		}
	}
	return out
}

// times multiplies in GF(256) modulo x^8+x^4+x^3+x^2+1.
func times(a, b byte) (product byte) {
	for ; b > 0; b >>= 1 {
		if b&1 != 0 {
			product ^= a
		}
		carry := a>>7 == 1
		if a <<= 1; carry {
			a ^= 0x1d
		}
	}
	return product
}

func (c *Code) put(x, y int, dark bool) {
	c.dark[y*c.Size+x], c.set[y*c.Size+x] = dark, true
}

// patterns draws what is the same for every text of a version.
func (c *Code) patterns(version int) {
	for i := range c.Size { // timing
		c.put(6, i, i%2 == 0)
		c.put(i, 6, i%2 == 0)
	}
	if version >= 2 { // alignment
		n := version/7 + 2
		step := (version*8 + n*3 + 5) / (n*4 - 4) * 2
		at := make([]int, n)
		for i := range at {
			at[i] = c.Size - 7 - (n-1-i)*step
		}
		at[0] = 6
		for i := range n {
			for j := range n {
				if corner := i == 0 && j == 0 || i == 0 && j == n-1 || i == n-1 && j == 0; !corner {
					c.square(at[i], at[j], 2)
				}
			}
		}
	}
	for _, at := range [...][2]int{{3, 3}, {c.Size - 4, 3}, {3, c.Size - 4}} { // finders, with their light border
		c.square(at[0], at[1], 4)
	}
	c.format()
	if version >= 7 {
		bits := version<<12 | checked(version, 12, 0x1f25)
		for i := range 18 {
			c.put(c.Size-11+i%3, i/3, bits>>i&1 == 1)
			c.put(i/3, c.Size-11+i%3, bits>>i&1 == 1)
		}
	}
}

// square draws one around a module: a finder of radius 4, dark but for the rings 2 and 4, or an alignment of radius 2, dark but for
// the ring 1.
func (c *Code) square(x, y, radius int) {
	for dy := -radius; dy <= radius; dy++ {
		for dx := -radius; dx <= radius; dx++ {
			far := max(dx, -dx, dy, -dy)
			if x+dx >= 0 && x+dx < c.Size && y+dy >= 0 && y+dy < c.Size {
				c.put(x+dx, y+dy, radius == 2 && far != 1 || radius == 4 && far != 2 && far != 4)
			}
		}
	}
}

// format draws level L and mask 0, twice, and the module that is always dark.
func (c *Code) format() {
	const level = 1 << 3
	bits := (level<<10 | checked(level, 10, 0x537)) ^ 0x5412
	for i := range 15 {
		dark := bits>>i&1 == 1
		switch {
		case i < 6:
			c.put(8, i, dark)
		case i < 8:
			c.put(8, i+1, dark)
		case i == 8:
			c.put(7, 8, dark)
		default:
			c.put(14-i, 8, dark)
		}
		if i < 8 {
			c.put(c.Size-1-i, 8, dark)
		} else {
			c.put(8, c.Size-15+i, dark)
		}
	}
	c.put(8, c.Size-8, true)
}

// checked is the BCH code of a number: the remainder of it, shifted by n bits, divided by a polynomial.
func checked(number, n, by int) int {
	rest := number
	for range n {
		rest = rest<<1 ^ rest>>(n-1)*by
	}
	return rest
}

// fill writes codewords in two columns at a time, upwards and downwards in turns from the right, with the mask.
func (c *Code) fill(all []byte) {
	i := 0
	for right := c.Size - 1; right >= 1; right -= 2 {
		if right == 6 { // timing
			right = 5
		}
		for row := range c.Size {
			y := row
			if (right+1)&2 == 0 {
				y = c.Size - 1 - row
			}
			for _, x := range [...]int{right, right - 1} {
				if c.set[y*c.Size+x] {
					continue
				}
				dark := i < 8*len(all) && all[i/8]>>(7-i%8)&1 == 1
				c.dark[y*c.Size+x] = dark != ((x+y)%2 == 0)
				i++
			}
		}
	}
}
