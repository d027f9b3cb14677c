package natslink

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// layoutName is the file that says whose directory it is.
const layoutName = "anteroom-cluster"

// Shapes of what is in the directory of a cluster's process.
const (
	shapeNone   = "none"   // an edge or a client of the operator's NATS: no server's store
	shapeSingle = "single" // a core alone
	shapeMember = "member" // one core of three or five

	shapeGrowing = "growing" // a core alone that has asked others to let it in, see server_resize.go
	shapeRemoved = "removed" // a core that the others have removed
)

// layout is what the file says.
type layout struct{ cluster, site, node, shape string }

func (l layout) String() string {
	return fmt.Sprintf("anteroom cluster store 1\ncluster %s\nsite %s\nnode %s\nserver %s\n", l.cluster, l.site, l.node, l.shape)
}

func parseLayout(text string) (layout, error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 6 || lines[5] != "" {
		return layout{}, errors.New("it does not have the five lines that it should have")
	}
	if lines[0] != "anteroom cluster store 1" {
		return layout{}, fmt.Errorf("it begins with %.60q: was it written by a newer version?", lines[0])
	}
	var l layout
	for i, field := range []struct {
		name string
		to   *string
	}{{"cluster ", &l.cluster}, {"site ", &l.site}, {"node ", &l.node}, {"server ", &l.shape}} {
		value, ok := strings.CutPrefix(lines[i+1], field.name)
		if !ok {
			return layout{}, fmt.Errorf("line %d is %.60q", i+2, lines[i+1])
		}
		*field.to = value
	}
	return l, nil
}

// IsClusters reports whether a directory belongs to a process of a cluster.
func IsClusters(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, layoutName))
	return err == nil
}

// checkClusterLayout refuses a directory that belongs to something else, and writes down
// what a new one belongs to. It returns what the directory says: an edge that does not name
// its site takes the one that it was in, and a core stays what it is, alone or one of several.
func checkClusterLayout(dir string, want layout) (layout, error) {
	if _, err := os.Stat(filepath.Join(dir, markName)); err == nil {
		return layout{}, fmt.Errorf("cluster: %s holds the store of a standalone process, which NATS would delete if it started clustered on it: choose an empty directory and copy the contents", dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return layout{}, fmt.Errorf("cluster: %w", err)
	}
	path := filepath.Join(dir, layoutName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(dir, engineName)); err == nil {
			return layout{}, fmt.Errorf("cluster: %s holds a NATS store and no file %s that says whose it is: choose another directory", dir, layoutName)
		}
		return want, writeLayout(dir, want)
	}
	if err != nil {
		return layout{}, fmt.Errorf("cluster: %w", err)
	}
	have, err := parseLayout(string(text))
	if err != nil {
		return layout{}, fmt.Errorf("cluster: %s: %w; restore it or choose another directory", path, err)
	}
	if want.site == "" && have.shape == shapeNone {
		want.site = have.site
	}
	differs := func(what, has, wants string) error {
		return fmt.Errorf("cluster: %s belongs to %s %q, not to %q: choose another directory, or delete this one if nothing in it is needed any more", dir, what, has, wants)
	}
	switch {
	case have.cluster != want.cluster:
		return layout{}, differs("cluster", have.cluster, want.cluster)
	case have.site != "" && have.site != want.site:
		return layout{}, differs("site", have.site, want.site)
	case have.node != want.node:
		return layout{}, differs("node", have.node, want.node)
	case have.shape == shapeGrowing && want.shape != shapeNone:
		if err := putBack(dir); err != nil {
			return layout{}, err
		}
		want.shape = shapeSingle
	case have.shape == want.shape, want.shape == shapeNone:
	case have.shape == shapeRemoved:
		return layout{}, errRemoved(dir)
	case have.shape != shapeNone:
		want.shape = have.shape
	}
	if have.shape != shapeNone && want.shape == shapeNone {
		want.shape = have.shape // the store of the core that it was stays
	}
	return want, writeLayout(dir, want)
}

// hubName is the file that says whether a core's site is the hub. It is not a line of [layoutName], so that an earlier
// version can open the directory still.
const hubName = "anteroom-hub"

// Whose core a directory belongs to, as [hubName] has it.
const (
	ofHub  = "hub\n"
	ofSite = "site\n"
)

func hubText(hub bool) string {
	if hub {
		return ofHub
	}
	return ofSite
}

// checkHub refuses a directory of a core whose site was the hub where it no longer is, and the reverse: a second hub would
// grant all units once more.
func checkHub(dir string, cfg ClusterConfig) error {
	have, err := keptHub(dir)
	switch {
	case err != nil:
		return err
	case have == ofSite && len(cfg.Hub) == 0:
		return fmt.Errorf("cluster: %s belongs to a core of site %q, which is not the hub, and the configuration lists no hub: a second hub would grant all units once more; list the cores of the hub in hub as before, or choose another directory", dir, cfg.Site)
	case have == ofHub && len(cfg.Hub) > 0:
		return fmt.Errorf("cluster: %s belongs to a core of the hub, and the configuration lists %s as the hub: the configuration and the units granted would stay behind in it; remove hub, or choose another directory", dir, strings.Join(cfg.Hub, ", "))
	}
	return nil
}

// keptHub returns what the directory says. Earlier versions wrote nothing down, but what all sites share is stored by the
// hub, and the others have a mirror of it. It returns "" for a directory that has neither: its core has never reached the hub.
func keptHub(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, hubName))
	if err == nil {
		if have := string(text); have == ofHub || have == ofSite {
			return have, nil
		}
		return "", fmt.Errorf("cluster: %s is %.60q, neither %q nor %q: write the right one", filepath.Join(dir, hubName), text, strings.TrimSpace(ofHub), strings.TrimSpace(ofSite))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cluster: %w", err)
	}
	stores := func(stream string) bool {
		for _, engine := range []string{engineName, filepath.Join(beforeName, engineName)} {
			if _, err := os.Stat(filepath.Join(dir, engine, accountShared, "streams", stream)); err == nil {
				return true
			}
		}
		return false
	}
	switch origin, mirror := stores(sharedKeys), stores(mirrorPrefix+sharedKeys); {
	case origin && !mirror:
		return ofHub, nil
	case mirror && !origin:
		return ofSite, nil
	}
	return "", nil // with both, an earlier version was started as both
}

// noteHub writes down whether the core's site is the hub, once it has found what all sites share. A core that never has
// may have been configured wrongly, and can be put right.
func (a *attachment) noteHub() error {
	if !a.core {
		return nil
	}
	return writeFile(a.cfg.Dir, hubName, hubText(a.isHub()))
}

func writeLayout(dir string, l layout) error { return writeFile(dir, layoutName, l.String()) }

// keptCores returns the list of cores that the store in a directory was shared with last.
func keptCores(dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, coresName))
	if err != nil {
		return nil, fmt.Errorf("cluster: %s holds the store of one of several cores: list them in cores as before; anteroom cluster shrink then makes this core the only one: %w", dir, err)
	}
	return strings.Fields(string(text)), nil
}

// writeFile replaces a file so that it is there whole or not at all. One that is as it should be stays, because a core
// must start on a full disk, too.
func writeFile(dir, name, text string) error {
	path := filepath.Join(dir, name)
	if have, err := os.ReadFile(path); err == nil && string(have) == text {
		return nil
	}
	f, err := os.CreateTemp(dir, name+"-*")
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("cluster: %s: %w", path, err)
	}
	return nil
}
