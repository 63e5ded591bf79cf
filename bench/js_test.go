package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An endpoint is reached by its door, too: a field of the head in small letters, a batch,
// and a connection that is really refused while the endpoint refuses them.
func TestDoors(t *testing.T) {
	_, c := startTestServers(t)
	doors, err := c.doors()
	if err != nil || len(doors) != endpointCount {
		t.Fatalf("%v, %v", doors, err)
	}
	body := `[{"method":"eth_blockNumber","params":[],"id":7,"jsonrpc":"2.0"},{"method":"eth_blockNumber","params":[],"id":8}]`
	want := `[{"jsonrpc":"2.0","id":7,"result":"0x13f2a5b"},{"jsonrpc":"2.0","id":8,"result":"0x13f2a5b"}]`
	for range 2 {
		conn, err := net.Dial("tcp", doors[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 113\r\n\r\n"+body); err != nil {
			t.Fatal(err)
		}
		reader := bufio.NewReader(conn)
		head, err := readHead(reader)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, head.length)
		if _, err := io.ReadFull(reader, got); err != nil || string(got) != want {
			t.Errorf("%s, %v", got, err)
		}
		conn.Close()
		if err := c.set(modeRefused); err != nil {
			t.Fatal(err)
		}
		if conn, err := net.Dial("tcp", doors[0]); err == nil {
			conn.Close()
			t.Error("the door is open")
		}
		if err := c.set(); err != nil {
			t.Fatal(err)
		}
	}
}

// Without npm, or where it fails, the page says in one line why, and the run goes on.
func TestJavaScriptIsMissed(t *testing.T) {
	_, c := startTestServers(t)
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	t.Setenv("RPCPOOL_CACHE", t.TempDir())
	say := func(want string) {
		t.Helper()
		var log strings.Builder
		tables, err := javaScript(t.Context(), &bench{control: c, quick: true, facts: facts{}, log: &log})
		if err != nil || len(tables) != 1 {
			t.Fatalf("%v, %v", tables, err)
		}
		var page strings.Builder
		tables[0].markdown(&page)
		if line := strings.TrimSpace(page.String()); line != "**Not measured in this run**: "+want+"." {
			t.Errorf("%q", line)
		}
		if _, missing := errors.AsType[*jsMissingError](err); missing || !strings.Contains(log.String(), "weren't measured") {
			t.Errorf("%q", log.String())
		}
	}
	program := func(name string) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho no network >&2\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	say("node isn't installed (Debian: apt-get install nodejs npm)")
	program("node")
	say("npm isn't installed (Debian: apt-get install nodejs npm)")
	program("npm")
	say("npm couldn't install the pinned clients; the run's own output says why")
}
