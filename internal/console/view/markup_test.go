package view_test

import (
	"html/template"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console/view"
	"routemaster/internal/overview"
)

func TestSparklinesHaveGapsAndStandOnZero(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name   string
		values []float32
		want   string
	}{
		{"nothing is known", []float32{nan, nan}, ""},
		{"zeros are at the bottom", []float32{0, 0}, "M0 47l1 0"},
		{"what does not change is at the top", []float32{7, 7, 7}, "M0 1l2 0"},
		{"a gap", []float32{0, 2, nan, 4}, "M0 47l1-23M3 1"},
		{"steps on one level", []float32{4, 4, 4, 1, 2, 2}, "M0 1l2 0 1 34 1-11 1 0"},
		{"one value", []float32{3}, "M0 1"},
		{"none", nil, ""},
	} {
		line := ""
		if found := regexp.MustCompile(` d="([^"]*)"`).FindStringSubmatch(string(view.Sparkline(c.values))); found != nil {
			line = found[1]
		}
		assert.Equal(t, c.want, line, c.name)
	}
}

func TestBarsShowBothMarks(t *testing.T) {
	bar := string(view.Bar(&overview.Memory{Used: 50, Max: 200, High: 180, Low: 160}))
	assert.Contains(t, bar, `<rect class="used" width="25"`)
	assert.Contains(t, bar, `x1="90"`)
	assert.Contains(t, bar, `x1="80"`)
	assert.NotContains(t, bar, "critical")
	assert.Contains(t, string(view.Bar(&overview.Memory{Used: 300, Max: 200, High: 180})), `class="bar critical"`)
	assert.Contains(t, string(view.Bar(&overview.Memory{Used: 300, Max: 200, High: 180})), `<rect class="used" width="100"`)
	assert.Empty(t, view.Bar(nil))
	assert.Empty(t, view.Bar(&overview.Memory{Used: 1}), "Redis has no limit")
}

func TestEachStateHasAnIconThatIsThere(t *testing.T) {
	sprite := string(view.Icons())
	states := []overview.State{overview.Gone, overview.PausedState, overview.Stalled, overview.Failing, overview.Behind,
		overview.Flaky, overview.Idle, overview.OK, overview.Unclaimed, overview.Unheard, overview.Quiet, "a new one"}
	drawn := func(icon template.HTML) {
		name := regexp.MustCompile(`href="#([^"]+)"`).FindStringSubmatch(string(icon))
		require.NotNil(t, name)
		assert.Contains(t, sprite, `id="`+name[1]+`"`)
	}
	for _, s := range states {
		drawn(view.State(s))
	}
	for _, s := range []overview.Severity{overview.Critical, overview.Warning, overview.Note} {
		drawn(view.SeverityIcon(s))
	}
	assert.NotContains(t, sprite, "<!--")
	assert.NotContains(t, sprite, "style=")
}

func TestDefinitionsAreShownByTheirButtons(t *testing.T) {
	shown, err := view.Definition("tile-in", "in/s")
	require.NoError(t, err)
	assert.Contains(t, shown, `popovertarget="define-tile-in"`)
	assert.Contains(t, shown, `<span popover id="define-tile-in"><b>in/s</b> `)
	_, err = view.Definition("x", "luck")
	assert.Error(t, err)
	_, err = view.ColumnHead("x", "Luck", "", "luck")
	assert.Error(t, err)
	for class, want := range map[string]string{"number": `</span>Queued</th>`, "rank2": `>Queued<button`} {
		head, err := view.ColumnHead("x", "Queued", class, "queued")
		require.NoError(t, err)
		assert.Contains(t, head, want)
		assert.Contains(t, head, `aria-label="Queued"`)
	}
}

func TestTimes(t *testing.T) {
	at := time.Date(2026, 11, 23, 3, 12, 4, 0, time.FixedZone("", 3600))
	assert.Equal(t, `<time datetime="2026-11-23T02:12:04.000Z" title="2026-11-23 02:12:04 UTC">02:12:04</time>`, string(view.Clock(at)))
	assert.Equal(t, view.Clock(at), view.Clock(overview.Time{Time: at}))
	assert.Equal(t, "-", string(view.Clock(time.Time{})))
	assert.Contains(t, view.Ago(at, at.Add(41*time.Minute)), ">41 min ago<")
	assert.Regexp(t, ">41 min ago</time> <small class=\"exact\"><time data-exact [^>]*>2026-11-23 02:12:04 UTC</time></small>$", view.AgoAt(at, at.Add(41*time.Minute)))
	assert.Equal(t, "-", string(view.AgoAt(time.Time{}, at)))
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0s", 2500 * time.Millisecond: "2.5s", 42 * time.Second: "42 s", 90 * time.Second: "1 min",
		47 * time.Hour: "47 h", 50 * time.Hour: "2 d",
	} {
		assert.Equal(t, want, view.Span(d))
	}
}

func TestFunctionsWriteWhatIsNotKnown(t *testing.T) {
	page := template.Must(template.New("").Funcs(view.Functions()).Parse(
		`{{count .N}} {{rate .R}} {{age .A}} {{count .Known}} {{count .Int}} {{icon "x\"y"}}`))
	var out strings.Builder
	n := int64(1234)
	require.NoError(t, page.Execute(&out, map[string]any{
		"N": (*int64)(nil), "R": (*float64)(nil), "A": (*float64)(nil), "Known": &n, "Int": 5678,
	}))
	assert.Contains(t, out.String(), "- - - 1,234 5,678")
	assert.NotContains(t, out.String(), `x"y`)
}
