package rpcpooltest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
)

// nonsense is what a proxy says that talks something else.
const nonsense = "SSH-2.0-OpenSSH_9.2p1\r\n"

// SOCKS5, RFC 1928 and 1929.
const (
	socks5Version   = 5
	socks5Connect   = 1
	socks5IPv4      = 1
	socks5Name      = 3
	socks5IPv6      = 4
	methodNone      = 0
	methodPassword  = 2
	methodRefused   = 0xff
	codeUnsupported = 7
	codeRefused     = 5

	socks4Version  = 4
	socks4Granted  = 90
	socks4Rejected = 91
	socks4Identity = 93
)

var errProtocol = errors.New("rpcpooltest: the client doesn't speak the protocol")

func (p *Proxy) serveSOCKS5(l *link, v *visit) {
	methods, err := readGreeting(l.br)
	if err != nil {
		return
	}
	if v.reply.act == talkNonsense {
		_, _ = io.WriteString(l.Conn, nonsense)
		return
	}
	if !p.login5(l, methods, v.reply.act == refuseLogin) {
		return
	}
	command, target, err := readSOCKS5Request(l.br)
	if err != nil {
		return
	}
	if command != socks5Connect {
		_, _ = l.Write(reply5(codeUnsupported))
		return
	}
	to, there := p.ask(l, v, "socks5", target)
	if !there {
		return
	}
	switch {
	case v.reply.act == sayCode:
		_, _ = l.Write(reply5(v.reply.code))
	case v.reply.act == swallow:
		l.hang()
	case to.deny != nil:
		_, _ = l.Write(reply5(orElse(to.deny.code, codeRefused)))
	default:
		p.tunnel(l, to, reply5(0), reply5(codeRefused))
	}
}

// tunnel connects to the node, says granted or failed, and carries what follows.
func (p *Proxy) tunnel(l *link, to route, granted, failed []byte) {
	far, err := p.connect(l.ctx, to)
	if err != nil {
		_, _ = l.Write(failed)
		return
	}
	if _, err := l.Write(granted); err != nil {
		_ = far.Close()
		return
	}
	relay(l, far)
}

// readGreeting reads the methods that a SOCKS5 client offers.
func readGreeting(br *bufio.Reader) ([]byte, error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(br, head); err != nil {
		return nil, err
	}
	if head[0] != socks5Version {
		return nil, errProtocol
	}
	methods := make([]byte, head[1])
	_, err := io.ReadFull(br, methods)
	return methods, err
}

// login5 demands the login of the proxy's URL.
func (p *Proxy) login5(l *link, methods []byte, refuse bool) bool {
	method := byte(methodNone)
	if p.url.User != nil {
		method = methodPassword
	} else if refuse {
		method = methodRefused
	}
	if method != methodRefused && !contains(methods, method) {
		method = methodRefused
	}
	if _, err := l.Write([]byte{socks5Version, method}); err != nil || method == methodRefused {
		return false
	}
	if method == methodNone {
		return true
	}
	user, password, err := readLogin(l.br)
	if err != nil {
		return false
	}
	want, _ := p.url.User.Password()
	status := byte(0)
	if refuse || user != p.url.User.Username() || password != want {
		status = 1
	}
	_, err = l.Write([]byte{1, status})
	return err == nil && status == 0
}

func readLogin(br *bufio.Reader) (user, password string, err error) {
	if version, err := br.ReadByte(); err != nil || version != 1 {
		return "", "", errProtocol
	}
	if user, err = readCounted(br); err != nil {
		return "", "", err
	}
	password, err = readCounted(br)
	return user, password, err
}

// readCounted reads a text that follows its length.
func readCounted(br *bufio.Reader) (string, error) {
	length, err := br.ReadByte()
	if err != nil {
		return "", err
	}
	text := make([]byte, length)
	_, err = io.ReadFull(br, text)
	return string(text), err
}

func readSOCKS5Request(br *bufio.Reader) (command byte, target string, err error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(br, head); err != nil {
		return 0, "", err
	}
	if head[0] != socks5Version {
		return 0, "", errProtocol
	}
	var host string
	switch head[3] {
	case socks5Name:
		host, err = readCounted(br)
	case socks5IPv4:
		host, err = readIP(br, net.IPv4len)
	case socks5IPv6:
		host, err = readIP(br, net.IPv6len)
	default:
		err = errProtocol
	}
	if err != nil {
		return 0, "", err
	}
	port := make([]byte, 2)
	if _, err := io.ReadFull(br, port); err != nil {
		return 0, "", err
	}
	return head[1], net.JoinHostPort(host, strconv.Itoa(int(port[0])<<8|int(port[1]))), nil
}

func readIP(br *bufio.Reader, length int) (string, error) {
	ip := make(net.IP, length)
	_, err := io.ReadFull(br, ip)
	return ip.String(), err
}

func reply5(code int) []byte {
	return []byte{socks5Version, byte(code), 0, socks5IPv4, 0, 0, 0, 0, 0, 0}
}

func (p *Proxy) serveSOCKS4(l *link, v *visit) {
	command, user, target, err := readSOCKS4Request(l.br)
	if err != nil {
		return
	}
	if v.reply.act == talkNonsense {
		_, _ = io.WriteString(l.Conn, nonsense)
		return
	}
	refused := v.reply.act == refuseLogin
	if p.url.User != nil {
		refused = refused || user != p.url.User.Username()
	}
	if refused || command != socks5Connect {
		_, _ = l.Write(reply4(socks4Identity))
		return
	}
	how := "socks4a"
	if host, _, _ := net.SplitHostPort(target); net.ParseIP(host) != nil {
		how = "socks4"
	}
	to, there := p.ask(l, v, how, target)
	if !there {
		return
	}
	switch {
	case v.reply.act == sayCode:
		_, _ = l.Write(reply4(v.reply.code))
	case v.reply.act == swallow:
		l.hang()
	case to.deny != nil:
		_, _ = l.Write(reply4(socks4Rejected))
	default:
		p.tunnel(l, to, reply4(socks4Granted), reply4(socks4Rejected))
	}
}

// readSOCKS4Request reads a request of SOCKS4, or of SOCKS4a, where the address
// 0.0.0.x announces a name.
func readSOCKS4Request(br *bufio.Reader) (command byte, user, target string, err error) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(br, head); err != nil {
		return 0, "", "", err
	}
	if head[0] != socks4Version {
		return 0, "", "", errProtocol
	}
	if user, err = readToZero(br); err != nil {
		return 0, "", "", err
	}
	host := net.IP(head[4:8]).String()
	if head[4] == 0 && head[5] == 0 && head[6] == 0 && head[7] != 0 {
		if host, err = readToZero(br); err != nil {
			return 0, "", "", err
		}
	}
	port := int(head[2])<<8 | int(head[3])
	return head[1], user, net.JoinHostPort(host, strconv.Itoa(port)), nil
}

func readToZero(br *bufio.Reader) (string, error) {
	text, err := br.ReadString(0)
	if err != nil {
		return "", err
	}
	return text[:len(text)-1], nil
}

func reply4(code int) []byte { return []byte{0, byte(code), 0, 0, 0, 0, 0, 0} }

func contains(set []byte, b byte) bool {
	return slices.Contains(set, b)
}

func orElse(value, otherwise int) int {
	if value == 0 {
		return otherwise
	}
	return value
}
