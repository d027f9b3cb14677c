package server

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settleTime is how long our files must look the same before they are read: editors write in
// steps.
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
	prints := s.read
	s.watchFiles(w)
	// A change between the reading at the start and here makes no event: look once.
	look := time.NewTimer(settleTime)
	defer look.Stop()
	waits := true                      // look is running
	var changed map[string]os.FileInfo // what was seen last, when that was a change
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-w.Events:
			if !ok {
				return
			}
			// A link to a mounted directory is swapped as a whole: any event there counts,
			// and the fingerprints tell whether something of ours has changed. More events do
			// not put the look off: a log in the same directory may never be quiet.
			if !waits {
				waits = true
				look.Reset(settleTime)
			}
		case err, ok := <-w.Errors:
			if !ok {
				return
			}
			s.log.Warn("watching files", "error", err)
		case <-look.C:
			waits = false
			now := fingerprints(s.files())
			if same(prints, now) {
				changed = nil
				continue
			}
			if !same(changed, now) { // perhaps not all of it is written yet
				changed, waits = now, true
				look.Reset(settleTime)
				continue
			}
			changed = nil
			s.Reload(ctx, "a watched file changed") // Reload has logged what went wrong
			// What changed while it was read is different from now, and is read again.
			prints = fingerprints(s.files())
			maps.Copy(prints, now)
			maps.DeleteFunc(prints, func(f string, _ os.FileInfo) bool { return !slices.Contains(s.files(), f) })
			s.watchFiles(w)
		}
	}
}

// files are those to watch, as absolute paths.
func (s *Server) files() []string {
	all := append([]string{KeyFile(s.first.Load().Data)}, s.Config().Files...)
	for i := range all {
		if abs, err := filepath.Abs(all[i]); err == nil {
			all[i] = abs
		}
	}
	return all
}

// watchFiles watches the directories of all files and, where they are links, of what they
// lead to. Watching twice is watching once; a directory that was made anew is watched again.
func (s *Server) watchFiles(w *fsnotify.Watcher) {
	for _, f := range s.files() {
		dirs := []string{filepath.Dir(f)}
		if real, err := filepath.EvalSymlinks(f); err == nil && real != f {
			dirs = append(dirs, filepath.Dir(real))
		}
		for _, dir := range dirs {
			if err := w.Add(dir); err != nil {
				s.log.Warn("a directory is not watched; use SIGHUP after a change", "directory", dir, "error", err)
			}
		}
	}
}

// fingerprints are what the files look like; one that is not there has none.
func fingerprints(files []string) map[string]os.FileInfo {
	out := map[string]os.FileInfo{}
	for _, f := range files {
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
