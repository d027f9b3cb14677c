package cluster

import (
	"encoding/binary"
	"errors"
	"iter"
)

// A frame carries messages of several rooms in one: repeated, 16 bytes of room id, the length
// of the body as an unsigned varint in its shortest form, the body. It is at most MaxMessage
// long; who sends more, sends several.

// FrameOverhead is the most that AppendFrame adds to a body of up to MaxMessage, in bytes.
const FrameOverhead = 16 + 3

var errFrame = errors.New("cluster: not a frame: it ends within an entry, or a length is not in its shortest form")

// AppendFrame appends one room's message to a frame, which may be nil.
func AppendFrame(b []byte, room [16]byte, body []byte) []byte {
	b = append(b, room[:]...)
	b = binary.AppendUvarint(b, uint64(len(body)))
	return append(b, body...)
}

// Frames returns the rooms and bodies of a frame, in order. The bodies are parts of b. It
// fails when b is not wholly a frame, before anything is returned; an empty b is one without entries.
func Frames(b []byte) (iter.Seq2[[16]byte, []byte], error) {
	for rest := b; len(rest) > 0; {
		var ok bool
		if _, _, rest, ok = nextFrame(rest); !ok {
			return nil, errFrame
		}
	}
	return func(yield func([16]byte, []byte) bool) {
		for rest := b; len(rest) > 0; {
			room, body, after, _ := nextFrame(rest)
			if !yield(room, body) {
				return
			}
			rest = after
		}
	}, nil
}

func nextFrame(b []byte) (room [16]byte, body, rest []byte, ok bool) {
	if len(b) < len(room) {
		return room, nil, nil, false
	}
	copy(room[:], b)
	b = b[len(room):]
	size, n := binary.Uvarint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 || size > uint64(len(b)-n) {
		return room, nil, nil, false
	}
	b = b[n:]
	return room, b[:size:size], b[size:], true
}
