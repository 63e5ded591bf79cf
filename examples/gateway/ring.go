package main

import (
	"net/http"

	"github.com/bomzrpc/rpcpool"
)

// overRing gives the way round a chain's ring: JSON-RPC over HTTP, batches included.
func overRing(chain *rpcpool.Chain) http.RoundTripper { return chain.HTTPClient().Transport }
