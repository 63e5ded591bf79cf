package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
)

// door is where an endpoint is reached without a proxy: clients of other languages have
// no use for one. While the endpoint refuses connections, nobody listens there.
type door struct {
	addr     string
	listener net.Listener // nil while it is shut
	serve    func(net.Conn)
}

// swing opens or shuts the door.
func (d *door) swing(open bool) error {
	switch {
	case open && d.listener == nil:
		listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", d.addr)
		if err != nil {
			return fmt.Errorf("opening a door again: %w", err)
		}
		d.listener, d.addr = listener, listener.Addr().String()
		go d.welcome(listener)
	case !open && d.listener != nil:
		_ = d.listener.Close()
		d.listener = nil
	}
	return nil
}

func (d *door) welcome(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go d.serve(conn)
	}
}

// openDoors gives each endpoint a door, unless they have them. The caller holds s.mu.
func (s *servers) openDoors() (addrs []string, err error) {
	for i, e := range s.endpoints {
		if i == len(s.doors) {
			s.doors = append(s.doors, &door{addr: "127.0.0.1:0", serve: func(conn net.Conn) {
				defer conn.Close()
				if !e.accept(conn) {
					return
				}
				defer e.forget(conn)
				s.answer(e, conn, bufio.NewReader(conn))
			}})
			if err := s.doors[i].swing(true); err != nil {
				return nil, err
			}
		}
		addrs = append(addrs, s.doors[i].addr)
	}
	return addrs, nil
}

func (s *servers) closeDoors() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.doors {
		_ = d.swing(false)
	}
}
