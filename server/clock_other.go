//go:build !linux

package server

import "github.com/anteroom/anteroom/manage"

// systemClock knows nothing here.
func systemClock() manage.Clock { return manage.ClockUnknown }
