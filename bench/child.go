package main

import (
	"encoding/json"
	"os"
	"os/exec"
)

// conversation is a talk in JSON with a process of its own, which ends when its input does.
type conversation struct {
	writer *json.Encoder
	reader *json.Decoder
	stop   func()
}

// talkTo starts a child and talks to it over its standard input and output.
func talkTo(child *exec.Cmd) (*conversation, error) {
	child.Stderr = os.Stderr
	input, err := child.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := child.Start(); err != nil {
		return nil, err
	}
	return &conversation{json.NewEncoder(input), json.NewDecoder(output), func() {
		_ = input.Close()
		_ = child.Wait()
	}}, nil
}
