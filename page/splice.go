package page

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
)

// hole is a place in a document where what differs between visitors goes; 0 is none.
type hole uint8

// piece is either text, kept plain and deflated, or a hole.
type piece struct {
	plain    []byte
	deflated []byte // whole non-final deflate blocks that end at a byte boundary
	sum      uint32 // CRC-32 of plain
	shift    uint32 // shiftOf(len(plain))
	hole     hole
}

// document is the sequence of its pieces.
type document []piece

// deflater compresses texts into pieces. Equal texts share one piece.
type deflater struct {
	buf    bytes.Buffer
	writer *flate.Writer
	known  map[string]piece
}

func newDeflater() *deflater {
	w, err := flate.NewWriter(nil, flate.BestCompression)
	if err != nil {
		panic(err) // the level is a constant
	}
	return &deflater{writer: w, known: map[string]piece{}}
}

// text makes a piece of s. Every piece is compressed on its own, so that it never refers
// back over a hole whose length is not known, and ends in a flush, so that it ends at a byte.
func (d *deflater) text(s string) piece {
	if p, ok := d.known[s]; ok {
		return p
	}
	d.buf.Reset()
	d.writer.Reset(&d.buf)
	_, _ = d.writer.Write([]byte(s)) // a bytes.Buffer takes everything
	_ = d.writer.Flush()
	p := piece{plain: []byte(s), deflated: bytes.Clone(d.buf.Bytes()), sum: crc32.ChecksumIEEE([]byte(s)), shift: shiftOf(len(s))}
	d.known[s] = p
	return p
}

const (
	// gzipHeader: deflate, no name, no time, unknown system (RFC 1952 §2.3).
	gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
	// finalBlock is an empty stored block with the final bit (RFC 1951 §3.2.4).
	finalBlock = "\x01\x00\x00\xff\xff"
	// maxStored is the most that one stored block holds.
	maxStored = 1<<16 - 1
)

// append writes the document with its holes filled.
func (doc document) append(dst []byte, fill func(dst []byte, h hole) []byte) []byte {
	for i := range doc {
		if h := doc[i].hole; h != 0 {
			dst = fill(dst, h)
		} else {
			dst = append(dst, doc[i].plain...)
		}
	}
	return dst
}

// appendGzip is append as a gzip member: the deflated pieces as they are, the holes as
// stored blocks, the checksum over the plain text.
func (doc document) appendGzip(dst []byte, fill func(dst []byte, h hole) []byte) []byte {
	dst = append(dst, gzipHeader...)
	var sum, size uint32
	for i := range doc {
		if h := doc[i].hole; h != 0 {
			dst = append(dst, 0, 0, 0, 0, 0)
			start := len(dst)
			dst = fill(dst, h)
			if len(dst)-start > maxStored {
				dst = dst[:start+maxStored] // holes are a thousandth of that
			}
			n := uint16(len(dst) - start)
			binary.LittleEndian.PutUint16(dst[start-4:], n)
			binary.LittleEndian.PutUint16(dst[start-2:], ^n)
			sum = crc32.Update(sum, crc32.IEEETable, dst[start:])
			size += uint32(n)
			continue
		}
		dst = append(dst, doc[i].deflated...)
		sum = multiply(doc[i].shift, sum) ^ doc[i].sum
		size += uint32(len(doc[i].plain))
	}
	dst = append(dst, finalBlock...)
	dst = binary.LittleEndian.AppendUint32(dst, sum)
	return binary.LittleEndian.AppendUint32(dst, size)
}

// The checksum of a text behind another follows from both checksums and a factor that
// depends on the second's length: CRC-32 is a remainder of polynomials over two elements,
// written with the lowest power in the highest bit (as zlib's crc32_combine does it).

// multiply returns a·b modulo the CRC's polynomial.
func multiply(a, b uint32) uint32 {
	var product uint32
	for ; a != 0; a <<= 1 {
		if a&(1<<31) != 0 {
			product ^= b
		}
		b = b>>1 ^ crc32.IEEE&-(b&1)
	}
	return product
}

// shiftOf returns x to the power of the bits in n bytes.
func shiftOf(n int) uint32 {
	power, factor := uint32(1<<31), uint32(1<<(31-8)) // 1, and x⁸
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			power = multiply(power, factor)
		}
		factor = multiply(factor, factor)
	}
	return power
}
