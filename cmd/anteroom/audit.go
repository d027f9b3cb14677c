package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage"
)

func auditCommand() *cobra.Command {
	cmd := group("audit", "Show and verify the audit log")
	r := remoteFlags(cmd)
	cmd.AddCommand(auditShow(r), auditVerify(r))
	return cmd
}

func auditShow(r *remote) *cobra.Command {
	var after uint64
	var last int
	cmd := &cobra.Command{Use: "show", Short: "Show the audit log, newest last", Args: noArgs}
	cmd.Flags().Uint64Var(&after, "after", 0, "show records after the one with this `number`, up to --last of them")
	cmd.Flags().IntVar(&last, "last", 100, "how many records to show")
	return action(r, cmd, func(ctx context.Context, c *client.Client, _ []string) (records []manage.AuditRecord, err error) {
		q := url.Values{"last": {strconv.Itoa(last)}}
		if cmd.Flags().Changed("after") {
			q = url.Values{"after": {strconv.FormatUint(after, 10)}, "limit": {strconv.Itoa(last)}}
		}
		return records, c.Do(ctx, http.MethodGet, ours+"/audit", q, nil, &records)
	}, func(w io.Writer, records []manage.AuditRecord) error {
		t := newTable(w, "NO.", "AT", "BY", "FROM", "WHAT", "OF", "CHANGED")
		for _, one := range records {
			var changed []string
			for _, c := range one.Changes {
				changed = append(changed, c.Field)
			}
			t.row(one.Seq, one.At.Format(time.RFC3339), one.Actor, one.Address, one.Operation, cmp.Or(one.Name, one.Object), short(strings.Join(changed, " ")))
		}
		return t.Flush()
	})
}

func auditVerify(r *remote) *cobra.Command {
	return action(r, &cobra.Command{Use: "verify", Short: "Check that no record is missing or changed", Args: noArgs},
		func(ctx context.Context, c *client.Client, _ []string) (v schema.Verified, err error) {
			return v, c.Do(ctx, http.MethodGet, ours+"/audit/verify", nil, nil, &v)
		}, say(func(v schema.Verified) string {
			return fmt.Sprintf("%s, each follows from the one before. The hash of the last one is\n%s\nKeep it somewhere else: a log that somebody rewrites ends with another hash.", count(v.Records, "record"), v.Head)
		}))
}
