package ticket

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

const (
	keyFileVersion  = 1
	keyFileMaxBytes = 256 << 10 // maxKeys entries are about 60 KiB
)

// keyFile is the key file's JSON.
type keyFile struct {
	About   string         `json:"about"`
	Version int            `json:"version"`
	Keys    []keyFileEntry `json:"keys"`
}

type keyFileEntry struct {
	ID       string `json:"id"`
	State    State  `json:"state"`
	Created  string `json:"created"`
	Replaced string `json:"replaced,omitempty"`
	Secret   string `json:"secret"`
}

const keyFileAbout = `Anteroom's keys. Anyone who can read them can make tickets. Keep mode 0600; change them with "anteroom key rotate" only.`

// Load reads a key file. The error says what is wrong and how to mend it; no error holds
// a secret. A file that others than its owner may read or write is an error of kind
// Denied, a missing one of kind NotFound, a broken one of kind Invalid.
func Load(path string) (*Keyring, error) {
	data, err := readKeyFile(path)
	if err != nil {
		return nil, err
	}
	ring, err := parse(data)
	if err != nil {
		return nil, anteroom.Errorf(anteroom.Invalid, "key file %s: %w. It was left as it is: put a copy of it back. "+
			"Only if there is none, move it away; the next start then makes new keys, and all visitors start over", path, err)
	}
	return ring, nil
}

// LoadOrCreate is Load, but makes the file with one key when there is none, readable for
// its owner only. It reports whether it did. It never replaces a file.
func LoadOrCreate(path string, now time.Time) (ring *Keyring, created bool, err error) {
	ring, err = Load(path)
	if anteroom.KindOf(err) != anteroom.NotFound {
		return ring, false, err
	}
	fresh := NewKeyring(now)
	err = createFile(path, fresh.marshal())
	if errors.Is(err, fs.ErrExist) {
		// Another process was first, or a link to nothing is there. What the link stands
		// for may come back (a volume mounted late), with the keys of those who wait.
		ring, err = Load(path)
		if anteroom.KindOf(err) == anteroom.NotFound {
			err = anteroom.Errorf(anteroom.Unavailable, "key file %s is a link to nothing: restore what it points to, or delete the link to have new keys made", path)
		}
		return ring, false, err
	}
	if err != nil {
		return nil, false, anteroom.Errorf(anteroom.Unavailable, "cannot make the key file: %w. Its directory has to exist and be writable for this user", err)
	}
	return fresh, true, nil
}

// RotateFile gives the key file a fresh key that seals from now on, drops keys as
// [Keyring.Promote] says, and returns the ring written. The old file stays whole until
// the new one is on disk. Two rotations at once are an error of kind Conflict for one.
func RotateFile(path string, now time.Time, keep time.Duration) (*Keyring, error) {
	// The file may be a link into a mounted volume; the link stays.
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, readError(path, err)
	}
	var ring *Keyring
	err = replaceFile(real, func() ([]byte, error) {
		old, err := Load(real)
		if err != nil {
			return nil, err
		}
		if ring, err = old.Rotate(now, keep); err != nil {
			return nil, err
		}
		return ring.marshal(), nil
	})
	if err != nil {
		return nil, err
	}
	return ring, nil
}

// ExportFile returns the bytes of a key file, for a backup. They are secret.
func ExportFile(path string) ([]byte, error) {
	if _, err := Load(path); err != nil {
		return nil, err
	}
	return readKeyFile(path)
}

// CheckExport returns an error of kind Invalid unless the bytes are those of a key file.
func CheckExport(data []byte) error {
	_, err := FromExport(data)
	return err
}

// ImportFile restores what ExportFile returned into a key file, as [Keyring.Restore] does. A file that cannot be read has nothing to keep.
func ImportFile(path string, data []byte, now time.Time) error {
	copied, err := FromExport(data)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return readError(path, err)
	}
	return replaceFile(real, func() ([]byte, error) {
		if have, err := Load(real); err == nil {
			return have.Restore(copied, now).marshal(), nil
		}
		return copied.marshal(), nil
	})
}

// ListFile returns what may be told about the keys of a file, as [Keyring.Keys].
func ListFile(path string) ([]KeyInfo, error) {
	ring, err := Load(path)
	if err != nil {
		return nil, err
	}
	return ring.Keys(), nil
}

func readKeyFile(path string) ([]byte, error) {
	// Opening a named pipe would wait for its other end, so look first.
	info, err := os.Stat(path)
	if err != nil {
		return nil, readError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, anteroom.Errorf(anteroom.Invalid, "key file %s is not a regular file (%s): name a file, or nothing that exists to have one made", path, info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, readError(path, err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, readError(path, err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, anteroom.Errorf(anteroom.Denied, "key file %s is open to other users (mode %04o): run \"chmod 600 %s\", and if somebody may have read it, \"anteroom key rotate\" after that", path, mode, path)
	}
	data, err := io.ReadAll(io.LimitReader(f, keyFileMaxBytes+1))
	if err != nil {
		return nil, readError(path, err)
	}
	return data, nil
}

func readError(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return anteroom.Errorf(anteroom.NotFound, "key file %s does not exist: the first start makes it (%w)", path, err)
	case errors.Is(err, fs.ErrPermission):
		return anteroom.Errorf(anteroom.Denied, "key file %s cannot be read by this user: make this user its owner (%w)", path, err)
	}
	return anteroom.Errorf(anteroom.Unavailable, "key file %s cannot be read: %w", path, err)
}

func (k *Keyring) marshal() []byte {
	out := keyFile{About: keyFileAbout, Version: keyFileVersion}
	add := func(one key) {
		e := keyFileEntry{
			ID: idText(one.id), State: one.state, Created: one.created.Format(time.RFC3339),
			Secret: base64.StdEncoding.EncodeToString(one.secret[:]),
		}
		if one.state == Previous {
			e.Replaced = one.replaced.Format(time.RFC3339)
		}
		out.Keys = append(out.Keys, e)
	}
	for _, one := range k.keys {
		add(one)
	}
	add(k.fixed)
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		panic(err) // strings and a number always marshal
	}
	return append(data, '\n')
}

// parse reads what marshal wrote. It is strict: a file that was cut, damaged or edited by
// halves is an error, never a ring with fewer or other keys.
func parse(data []byte) (*Keyring, error) {
	if len(data) == 0 {
		return nil, errors.New("is empty")
	}
	if len(data) > keyFileMaxBytes {
		return nil, fmt.Errorf("is larger than %d bytes", keyFileMaxBytes)
	}
	var in keyFile
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, jsonError(err, dec.InputOffset())
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("has something after the closing brace, at byte %d", dec.InputOffset())
	}
	if in.Version != keyFileVersion {
		return nil, fmt.Errorf("has version %d, and this program reads version %d only", in.Version, keyFileVersion)
	}
	if len(in.Keys) > maxKeys+1 {
		return nil, fmt.Errorf("has %d keys, and %d is the most", len(in.Keys), maxKeys+1)
	}
	var keys []key
	count := map[State]int{}
	seen := map[uint32]bool{}
	var fixed key
	for i, e := range in.Keys {
		one, err := e.key()
		if err != nil {
			return nil, fmt.Errorf("keys[%d]%w", i, err)
		}
		if seen[one.id] {
			return nil, fmt.Errorf("keys[%d].id: %s is there twice", i, e.ID)
		}
		seen[one.id] = true
		count[one.state]++
		if one.state == Fixed {
			fixed = one
		} else {
			keys = append(keys, one)
		}
	}
	if count[Fixed] != 1 || count[Current] != 1 || count[Next] > 1 {
		return nil, fmt.Errorf("has %d fixed, %d current and %d next keys instead of one fixed, one current and at most one next",
			count[Fixed], count[Current], count[Next])
	}
	return ringOf(fixed, keys), nil
}

// jsonError leaves out what the JSON library quotes from the file.
func jsonError(err error, offset int64) error {
	if typ, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s, at byte %d: is not the kind of value that belongs there", typ.Field, typ.Offset)
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = syntax.Offset
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("ends too early: it was cut")
	}
	return fmt.Errorf("is not a key file: unknown member or no JSON near byte %d", offset)
}

// key checks the entry. Errors begin with the member's name and a colon.
func (e keyFileEntry) key() (key, error) {
	switch e.State {
	case Fixed, Next, Current, Previous:
	default:
		return key{}, fmt.Errorf(".state: is none of %s, %s, %s, %s", Fixed, Next, Current, Previous)
	}
	created, err := moment(e.Created)
	if err != nil {
		return key{}, fmt.Errorf(".created: %w", err)
	}
	var replaced time.Time
	if e.State == Previous {
		if replaced, err = moment(e.Replaced); err != nil {
			return key{}, fmt.Errorf(".replaced: %w", err)
		}
	} else if e.Replaced != "" {
		return key{}, fmt.Errorf(".replaced: belongs to previous keys only, and this is %s", e.State)
	}
	secret, err := base64.StdEncoding.Strict().DecodeString(e.Secret)
	if err != nil || len(secret) != len(Secret{}) || strings.ContainsAny(e.Secret, "\r\n") {
		return key{}, fmt.Errorf(".secret: is not %d bytes in base64", len(Secret{}))
	}
	one := keyOf(Secret(secret), e.State, created, replaced)
	if id, err := strconv.ParseUint(e.ID, 16, 32); err != nil || idText(uint32(id)) != e.ID {
		return key{}, errors.New(".id: is not eight hexadecimal digits")
	} else if uint32(id) != one.id {
		return key{}, errors.New(".secret: does not belong to the id: one of the two is damaged")
	}
	return one, nil
}

func moment(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.Format(time.RFC3339) != s || t.Location() != time.UTC {
		return time.Time{}, errors.New(`is not a moment like "2026-01-31T12:00:00Z"`)
	}
	return t, nil
}
