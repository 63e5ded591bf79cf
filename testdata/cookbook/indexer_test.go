package indexer

//recipe: Logs into a database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bomzrpc/rpcpool"
	"github.com/bomzrpc/rpcpool/rpcpooltest"
)

// state is what the tables hold.
type state struct {
	logs map[[2]int64]string // block, index → body
	next int64
}

// database is a database that knows the recipe's statements, and fails the commit that it is
// told to.
type database struct {
	state
	commits, failAt int
}

func (d *database) Connect(context.Context) (driver.Conn, error) { return &conn{db: d}, nil }
func (d *database) Driver() driver.Driver                        { return nil }

type conn struct {
	db *database
	tx *state
}

func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not known") }
func (c *conn) Close() error                        { return nil }
func (c *conn) Begin() (driver.Tx, error) {
	c.tx = &state{maps.Clone(c.db.logs), c.db.next}
	return c, nil
}

func (c *conn) Commit() error {
	if c.db.commits++; c.db.commits == c.db.failAt {
		return errors.New("the connection is lost")
	}
	c.db.state = *c.tx
	return nil
}

func (c *conn) Rollback() error { return nil }

func (c *conn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	number := func(i int) int64 { return args[i].Value.(int64) }
	switch {
	case strings.HasPrefix(query, "DELETE FROM logs WHERE block BETWEEN $1 AND $2"):
		maps.DeleteFunc(c.tx.logs, func(at [2]int64, _ string) bool { return at[0] >= number(0) && at[0] <= number(1) })
	case query == "INSERT INTO logs VALUES ($1, $2, $3)":
		at := [2]int64{number(0), number(1)}
		if _, there := c.tx.logs[at]; there {
			return nil, errors.New("the primary key isn't unique")
		}
		c.tx.logs[at] = args[2].Value.(string)
	case query == "UPDATE progress SET next_block = $1":
		c.tx.next = number(0)
	default:
		return nil, errors.New("not known: " + query)
	}
	return driver.RowsAffected(1), nil
}

func (c *conn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &rows{next: c.db.next}, nil
}

type rows struct {
	next int64
	read bool
}

func (r *rows) Columns() []string { return []string{"next_block"} }
func (r *rows) Close() error      { return nil }
func (r *rows) Next(to []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read, to[0] = true, r.next
	return nil
}

// newIndex gives a database that wants logs from block 36 on, and a bot that indexes into it
// what three RPCs have, of which the second lags.
func newIndex(t *testing.T, evm *rpcpooltest.EVM, mode rpcpool.Mode, first []rpcpooltest.Reply, opts ...rpcpool.ChainOption) (known *database, index func() error) {
	world := rpcpooltest.New(t)
	world.Proxy("p")
	world.List("1", world.Node("first", append(first, evm.Serve())...), world.Node("lags", evm.Serve(rpcpooltest.Lagging(90), rpcpooltest.Vague())), world.Node("good", evm.Serve()))
	cfg := world.Config()
	cfg.Mode = mode
	pool, err := rpcpool.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	known = &database{state: state{map[[2]int64]string{}, 100}}
	db := sql.OpenDB(known)
	t.Cleanup(func() {
		db.Close()
		pool.Close()
	})
	return known, func() error { return Index(t.Context(), db, pool.Chain("1", opts...), rpcpool.LogFilter{}) }
}

// Each block's log is in the database once, although a commit failed on the way, and after a
// reorganization it is that of the chain's.
func TestIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		evm := rpcpooltest.NewEVM(1, 10_000)
		known, index := newIndex(t, evm, rpcpool.RoundRobin, nil, rpcpool.WithFreshness(rpcpool.Freshness{}))
		known.failAt = 4
		if err := index(); err == nil || known.commits != 4 || known.next < 2000 {
			t.Errorf("%v, after %d commits, up to %d", err, known.commits, known.next)
		}
		check := func() {
			if err := index(); err != nil {
				t.Fatal(err)
			}
			if want := int64(evm.Head()) + 1; known.next != want || len(known.logs) != int(want)-36 {
				t.Errorf("%d logs, up to %d", len(known.logs), known.next)
			}
			for at, body := range known.logs {
				if !strings.Contains(body, evm.Hash(uint64(at[0]))) {
					t.Errorf("the log of block %d is of another chain", at[0])
					break
				}
			}
		}
		check()
		evm.Reorg(20)
		evm.Mine(30)
		time.Sleep(time.Minute)
		check()
	})
}

// An RPC that lags leaves no gap, on a plain handle either: it is asked first here, as the
// one that knows the head serves no logs.
func TestIndexHasNoGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		evm := rpcpooltest.NewEVM(1, 10_000)
		known, index := newIndex(t, evm, rpcpool.Sticky, []rpcpooltest.Reply{rpcpooltest.Error(-32601, "method not found").Method("eth_getLogs")})
		if err := index(); err != nil || known.next != 10_001 || len(known.logs) != 10_001-36 {
			t.Errorf("%v; %d logs, up to %d", err, len(known.logs), known.next)
		}
	})
}
