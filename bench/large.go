package main

import (
	"context"
	"fmt"
	"time"
)

// largeCalls is how many large answers one process asks for: a first, and later ones.
const largeCalls = 3

// large measures a large answer to eth_getLogs, from the request to the result's raw
// JSON, each time in a fresh process.
func large(ctx context.Context, b *bench) ([]table, error) {
	if err := b.control.set(); err != nil {
		return nil, err
	}
	contenders := leave(singles, nameDefault)
	size := pick(b, 31_500_000, 8_000_000)
	passes := b.times(largePasses)
	var tables []table
	for _, path := range []string{pathKnown, pathChunked} {
		r := results{}
		for range passes {
			for _, c := range shuffled(contenders) {
				numbers, err := errand{
					Workload: "large", Contender: c.name, Addrs: b.addrs, Path: fmt.Sprintf("%s?%d", path, size), Calls: largeCalls,
				}.run(ctx)
				if err != nil {
					return nil, err
				}
				for what, value := range numbers {
					r.add(c.name, what, value)
				}
			}
		}
		tables = append(tables, largeTable(path, size, contenders, r))
		largeFacts(b, path, r)
	}
	return tables, nil
}

// largeOnce measures the first answer, and those after it.
func largeOnce(ctx context.Context, e errand) (map[string]float64, error) {
	c, err := e.client(singles, e.Addrs.plain().urls(1, e.Path))
	if err != nil {
		return nil, err
	}
	defer c.close()
	if _, err := oneByOne(ctx, c, 20); err != nil {
		return nil, err
	}
	filter := map[string]string{"fromBlock": "0x13f0000", "toBlock": "0x13fffff"}
	var speeds, peaks values
	for range e.Calls {
		memory := watchMemory()
		began := time.Now()
		result, err := c.call(ctx, "eth_getLogs", filter)
		if err != nil {
			return nil, err
		}
		took := time.Since(began)
		size := float64(len(result))
		speeds = append(speeds, size/1e6/took.Seconds())
		peaks = append(peaks, memory.bytes()/size)
	}
	return map[string]float64{
		"first": speeds[0], "first peak": peaks[0], "later": speeds[1:].median(), "later peak": peaks[1:].median(),
	}, nil
}

func largeTable(path string, size int, contenders []contender, r results) table {
	length := map[string]string{pathKnown: "with its length in the head", pathChunked: "in chunks"}[path]
	t := table{
		section: "Large answers",
		title:   fmt.Sprintf("eth_getLogs with a result of %s MB, %s", number(float64(size)/1e6, 1), length),
		notes: []string{
			"MB/s to the result's raw JSON and × " + nameTuned + ", higher is faster; the most memory above an idle process, × the result. " +
				"The first answer of a process, and later ones. " + nameLean + " believes that the body is JSON, all others check it.",
		},
		head: []string{"client", "first, MB/s", "first ×", "memory ×", "later, MB/s", "later ×", "memory ×"},
	}
	for _, c := range contenders {
		of := r[c.name]
		t.row(c.name, of["first"].cell(0), r.ratio(c.name, nameTuned, "first").cell(2), of["first peak"].cell(2),
			of["later"].cell(0), r.ratio(c.name, nameTuned, "later").cell(2), of["later peak"].cell(2))
	}
	return t
}

// largeFacts are what the goals are about.
func largeFacts(b *bench, path string, r results) {
	for _, what := range []string{"first", "later"} {
		b.facts[largeFact(path, what)] = r.ratio(nameOurs, nameTuned, what).median()
		b.facts[largeFact(path, what+", geth")] = r.ratio(nameOurs, nameGeth, what).median()
		b.facts[largeFact(path, what+", memory")] = r[nameOurs][what+" peak"].median()
	}
}

func largeFact(path, what string) string { return "large, " + path + ", " + what }
