package cookbook

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

func rotatingRecipe(cfg rpcpool.Config) rpcpool.Config {
	//recipe: Rotating proxies
	return cfg
}

// gateway serves one address. Who connects goes out by another proxy for each session that a
// login names.
func gateway(t *testing.T, world *rpcpooltest.World) net.Listener {
	exits := map[string]string{}
	for _, n := range []string{"1", "2", "3"} {
		exit := world.ProxyAt("exit-"+n, "http://user-session-"+n+":password@exit-"+n+".test:8000")
		exits["user-session-"+n] = exit.Addr()
	}
	listener, err := world.Network.Listen("gate.example.com:8000")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serveSession(world, conn, exits)
		}
	}()
	return listener
}

func serveSession(world *rpcpooltest.World, conn net.Conn, exits map[string]string) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	var head bytes.Buffer
	session := ""
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		line, err := reader.ReadString('\n')
		if err != nil {
			return
		}
		head.WriteString(line)
		if name, value, _ := strings.Cut(line, ": Basic "); strings.EqualFold(name, "Proxy-Authorization") {
			login, _ := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
			session, _, _ = strings.Cut(string(login), ":")
		}
	}
	exit, err := world.Network.DialContext(context.Background(), "tcp", exits[session])
	if err != nil {
		return
	}
	defer exit.Close()
	if _, err := exit.Write(head.Bytes()); err != nil {
		return
	}
	go func() {
		defer exit.Close()
		io.Copy(exit, reader)
	}()
	io.Copy(conn, exit)
}

// A 403 for one address of the gateway is tried through the next one before the RPC is
// blamed.
func TestRotatingProxies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := rpcpooltest.New(t)
		defer gateway(t, world).Close()
		world.List("1", world.Node("r1", rpcpooltest.Status(403).Via("exit-1"), rpcpooltest.Result("0x1")), world.Node("r2"))
		pool := newPool(t, rotatingRecipe(world.Config()))
		chain := pool.Chain("1")
		_, err := chain.Call(t.Context(), "eth_blockNumber")
		if asked := asked(world); err != nil || asked != "[r1 exit-1 eth_blockNumber r1 exit-2 eth_blockNumber]" {
			t.Errorf("%v; asked were %s", err, asked)
		}
		if chain.Stats()[0].Cooling || len(pool.ProxyStats()) != 3 {
			t.Errorf("%+v, %+v", chain.Stats(), pool.ProxyStats())
		}
	})
}
