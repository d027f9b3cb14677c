package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage/webhook"
)

func webhookCommand() *cobra.Command {
	cmd := group("webhook", "Send webhooks and inspect deliveries")
	cmd.Long = `Send a webhook when something happens in a room: ` + strings.Join(anteroom.Happenings(), ", ") + `.
Each delivery is signed with a secret that is shown once, and retried for a day. docs/webhooks.md describes the
payloads and how a receiver verifies them.`
	cmd.Example = `  anteroom webhook create "on call" https://hooks.example.com/anteroom
  anteroom webhook create sales https://hooks.slack.com/services/… --format slack --events room.queueing,room.recovered
  anteroom webhook test "on call"`
	r := remoteFlags(cmd)
	cmd.AddCommand(webhookList(r), webhookCreate(r), webhookSet(r), formerly("change", "set", webhookSet(r)), webhookTest(r), webhookDeliveries(r), webhookRotate(r), webhookDelete(r), webhookVerify())
	return cmd
}

func webhookPath(w schema.Webhook) string {
	return ours + "/webhooks/" + url.PathEscape(string(w.ID))
}

// findWebhook finds only those that the token may change: the API lists no others.
var findWebhook = listed(ours+"/webhooks", "webhook", func(w schema.Webhook) (id, name string) { return string(w.ID), w.Name })

func webhookList(r *remote) *cobra.Command {
	return listing(r, &cobra.Command{Use: "list", Short: "List the webhooks that your token can change", Args: noArgs}, ours+"/webhooks",
		func(w io.Writer, known places, all []schema.Webhook) error {
			t := newTable(w, "WEBHOOK", "EVENTS", "SCOPE", "FORMAT", "ENABLED", "URL", "ID")
			for _, one := range all {
				host := one.URL
				if u, err := url.Parse(one.URL); err == nil { // the rest may be a secret
					host = u.Host
				}
				t.row(one.Name, cmp.Or(strings.Join(one.Events, " "), "all"), known.of(one.Zone, one.Room, "all rooms"), one.Format, one.Enabled, host, one.ID)
			}
			return t.Flush()
		})
}

// webhookFlags are what a webhook can be made or changed with.
type webhookFlags struct {
	format, zone, room           string
	events                       []string
	longer, before, saturatedFor int
	disabled                     bool
}

func (w *webhookFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.format, "format", anteroom.FormatJSON, "json, slack or teams")
	f.StringSliceVar(&w.events, "events", nil, "only these `types`, separated by commas; by default all")
	f.StringVar(&w.zone, "zone", "", "only rooms of the zone with this `name`")
	f.StringVar(&w.room, "room", "", "only this `room`, as ZONE/NAME")
	f.IntVar(&w.longer, "longer-than", anteroom.DefaultLongerThan, "room.queue_longer: when the queue is longer than this")
	f.IntVar(&w.before, "minutes-before", anteroom.DefaultMinutesBefore, "room.event_starting: minutes before the start")
	f.IntVar(&w.saturatedFor, "saturated-minutes", anteroom.DefaultSaturatedMinutes, "room.limit_saturated: after this many minutes")
	f.BoolVar(&w.disabled, "disabled", false, "send nothing until the webhook is enabled")
}

// body has the members of the flags that were given.
func (w *webhookFlags) body(ctx context.Context, c *client.Client, cmd *cobra.Command) (map[string]any, error) {
	body := map[string]any{}
	given := cmd.Flags().Changed
	for flag, set := range map[string]func(){
		"format":            func() { body["format"] = w.format },
		"events":            func() { body["events"] = w.events },
		"longer-than":       func() { body["longer_than"] = w.longer },
		"minutes-before":    func() { body["minutes_before"] = w.before },
		"saturated-minutes": func() { body["saturated_minutes"] = w.saturatedFor },
		"disabled":          func() { body["enabled"] = !w.disabled },
	} {
		if given(flag) {
			set()
		}
	}
	switch {
	case given("room"):
		rm, err := findRoom(ctx, c, w.room)
		if err != nil {
			return nil, err
		}
		body["zone"], body["room"] = rm.Zone.ID, rm.ID
	case given("zone"):
		z, err := findZone(ctx, c, w.zone)
		if err != nil {
			return nil, err
		}
		body["zone"], body["room"] = z.ID, nil
	}
	return body, nil
}

func webhookCreate(r *remote) *cobra.Command {
	var flags webhookFlags
	cmd := &cobra.Command{Use: "create NAME URL", Short: "Create a webhook and print its secret, once", Args: names("NAME", "URL")}
	flags.add(cmd)
	return action(r, cmd, func(ctx context.Context, c *client.Client, args []string) (w schema.NewWebhook, err error) {
		body, err := flags.body(ctx, c, cmd)
		if err != nil {
			return w, err
		}
		body["name"], body["url"] = args[0], args[1]
		return w, c.Do(ctx, http.MethodPost, ours+"/webhooks", nil, body, &w)
	}, showWebhookSecret)
}

func showWebhookSecret(out io.Writer, w schema.NewWebhook) error {
	_, err := fmt.Fprintf(out, "%s\nThis is the secret that signs the payloads of webhook %s. It is not shown again.\n", w.Secret, shown(w.Name))
	return err
}

func webhookSet(r *remote) *cobra.Command {
	var flags webhookFlags
	var name, to string
	cmd := &cobra.Command{Use: "set WEBHOOK", Short: "Change the settings named by the flags; --disabled=false enables the webhook", Args: names("WEBHOOK")}
	flags.add(cmd)
	cmd.Flags().StringVar(&name, "name", "", "another `name`")
	cmd.Flags().StringVar(&to, "url", "", "another `URL`")
	return on(r, cmd, findWebhook, func(ctx context.Context, c *client.Client, w schema.Webhook, _ []string) (schema.Webhook, error) {
		body, err := flags.body(ctx, c, cmd)
		if err != nil {
			return w, err
		}
		if cmd.Flags().Changed("name") {
			body["name"] = name
		}
		if cmd.Flags().Changed("url") {
			body["url"] = to
		}
		if len(body) == 0 {
			return w, usageError{fmt.Errorf("no flag says what to change; see %s --help", cmd.CommandPath())}
		}
		return w, c.Do(ctx, http.MethodPatch, webhookPath(w), nil, body, &w)
	}, show[schema.Webhook](say(func(w schema.Webhook) string { return webhookCalled(w) + " changed." })))
}

func webhookTest(r *remote) *cobra.Command {
	cmd := &cobra.Command{Use: "test WEBHOOK", Short: "Send a test event; exit code 1 if the receiver does not accept it", Args: names("WEBHOOK")}
	do := func(ctx context.Context, c *client.Client, w schema.Webhook, _ []string) (d schema.Delivery, err error) {
		if err := c.Do(ctx, http.MethodPost, webhookPath(w)+"/test", nil, nil, &d); err != nil {
			return d, err
		}
		if d.State != anteroom.DeliveryDelivered && d.Error != nil {
			return d, fmt.Errorf("the receiver of webhook %s did not accept the test: %s", w.Name, *d.Error)
		}
		return d, nil
	}
	return on(r, cmd, findWebhook, do, show[schema.Webhook](say(func(d schema.Delivery) string {
		return fmt.Sprintf("The receiver accepted it after %d ms.", d.Milliseconds)
	})))
}

func webhookDeliveries(r *remote) *cobra.Command {
	return on(r, &cobra.Command{Use: "deliveries WEBHOOK", Short: "List recent deliveries, newest first", Args: names("WEBHOOK")}, findWebhook,
		func(ctx context.Context, c *client.Client, w schema.Webhook, _ []string) ([]schema.Delivery, error) {
			return every[schema.Delivery](ctx, c, webhookPath(w)+"/deliveries", nil)
		}, func(w io.Writer, _ schema.Webhook, all []schema.Delivery) error {
			t := newTable(w, "WHEN", "TYPE", "STATE", "ATTEMPTS", "NEXT", "ERROR", "TEXT")
			for _, d := range all {
				t.row(moment(&d.CreatedOn), d.Type, d.State, d.Attempts, moment(d.NextOn), schema.Value(d.Error), d.Text)
			}
			return t.Flush()
		})
}

func webhookRotate(r *remote) *cobra.Command {
	cmd := &cobra.Command{Use: "rotate WEBHOOK", Short: "Rotate the secret of a webhook; both secrets sign for a while", Args: names("WEBHOOK")}
	return rotation(r, cmd, "how long the old secret also signs; 0s ends it now", findWebhook, webhookPath, showWebhookSecret)
}

func webhookDelete(r *remote) *cobra.Command {
	return removal(r, &cobra.Command{Use: "delete WEBHOOK", Short: "Delete a webhook", Args: names("WEBHOOK")}, findWebhook, webhookPath, webhookCalled)
}

func webhookCalled(w schema.Webhook) string { return "Webhook " + shown(w.Name) }

// webhookVerify checks what a receiver got; it needs no running Anteroom.
func webhookVerify() *cobra.Command {
	var signature, key, at string
	cmd := &cobra.Command{Use: "verify", Short: "Verify the signature of a payload on standard input; needs no server", Args: noArgs}
	cmd.Example = `  anteroom webhook verify --signature "t=1795770000,v1=…" < body.json`
	f := cmd.Flags()
	f.StringVar(&signature, "signature", "", "`value` of the header "+webhook.SignatureHeader)
	f.StringVar(&key, "secret", "", "the webhook's `secret`; better set ANTEROOM_WEBHOOK_SECRET, or ANTEROOM_WEBHOOK_SECRET_FILE to the name of its file")
	f.StringVar(&at, "at", "", "`time` of arrival, like 2026-11-27T10:00:00Z (default now)")
	needs(cmd, "signature")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		key, err := secret(key, "ANTEROOM_WEBHOOK_SECRET")
		if err != nil {
			return err
		}
		if key == "" {
			return usageError{fmt.Errorf("%s needs the secret: use --secret or ANTEROOM_WEBHOOK_SECRET", cmd.CommandPath())}
		}
		now := time.Now()
		if at != "" {
			if now, err = anteroom.Stamp(at).Time(); err != nil {
				return usageError{fmt.Errorf("--at %w", err)}
			}
		}
		const most = 1 << 20
		body, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), most+1))
		if err != nil {
			return err
		}
		if len(body) > most {
			return fmt.Errorf("the body has more than %d bytes, more than any delivery", most)
		}
		if err := webhook.Verify(signature, body, key, now, webhook.DefaultTolerance); err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), "The signature is valid.")
		return err
	}
	return cmd
}
