package rpcpooltest

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Network is a small world of its own: names that lead to servers, and nothing
// else. It has two zones, as a bot with proxies has: the client's, where the
// proxies and the pool API are (see [Network.DialContext]), and the one behind
// the proxies, where the RPC nodes are. A client that dials a node finds nobody,
// since only the proxies know its name.
//
// Its methods may be called from many goroutines at once.
type Network struct {
	loopback bool
	ca       *authority
	trace    trace
	step     atomic.Int64
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc

	mu        sync.Mutex // protects what follows
	points    map[place]*endpoint
	nodes     map[string]*Node
	faults    map[string]Fault // by address, in the client's zone
	dials     []string
	pending   map[string]int
	open      map[string]int
	ephemeral int
	owned     []func()
	closed    bool
}

// zone tells the client's side of the proxies from the far side.
type zone int

const (
	clientZone zone = iota
	farZone
)

type place struct {
	zone zone
	addr string
}

// Fault is what becomes of dials to an address.
type Fault int

// The faults of an address.
const (
	NoFault  Fault = iota
	RefuseIt       // refused with ECONNREFUSED
	HangIt         // neither made nor refused: ends with the dial's context
)

// NewMemoryNetwork makes a network in memory. All of it may live in a
// testing/synctest bubble, where cooldowns of minutes pass at once.
func NewMemoryNetwork() *Network { return newNetwork(false) }

// NewLoopbackNetwork makes a network of real TCP listeners on 127.0.0.1, each
// on a free port, which its names lead to. See [Network.RealAddr].
func NewLoopbackNetwork() *Network { return newNetwork(true) }

func newNetwork(loopback bool) *Network {
	ctx, cancel := context.WithCancel(context.Background())
	return &Network{
		loopback: loopback,
		ca:       newAuthority(),
		ctx:      ctx,
		cancel:   cancel,
		points:   map[place]*endpoint{},
		nodes:    map[string]*Node{},
		faults:   map[string]Fault{},
		pending:  map[string]int{},
		open:     map[string]int{},
	}
}

// RootCAs gives the certificate authority of the network's TLS servers. It is
// made anew for each network, and nobody else trusts it.
func (n *Network) RootCAs() *x509.CertPool { return n.ca.pool }

// Listen opens addr, a "name:port" (or ":port" for the name "localhost"), to the
// client. It is for servers of the test's own; proxies, nodes and the pool API
// listen by themselves.
func (n *Network) Listen(addr string) (net.Listener, error) {
	return n.listen(clientZone, addr, nil)
}

// SetFault decides what becomes of the client's dials to addr ("name:port") from
// now on; [NoFault] heals it.
func (n *Network) SetFault(addr string, fault Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults[canonical(addr)] = fault
}

// DialContext connects the client to a proxy, to the pool API, or to what
// [Network.Listen] opened. It fits the field DialContext of rpcpool.Config, of
// http.Transport and the like. An unknown address is refused with ECONNREFUSED.
// Every call is noted, see [Network.Dials].
func (n *Network) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	addr = canonical(addr)
	n.mu.Lock()
	n.dials = append(n.dials, addr)
	n.pending[addr]++
	fault := n.faults[addr]
	point := n.points[place{clientZone, addr}]
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.pending[addr]--
	}()

	conn, err := n.dial(ctx, point, fault)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: memAddr(addr), Err: err}
	}
	return n.count(conn, addr), nil
}

func (n *Network) dial(ctx context.Context, point *endpoint, fault Fault) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var tag any
	if fault == NoFault && point != nil && point.admit != nil {
		tag, fault = point.admit()
	}
	switch {
	case fault == HangIt:
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-n.ctx.Done():
			return nil, syscall.ECONNREFUSED
		}
	case fault == RefuseIt || point == nil:
		return nil, syscall.ECONNREFUSED
	}
	return point.connect(ctx, n.clientAddr(), tag)
}

// connectFar connects a proxy to a node.
func (n *Network) connectFar(ctx context.Context, addr string, tag any) (net.Conn, error) {
	n.mu.Lock()
	point := n.points[place{farZone, canonical(addr)}]
	n.mu.Unlock()
	if point == nil {
		return nil, syscall.ECONNREFUSED
	}
	return point.connect(ctx, n.clientAddr(), tag)
}

// Dials gives every address that the client dialled, in order, whatever came of
// it. Addresses of nodes are never among them, unless the client is at fault.
func (n *Network) Dials() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.dials)
}

// PendingDials counts the client's dials that are neither made nor refused yet:
// to the addresses given, or all.
func (n *Network) PendingDials(addrs ...string) int { return n.sum(n.pending, addrs) }

// OpenConns counts the connections that the client made and hasn't closed: to
// the addresses given, or all.
func (n *Network) OpenConns(addrs ...string) int { return n.sum(n.open, addrs) }

func (n *Network) sum(counts map[string]int, addrs []string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	total := 0
	if len(addrs) == 0 {
		for _, count := range counts {
			total += count
		}
	}
	for _, addr := range addrs {
		total += counts[canonical(addr)]
	}
	return total
}

// RealAddr gives the address on 127.0.0.1 to which a name of the client's zone
// leads on a loopback network: for programs that can't be given a dialer. It is
// empty for unknown names, and in memory.
func (n *Network) RealAddr(addr string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	point := n.points[place{clientZone, canonical(addr)}]
	if point == nil || !n.loopback {
		return ""
	}
	return point.Addr().String()
}

// SetStep tells the scripts of all servers which step of the test has begun:
// entries may be limited to some steps. It is 0 at first.
func (n *Network) SetStep(step int) { n.step.Store(int64(step)) }

func (n *Network) currentStep() int { return int(n.step.Load()) }

// Close ends all servers, connections and dials. It waits for the servers'
// goroutines, so that nothing of the network is left.
func (n *Network) Close() error {
	n.mu.Lock()
	owned := n.owned
	n.owned, n.closed = nil, true
	points := n.points
	n.points = map[place]*endpoint{}
	n.mu.Unlock()
	n.cancel()
	for _, end := range owned {
		end()
	}
	for _, point := range points {
		_ = point.Close()
	}
	return nil
}

// node gives the node of an address.
func (n *Network) node(addr string) *Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.nodes[addr]
}

// own has end called by Close.
func (n *Network) own(end func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owned = append(n.owned, end)
}

var errTaken = errors.New("address already in use")

func (n *Network) listen(z zone, addr string, admit func() (any, Fault)) (*endpoint, error) {
	where := place{z, canonical(addr)}
	point, err := newEndpoint(n, where, admit)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		err = net.ErrClosed
	case n.points[where] != nil:
		err = errTaken
	default:
		n.points[where] = point
		return point, nil
	}
	point.shut()
	return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: memAddr(where.addr), Err: err}
}

func (n *Network) forget(point *endpoint) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.points[point.place] == point {
		delete(n.points, point.place)
	}
}

func (n *Network) clientAddr() memAddr {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ephemeral++
	return memAddr("192.0.2.1:" + strconv.Itoa(1024+n.ephemeral%60000))
}

// count wraps a connection of the client so that its Close is seen.
func (n *Network) count(conn net.Conn, addr string) net.Conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open[addr]++
	return &clientConn{Conn: conn, network: n, addr: addr}
}

type clientConn struct {
	net.Conn
	network *Network
	addr    string
	once    sync.Once
}

func (c *clientConn) Close() error {
	c.once.Do(func() {
		c.network.mu.Lock()
		defer c.network.mu.Unlock()
		c.network.open[c.addr]--
	})
	return c.Conn.Close()
}

func (c *clientConn) CloseWrite() error { return closeWrite(c.Conn) }

// canonical gives an address its one form: lower case, no empty host.
func canonical(addr string) string {
	if strings.HasPrefix(addr, ":") {
		addr = "localhost" + addr
	}
	return strings.ToLower(strings.TrimSuffix(addr, "."))
}
