package natslink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anteroom/anteroom/cluster"
)

// keysCopied says what copyKeys did.
type keysCopied struct {
	New  int      // keys that were copied
	Same int      // keys that were there with the same value, as after a copy that was cut short
	Kept []string // keys that were there with another value, which stayed
}

// copyKeys copies the keys that take chooses from a store to another: that of a process
// alone, or of a core alone, to the cluster that it becomes. Every copied key is durable
// there when it returns. It changes nothing that is there, so it may be repeated after it
// failed. Nobody else may write to from meanwhile; leases must not be chosen, for they
// would stay.
func copyKeys(ctx context.Context, from, to cluster.Space, take func(key string) bool) (keysCopied, error) {
	var c keysCopied
	keys, err := from.Keys(ctx, "")
	if err != nil {
		return c, fmt.Errorf("natslink: keys to copy: %w", err)
	}
	for _, key := range keys {
		if !take(key) {
			continue
		}
		entry, err := from.Get(ctx, key)
		if errors.Is(err, cluster.ErrNotFound) {
			continue
		}
		if err != nil {
			return c, fmt.Errorf("natslink: key %s to copy: %w", key, err)
		}
		_, err = to.Update(ctx, key, entry.Value, 0)
		if err == nil {
			c.New++
			continue
		}
		if !errors.Is(err, cluster.ErrRevision) {
			return c, fmt.Errorf("natslink: copy of key %s: %w", key, err)
		}
		there, err := to.Get(ctx, key)
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			return c, fmt.Errorf("natslink: copy of key %s: %w", key, err)
		}
		if err == nil && bytes.Equal(there.Value, entry.Value) {
			c.Same++
		} else {
			c.Kept = append(c.Kept, key)
		}
	}
	return c, nil
}

// Retire puts a store that was copied aside, under the name that it returns, so that nobody
// goes on with it by mistake. Its link must be closed. The operator deletes it.
func Retire(dir string) (aside string, err error) {
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	lock, err := lockDir(dir, 0)
	if err != nil {
		return "", err
	}
	defer lock.release()
	dir = filepath.Clean(dir)
	aside = dir + ".moved"
	if _, err := os.Lstat(aside); !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cluster: %s is there already: move or delete it, then the store in %s can be put aside", aside, dir)
	}
	if err := os.Rename(dir, aside); err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	return aside, syncDir(filepath.Dir(dir))
}
