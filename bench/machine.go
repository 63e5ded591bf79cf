package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// machine is what a run was measured on and of.
type machine struct {
	cpu      string
	date     string
	versions []string
}

func thisMachine(versions ...string) machine {
	m := machine{cpu: "unknown processor", date: time.Now().UTC().Format(time.DateOnly)}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, found := strings.Cut(string(info), "model name"); found {
			line, _, _ := strings.Cut(rest, "\n")
			m.cpu = strings.TrimSpace(strings.TrimLeft(line, "\t :"))
		}
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return m
	}
	compared := []string{"cristalhq/hedgedhttp", "ethereum/go-ethereum", "failsafe-go/failsafe-go", "hashicorp/go-retryablehttp"}
	for _, dependency := range build.Deps {
		name := strings.TrimPrefix(dependency.Path, "github.com/")
		if slices.Contains(compared, name) {
			m.versions = append(m.versions, name+" "+dependency.Version)
		}
	}
	m.versions = append(m.versions, versions...)
	return m
}

func (m machine) text() string {
	return fmt.Sprintf("%s, %d cores, GOMAXPROCS=%d, %s/%s, %s", m.cpu, runtime.NumCPU(), runtime.GOMAXPROCS(0), runtime.GOOS, runtime.GOARCH, runtime.Version())
}
