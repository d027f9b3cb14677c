package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/anteroom/anteroom/cluster"
)

// linkStorage is certmagic's storage on the durable link. Its keys look like paths; the
// prefix keeps them apart.
type linkStorage struct {
	link  cluster.Link
	locks sync.Map // name → chan struct{}
}

const certPrefix = "acme/"

func (l *linkStorage) Lock(ctx context.Context, name string) error {
	for {
		mine := make(chan struct{})
		theirs, taken := l.locks.LoadOrStore(name, mine)
		if !taken {
			return nil
		}
		select {
		case <-theirs.(chan struct{}):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *linkStorage) Unlock(_ context.Context, name string) error {
	ch, ok := l.locks.LoadAndDelete(name)
	if !ok {
		return fmt.Errorf("lock %q is not held", name)
	}
	close(ch.(chan struct{}))
	return nil
}

type storedFile struct {
	modified time.Time
	data     []byte
}

// Values carry the time at which they were stored, in front.
func (l *linkStorage) Store(ctx context.Context, key string, value []byte) error {
	stamp, _ := time.Now().UTC().MarshalBinary()
	_, err := l.link.Put(ctx, linkKey(key), append(append([]byte{byte(len(stamp))}, stamp...), value...))
	return err
}

func (l *linkStorage) read(ctx context.Context, key string) (storedFile, error) {
	e, err := l.link.Get(ctx, linkKey(key))
	if errors.Is(err, cluster.ErrNotFound) {
		return storedFile{}, fs.ErrNotExist
	}
	if err != nil {
		return storedFile{}, err
	}
	if len(e.Value) == 0 || len(e.Value) < 1+int(e.Value[0]) {
		return storedFile{}, fmt.Errorf("%s: stored value is truncated", key)
	}
	var f storedFile
	n := 1 + int(e.Value[0])
	if err := f.modified.UnmarshalBinary(e.Value[1:n]); err != nil {
		return storedFile{}, fmt.Errorf("%s: %w", key, err)
	}
	f.data = e.Value[n:]
	return f, nil
}

func (l *linkStorage) Load(ctx context.Context, key string) ([]byte, error) {
	f, err := l.read(ctx, key)
	return f.data, err
}

func (l *linkStorage) Delete(ctx context.Context, key string) error {
	keys, err := l.List(ctx, key, true)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, k := range append(keys, key) {
		if err := l.link.Delete(ctx, linkKey(k)); err != nil {
			return err
		}
	}
	return nil
}

func (l *linkStorage) Exists(ctx context.Context, key string) bool {
	_, err := l.Stat(ctx, key)
	return err == nil
}

func (l *linkStorage) List(ctx context.Context, path string, recursive bool) ([]string, error) {
	prefix := ""
	if path = strings.TrimSuffix(path, "/"); path != "" {
		prefix = path + "/"
	}
	stored, err := l.link.Keys(ctx, linkKey(prefix))
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var out []string
	for _, k := range stored {
		k = fileKey(k)
		if !recursive {
			if i := strings.IndexByte(k[len(prefix):], '/'); i >= 0 {
				k = k[:len(prefix)+i]
			}
		}
		if !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	if len(out) == 0 {
		return nil, fs.ErrNotExist
	}
	return out, nil
}

func (l *linkStorage) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	f, err := l.read(ctx, key)
	if err != nil {
		if keys, lerr := l.List(ctx, key, false); lerr == nil && len(keys) > 0 {
			return certmagic.KeyInfo{Key: key}, nil
		}
		return certmagic.KeyInfo{}, err
	}
	return certmagic.KeyInfo{Key: key, Modified: f.modified, Size: int64(len(f.data)), IsTerminal: true}, nil
}

// linkKey spells certmagic's key as the link allows: everything but letters, digits, _, -,
// / and single dots inside becomes = and two hexadecimal digits. fileKey is its inverse.
// The dots stay because keys are bounded and names of hosts are in them twice.
func linkKey(key string) string {
	var b strings.Builder
	b.WriteString(certPrefix)
	for i := range len(key) {
		c := key[i]
		if c == '.' && i < len(key)-1 && !strings.HasSuffix(b.String(), ".") || c == '_' || c == '-' || c == '/' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

func fileKey(key string) string {
	key = strings.TrimPrefix(key, certPrefix)
	var b strings.Builder
	for i := 0; i < len(key); i++ {
		if key[i] == '=' && i+2 < len(key) {
			var c byte
			if _, err := fmt.Sscanf(key[i+1:i+3], "%02X", &c); err == nil {
				b.WriteByte(c)
				i += 2
				continue
			}
		}
		b.WriteByte(key[i])
	}
	return b.String()
}
