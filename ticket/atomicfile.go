package ticket

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anteroom/anteroom"
)

// createFile makes path with the data, mode 0600, whole or not at all and safe against
// the loss of power. When there is something at path the error is [fs.ErrExist].
func createFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := writeSynced(f, data); err != nil {
		return err
	}
	// A link, unlike a rename, does not replace what another process put there meanwhile.
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// replaceFile puts what next returns in the place of path, mode 0600, whole or not at all
// and safe against the loss of power. Next is called while no other replaceFile of the
// same path is under way.
func replaceFile(path string, next func() ([]byte, error)) error {
	temp := path + ".new"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return anteroom.Errorf(anteroom.Conflict, "%s exists: another rotation is under way, or one was cut short. If none is, delete that file and do it again", temp)
	}
	if err != nil {
		return anteroom.Errorf(anteroom.Unavailable, "cannot write beside the key file: %w", err)
	}
	data, err := next()
	if err != nil {
		f.Close()
		os.Remove(temp)
		return err
	}
	// Whoever rotates may be root; whoever reads has to remain able to.
	err = errors.Join(keepOwner(f, path), writeSynced(f, data))
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		os.Remove(temp) // not after the rename: it may be another rotation's by then
		return anteroom.Errorf(anteroom.Unavailable, "the key file was not changed: %w", err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return anteroom.Errorf(anteroom.Unavailable, "the key file was changed, but may be the old one after a loss of power: %w", err)
	}
	return nil
}

// writeSynced writes the data to f, syncs and closes it.
func writeSynced(f *os.File, data []byte) error {
	_, err := f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
