//go:build !linux || race

package socket

import "errors"

// Pipe is room in the kernel between two connections. There is none on this system, nor for the race detector, which does
// not see what passes through it.
type Pipe struct{}

// TakePipe returns nil.
func TakePipe() *Pipe { return nil }

// Give does nothing.
func (p *Pipe) Give() {}

// Fill has an error.
func (p *Pipe) Fill(*Conn, int64) (int, error) { return 0, errors.ErrUnsupported }

// Drain has an error.
func (p *Pipe) Drain(*Conn, int) (int, error) { return 0, errors.ErrUnsupported }

// Held is 0.
func (p *Pipe) Held() int { return 0 }
