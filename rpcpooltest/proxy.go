package rpcpooltest

import (
	"context"
	"net"
	"net/url"
	"strings"
	"time"
)

// Proxy is a SOCKS or HTTP proxy of the client's. It resolves the names of nodes
// by itself, within the [Network], and demands and checks the login in its URL.
type Proxy struct {
	name    string
	url     *url.URL
	network *Network
	server  service
	script  script[ProxyReply]
}

// visit is the tag of a client's connection to a proxy.
type visit struct {
	exchange *exchange
	reply    ProxyReply
}

// NewProxy starts a proxy, which reaches every node of the network. The URL's
// scheme (socks5, socks5h, socks4, socks4a, http or https) says which kind it
// is. It panics where the URL can't be used or is taken.
func NewProxy(network *Network, name, rawURL string, script ...ProxyReply) *Proxy {
	u := parseURL(rawURL, "socks5", "socks5h", "socks4", "socks4a", "http", "https")
	p := &Proxy{name: name, url: u, network: network}
	p.Script(script...)
	p.server = service{network: network, zone: clientZone, addr: hostPort(u), admit: p.admit, serve: p.serve}
	p.server.start()
	return p
}

// Name is the name by which the proxy stands in records and scripts.
func (p *Proxy) Name() string { return p.name }

// URL is the proxy's URL with its login, as rpcpool.Config.Proxies takes it.
func (p *Proxy) URL() string { return p.url.String() }

// Addr is the proxy's "name:port", as [Network.Dials] shows it.
func (p *Proxy) Addr() string { return p.server.addr }

// Script replaces what the proxy does: for each connection the first entry whose
// conditions hold, and that isn't used up; where none fits it works. It panics
// on entries that the proxy's kind can't say.
func (p *Proxy) Script(script ...ProxyReply) {
	p.check(script)
	p.script.set(script)
}

// Then adds entries at the end of the script.
func (p *Proxy) Then(script ...ProxyReply) {
	p.check(script)
	p.script.add(script)
}

func (p *Proxy) check(script []ProxyReply) {
	for _, reply := range script {
		if reply.act == sayCode && !p.socks() || reply.act == sayStatus && p.socks() {
			panic("rpcpooltest: " + p.url.Scheme + " proxies can't give such an answer: ProxyCode is SOCKS's, ProxyStatus HTTP's")
		}
	}
}

func (p *Proxy) socks() bool { return strings.HasPrefix(p.url.Scheme, "socks") }

// Exchanges gives what was asked of this proxy, in order.
func (p *Proxy) Exchanges() []Exchange {
	var own []Exchange
	for _, e := range p.network.Exchanges() {
		if e.Proxy == p.name {
			own = append(own, e)
		}
	}
	return own
}

// Kill takes the proxy off the network: its connections break, new ones are
// refused.
func (p *Proxy) Kill() { p.server.stop() }

// Revive brings a killed proxy back.
func (p *Proxy) Revive() {
	if !p.server.up() {
		p.server.start()
	}
}

// admit decides about a dial.
func (p *Proxy) admit() (any, Fault) {
	v := p.visit()
	switch v.reply.act {
	case refuseDial:
		return v, RefuseIt
	case hangDial:
		return v, HangIt
	}
	return v, NoFault
}

// visit begins a try and chooses what becomes of it.
func (p *Proxy) visit() *visit {
	v := &visit{exchange: p.network.trace.begin(p.name)}
	v.reply, _ = p.script.take(question{step: p.network.currentStep()})
	return v
}

// serve serves one connection.
func (p *Proxy) serve(l *link) {
	v, _ := l.tag.(*visit)
	if v == nil { // a stranger's, on loopback
		v = p.visit()
	}
	if p.url.Scheme == "https" && l.secure(p.network.ca.serverConfig(p.url.Hostname())) != nil {
		return
	}
	// On a connection that is there already, a dial that is refused or hangs can
	// only be broken or left without an answer.
	switch v.reply.act {
	case refuseDial:
		reset(l.raw)
		return
	case hangDial:
		l.hang()
		return
	}
	switch p.url.Scheme {
	case "socks5", "socks5h":
		p.serveSOCKS5(l, v)
	case "socks4", "socks4a":
		p.serveSOCKS4(l, v)
	default:
		p.serveHTTP(l, v)
	}
}

// route is what becomes of a request for a target.
type route struct {
	node *Node
	leg  *leg
	// deny is set where the node says that it can't be reached, or there is no
	// such node.
	deny *Reply
}

// ask notes what is asked for, waits as the script says, and finds the way. It
// gives false when the client went away meanwhile.
func (p *Proxy) ask(l *link, v *visit, how, target string) (route, bool) {
	target = canonical(target)
	node := p.network.node(target)
	name := ""
	if node != nil {
		name = node.name
	}
	p.network.trace.asked(v.exchange, how, target, name)
	p.checkName(how, target, node)

	if !l.pause(v.reply.when.delay) {
		return route{}, false
	}
	held := Request{Node: name, Via: p.name, Time: time.Now(), ctx: l.ctx}
	if _, there := v.reply.when.gate.hold(l, held); !there {
		return route{}, false
	}
	if v.reply.act != carryIt {
		return route{}, true
	}
	if node == nil {
		unknown := Unreachable().Code(4)
		return route{deny: &unknown}, true
	}
	to := route{node: node, leg: &leg{via: p.name, exchange: v.exchange, reply: node.admit(p.name)}}
	if to.leg.reply != nil && to.leg.reply.act == unreachable {
		to.deny = to.leg.reply
		return to, l.pause(to.deny.when.delay)
	}
	return to, true
}

// checkName notes a SOCKS request for an address that is no node's own name:
// the client looked the name up by itself.
func (p *Proxy) checkName(how, target string, node *Node) {
	host, _, err := net.SplitHostPort(target)
	if err == nil && net.ParseIP(host) != nil && node == nil {
		p.network.trace.breach("proxy %s (%s): it was asked for the address %s instead of a name", p.name, how, target)
	}
}

// connect makes the connection to the node. It ends with the client's.
func (p *Proxy) connect(ctx context.Context, to route) (net.Conn, error) {
	return p.network.connectFar(ctx, to.node.server.addr, to.leg)
}
