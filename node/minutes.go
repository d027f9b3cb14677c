package node

import "github.com/anteroom/anteroom/analytics"

// Minutes returns what this process has recorded of its rooms since it was called last: each
// minute that has changed, as a whole. With again, minutes that have ended are told some more
// times, for processes that did not hear them. Call it once a second.
func (n *Node) Minutes(again bool) []*analytics.Minute { return nil }
