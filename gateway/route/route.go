// Package route says which waiting room covers a request.
//
// A request reaches an origin that may read its path in ways of its own: decode it
// once or twice, remove dot segments, merge slashes, take a backslash for a slash, drop
// ";parameters", ignore case. No normal form of ours can agree with all of them, so the
// package takes the union: a room covers a request if any of the [Interpretations] of
// its path is inside one of the room's routes. Whatever the origin makes of the path, it
// errs toward the room, and the origin still receives the path as it came.
//
// The room is found in this order:
//
//  1. Rooms that name the host come before rooms for "*".
//  2. Among the routes that some interpretation is inside of, the longest path wins.
//  3. Between paths of one length: the interpretation nearest to the raw path, then the
//     path whose case agrees.
//
// A path matches at segment boundaries: "/shop" covers "/shop" and "/shop/cart" and not
// "/shopping". It also covers "/shop." and "/shop::$DATA", which Windows serves as "/shop", and
// unless the room says otherwise "/shop.json", and "/index.php/shop", which PHP applications serve
// as "/shop" (suffix.go). The query plays no part.
//
// What is not a host at all is [ErrHost]; what is not a path, or could be read in too
// many ways, is [ErrTarget]; a host that nobody asked us to serve is [ErrUnknownHost],
// so that an unknown name never passes as "no room".
package route

import (
	"fmt"

	"github.com/anteroom/anteroom"
)

// The three ways in which [Table.Lookup] refuses. The errors that it returns wrap one of
// these and do not repeat what the client sent.
var (
	// ErrHost: the host is missing or not in a form that can only mean one thing (400).
	ErrHost = anteroom.Errorf(anteroom.Invalid, "the host is not valid")
	// ErrUnknownHost: the host is valid and not served here (421).
	ErrUnknownHost = anteroom.Errorf(anteroom.NotFound, "the host is not served here")
	// ErrTarget: the request target is not a path or is ambiguous beyond reason (400).
	ErrTarget = anteroom.Errorf(anteroom.Invalid, "the request target is not valid")
)

func badHost(why string) error   { return fmt.Errorf("%w: %s", ErrHost, why) }
func badTarget(why string) error { return fmt.Errorf("%w: %s", ErrTarget, why) }
