package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"
)

// command is what the client's process asks of the servers': modes to take on, or to
// flap; the answer always has the counters.
type command struct {
	Modes []mode        `json:"modes,omitempty"` // by endpoint; those beyond the list are ok
	Flap  time.Duration `json:"flap,omitempty"`  // step through flapping each so long
	Doors bool          `json:"doors,omitempty"` // open the endpoints' doors, and say where they are
	Set   bool          `json:"set,omitempty"`   // Modes and Flap hold; else only count
}

// counters are how often the endpoints were asked, and connected to, in all: also the
// one by which a proxy is checked.
type counters struct {
	Requests int64    `json:"requests"`
	Dials    int64    `json:"dials"`
	Doors    []string `json:"doors,omitempty"` // addresses, by endpoint
	Fault    string   `json:"fault,omitempty"`
}

func (c counters) since(before counters) counters {
	return counters{Requests: c.Requests - before.Requests, Dials: c.Dials - before.Dials}
}

// control is the wire on which the servers are commanded.
type control struct {
	conn net.Conn

	mu     sync.Mutex // held over a command and its answer
	reader *json.Decoder
	writer *json.Encoder
}

func dialControl(ctx context.Context, addr string) (*control, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &control{conn: conn, reader: json.NewDecoder(conn), writer: json.NewEncoder(conn)}, nil
}

func (c *control) close() { _ = c.conn.Close() }

func (c *control) do(cmd command) (counters, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var answer counters
	if err := c.writer.Encode(cmd); err != nil {
		return answer, fmt.Errorf("commanding the servers: %w", err)
	}
	if err := c.reader.Decode(&answer); err != nil {
		return answer, fmt.Errorf("commanding the servers: %w", err)
	}
	if answer.Fault != "" {
		return answer, fmt.Errorf("the servers: %s", answer.Fault)
	}
	return answer, nil
}

// set has the first endpoints take on modes, and all others be well.
func (c *control) set(modes ...mode) error {
	_, err := c.do(command{Set: true, Modes: modes})
	return err
}

// flap has all endpoints go on to their next mode every so often.
func (c *control) flap(every time.Duration) error {
	_, err := c.do(command{Set: true, Flap: every})
	return err
}

// doors gives the addresses at which the endpoints are reached without a proxy.
func (c *control) doors() ([]string, error) {
	answer, err := c.do(command{Doors: true})
	return answer.Doors, err
}

func (c *control) count() (counters, error) { return c.do(command{}) }

// obey answers commands until the wire is closed.
func (s *servers) obey(conn net.Conn) {
	defer conn.Close()
	reader, writer := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var cmd command
		if reader.Decode(&cmd) != nil {
			return
		}
		var answer counters
		if err := s.take(cmd, &answer); err != nil {
			answer.Fault = err.Error()
		}
		for _, e := range s.byHost {
			answer.Requests += e.requests.Load()
			answer.Dials += e.dials.Load()
		}
		if writer.Encode(answer) != nil {
			return
		}
	}
}

// take sets the endpoints' modes, or has them flap, and opens their doors.
func (s *servers) take(cmd command, answer *counters) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cmd.Doors {
		if answer.Doors, err = s.openDoors(); err != nil {
			return err
		}
	}
	if !cmd.Set {
		return nil
	}
	if len(cmd.Modes) > len(s.endpoints) {
		return fmt.Errorf("%d modes for %d endpoints", len(cmd.Modes), len(s.endpoints))
	}
	s.stopFlapping()
	for i, e := range s.endpoints {
		m := modeOK
		if i < len(cmd.Modes) {
			m = cmd.Modes[i]
		}
		e.set(m)
		if i < len(s.doors) {
			if err := s.doors[i].swing(m != modeRefused); err != nil {
				return err
			}
		}
	}
	if cmd.Flap > 0 {
		s.startFlapping(cmd.Flap)
	}
	return nil
}

func (s *servers) startFlapping(every time.Duration) {
	ended := make(chan struct{})
	quit := make(chan struct{})
	s.stopFlapping = func() {
		close(quit)
		<-ended
		s.stopFlapping = func() {}
	}
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for step := 0; ; step++ {
			for i, e := range s.endpoints {
				e.set(flapping[(step+i)%len(flapping)])
			}
			select {
			case <-ticker.C:
			case <-quit:
				return
			}
		}
	}()
}
