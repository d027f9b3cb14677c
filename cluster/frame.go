package cluster

import (
	"fmt"
	"iter"
	"math"

	"github.com/anteroom/anteroom/internal/wire"
)

// A frame carries messages of several rooms in one: repeated, 16 bytes of room id, the length
// of the body as an unsigned varint in its shortest form, the body. It is at most MaxMessage
// long; who sends more, sends several.

// FrameOverhead is the most that AppendFrame adds to a body of up to MaxMessage, in bytes.
const FrameOverhead = 16 + 3

// AppendFrame appends one room's message to a frame, which may be nil.
func AppendFrame(b []byte, room [16]byte, body []byte) []byte {
	b = append(b, room[:]...)
	return wire.AppendSized(b, body)
}

// Frames returns the rooms and bodies of a frame, in order. The bodies are parts of b. It
// fails when b is not wholly a frame, before anything is returned; an empty b is one without entries.
func Frames(b []byte) (iter.Seq2[[16]byte, []byte], error) {
	r := wire.Read(b)
	for r.Left() > 0 {
		nextFrame(&r)
	}
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("cluster: frame %w", err)
	}
	return func(yield func([16]byte, []byte) bool) {
		for r := wire.Read(b); r.Left() > 0; {
			if !yield(nextFrame(&r)) {
				return
			}
		}
	}, nil
}

func nextFrame(r *wire.Reader) (room [16]byte, body []byte) {
	copy(room[:], r.Bytes(len(room)))
	return room, r.Sized(math.MaxInt64)
}
