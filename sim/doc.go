// Package sim is a world in one process: visitors, nodes, sites and a coordinator under
// virtual time, on a network that delays, loses, repeats, reorders and cuts. It runs the
// product's own machines (package engine) and never a second implementation of them; a
// seed goes in, and the same trace comes out, byte for byte.
//
// It serves twice. Engineers search with it for runs in which a promise breaks: the checks
// (see Checks) look at every step, from outside, with books of their own. Operators plan
// with it: what will a sale look like, and what would other limits change.
//
// A [Scenario] says what comes, what may enter, where, and what goes wrong; [Run] runs it
// and returns a [Result]. The same scenario runs with the ways of sharing slots that others
// have published ([Algorithms]), so that the difference can be seen.
package sim
