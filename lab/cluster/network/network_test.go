package network_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/anteroom/anteroom/lab/cluster/network"
)

// Children of the tests are the test binary: an echo, and somebody who talks to it.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "echo" {
		l, err := net.Listen("tcp", os.Args[2])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ready")
		for {
			c, err := l.Accept()
			if err != nil {
				os.Exit(1)
			}
			go io.Copy(c, c)
		}
	}
	if len(os.Args) == 3 && os.Args[1] == "talk" {
		c, err := net.Dial("tcp", os.Args[2])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ready")
		go io.Copy(c, os.Stdin)
		io.Copy(os.Stdout, c)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const port = 17333

// kinds are those that work here: namespaces need rights that not everybody has.
func kinds(t *testing.T) map[string]network.Network {
	t.Helper()
	hosts := []string{"one", "two"}
	out := map[string]network.Network{}
	p, err := network.Proxies(hosts, []uint16{port})
	if err != nil {
		t.Fatal(err)
	}
	out["proxies"] = p
	if n, err := network.Namespaces(t.Context(), hosts); err == nil {
		out["namespaces"] = n
	} else {
		t.Logf("only proxies are tested: %v", err)
	}
	return out
}

// child starts the test binary at a host and waits until it is ready.
func child(t *testing.T, n network.Network, host string, args ...string) (in io.Writer, out *bufio.Reader) {
	t.Helper()
	cmd := n.Command(context.Background(), host, os.Args[0], args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	out = bufio.NewReader(stdout)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%s at %s: %q, %v", args[0], host, line, err)
	}
	return in, out
}

func TestDelayAndCuts(t *testing.T) {
	for name, n := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			})
			child(t, n, "one", "echo", netip.AddrPortFrom(n.Host("one").Inner, port).String())
			in, out := child(t, n, "two", "talk", netip.AddrPortFrom(n.Sees("two", "one"), port).String())
			say := func(word string) chan time.Duration {
				t.Helper()
				began := time.Now()
				answered := make(chan time.Duration, 1)
				if _, err := io.WriteString(in, word+"\n"); err != nil {
					t.Fatal(err)
				}
				go func() {
					if line, err := out.ReadString('\n'); line != word+"\n" {
						t.Errorf("%q came back as %q, %v", word, line, err)
					}
					answered <- time.Since(began)
				}()
				return answered
			}
			<-say("hello")
			n.Set("two", "one", network.Way{Delay: 40 * time.Millisecond})
			n.Set("one", "two", network.Way{Delay: 60 * time.Millisecond})
			if took := <-say("far"); took < 100*time.Millisecond {
				t.Errorf("an answer over 40 and 60 ms took %v", took)
			}
			for _, cut := range [][2]string{{"two", "one"}, {"one", "two"}} {
				n.Set(cut[0], cut[1], network.Way{Cut: true})
				answer := say("cut")
				timer := time.NewTimer(300 * time.Millisecond)
				select {
				case took := <-answer:
					t.Errorf("with %v cut, an answer came after %v", cut, took)
				case <-timer.C:
				}
				n.Set(cut[0], cut[1], network.Way{})
				<-answer
			}
			if c := n.Carried("one", "two"); c.Bytes < int64(len("hello\n")) || c.Packets == 0 {
				t.Errorf("carried: %+v", c)
			}
		})
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	for name, n := range kinds(t) {
		if err := n.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	mark := fmt.Sprintf("arig%d-", os.Getpid())
	if out, err := exec.Command("ip", "netns", "list").Output(); err == nil && bytes.Contains(out, []byte(mark)) {
		t.Errorf("namespaces are left: %s", out)
	}
}

func TestUnknownKindsAndDoubleNames(t *testing.T) {
	if _, err := network.Open(t.Context(), "pigeons", []string{"a"}, nil, io.Discard); err == nil {
		t.Error("a network of pigeons was opened")
	}
	if _, err := network.Proxies([]string{"a", "a"}, nil); err == nil {
		t.Error("two hosts may have one name")
	}
}
