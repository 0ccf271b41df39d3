package report

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGoals(t *testing.T) {
	report := &Report{Figures: map[string]float64{Publish: 0.5, PublishCPU: 25.1, Lost: 0}}
	report.SetMin(KeepingUp, 0.99)
	report.SetMin(KeepingUp, 0.97)
	report.SetMin(KeepingUp, 1)
	report.Summarize()
	met := map[string]bool{}
	for _, v := range report.Summary {
		if v.Measured != nil {
			met[v.Figure] = v.Met
		}
	}
	assert.Equal(t, map[string]bool{Publish: true, PublishCPU: false, Lost: true, KeepingUp: false}, met)
}

func TestRowsOfOtherNamesAreBlocks(t *testing.T) {
	table := &Table{Scenario: "s", About: "about"}
	table.Add(Cells("a", 1), Cells("longer", nil))
	table.Add(Cells("a", 12.345, "longer", 1234.5))
	table.Add(Cells("b", int64(2), "text", "left"))
	table.Note("%d note", 1)
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
