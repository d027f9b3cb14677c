package server

import (
	"context"
	"maps"
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
	files := func() map[string]bool {
		cfg := s.Config()
		set := map[string]bool{}
		for _, f := range append([]string{KeyFile(s.first.Load().Data)}, cfg.Files...) {
			abs, err := filepath.Abs(f)
			if err != nil {
				continue
			}
			set[abs] = true
			dirs := []string{filepath.Dir(abs)}
			if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
				dirs = append(dirs, filepath.Dir(real))
			}
			for _, dir := range dirs { // watching twice is watching once; a directory made anew is watched again
				if err := w.Add(dir); err != nil {
					s.log.Warn("a directory is not watched; use SIGHUP after a change", "directory", dir, "error", err)
				}
			}
		}
		return set
	}
	prints := fingerprints(files())
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
			if !same(prints, fingerprints(files())) {
				s.Reload(ctx, "a file has changed") // Reload has logged what went wrong
				prints = fingerprints(files())
			}
		}
	}
}

// fingerprints are what the files look like; one that is not there has none.
func fingerprints(files map[string]bool) map[string]os.FileInfo {
	out := map[string]os.FileInfo{}
	for f := range files {
		if st, err := os.Stat(f); err == nil {
			out[f] = st
		}
	}
	return out
}

func same(a, b map[string]os.FileInfo) bool {
	return maps.EqualFunc(a, b, func(a, b os.FileInfo) bool {
		return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
	})
}
