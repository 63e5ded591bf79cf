package cookbook

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

//recipe: Tests
