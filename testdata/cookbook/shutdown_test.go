package main

//recipe: Shutdown

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// A SIGTERM ends the calls that are under way, main returns, and what is to be reported of
// the RPC that failed has been.
func TestShutdown(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process can't send itself a signal")
	}
	world := rpcpooltest.NewWorld(rpcpooltest.NewLoopbackNetwork())
	defer world.Close()
	proxy := world.Proxy("p")
	gate := rpcpooltest.NewGate()
	world.List("8453", world.Node("bad", rpcpooltest.Status(500)), world.Node("slow", rpcpooltest.Result("0x1").Hold(gate)))
	t.Setenv(rpcpool.EnvAPIURL, "http://"+world.Network.RealAddr(world.Pool.Addr()))
	t.Setenv(rpcpool.EnvAPIKey, world.Pool.Key())
	t.Setenv("PROXY", "socks5://user-p:word-p@"+world.Network.RealAddr(proxy.Addr()))
	for _, name := range []string{"HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, t.TempDir()) // the cache of lists is the user's
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		main()
	}()
	for range 4 { // the workers
		if _, err := gate.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("main goes on")
	}
	if len(world.Pool.Reports()) == 0 {
		t.Error("nothing was reported")
	}
}
