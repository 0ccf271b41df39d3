package markup

import (
	"html/template"
	"math"
	"strconv"
	"strings"

	"routemaster/internal/overview"
)

// The size of a sparkline in its own units; the style sheet says how large it is shown.
const (
	sparkWidth  = 120
	sparkHeight = 24
)

// Sparkline draws values, oldest first, as a line without axes. NaN is a gap. The lowest line is 0,
// so that what does not change is not drawn as if it did. The figures beside it say the last value.
func Sparkline(values []float32) template.HTML {
	highest := float32(0)
	for _, v := range values {
		if v > highest { // false for NaN
			highest = v
		}
	}
	var b strings.Builder
	b.WriteString(`<svg class="spark" viewBox="0 0 120 24" preserveAspectRatio="none" aria-hidden="true">`)
	if line := polyline(values, highest); line != "" {
		b.WriteString(`<path d="` + line + `" fill="none" stroke="currentColor" stroke-width="1.5" ` +
			`stroke-linejoin="round" vector-effect="non-scaling-stroke"/>`)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

// polyline draws values as the commands of an SVG path, with a new line after each gap.
func polyline(values []float32, highest float32) string {
	var b strings.Builder
	step, drawing := float64(sparkWidth)/float64(max(len(values)-1, 1)), false
	for i, v := range values {
		if math.IsNaN(float64(v)) {
			drawing = false
			continue
		}
		y := float64(sparkHeight - 1)
		if highest > 0 {
			y -= float64(v/highest) * (sparkHeight - 2)
		}
		command := "M"
		if drawing {
			command = "L"
		}
		b.WriteString(command + coordinate(float64(i)*step) + " " + coordinate(y))
		drawing = true
	}
	return b.String()
}

func coordinate(n float64) string {
	return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64)
}

// Bar draws how much of Redis' memory is used, with both marks. It is empty where Redis has no
// limit.
func Bar(m *overview.Memory) template.HTML {
	if m == nil || m.Max <= 0 {
		return ""
	}
	part := func(bytes int64) string {
		return coordinate(100 * min(1, max(0, float64(bytes)/float64(m.Max))))
	}
	class := "bar"
	if m.Used > m.High {
		class = "bar critical"
	}
	mark := func(at int64) string {
		x := part(at)
		return `<line class="mark" x1="` + x + `" x2="` + x + `" y1="0" y2="8" vector-effect="non-scaling-stroke"/>`
	}
	return template.HTML(`<svg class="` + class + `" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">` +
		`<rect class="all" width="100" height="8"/><rect class="used" width="` + part(m.Used) + `" height="8"/>` +
		mark(m.Low) + mark(m.High) + `</svg>`)
}

// Values are those of one field of a track's points.
func Values(t overview.Track, field func(overview.Point) float32) []float32 {
	values := make([]float32, len(t.Points))
	for i, p := range t.Points {
		values[i] = field(p)
	}
	return values
}
