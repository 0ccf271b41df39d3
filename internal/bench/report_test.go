package bench

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRatesBetweenSamples(t *testing.T) {
	at := func(seconds float64) time.Time {
		return time.UnixMilli(0).Add(time.Duration(seconds * float64(time.Second)))
	}
	s := samples{{at(0), 0}, {at(1), 0}, {at(2), 100}, {at(4), 100}, {at(5), 300}}
	assert.Equal(t, at(1.5), s.reached(50))
	assert.Equal(t, at(2), s.reached(100))
	assert.Equal(t, at(4.5), s.reached(200))
	assert.InDelta(t, 199/3.5, s.rate(1, 200), 1, "what came before the first does not count, a stall does")
}

func TestGoals(t *testing.T) {
	report := &Report{Figures: map[string]float64{figurePublish: 0.5, figurePublishCPU: 25.1, figureLost: 0}}
	report.keepMin(figureKeepingUp, 0.99)
	report.keepMin(figureKeepingUp, 0.97)
	report.keepMin(figureKeepingUp, 1)
	report.summarize()
	met := map[string]bool{}
	for _, v := range report.Summary {
		if v.Measured != nil {
			met[v.Figure] = v.Met
		}
	}
	assert.Equal(t, map[string]bool{figurePublish: true, figurePublishCPU: false, figureLost: true, figureKeepingUp: false}, met)
}

func TestRowsOfOtherNamesAreBlocks(t *testing.T) {
	table := &Table{Scenario: "s", About: "about"}
	table.add(Row{{"a", 1}}, Row{{"longer", nil}})
	table.add(Row{{"a", 12.345}, {"longer", 1234.5}})
	table.add(Row{{"b", int64(2)}, {"text", "left"}})
	table.note("%d note", 1)
	var out strings.Builder
	require.NoError(t, table.Write(&out))
	assert.Equal(t, `s: about

     a  longer
     1       -
  12.3    1234

  b  text
  2  left

1 note

`, out.String())
	text, err := json.Marshal(table.Rows[1])
	require.NoError(t, err)
	assert.JSONEq(t, `{"a":12.345,"longer":1234.5}`, string(text))
}
