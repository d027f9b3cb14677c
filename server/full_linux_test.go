package server

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/manage"
)

// smallDisk names the directory at which the process mounts a small file system, which nobody else sees.
const smallDisk = "ANTEROOM_TEST_SMALL_DISK"

// On a disk that takes not a byte more, an operator pauses, drains and resumes a room, and the changes are there after a
// restart: the reserve is for them. Nobody new is admitted meanwhile, and sessions continue.
func TestARoomIsPausedAndDrainedOnAFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir, ok := onSmallDisk(t)
	if !ok {
		return
	}
	token := strings.Repeat("0123456789abcdef", 3)
	t.Setenv(firstTokenEnv, token)
	r := prepareServer(t, strings.ReplaceAll(listenAnywhere, "data: data", "data: "+dir)+`rooms: [{name: shop, host: "*", total_active_users: 100, new_users_per_minute: 1000}]`+"\n").start()
	inside := r.visit("/").Cookies()
	if !r.visit("/", inside...).isIn() {
		t.Fatal("nobody is admitted")
	}
	fillUp(t, dir)
	probe, err := r.s.link.Journal(t.Context(), "probe")
	if err == nil {
		err = probe.Append(t.Context(), []byte("a record of every day"))
	}
	if !errors.Is(err, cluster.ErrFull) {
		t.Fatalf("the disk is not full: %v", err)
	}
	eventually(t, "newcomers are admitted on a full disk", func() bool { return !r.visit("/").isIn() })
	if !r.visit("/", inside...).isIn() {
		t.Error("a session does not continue")
	}
	shop := r.s.rooms()[0]
	zone, ok := r.s.Manager().State().ZoneNamed(shop.Zone)
	if !ok {
		t.Fatalf("no zone %s", shop.Zone)
	}
	path := "/anteroom/v1/zones/" + string(zone.ID) + "/rooms/" + string(shop.ID) + "/"
	state := func() (paused, draining bool) {
		c := r.s.rooms()[0].Controls
		return c.Paused, c.Draining
	}
	for _, step := range []struct {
		do               string
		paused, draining bool
	}{{"pause", true, false}, {"resume", false, false}, {"drain", false, true}, {"pause", true, true}} {
		if a := r.admin(http.MethodPost, path+step.do, "Authorization", "Bearer "+token); a.StatusCode != http.StatusOK {
			t.Fatalf("%s on a full disk: %d %s", step.do, a.StatusCode, a.body)
		}
		if paused, draining := state(); paused != step.paused || draining != step.draining {
			t.Errorf("after %s: paused %v, draining %v", step.do, paused, draining)
		}
	}
	if err := r.end(); err != nil {
		t.Errorf("the last records are not written: %v", err)
	}
	r.start()
	if paused, draining := state(); !paused || !draining {
		t.Errorf("after a restart on a full disk: paused %v, draining %v", paused, draining)
	}
	if !r.visit("/", inside...).isIn() {
		t.Error("a session is lost in the restart")
	}
}

// One of three cores starts on a disk that takes not a byte more: it serves visitors, whose admissions the other two
// record.
func TestACoreOfThreeStartsOnAFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	dir, ok := onSmallDisk(t)
	if !ok {
		return
	}
	at := coreAddresses(t)
	var all []*running
	for i := range at {
		yaml := listenAnywhere
		if i == 2 {
			yaml = strings.ReplaceAll(yaml, "data: data", "data: "+dir)
		}
		r := prepareServer(t, yaml+`rooms: [{name: shop, host: "*", total_active_users: 100, new_users_per_minute: 1000}]`+
			fmt.Sprintf("\ncluster: {node: core-%d, listen: %q, cores: [%s], secret_file: secret}\n", i+1, at[i], strings.Join(at, ", ")))
		mustWrite(t, filepath.Join(r.dir, "secret"), clusterSecret)
		all = append(all, r)
	}
	startTogether(t, all...)()
	awaitNodes(t, all[0], 3)
	last := all[2]
	var inside []*http.Cookie
	eventually(t, "nobody is admitted", func() bool {
		a := last.visit("/", inside...)
		if c := a.Cookies(); len(c) > 0 {
			inside = c
		}
		return a.isIn()
	})
	for _, stopped := range []bool{true, false} {
		if stopped {
			if err := last.end(); err != nil {
				t.Fatal(err)
			}
			fillUp(t, dir)
		} else if err := last.end(); err != nil { // what it could not write, the others have
			t.Logf("the end on a full disk: %v", err)
		}
		last.start()
		awaitNodes(t, all[0], 3)
		if !last.visit("/", inside...).isIn() {
			t.Error("a session does not continue at the core")
		}
		eventually(t, "nobody is admitted, and two cores can record it", func() bool { return last.visit("/").isIn() })
		eventually(t, "the doctor does not find the full disk, and nothing else", func() bool {
			st, err := last.s.Manager().Cluster(t.Context(), operator)
			st.Findings = slices.DeleteFunc(st.Findings, func(f manage.ClusterFinding) bool {
				return strings.HasPrefix(f.What, "configuration files") // each has an origin of its own here
			})
			return err == nil && len(st.Findings) == 1 && st.Findings[0].What == "the disk of this core is full"
		})
	}
}

// onSmallDisk runs the test in a process of its own, and returns there the directory at which a small file system is mounted;
// ok is false in the process that waits for it.
func onSmallDisk(t *testing.T) (dir string, ok bool) {
	t.Helper()
	dir = os.Getenv(smallDisk)
	if dir == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), smallDisk+"="+t.TempDir())
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if id := os.Geteuid(); id != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: id, Size: 1}}
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.EPERM) {
			t.Logf("NOT TESTED: this system mounts no file system for a test: %v; run it as root", err)
			return "", false
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return "", false
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=160m"); err != nil {
		t.Fatal(err)
	}
	return dir, true
}

// fillUp takes all that is free.
func fillUp(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for part := make([]byte, 1<<20); len(part) > 0; {
		if _, err = f.Write(part); errors.Is(err, syscall.ENOSPC) {
			part = part[:len(part)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
