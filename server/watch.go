package server

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settleTime is how long files must be quiet before they are read: editors write in steps.
const settleTime = 200 * time.Millisecond

// watch reloads when a file that the configuration was read from, or the key file, changes.
// It watches their directories, because files are replaced as often as they are written.
func (s *Server) watch(ctx context.Context) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		s.log.Warn("files are not watched; use SIGHUP after a change", "error", err)
		return
	}
	defer w.Close()
	watched := map[string]bool{}
	files := func() map[string]bool {
		cfg := s.Config()
		set := map[string]bool{}
		for _, f := range append([]string{KeyFile(cfg.Data)}, cfg.Files...) {
			if abs, err := filepath.Abs(f); err == nil {
				set[abs] = true
				if dir := filepath.Dir(abs); !watched[dir] {
					if err := w.Add(dir); err != nil {
						s.log.Warn("a directory is not watched; use SIGHUP after a change", "directory", dir, "error", err)
					}
					watched[dir] = true
				}
			}
		}
		return set
	}
	ours := files()
	prints := fingerprints(ours)
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-w.Events:
			if !ok {
				return
			}
			// A link to a mounted directory is swapped as a whole: any event there counts,
			// and the fingerprints tell whether something of ours has changed.
			quiet.Reset(settleTime)
		case err, ok := <-w.Errors:
			if !ok {
				return
			}
			s.log.Warn("watching files", "error", err)
		case <-quiet.C:
			ours = files()
			now := fingerprints(ours)
			if !same(prints, now) {
				prints = now
				s.Reload(ctx, "a file has changed") // Reload has logged what went wrong
				prints = fingerprints(files())
			}
		}
	}
}

type fingerprint struct {
	size int64
	mod  int64
}

func fingerprints(files map[string]bool) map[string]fingerprint {
	out := map[string]fingerprint{}
	for f := range files {
		if st, err := os.Stat(f); err == nil {
			out[f] = fingerprint{st.Size(), st.ModTime().UnixNano()}
		}
	}
	return out
}

func same(a, b map[string]fingerprint) bool {
	if len(a) != len(b) {
		return false
	}
	for f, p := range a {
		if b[f] != p {
			return false
		}
	}
	return true
}
