package main

import (
	"fmt"
	"strings"
)

// passes is how often something is measured, each time in another order: so often that one
// odd pass doesn't move a median.
type passes struct {
	of          string
	full, quick int
}

var (
	enginePasses     = passes{"engine", 7, 2}
	steadyPasses     = passes{"steady state", 12, 5}
	failoverPasses   = passes{"failover", 15, 7}
	blackholePasses  = passes{"blackhole", 7, 3}
	largePasses      = passes{"large answers", 7, 2}
	logsPasses       = passes{"logs", 7, 2}
	crowdPasses      = passes{"crowd", 7, 1}
	crowdsPasses     = passes{"crowds in a row", 3, 1}
	jsSteadyPasses   = passes{"clients of JavaScript, steady state", 7, 2}
	jsFailoverPasses = passes{"their failover", 7, 1}
	jsLargePasses    = passes{"their large answers", 7, 1}
)

func (b *bench) times(p passes) int { return pick(b, p.full, p.quick) }

// passesText says how many passes a whole run has.
func passesText() string {
	all := []passes{
		enginePasses, steadyPasses, failoverPasses, blackholePasses, largePasses, logsPasses, crowdPasses, crowdsPasses, jsSteadyPasses, jsFailoverPasses, jsLargePasses,
	}
	parts := make([]string, len(all))
	for i, p := range all {
		parts[i] = fmt.Sprintf("%s %d", p.of, p.full)
	}
	return "Passes: " + strings.Join(parts, ", ") + "."
}
