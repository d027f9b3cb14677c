package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/api/inventory"
)

func configCommand() *cobra.Command {
	from := group("import", "Import rooms of other installations and other systems", importCloudflare(),
		importFile("aws", "stacks of an AWS Virtual Waiting Room", "aws cloudformation describe-stacks > stacks.json", "stacks.json"),
		importFile("queue-it", "the integration configuration of Queue-it's connectors", "", "integrationconfig.json"),
		importFile("fastly", "the configuration of one of Fastly's two published starters", "", "config.js"))
	to := group("export", "Export zones, rooms, events, rules and settings", exportTerraform())
	return group("config", "Show, compare and format the configuration; import and export rooms", configShow(), configDiff(), configFormat(), from, to)
}

const cloudflareAPI = "https://api.cloudflare.com/client/v4"

func importCloudflare() *cobra.Command {
	var from, token string
	var zones []string
	var out string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "cloudflare [FILE]",
		Short: "Import zones, rooms, events, rules and settings from a compatible API, or rooms from its saved answer",
		Long: `Read zones, rooms, events, rules and settings from a compatible API, and create or change them
here until both are the same. Zones, rooms and events are matched by name. Nothing is deleted
except rules, because a room's rules are one list. Running it again changes nothing more. Zones
without rooms are skipped. With FILE, an answer of that API, write its rooms to a configuration file.`,
		Example: `  anteroom config import cloudflare --dry-run
  CLOUDFLARE_API_TOKEN=… anteroom config import cloudflare --zone example.com
  anteroom config import cloudflare --out rooms.yaml
  anteroom config import cloudflare waiting_rooms.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return noArgs(cmd, args)
		},
	}
	r := remoteFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&from, "from", cloudflareAPI, "`URL` of the API to read from, up to /client/v4")
	f.StringVar(&token, "from-token", "", "`token` for that API; better set CLOUDFLARE_API_TOKEN, or CLOUDFLARE_API_TOKEN_FILE to the name of its file")
	f.StringArrayVar(&zones, "zone", nil, "only the zone with this `name`; repeatable")
	f.StringVar(&out, "out", "", "write the rooms to a YAML `file` for the configuration instead; - is standard output")
	f.BoolVar(&dryRun, "dry-run", false, "only show what would change, and what would be refused")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			for _, flag := range []string{"from", "from-token", "zone", "dry-run"} {
				if f.Changed(flag) {
					return usageError{fmt.Errorf("--%s is for the API, and does not go with a file", flag)}
				}
			}
			return moveFile(cmd, r.output, "cloudflare", args[0], cmp.Or(out, "anteroom.yaml"))
		}
		if out != "" && dryRun {
			return usageError{errors.New("--out already changes nothing here: use either --out or --dry-run")}
		}
		token, err := secret(token, "CLOUDFLARE_API_TOKEN")
		if err != nil {
			return err
		}
		source, err := client.New(client.Config{URL: from, Token: token, Patient: true, UserAgent: "anteroom/" + versionString()})
		if err != nil {
			return err
		}
		there, err := inventory.Read(cmd.Context(), source, zones...)
		if err != nil {
			return fmt.Errorf("reading %s: %w\nuse --from to say where the API is, and --from-token or CLOUDFLARE_API_TOKEN to pass a token that can read zones and waiting rooms", from, err)
		}
		if out != "" {
			return writeTo(cmd, out, there.YAML)
		}
		here, at, err := r.inventory(cmd.Context())
		if err != nil {
			return advise(err)
		}
		if dryRun {
			if here, err = r.rehearsal(); err != nil {
				return err
			}
		}
		changes := inventory.Changes(there, at)
		failed := 0
		results := make([]changeResult, 0, len(changes))
		for _, ch := range changes {
			one := changeResult{Change: ch}
			if err := ch.Apply(cmd.Context(), here); err != nil {
				failed++
				one.Error = err.Error()
			}
			results = append(results, one)
			if r.people() {
				one.show(cmd.OutOrStdout(), dryRun)
			}
			if cmd.Context().Err() != nil {
				return exitError{exitInterrupted, errors.New("interrupted; the changes above are done, and the same command continues")}
			}
		}
		if !r.people() {
			if err := r.data(cmd.OutOrStdout(), map[string]any{"dry_run": dryRun, "changes": results}); err != nil {
				return err
			}
		} else {
			n, rooms, events := there.Counts()
			fmt.Fprintf(cmd.OutOrStdout(), "Read %s, %s, %s; ", count(n, "zone"), count(rooms, "room"), count(events, "event"))
			switch {
			case len(changes) == 0:
				fmt.Fprintln(cmd.OutOrStdout(), "nothing to change.")
			case dryRun:
				fmt.Fprintf(cmd.OutOrStdout(), "%s to make.\n", count(len(changes), "change"))
			default:
				fmt.Fprintf(cmd.OutOrStdout(), "%s made.\n", count(len(changes)-failed, "change"))
			}
		}
		if failed > 0 && dryRun {
			return fmt.Errorf("%s would fail; fix the errors above first", count(failed, "change"))
		}
		if failed > 0 {
			return fmt.Errorf("%s failed; fix the errors above and run the same command again", count(failed, "change"))
		}
		return nil
	}
	return cmd
}

// rehearsal returns the client of a copy of what is here, which ends by itself.
func (r *remote) rehearsal() (*client.Client, error) {
	c, err := r.client()
	if err != nil {
		return nil, err
	}
	return c.Below(ours + "/rehearsals/" + rand.Text() + published), nil
}

// inventory reads what is here, and returns the client whose paths begin where those of the
// published API do.
func (r *remote) inventory(ctx context.Context, zones ...string) (*client.Client, *inventory.Inventory, error) {
	c, err := r.client()
	if err != nil {
		return nil, nil, err
	}
	c = c.Below(published)
	inv, err := inventory.Read(ctx, c, zones...)
	return c, inv, err
}

// changeResult is a change and what came of it.
type changeResult struct {
	inventory.Change
	Error string `json:"error,omitempty"`
}

func (ch changeResult) show(w io.Writer, dryRun bool) {
	sign := "~"
	if ch.New {
		sign = "+"
	}
	fmt.Fprintf(w, "%s %s %s\n", sign, ch.What, shown(ch.Where))
	for _, d := range ch.Differences {
		if ch.New {
			fmt.Fprintf(w, "    %s: %s\n", d.Member, inline(d.New))
		} else {
			fmt.Fprintf(w, "    %s: %s -> %s\n", d.Member, inline(d.Old), inline(d.New))
		}
	}
	if ch.Error != "" && dryRun {
		fmt.Fprintf(w, "    would fail: %s\n", shown(ch.Error))
	} else if ch.Error != "" {
		fmt.Fprintf(w, "    failed: %s\n", shown(ch.Error))
	}
}

// inline is a value in one line.
func inline(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return shown(short(string(b)))
}

// writeTo writes to a file, or to standard output for "-".
func writeTo(cmd *cobra.Command, name string, content func(io.Writer) error) error {
	if name == "-" {
		return content(cmd.OutOrStdout())
	}
	if _, err := os.Stat(name); err == nil {
		return fmt.Errorf("%s already exists; move it or use another name", name)
	}
	return saveFile(name, content)
}

func exportTerraform() *cobra.Command {
	var zones []string
	var out string
	cmd := &cobra.Command{
		Use:   "terraform",
		Short: "Export everything as resources of the cloudflare provider, version 5, with import blocks",
		Long: `Write zone settings, rooms, events and rules as resources of the cloudflare provider, version 5,
with import blocks for what exists. The provider then manages Anteroom: set its base_url, or
CLOUDFLARE_BASE_URL, to this API, and pass it a token.`,
		Example: `  anteroom config export terraform --out rooms.tf
  CLOUDFLARE_BASE_URL=` + defaultAPI + published + ` terraform plan`,
		Args: noArgs,
	}
	r := remoteFlags(cmd)
	cmd.Flags().MarkHidden("json") // it prints Terraform's language
	cmd.Flags().MarkHidden("output")
	cmd.Flags().StringArrayVar(&zones, "zone", nil, "only the zone with this `name`; repeatable")
	cmd.Flags().StringVar(&out, "out", "", "`file` to write; by default standard output")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		_, inv, err := r.inventory(cmd.Context(), zones...)
		if err != nil {
			return advise(err)
		}
		return writeTo(cmd, cmp.Or(out, "-"), inv.Terraform)
	}
	return cmd
}
