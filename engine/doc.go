// Package engine decides who is admitted. (Derivation: see the end of this comment.)
package engine
