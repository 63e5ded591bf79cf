package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// values are the passes' values of one thing.
type values []float64

// quantile gives the value that a share of the passes stay under.
func (v values) quantile(share float64) float64 {
	if len(v) == 0 {
		return math.NaN() // which no goal is met by
	}
	sorted := slices.Sorted(slices.Values(v))
	at := share * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (sorted[high]-sorted[low])*(at-float64(low))
}

func (v values) median() float64 { return v.quantile(0.5) }

// cell gives the median, and between which values the middle half of the passes lie.
func (v values) cell(decimals int) string {
	if len(v) == 0 {
		return none
	}
	return number(v.median(), decimals) + " (" + number(v.quantile(0.25), decimals) + "–" + number(v.quantile(0.75), decimals) + ")"
}

// single gives the median alone: for what doesn't vary, or is of use as a size only.
func (v values) single(decimals int) string {
	if len(v) == 0 {
		return none
	}
	return number(v.median(), decimals)
}

// over gives the ratios pass by pass: what else the machine did met both alike.
func (v values) over(base values) values {
	ratios := make(values, 0, len(v))
	for i := range min(len(v), len(base)) {
		if base[i] > 0 {
			ratios = append(ratios, v[i]/base[i])
		}
	}
	return ratios
}

// results are the values of each contender by what was measured.
type results map[string]map[string]values

func (r results) add(contender, what string, value float64) {
	if r[contender] == nil {
		r[contender] = map[string]values{}
	}
	r[contender][what] = append(r[contender][what], value)
}

// ratio compares a contender with another in one thing.
func (r results) ratio(contender, base, what string) values {
	return r[contender][what].over(r[base][what])
}

// shuffled gives contenders, or their turns, in a random order, one of its own for each
// pass, so that none always follows the same.
func shuffled[T any](all []T) []T {
	order := slices.Clone(all)
	rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// made are the clients of one part of a workload, by contender.
type made map[string]*client

func makeAll(all []contender, s setup) (made, error) {
	clients := made{}
	for _, c := range all {
		client, err := c.make(s)
		if err != nil {
			clients.close()
			return nil, fmt.Errorf("making %s: %w", c.name, err)
		}
		clients[c.name] = client
	}
	return clients, nil
}

func (m made) close() {
	for _, c := range m {
		c.close()
	}
}

// sample is what one call cost, on average.
type sample struct {
	micros, allocs, bytes, cpuMicros float64
}

// measure has some goroutines make so many calls each.
func measure(ctx context.Context, c *client, goroutines, calls int) (sample, error) {
	errs := make(chan error, goroutines)
	var before, after runtime.MemStats
	runtime.GC() // the garbage of the contender before isn't this one's
	runtime.ReadMemStats(&before)
	cpuBefore := cpuTime()
	began := time.Now()
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range calls {
				if _, err := c.call(ctx, "eth_blockNumber"); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	cpu := cpuTime() - cpuBefore
	runtime.ReadMemStats(&after)
	select {
	case err := <-errs:
		return sample{}, err
	default:
	}
	n := float64(goroutines * calls)
	return sample{
		micros:    micros(took) / n,
		allocs:    float64(after.Mallocs-before.Mallocs) / n,
		bytes:     float64(after.TotalAlloc-before.TotalAlloc) / n,
		cpuMicros: micros(cpu) / n,
	}, nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// cpuTime is the time that this process has had of the processors.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
