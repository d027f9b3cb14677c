package natslink

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

const (
	markName   = "anteroom-store"
	markFormat = 1
	markSlot   = 512 // bytes; a disk writes them together or not at all
)

// mark is the checkpoint: what must be there at least.
type mark struct {
	turn         uint64 // grows with every write of the mark
	ready        bool   // bucket and stream have been made
	keys         uint64 // number of the newest acknowledged change of a key
	journalFirst uint64 // records before this number may have been purged
	journalLast  uint64 // number of the newest acknowledged record
	retention    time.Duration
}

// markFile is the file with the mark. It has two slots, each a line of text; the mark goes
// into the older one, so that a torn write leaves the other. The size never changes, so
// that writing it needs no space.
type markFile struct {
	f   *os.File
	now mark
}

func openMark(dir string, fresh bool) (*markFile, error) {
	path := filepath.Join(dir, markName)
	flags := os.O_RDWR
	if fresh {
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("natslink: %w", err)
	}
	m := &markFile{f: f}
	if fresh {
		m.now = mark{journalFirst: 1, retention: cluster.DefaultRetention}
		for range 2 {
			if err == nil {
				err = m.write(m.now, true)
			}
		}
		if err == nil {
			err = syncDir(dir)
		}
	} else {
		err = m.read(path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return m, nil
}

// read takes the newer of the slots that are intact.
func (m *markFile) read(path string) error {
	b := make([]byte, 2*markSlot+1)
	n, _ := m.f.ReadAt(b, 0)
	_, engineErr := os.Stat(filepath.Join(filepath.Dir(path), engineName))
	if n == 0 && errors.Is(engineErr, fs.ErrNotExist) {
		// The process ended while it made the directory: nothing was acknowledged.
		m.now = mark{journalFirst: 1, retention: cluster.DefaultRetention}
		return nil
	}
	found := false
	var reason error = fmt.Errorf("it has %d bytes instead of %d", n, 2*markSlot)
	for slot := range 2 {
		if n < (slot+1)*markSlot {
			break
		}
		one, err := parseMark(b[slot*markSlot : (slot+1)*markSlot])
		if err != nil {
			reason = err
			continue
		}
		if !found || one.turn > m.now.turn {
			m.now, found = one, true
		}
	}
	if !found {
		return &cluster.DamagedError{What: path, Err: fmt.Errorf("%w; restore the data directory from a backup", reason)}
	}
	return nil
}

const markLayout = "anteroom store %d turn %d ready %t keys %d journal %d-%d retention %d"

func (m mark) String() string {
	return fmt.Sprintf(markLayout, markFormat, m.turn, m.ready, m.keys, m.journalFirst, m.journalLast, m.retention)
}

// sealMark makes a slot of the line.
func sealMark(line string) string {
	line = fmt.Sprintf("%s sum %08x", line, crc32.Checksum([]byte(line), castagnoli()))
	return line + strings.Repeat(" ", markSlot-len(line)-1) + "\n"
}

func parseMark(slot []byte) (mark, error) {
	line, sum, ok := bytes.Cut(bytes.TrimRight(slot, " \n"), []byte(" sum "))
	if !ok {
		return mark{}, errors.New("it is not a mark of an anteroom store")
	}
	if string(sum) != fmt.Sprintf("%08x", crc32.Checksum(line, castagnoli())) {
		return mark{}, errors.New("checksum differs")
	}
	var m mark
	var format int
	if _, err := fmt.Sscanf(string(line), markLayout, &format, &m.turn, &m.ready, &m.keys, &m.journalFirst, &m.journalLast, (*int64)(&m.retention)); format != markFormat {
		return mark{}, fmt.Errorf("the store has format %d and this version knows %d; use the version that wrote it", format, markFormat)
	} else if err != nil {
		return mark{}, err
	}
	return m, nil
}

// write makes m the mark. Without sync it survives the process but not the power: it then
// says less than what is there, never more.
func (m *markFile) write(to mark, sync bool) error {
	to.turn = m.now.turn + 1
	_, err := m.f.WriteAt([]byte(sealMark(to.String())), int64(to.turn%2)*markSlot)
	if err == nil && sync {
		err = syncData(m.f)
	}
	if err != nil {
		return fmt.Errorf("natslink: checkpoint %s: %w", m.f.Name(), err)
	}
	m.now = to
	return nil
}

func (m *markFile) close() error { return errors.Join(m.f.Sync(), m.f.Close()) }
