package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// errand is what a process of its own measures: memory can't be told apart otherwise.
type errand struct {
	Workload  string        `json:"workload"`
	Contender string        `json:"contender"`
	Addrs     addrs         `json:"addrs"`
	Path      string        `json:"path,omitempty"`
	Direct    []string      `json:"direct,omitempty"` // URLs that are asked without a proxy, in place of the others
	Calls     int           `json:"calls,omitempty"`
	Callers   int           `json:"callers,omitempty"`
	Conns     int           `json:"conns,omitempty"`
	Crowds    int           `json:"crowds,omitempty"` // one after the other; 0: one
	Longest   time.Duration `json:"longest,omitempty"`
}

// run has another process measure it, and gives its numbers by what they are of.
func (e errand) run(ctx context.Context) (map[string]float64, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	order, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	child := exec.CommandContext(ctx, self, onceWord)
	child.Stdin = strings.NewReader(string(order))
	child.Stderr = os.Stderr
	output, err := child.Output()
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", e.Workload, e.Contender, err)
	}
	var numbers map[string]float64
	if err := json.Unmarshal(output, &numbers); err != nil {
		return nil, fmt.Errorf("%s of %s: %w", e.Workload, e.Contender, err)
	}
	return numbers, nil
}

// once is that other process.
func once(ctx context.Context, input io.Reader, output io.Writer) error {
	var e errand
	if err := json.NewDecoder(input).Decode(&e); err != nil {
		return err
	}
	measures := map[string]func(context.Context, errand) (map[string]float64, error){"large": largeOnce, "crowd": crowdOnce}
	numbers, err := measures[e.Workload](ctx, e)
	if err != nil {
		return err
	}
	return json.NewEncoder(output).Encode(numbers)
}

// client makes the errand's contender.
func (e errand) client(of []contender, urls []string) (*client, error) {
	s := setup{proxy: e.Addrs.plain().proxy, ca: e.Addrs.CA, urls: urls, conns: e.Conns}
	if len(e.Direct) > 0 {
		s.proxy, s.urls = "", e.Direct
	}
	for _, c := range of {
		if c.name == e.Contender {
			return c.make(s)
		}
	}
	return nil, fmt.Errorf("no contender is called %q", e.Contender)
}

// watermark watches how much memory the process comes to need above what it needs now.
type watermark struct {
	base float64
}

// watchMemory gives back what isn't needed and begins to watch.
func watchMemory() watermark {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // sets the mark to what is in use
	return watermark{base: statusBytes("VmRSS")}
}

// bytes gives the most that was needed since; 0 where the system doesn't tell.
func (w watermark) bytes() float64 { return max(0, statusBytes("VmHWM")-w.base) }

// statusBytes gives one of Linux's figures about this process, 0 elsewhere.
func statusBytes(field string) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), field+":")
	line, _, _ := strings.Cut(rest, "\n")
	kilobytes, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(line, "kB")), 64)
	if err != nil {
		return 0
	}
	return kilobytes * 1024
}
