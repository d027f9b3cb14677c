//go:build !linux

package network

import (
	"context"
	"errors"
)

// Namespaces are Linux's.
func Namespaces(context.Context, []string) (Network, error) {
	return nil, errors.New("network namespaces need Linux")
}
