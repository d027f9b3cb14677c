package natslink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/anteroom/anteroom/internal/wire"
)

// An envelope is what is stored for one record:
//
//	byte  0      layout, envelopeVersion
//	bytes 1-4    CRC-32C of the subject, a zero byte, and everything from byte 5
//	bytes 5-12   number of the record in its stream, from 1, without gaps
//	bytes 13-20  journal: when it was appended, ns since the Unix epoch
//	             keys: digest of all keys after this change
//	byte  21     kind
//	bytes 22-    the value or record; of a lease, first when it ends (ns since the Unix epoch)
//	             and its time to live (ns); of a named journal's record, first the length of
//	             the name (one byte) and the name
//
// All numbers are big-endian.
type envelope struct {
	number uint64
	extra  uint64
	kind   kind
	data   []byte
}

type kind byte

const (
	kindRecord  kind = 1
	kindValue   kind = 2
	kindDeleted kind = 3
	kindLease   kind = 4
	kindNamed   kind = 5
)

const (
	envelopeVersion = 1
	envelopeHeader  = 22
	leaseHeader     = 16
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func (e envelope) seal(subject string) []byte {
	b := make([]byte, envelopeHeader, envelopeHeader+len(e.data))
	b[0] = envelopeVersion
	binary.BigEndian.PutUint64(b[5:], e.number)
	binary.BigEndian.PutUint64(b[13:], e.extra)
	b[21] = byte(e.kind)
	b = append(b, e.data...)
	binary.BigEndian.PutUint32(b[1:], checksum(subject, b[5:]))
	return b
}

func checksum(subject string, b []byte) uint32 {
	t := castagnoli()
	return crc32.Update(crc32.Update(crc32.Update(0, t, []byte(subject)), t, []byte{0}), t, b)
}

// unseal returns the envelope in b, which it must be byte for byte as it was sealed. The
// data is part of b.
func unseal(subject string, b []byte) (envelope, error) {
	r := wire.Read(b)
	version, sum := r.Byte(), r.Big32()
	ahead := r
	sealed := ahead.Rest()
	e := envelope{number: r.Big64(), extra: r.Big64(), kind: kind(r.Byte()), data: r.Rest()}
	switch {
	case r.Err() != nil:
		return envelope{}, r.Err()
	case sum != checksum(subject, sealed):
		return envelope{}, errors.New("checksum differs")
	case version != envelopeVersion:
		return envelope{}, fmt.Errorf("layout %d is not known, only %d: was it written by a newer version?", version, envelopeVersion)
	case e.kind < kindRecord || e.kind > kindNamed:
		return envelope{}, fmt.Errorf("kind %d is not known", e.kind)
	case e.kind == kindLease && len(e.data) < leaseHeader, e.kind == kindNamed && (len(e.data) == 0 || len(e.data) <= int(e.data[0])):
		return envelope{}, fmt.Errorf("%d bytes are too short for kind %d", len(e.data), e.kind)
	}
	return e, nil
}
