package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/server"
)

func getCluster(ctx context.Context, c *client.Client, _ []string) (st manage.ClusterStatus, err error) {
	return st, c.Do(ctx, http.MethodGet, ours+"/cluster", nil, nil, &st)
}

func clusterCommand() *cobra.Command {
	cmd := group("cluster", "Show and change the nodes of a cluster")
	cmd.Long = `Show and change the nodes of a cluster. status shows the nodes of one site, which node holds which
role, and all sites as the coordinators of the rooms see them. The other commands change the cores and
sites of a cluster while visitors are served; they need a token with the admin permission. A node joins
by starting with the configuration that docs/cluster.md describes; edge makes the secret of an edge.`
	cmd.Example = `  anteroom cluster status
  anteroom cluster status --api http://10.0.0.2:8081 --json
  anteroom cluster add
  anteroom cluster shrink
  anteroom cluster remove dublin-3 --api http://10.0.0.3:8081
  anteroom cluster replace dublin-3 dublin-4
  anteroom cluster forget tokyo
  (umask 077; anteroom cluster edge edge-1 --secret-file secret > edge-1.secret)`
	r := remoteFlags(cmd)
	cmd.AddCommand(action(r, &cobra.Command{Use: "status", Short: "Show nodes, roles and sites", Args: noArgs}, getCluster, showCluster))

	cmd.AddCommand(action(r, &cobra.Command{
		Use: "add", Short: "Turn a standalone process into a core, or one core into several", Args: noArgs,
		Long: `Turn a standalone process into a core, or the only core of a site into one of several. First list the
cores in cluster.cores, the one that has the data first, in the configuration of each of them, and
start the others with empty data directories: they wait. Then send this command to the one that has
the data. It reads its configuration file again and brings its data to the others. Sessions and places
continue, and new visitors wait a few seconds. If the others cannot be reached, nothing changes.`,
		Example: `  anteroom cluster add --api http://10.0.0.1:8081`,
	}, addCores, say(func(now manage.AddedCores) string {
		switch {
		case now.Cores == 1:
			return "This process is a core now. Other nodes can join."
		case !now.Complete:
			return fmt.Sprintf("This core is one of %d now, and the others are still copying. anteroom doctor shows when they are done.", now.Cores)
		}
		return fmt.Sprintf("This core is one of %d now. All copies are complete.", now.Cores)
	})))
	cmd.AddCommand(action(r, &cobra.Command{
		Use: "shrink", Short: "Make a core the only one of its site", Args: noArgs,
		Long: `Make a core the only one of its site. First remove cluster.cores from its configuration file. Then send
this command to it: the other cores hand over their roles and stop, and this one keeps all data. New
visitors wait a few seconds. Disable the services of the other cores: they do not start again.`,
		Example: `  anteroom cluster shrink --api http://10.0.0.1:8081`,
	}, func(ctx context.Context, c *client.Client, _ []string) (out schema.None, err error) {
		return out, c.Do(ctx, http.MethodPost, ours+"/cluster/shrink", nil, nil, &out)
	}, say(func(schema.None) string { return "This core is the only one of its site now." })))

	var force bool
	remove := &cobra.Command{
		Use: "remove NODE", Short: "Remove a core, so that it no longer counts toward the majority", Args: names("NODE"),
		Long: `Remove a core, so that it no longer counts toward the majority. Send the command to the core itself:
it hands over its roles, leaves and stops, and does not start again as a core on its data directory.
A core that does not run is removed at another core of the same site. The command refuses to leave
one core, or no majority.`,
		Example: `  anteroom cluster remove dublin-3 --api http://10.0.0.3:8081
  anteroom cluster remove dublin-3 --force`,
	}
	remove.Flags().BoolVar(&force, "force", false, "remove the core even if it runs and this is another node")
	cmd.AddCommand(action(r, remove, func(ctx context.Context, c *client.Client, args []string) (out schema.Removed, err error) {
		q := url.Values{}
		if force {
			q.Set("force", "true")
		}
		return out, c.Do(ctx, http.MethodDelete, ours+"/cluster/nodes/"+url.PathEscape(args[0]), q, nil, &out)
	}, say(func(was schema.Removed) string { return "Core " + shown(was.ID) + " was removed. If it ran, it stops." })))

	replace := &cobra.Command{
		Use: "replace LOST NEW", Short: "Remove a lost core whose place another core has taken", Args: names("LOST", "NEW"),
		Long: `Remove a lost core whose place another core has taken. First start the new core under the address of
the lost one, with another name and an empty data directory, while all other cores run. Then send the
command to any core of the site. It waits some seconds until every core has a complete copy.`,
		Example: `  anteroom cluster replace dublin-3 dublin-4`,
	}
	replace.Flags().BoolVar(&force, "force", false, "replace the core even if it still runs")
	cmd.AddCommand(action(r, replace, func(ctx context.Context, c *client.Client, args []string) (out schema.Replaced, err error) {
		return out, c.Do(ctx, http.MethodPost, ours+"/cluster/nodes/"+url.PathEscape(args[0])+"/replace", nil, schema.Replacement{By: args[1], Force: force}, &out)
	}, say(func(was schema.Replaced) string {
		if !was.Complete {
			return "Core " + shown(was.By) + " has replaced " + shown(was.ID) + " and is still copying. anteroom doctor shows when it is done."
		}
		return "Core " + shown(was.By) + " has replaced " + shown(was.ID) + ". All copies are complete."
	})))

	forget := &cobra.Command{
		Use: "forget SITE", Short: "Write off a site that is lost for good", Args: names("SITE"),
		Long: `Write off a site that is lost for good. The other sites can use its seats at once, and its name is free.
Make sure that the site serves no visitors any more, or the limits can be exceeded by the seats that it
holds. Anteroom refuses the command while the site answers, and for a minute after it was last heard.
If the site comes back, its sessions count again.`,
		Example: `  anteroom cluster forget tokyo`,
	}
	cmd.AddCommand(action(r, forget, func(ctx context.Context, c *client.Client, args []string) (out manage.ForgottenSite, err error) {
		return out, c.Do(ctx, http.MethodDelete, ours+"/cluster/sites/"+url.PathEscape(args[0]), nil, nil, &out)
	}, say(func(was manage.ForgottenSite) string {
		return fmt.Sprintf("Site %s was written off: %d seats in %d rooms are free.", shown(was.Site), was.Seats, was.Rooms)
	})))
	cmd.AddCommand(edgeCommand())
	return cmd
}

// edgeCommand needs no process: an edge's secret follows from the cluster's.
func edgeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "edge NODE", Short: "Make the secret of an edge from that of the cluster", Args: names("NODE"),
		Long: `Make the secret of the edge NODE from that of the cluster. Put the output into the secret file of the
edge and nowhere else. Edges with names that begin with NODE and a hyphen, like the pods of a deployment,
can share it. An edge with this secret can serve visitors, but cannot change rooms, tokens or ticket keys.
Cores can shut it out by its name (cluster.shut_out), without a new secret for the others. If the file
has two lines, because you are changing the secret of the cluster, so has the output.`,
		Example: `  (umask 077; anteroom cluster edge edge-1 --secret-file secret > edge-1.secret)`,
	}
	c := config.Cluster{}
	cmd.Flags().StringVar(&c.SecretFile, "secret-file", "", "`file` with the secret of the cluster, as cores have it; - for standard input")
	cmd.Flags().StringVar(&c.Name, "cluster-name", "anteroom", "`name` of the cluster (cluster.name)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if c.SecretFile == "" {
			return usageError{errors.New("anteroom cluster edge needs --secret-file, the file with the secret of the cluster")}
		}
		secrets, err := clusterSecrets(cmd, c)
		if err != nil {
			return err
		}
		for _, secret := range secrets {
			made, err := server.EdgeSecret(secret, c.Name, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), made)
		}
		return nil
	}
	return cmd
}

// clusterSecrets reads the secret of the cluster, and the second one while it is being changed, from the file or from standard input.
func clusterSecrets(cmd *cobra.Command, c config.Cluster) ([]string, error) {
	if c.SecretFile != "-" {
		secret, other, err := c.Secrets()
		return slices.DeleteFunc([]string{secret, other}, func(s string) bool { return s == "" }), err
	}
	text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 1<<12))
	if secrets := strings.Fields(string(text)); err != nil || len(secrets) > 0 {
		return secrets, err
	}
	return nil, errors.New("standard input holds no secret of a cluster")
}

// addWithin bounds how long a process may take to take the place of a standalone one.
const addWithin = time.Minute

// addCores asks for more cores. A standalone process is replaced by another one, whose answer it waits for.
func addCores(ctx context.Context, c *client.Client, _ []string) (now manage.AddedCores, err error) {
	if err := c.Do(ctx, http.MethodPost, ours+"/cluster/add", nil, nil, &now); err != nil || !now.Restarts {
		return now, err
	}
	ctx, cancel := context.WithTimeout(ctx, addWithin)
	defer cancel()
	for {
		if st, err := getCluster(ctx, c, nil); err == nil && st.Name != "" {
			return now, nil
		}
		if !walltime.Sleep(ctx, time.Second/4) {
			return now, anteroom.Errorf(anteroom.Unavailable, "the new process does not answer: its log says why")
		}
	}
}

// milliseconds writes seconds.
func milliseconds(s float64) string { return fmt.Sprintf("%.1f ms", s*1000) }

func showCluster(w io.Writer, st manage.ClusterStatus) error {
	if st.Name == "" {
		_, err := fmt.Fprintln(w, "This process is standalone. docs/cluster.md explains how to add nodes.")
		return err
	}
	hub := ""
	if st.Hub {
		hub = ", the hub"
	}
	fmt.Fprintf(w, "cluster %s, site %s%s, asked node %s\n\n", st.Name, st.Site, hub, st.Node)
	t := newTable(w, "NODE", "KIND", "VERSION", "UP", "CLOCK", "ROLES", "FILES")
	for _, n := range st.Nodes {
		kind := "edge"
		if n.Core {
			kind = "core"
		}
		t.row(n.Node, kind, n.Version, time.Since(n.Started).Truncate(time.Second), fmt.Sprintf("%+.3f s", n.ClockOffset), n.Roles, cmp.Or(n.Files, "-"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	t = newTable(w, "SITE", "ROOMS", "HEARD", "ROUND TRIP", "SEATS USED", "GRANTED", "IDLE PERMITS")
	for _, s := range st.Sites {
		t.row(s.Site, s.Rooms, fmt.Sprintf("%.1f s ago", s.Heard), milliseconds(s.Trip), s.Used, s.Granted, s.IdlePermits)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	t = newTable(w, "ROLES", "NODE")
	held := map[string][]string{}
	for _, r := range st.Roles {
		kind, number, _ := strings.Cut(r.Role, ".")
		who := kind + "\t" + cmp.Or(r.Node, "nobody")
		held[who] = append(held[who], number)
	}
	for _, who := range slices.Sorted(maps.Keys(held)) {
		kind, node, _ := strings.Cut(who, "\t")
		t.row(kind+" "+strings.Join(held[who], " "), node)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	showTouch(w, "the store of this site", st.Store.Site)
	showTouch(w, "the shared store", st.Store.Shared)
	if n := len(st.Findings); n > 0 {
		fmt.Fprintf(w, "\n%d findings; anteroom doctor explains them\n", n)
	}
	return nil
}

func showTouch(w io.Writer, what string, touch manage.ClusterTouch) {
	if !touch.OK {
		fmt.Fprintf(w, "\n%s does not answer; its data is %.0f s old: %s\n", what, touch.Lag, shown(touch.Detail))
	}
}

// errFindings ends doctor when something is wrong: the findings were printed.
var errFindings = errors.New("the installation has problems, see above")

func doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find problems in a running installation",
		Long: `Find problems in a running installation: clocks that differ, cores that are down or do not reach
each other, versions that do not work together, two sites with the same name, roles that no node
holds, stores that do not answer, rooms for hosts that no proxied site names, and what anteroom event
checklist finds about the events of the next seven days. The exit code is 1 if any finding is an error.

With --url, test a room from outside instead, without a token: whether it is in front, whether an
edge verifies passes, whether forged headers or a cache defeat it, and with --origin whether visitors can
reach the application without it. This sends at most ` + strconv.Itoa(maxAsked) + ` requests, as up to nine new visitors.`,
		Example: `  anteroom doctor
  anteroom doctor --url https://shop.example.com --origin http://203.0.113.7:3000`,
		Args: noArgs,
	}
	r := remoteFlags(cmd)
	var at, origin string
	o := &outside{transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}, now: time.Now, sleep: walltime.Sleep}
	cmd.Flags().StringVar(&at, "url", "", "test the room that covers this `URL` from outside")
	cmd.Flags().StringVar(&origin, "origin", "", "with --url: `URL` of the application, which must not answer visitors")
	cmd.Flags().StringVar(&o.cookie, "cookie", "__cfwaitingroom", "with --url: cookie_name of the configuration")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "with --url: wait until a pass has expired, and check that it is refused")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		switch {
		case at != "":
			return o.examine(cmd, r, at, origin)
		case origin != "" || o.wait:
			return usageError{errors.New("--origin and --wait need --url; see anteroom doctor --help")}
		}
		c, err := r.client()
		if err != nil {
			return err
		}
		st, err := getCluster(cmd.Context(), c, nil)
		if err != nil {
			return advise(err)
		}
		if err := put(r.output, cmd.OutOrStdout(), st.Findings, showFindings); err != nil {
			return err
		}
		if slices.ContainsFunc(st.Findings, func(f manage.ClusterFinding) bool { return f.Severity == "error" }) {
			return errFindings
		}
		return nil
	}
	return cmd
}

func showFindings(w io.Writer, findings []manage.ClusterFinding) error {
	if len(findings) == 0 {
		_, err := fmt.Fprintln(w, "no problems found")
		return err
	}
	for _, f := range findings {
		if _, err := fmt.Fprintf(w, "%s: %s\n  why: %s\n  fix: %s\n", shown(f.Severity), shown(f.What), shown(f.Why), shown(f.Fix)); err != nil {
			return err
		}
	}
	return nil
}
