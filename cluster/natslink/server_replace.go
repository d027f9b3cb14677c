package natslink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/anteroom/anteroom/cluster"
)

// RemoveCore makes the cores of a link's site forget the core that the node was, see
// docs/cluster.md. The link must be that of another core of the site.
func RemoveCore(ctx context.Context, l cluster.Link, node string) error {
	j, ok := l.(*joined)
	if !ok {
		return errNoCluster
	}
	return j.att.removeCore(ctx, node)
}

// removeCore makes the cores of the site forget a core that is gone for good, so that it no
// longer counts for their majority, and what it kept is copied to one that takes its place.
// It works on any core while a majority is there.
func (a *attachment) removeCore(ctx context.Context, node string) error {
	if a.system == nil {
		return errors.New("cluster: only a core can remove another core of its site: ask at one")
	}
	if node == a.cfg.Node {
		return fmt.Errorf("cluster: %q is this core: stop it and ask at another", node)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*apiTimeout)
	defer cancel()
	request, err := json.Marshal(struct {
		Server string `json:"peer"`
	}{a.siteOf() + "." + node})
	if err != nil {
		return fmt.Errorf("natslink: %w", err)
	}
	for {
		m, err := a.system.RequestWithContext(ctx, "$JS.API.SERVER.REMOVE", request)
		if err != nil {
			return fmt.Errorf("%w: the cores of the site have no leader now: %w", cluster.ErrUnavailable, err)
		}
		var answer struct {
			Success bool `json:"success"`
			Error   *struct {
				Description string `json:"description"`
			} `json:"error"`
		}
		if err := json.Unmarshal(m.Data, &answer); err != nil {
			return fmt.Errorf("natslink: answer %.80q: %w", m.Data, err)
		}
		if answer.Error == nil {
			return nil
		}
		// The core that takes its place may have come a moment ago.
		if !strings.Contains(answer.Error.Description, "member change is in progress") || !pause(ctx, maxBackoff/2) {
			return fmt.Errorf("cluster: core %q is not removed: %s", node, answer.Error.Description)
		}
	}
}
