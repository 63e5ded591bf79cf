package proxydial

import (
	"encoding/binary"
	"io"
)

// The bytes of SOCKS, from RFC 1928, RFC 1929, and the SOCKS4 and SOCKS4A papers.
const (
	version5     = 5
	versionLogin = 1
	version4     = 4
	version4Said = 0 // the version of SOCKS4's replies

	methodNone   = 0
	methodLogin  = 2
	methodRefuse = 0xff

	commandConnect = 1

	addressIPv4 = 1
	addressName = 3
	addressIPv6 = 4

	succeeded = 0
	granted   = 90
)

func (s *session) askSOCKS5(to target) error {
	if err := s.greet(); err != nil {
		return err
	}
	if err := s.startAsking(); err != nil {
		return err
	}
	s.send(socks5Request(to))
	code, err := s.readPair(version5)
	if err != nil {
		return err
	}
	if code != succeeded {
		return &Error{Phase: s.phase, Reason: Reply, Code: int(code)}
	}
	return s.skipBoundAddress()
}

// greet agrees upon a method, and logs in where the proxy wants it.
func (s *session) greet() error {
	s.enter(PhaseGreeting)
	login, _ := s.proxy.revealed()
	if login == nil {
		s.send([]byte{version5, 1, methodNone})
	} else {
		s.send([]byte{version5, 2, methodNone, methodLogin})
	}
	method, err := s.readPair(version5)
	switch {
	case err != nil:
		return err
	case method == methodNone:
		return nil
	case method == methodLogin && login != nil:
		return s.logIn(login)
	case method == methodRefuse && login == nil:
		return s.found(AuthRefused, "the proxy wants a login and its URL has none")
	case method == methodRefuse:
		return s.found(AuthRefused, "the proxy takes neither a user and password nor an anonymous client")
	default:
		// To go on as if it had chosen another one would get as far as a hang.
		return s.found(AuthRefused, "the proxy chose a login method that wasn't offered")
	}
}

// logIn is RFC 1929.
func (s *session) logIn(l *login) error {
	message := []byte{versionLogin, byte(len(l.user))}
	message = append(message, l.user...)
	message = append(message, byte(len(l.password)))
	s.send(append(message, l.password...))
	status, err := s.readPair(versionLogin)
	if err != nil {
		return err
	}
	if status != succeeded {
		return s.found(AuthRefused, "the proxy refused the user or password")
	}
	return nil
}

func socks5Request(to target) []byte {
	request := []byte{version5, commandConnect, 0}
	switch {
	case to.name != "":
		request = append(request, addressName, byte(len(to.name)))
		request = append(request, to.name...)
	case to.ip.Is4():
		request = append(request, addressIPv4)
		request = append(request, to.ip.AsSlice()...)
	default:
		request = append(request, addressIPv6)
		request = append(request, to.ip.AsSlice()...)
	}
	return binary.BigEndian.AppendUint16(request, to.port)
}

// skipBoundAddress reads the rest of a reply, which is of no use: reserved byte,
// address, port.
func (s *session) skipBoundAddress() error {
	var kind [2]byte
	if err := s.read(kind[:]); err != nil {
		return err
	}
	var length int
	switch kind[1] {
	case addressIPv4:
		length = 4
	case addressIPv6:
		length = 16
	case addressName:
		var n [1]byte
		if err := s.read(n[:]); err != nil {
			return err
		}
		length = int(n[0])
	default:
		return s.found(Garbage, "")
	}
	return s.read(make([]byte, length+2))
}

// askSOCKS4 sends names in the way of SOCKS4A for socks4 too: to resolve them here
// would tell this machine's DNS which RPCs are asked (rule A1.2).
func (s *session) askSOCKS4(to target) error {
	if err := s.startAsking(); err != nil {
		return err
	}
	login, _ := s.proxy.revealed()
	s.send(socks4Request(to, login))
	code, err := s.readPair(version4Said)
	if err != nil {
		return err
	}
	if code != granted {
		return &Error{Phase: s.phase, Reason: Reply, Code: int(code), SOCKS4: true}
	}
	return s.read(make([]byte, 6)) // port and address, of no use
}

func socks4Request(to target, l *login) []byte {
	request := binary.BigEndian.AppendUint16([]byte{version4, commandConnect}, to.port)
	if to.name != "" {
		request = append(request, 0, 0, 0, 1) // an address that can't be: the name follows
	} else {
		request = append(request, to.ip.AsSlice()...)
	}
	if l != nil {
		request = append(request, l.user...)
	}
	request = append(request, 0)
	if to.name != "" {
		request = append(request, to.name...)
		request = append(request, 0)
	}
	return request
}

// readPair reads what every SOCKS answer begins with, a version and one byte that
// decides. Nothing more: a proxy that refuses may close right after these two. A
// foreign version is known from the first byte, whether or not a second comes.
func (s *session) readPair(version byte) (byte, error) {
	var b [2]byte
	n, err := io.ReadAtLeast(s.conn, b[:], 1)
	if err != nil {
		return 0, s.broke(err)
	}
	if b[0] != version {
		return 0, s.found(Garbage, "")
	}
	if n == 1 {
		err := s.read(b[1:])
		return b[1], err
	}
	return b[1], nil
}
