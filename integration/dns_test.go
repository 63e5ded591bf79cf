package integration

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// The two resolvers of the test bed. Proxies have the first in their resolv.conf,
// this process has the second.
const (
	proxiesResolverAddr = "127.0.53.1:53"
	clientResolverAddr  = "127.0.53.2:53"
)

// Names that resolve here: the pool API, and no RPC. A proxy's own name is looked
// up here too; goneProxyHost doesn't exist.
const (
	poolHost      = "pool.client.test"
	goneProxyHost = "gone-proxy.client.test"
)

// Names that only the proxies can resolve, and what they lead to.
const (
	rpcDomain       = ".rpc.test"                // any name under it: this machine
	hostUnreachable = "unreachable.target.test"  // an unreachable route
	netUnreachable  = "no-route.target.test"     // no route
	prohibited      = "prohibited.target.test"   // a prohibited route: "permission denied"
	brokenName      = "servfail.target.test"     // the resolver answers SERVFAIL
	missingName     = "no-such-name.target.test" // NXDOMAIN
)

var (
	proxiesResolver = &resolver{resolve: resolveForProxies}
	clientResolver  = &resolver{resolve: resolveForClient}
)

func resolveForProxies(name string) (netip.Addr, dnsmessage.RCode) {
	switch {
	case strings.HasSuffix(name, rpcDomain):
		return netip.MustParseAddr("127.0.0.1"), dnsmessage.RCodeSuccess
	case name == hostUnreachable:
		return netip.MustParseAddr("198.51.100.1"), dnsmessage.RCodeSuccess
	case name == netUnreachable:
		return netip.MustParseAddr("203.0.113.1"), dnsmessage.RCodeSuccess
	case name == prohibited:
		return netip.MustParseAddr("192.0.2.1"), dnsmessage.RCodeSuccess
	case name == brokenName:
		return netip.Addr{}, dnsmessage.RCodeServerFailure
	}
	return netip.Addr{}, dnsmessage.RCodeNameError
}

func resolveForClient(name string) (netip.Addr, dnsmessage.RCode) {
	if name == poolHost {
		return netip.MustParseAddr("127.0.0.1"), dnsmessage.RCodeSuccess
	}
	return netip.Addr{}, dnsmessage.RCodeNameError
}

// resolver is a DNS server for A records that remembers what it was asked for.
type resolver struct {
	resolve func(name string) (netip.Addr, dnsmessage.RCode)

	mu    sync.Mutex // protects names
	names map[string]int
}

func startResolvers() error {
	for addr, r := range map[string]*resolver{proxiesResolverAddr: proxiesResolver, clientResolverAddr: clientResolver} {
		conn, err := net.ListenPacket("udp", addr)
		if err != nil {
			return fmt.Errorf("resolver: %w", err)
		}
		r.names = map[string]int{}
		go r.serve(conn)
	}
	return nil
}

// asked gives all names that were looked up.
func (r *resolver) asked() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.names {
		names = append(names, name)
	}
	return names
}

func (r *resolver) wasAsked(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[name] > 0
}

func (r *resolver) serve(conn net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if answer := r.answer(buf[:n]); answer != nil {
			_, _ = conn.WriteTo(answer, from)
		}
	}
}

func (r *resolver) answer(query []byte) []byte {
	var parser dnsmessage.Parser
	header, err := parser.Start(query)
	if err != nil {
		return nil
	}
	question, err := parser.Question()
	if err != nil {
		return nil
	}
	name := strings.ToLower(strings.TrimSuffix(question.Name.String(), "."))
	r.mu.Lock()
	r.names[name]++
	r.mu.Unlock()

	addr, code := r.resolve(name)
	reply := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: header.ID, Response: true, RecursionDesired: header.RecursionDesired, RecursionAvailable: true, RCode: code,
		},
		Questions: []dnsmessage.Question{question},
	}
	if code == dnsmessage.RCodeSuccess && question.Type == dnsmessage.TypeA {
		reply.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 5},
			Body:   &dnsmessage.AResource{A: addr.As4()},
		}}
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}
