package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/api/client"
)

const (
	// transferTime bounds what is longer than an answer: a backup, the ids of a shuffle.
	transferTime = 10 * time.Minute
	// maxTransfer bounds its size: more than any backup can have.
	maxTransfer = 1 << 30
)

// download copies what is not in the envelope.
func download(ctx context.Context, c *client.Client, path string, q url.Values, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, transferTime)
	defer cancel()
	return c.Download(ctx, path, q, w, maxTransfer)
}

func backupCommand() *cobra.Command {
	var keys bool
	cmd := &cobra.Command{Use: "backup FILE", Short: "Back up zones, rooms, events, rules, lists and tokens to a file (- for standard output)", Args: names("FILE"),
		Long: `Back up zones, rooms, events, rules, lists, the audit log and tokens (as hashes) to a file, or to
standard output if FILE is -. With --keys the backup includes the ticket keys, so that tickets stay
valid where it is restored. Anyone who has such a file can make tickets: keep it secret. A backup
never includes queues and sessions.`,
		Example: `  anteroom backup shop.backup`}
	cmd.Flags().BoolVar(&keys, "keys", false, "include the keys that seal tickets")
	r := remoteFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := r.client()
		if err != nil {
			return err
		}
		q := url.Values{"keys": {strconv.FormatBool(keys)}}
		return r.fetched(cmd, "Backup", args[0], func(w io.Writer) error { return download(cmd.Context(), c, ours+"/backup", q, w) })
	}
	return cmd
}

// fetched writes what comes from the API to a file, or to standard output for "-". What says what it is, like "Backup".
func (r *remote) fetched(cmd *cobra.Command, what, name string, content func(io.Writer) error) error {
	if name == "-" {
		return advise(content(cmd.OutOrStdout()))
	}
	n, err := saveWhole(name, content)
	if err != nil {
		return advise(err)
	}
	return put(r.output, cmd.OutOrStdout(), map[string]any{"file": name, "bytes": n}, say(func(map[string]any) string {
		return fmt.Sprintf("%s written to %s, %d bytes.", what, name, n)
	}))
}

// saveWhole writes a file that nobody else may read, in one step: an old one stays until the
// new one is whole. A link stays, and nothing but a file is replaced: root could replace /dev/stdout.
func saveWhole(name string, content func(io.Writer) error) (bytes int64, err error) {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s is not a file: name a file, or - for standard output", name)
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			os.Remove(file.Name())
		}
	}()
	err = errors.Join(content(file), file.Sync())
	if info, e := file.Stat(); e == nil {
		bytes = info.Size()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return 0, err
	}
	return bytes, os.Rename(file.Name(), name)
}
