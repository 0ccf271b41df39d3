package definition_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/machines"
	"routemaster/internal/machines/definition"
)

var update = flag.Bool("update", false, "write the files of testdata anew")

func loadGraph(t *testing.T, content []byte) *machines.Machine {
	t.Helper()
	definitions, _, err := definition.Load(definition.File{Name: "test", Content: content})
	require.NoError(t, err)
	return definitions.Machines[0]
}

// large returns a machine with a number of states; every tenth leads back.
func large(t *testing.T, states int) *machines.Machine {
	t.Helper()
	var b strings.Builder
	b.WriteString("state_machines:\n  large:\n    states:\n")
	for i := range states {
		fmt.Fprintf(&b, "    - {gate: state_%d, exit_condition: true, next: {type: context, path: metadata.way, default: state_%d, destinations: "+
			"[{value: skip, state: state_%d}, {value: %d, state: state_%d}]}}\n", i, min(i+1, states-1), min(i+3, states-1), i, i-i%10)
	}
	return loadGraph(t, []byte(b.String()))
}

func machinesToDraw(t *testing.T) map[string]*machines.Machine {
	t.Helper()
	example, err := os.ReadFile("../../../examples/machines/drip-feed.yaml")
	require.NoError(t, err)
	return map[string]*machines.Machine{
		"drip-feed": loadGraph(t, example),
		"large":     large(t, 20),
		"hostile": loadGraph(t, []byte(`state_machines: {'<&"\-->;%%{init}': {states: [
  {gate: state, exit_condition: 'metadata.x = "<script>" # ]]>', next: {type: context, path: metadata.x, default: end, destinations: [
    {value: '"\]; a -> b', state: end}, {value: "</text>:\n*\x00", state: state}, {value: "1e400", state: note}, {value: '; %% #35;', state: note}]}},
  {action: note, webhook: 'http://a.example/?a=<label>&b="', next: end},
  {gate: end, exit_condition: false}]}}`)),
		"one": loadGraph(t, []byte("state_machines: {one: {states: [{gate: only, exit_condition: false}]}}")),
	}
}

func TestDraw(t *testing.T) {
	for name, m := range machinesToDraw(t) {
		for _, format := range definition.Formats {
			t.Run(name+"."+format, func(t *testing.T) {
				got, err := definition.Draw(m, format)
				require.NoError(t, err)
				again, err := definition.Draw(m, format)
				require.NoError(t, err)
				require.Equal(t, got, again)
				path := filepath.Join("testdata", name+"."+format)
				if *update {
					require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
				}
				want, err := os.ReadFile(path)
				require.NoError(t, err)
				assert.Equal(t, string(want), got, "go test ./internal/machines/graph -update writes the files anew")
			})
		}
	}
}

// TestSVGIsXML: nothing of a definition becomes an element.
func TestSVGIsXML(t *testing.T) {
	for name, m := range machinesToDraw(t) {
		drawn, err := definition.Draw(m, "svg")
		require.NoError(t, err)
		titles, elements := 0, map[string]bool{}
		decoder := xml.NewDecoder(strings.NewReader(drawn))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
			if start, ok := token.(xml.StartElement); ok {
				elements[start.Name.Local] = true
				if start.Name.Local == "title" {
					titles++
				}
			}
		}
		assert.NotContains(t, elements, "script")
		assert.Greater(t, titles, len(m.States), "the drawing and each state have one")
	}
}

func TestLargeSVG(t *testing.T) {
	drawn, err := definition.Draw(large(t, 160), "svg")
	require.NoError(t, err)
	assert.Contains(t, drawn, ">state_159</text>")
	_, err = definition.Draw(large(t, 201), "svg")
	assert.ErrorIs(t, err, definition.ErrTooLarge)
	_, err = definition.Draw(large(t, 201), "dot")
	assert.NoError(t, err)
}

func TestUnknownFormat(t *testing.T) {
	_, err := definition.Draw(large(t, 1), "png")
	assert.EqualError(t, err, "a graph has one of the formats dot, mermaid, svg")
}
