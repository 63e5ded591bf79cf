package cookbook

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

func restRecipe(pool *rpcpool.Pool, use func(cosmos, aptos, tron *http.Client, res *http.Response)) error {
	//recipe: Cosmos, Aptos, Tron
	use(cosmos, aptos, tron, res)
	return nil
}

// restRing lists an RPC that breaks each request off, and one that answers, by their paths.
func restRing(world *rpcpooltest.World, chain, path string) (good *rpcpooltest.Node) {
	host, _, _ := strings.Cut(chain, ":")
	bad := world.NodeAt("bad-"+host, "https://bad-"+host+".test"+path, rpcpooltest.Reset())
	good = world.NodeAt("good-"+host, "https://good-"+host+".test"+path,
		rpcpooltest.Reset().Method("POST /key-3/wallet/easytransfer"), rpcpooltest.Body(`{"of":"`+chain+`"}`))
	bad.AllowREST()
	good.AllowREST()
	world.List(chain, bad, good)
	return good
}

// Each API's paths are joined as its RPCs want them; reads, and what is signed, go on to the
// next RPC, and what isn't safe doesn't.
func TestREST(t *testing.T) {
	inWorld(t, func(t *testing.T, world *rpcpooltest.World) {
		nodes := map[string]*rpcpooltest.Node{
			"cosmoshub":     restRing(world, "cosmoshub", "/key-1/rest"),
			"aptos:mainnet": restRing(world, "aptos:mainnet", "/key-2"),
			"tron:mainnet":  restRing(world, "tron:mainnet", "/key-3/jsonrpc"),
		}
		pool := newPool(t, world.Config())
		err := restRecipe(pool, func(_, aptos, tron *http.Client, res *http.Response) {
			if body, err := io.ReadAll(res.Body); string(body) != `{"of":"cosmoshub"}` || err != nil {
				t.Errorf("%s, %v", body, err)
			}
			read, err := aptos.Get("http://aptos/accounts/0x1")
			if err != nil {
				t.Fatal(err)
			}
			read.Body.Close()
			for _, path := range []string{"/wallet/getaccount", "/wallet/triggerconstantcontract", "/wallet/broadcasttransaction"} {
				sent, err := tron.Post("http://tron"+path, "application/json", strings.NewReader(`{}`))
				if err != nil {
					t.Fatal(path, err)
				}
				sent.Body.Close()
			}
			_, err = tron.Post("http://tron/wallet/easytransfer", "application/json", strings.NewReader(`{}`))
			var ambiguous *rpcpool.AmbiguousError
			if !errors.As(err, &ambiguous) {
				t.Errorf("what isn't safe to repeat: %v", err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for chain, want := range map[string][]string{
			"cosmoshub":     {"GET /key-1/rest/cosmos/base/tendermint/v1beta1/blocks/latest"},
			"aptos:mainnet": {"GET /key-2/v1/accounts/0x1"},
			"tron:mainnet":  {"POST /key-3/wallet/getaccount", "POST /key-3/wallet/triggerconstantcontract", "POST /key-3/wallet/broadcasttransaction", "POST /key-3/wallet/easytransfer"},
		} {
			var asked []string
			for _, request := range nodes[chain].Requests() {
				asked = append(asked, request.Method)
			}
			if !slices.Equal(asked, want) {
				t.Errorf("%s was asked %v", chain, asked)
			}
		}
	})
}
