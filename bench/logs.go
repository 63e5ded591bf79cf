package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// logsFunc asks for the logs of some blocks in pieces of so many blocks, with so many
// pieces under way at once, and gives the logs in the blocks' order.
type logsFunc func(ctx context.Context, from, to, piece uint64, workers int) ([]json.RawMessage, error)

const (
	pieceBlocks  = 1000
	logsPerPiece = 3 // of the servers
)

// logsWorkers are how many pieces are under way at once.
var logsWorkers = []int{1, 8, 16, 32}

// logs measures a query for logs in pieces, each of which a server thinks about.
func logs(ctx context.Context, b *bench) ([]table, error) {
	if err := b.control.set(); err != nil {
		return nil, err
	}
	contenders := leave(singles, nameDefault, nameRetryable, nameFailsafe, nameHedged) // which wait as bare-tuned does
	pieces := pick(b, 100, 24)
	w := b.addrs.plain()
	clients, err := makeAll(contenders, setup{proxy: w.proxy, ca: b.addrs.CA, urls: w.urls(1, pathLogs)})
	if err != nil {
		return nil, err
	}
	defer clients.close()
	r := results{}
	for range b.times(logsPasses) {
		for _, n := range logsWorkers {
			for _, c := range shuffled(contenders) {
				if err := logsOnce(ctx, clients[c.name], c.name, pieces, n, r); err != nil {
					return nil, fmt.Errorf("%s, %d workers: %w", c.name, n, err)
				}
			}
		}
	}
	logsFacts(b, pieces, r)
	return []table{logsTable(contenders, pieces, r)}, nil
}

func logsOnce(ctx context.Context, c *client, name string, pieces, workers int, r results) error {
	ask := c.logs
	if ask == nil {
		ask = c.logsByHand
	}
	cpu := cpuTime()
	began := time.Now()
	found, err := ask(ctx, 0, uint64(pieces)*pieceBlocks-1, pieceBlocks, workers)
	if err != nil {
		return err
	}
	if want := pieces * logsPerPiece; len(found) != want {
		return fmt.Errorf("%d logs instead of %d", len(found), want)
	}
	r.add(name, workersName(workers), millis(time.Since(began)))
	r.add(name, "cpu "+workersName(workers), millis(cpuTime()-cpu))
	return nil
}

func workersName(n int) string { return fmt.Sprintf("%d at once", n) }

// logsByHand has workers take pieces one after the other.
func (c *client) logsByHand(ctx context.Context, from, to, piece uint64, workers int) ([]json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	found := make([][]json.RawMessage, (to-from)/piece+1)
	next := make(chan int)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := range next {
				first := from + uint64(i)*piece
				logs, err := c.logsOf(ctx, first, min(to, first+piece-1))
				if err != nil {
					cancel(err)
				}
				found[i] = logs
			}
		})
	}
	for i := range found {
		next <- i
	}
	close(next)
	all.Wait()
	var inOrder []json.RawMessage
	for _, logs := range found {
		inOrder = append(inOrder, logs...)
	}
	return inOrder, context.Cause(ctx)
}

func (c *client) logsOf(ctx context.Context, from, to uint64) (logs []json.RawMessage, err error) {
	result, err := c.call(ctx, "eth_getLogs", map[string]string{
		"fromBlock": fmt.Sprintf("0x%x", from), "toBlock": fmt.Sprintf("0x%x", to),
	})
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(result, &logs)
	return logs, err
}

// idealLogs is how many ms the servers' thoughts alone take.
func idealLogs(pieces, workers int) float64 {
	return float64((pieces+workers-1)/workers) * millis(logsLatency)
}

func logsTable(contenders []contender, pieces int, r results) table {
	t := table{
		section: "Logs in pieces",
		title:   fmt.Sprintf("%d pieces of %s blocks, %v of thought for each", pieces, number(pieceBlocks, 0), logsLatency),
		notes: []string{
			"Milliseconds, and × the ideal of ⌈pieces ÷ workers⌉ × " + logsLatency.String() + ". " +
				"Where the library leaves it to its user, workers take pieces one after the other.",
		},
		head: []string{"client"},
	}
	for _, n := range logsWorkers {
		t.head = append(t.head, workersName(n)+", ms", "× ideal")
	}
	t.head = append(t.head, "CPU at 16, ms")
	for _, c := range contenders {
		cells := []string{c.name}
		for _, n := range logsWorkers {
			of := r[c.name][workersName(n)]
			cells = append(cells, of.cell(0), number(of.median()/idealLogs(pieces, n), 2))
		}
		t.row(append(cells, r[c.name]["cpu "+workersName(16)].cell(0))...)
	}
	return t
}

// logsFacts are what the goals are about.
func logsFacts(b *bench, pieces int, r results) {
	ours := r[nameOurs]
	for _, n := range logsWorkers {
		b.facts[logsFact("ideal", n)] = ours[workersName(n)].median() / idealLogs(pieces, n)
		b.facts[logsFact("speed", n)] = ours[workersName(1)].median() / ours[workersName(n)].median()
	}
}

func logsFact(what string, workers int) string { return "logs, " + what + ", " + workersName(workers) }
