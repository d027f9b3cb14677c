package natslink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anteroom/anteroom/internal/wire"
)

// The file of the copy is a log of records, newest last:
//
//	bytes 0-3    CRC-32C of bytes 4-24 and the key
//	byte  4      length of the key; 0 is the record that names the store (the first one)
//	bytes 5-8    length of the envelope
//	bytes 9-16   revision
//	bytes 17-24  position: the copy then had every change up to this number
//	the key, the envelope as it is in the store
//
// Key and envelope have checksums of their own, so that damage costs the records that it
// hits and no others. Nothing is synced but the whole file when it is written anew: what a
// loss of power takes is fetched again.
const (
	copyName   = "copy"
	copyHeader = 25
	// copySlack is how much the file may grow over twice what it needs before it is
	// written anew.
	copySlack = 1 << 20
	// maxCopyFile bounds what is read; a larger file is not ours.
	maxCopyFile = 2*defaultMaxKeys + 64<<20
)

type copyRecord struct {
	key           string
	revision, pos uint64
	envelope      []byte
}

func (r copyRecord) append(b []byte) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0, byte(len(r.key)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.envelope)))
	b = binary.BigEndian.AppendUint64(b, r.revision)
	b = binary.BigEndian.AppendUint64(b, r.pos)
	b = append(b, r.key...)
	binary.BigEndian.PutUint32(b[at:], crc32.Checksum(b[at+4:], castagnoli()))
	return append(b, r.envelope...)
}

// cutCopyRecord returns the record that b begins with and its length, or ok false when
// there is none.
func cutCopyRecord(b []byte) (r copyRecord, n int, ok bool) {
	if len(b) < copyHeader {
		return r, 0, false
	}
	in := wire.Read(b)
	sum, key, size := in.Big32(), int(in.Byte()), int(in.Big32())
	r.revision, r.pos = in.Big64(), in.Big64()
	// Damage is passed over byte by byte: what is none must cost next to nothing.
	if key > in.Left() || size > in.Left()-key || sum != crc32.Checksum(b[4:copyHeader+key], castagnoli()) {
		return copyRecord{}, 0, false
	}
	r.key, r.envelope = string(in.Bytes(key)), in.Bytes(size)
	return r, copyHeader + key + size, true
}

// readCopy calls fn with every record of the file, and says whether there was damage
// between them. A record cut off at the end is none: the process ended there.
func readCopy(b []byte, fn func(copyRecord)) (damaged bool) {
	skipped := false
	for len(b) > 0 {
		r, n, ok := cutCopyRecord(b)
		if !ok {
			b, skipped = b[1:], true
			continue
		}
		damaged, skipped = damaged || skipped, false
		fn(r)
		b = b[n:]
	}
	return damaged
}

// copyFile is the file that the copy is appended to.
type copyFile struct {
	path string
	f    *os.File
	size int64
}

func openCopyFile(dir string) (*copyFile, []byte, error) {
	c := &copyFile{path: filepath.Join(dir, copyName)}
	info, err := os.Stat(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("natslink: copy of the keys: %w", err)
	}
	if info.Size() > maxCopyFile {
		return nil, nil, fmt.Errorf("natslink: copy of the keys: %s has %d bytes, which is more than a copy can have; remove it", c.path, info.Size())
	}
	b, err := os.ReadFile(c.path)
	if err != nil {
		return nil, nil, fmt.Errorf("natslink: copy of the keys: %w", err)
	}
	return c, b, nil
}

// append adds records. A failure costs nothing but the copy after a restart.
func (c *copyFile) append(b []byte) error {
	if c.f == nil {
		return errors.New("natslink: the copy of the keys is not written")
	}
	n, err := c.f.Write(b)
	c.size += int64(n)
	return err
}

// rewrite replaces the file by one that holds b, which is there whole or not at all.
func (c *copyFile) rewrite(b []byte) error {
	next := c.path + ".new"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("natslink: copy of the keys: %w", err)
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(next, c.path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("natslink: copy of the keys: %w", err), f.Close(), os.Remove(next))
	}
	c.close()
	c.f, c.size = f, int64(len(b))
	return nil
}

func (c *copyFile) close() error {
	if c.f == nil {
		return nil
	}
	err := c.f.Close()
	c.f = nil
	return err
}
