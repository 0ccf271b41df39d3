package view

import (
	"fmt"
	"html/template"
	"math"
	"strconv"

	"routemaster/internal/overview"
)

// sparkHeight is the height of a sparkline in its own units: two for each pixel of the largest that
// the style sheet has. A step of time is one unit wide.
const sparkHeight = 48

// Sparkline draws values, oldest first, as a line without axes. NaN is a gap. The lowest line is 0,
// so that a steady value is not drawn as if it changed. The figures beside it say the last value.
func Sparkline(values []float32) template.HTML {
	line := polyline(values)
	if line != "" {
		line = `<path d="` + line + `" fill="none" stroke="currentColor" stroke-width="1.5" ` +
			`stroke-linejoin="round" vector-effect="non-scaling-stroke"/>`
	}
	return template.HTML(`<svg class="spark" viewBox="0 0 ` + strconv.Itoa(max(len(values)-1, 1)) + ` ` + strconv.Itoa(sparkHeight) +
		`" preserveAspectRatio="none" aria-hidden="true">` + line + `</svg>`)
}

// polyline draws values as the commands of an SVG path, with a new line after each gap.
func polyline(values []float32) string {
	highest := float32(0)
	for _, v := range values {
		if v > highest { // false for NaN
			highest = v
		}
	}
	p := pen{path: make([]byte, 0, 4*len(values))}
	for i, v := range values {
		if math.IsNaN(float64(v)) {
			p.lift()
		} else {
			p.draw(i, heightOf(v, highest))
		}
	}
	p.lift()
	return string(p.path)
}

// pen writes a path. Pages have thousands of values, so it writes few bytes: relative steps in
// whole units, and those on one level as one.
type pen struct {
	path []byte
	// separator stands before the next step; it is 0 while no line is drawn.
	separator byte
	y         int
	// level is how many steps on one level are not written yet.
	level int
}

// draw goes on with the line, or begins one.
func (p *pen) draw(x, y int) {
	switch {
	case p.separator == 0:
		p.path = fmt.Appendf(p.path, "M%d %d", x, y)
		p.separator = 'l'
	case y == p.y:
		p.level++
	default:
		p.flush()
		p.step(1, y-p.y)
	}
	p.y = y
}

// lift ends the line, if one is drawn.
func (p *pen) lift() {
	p.flush()
	p.separator = 0
}

func (p *pen) flush() {
	if p.level > 0 {
		p.step(p.level, 0)
	}
	p.level = 0
}

func (p *pen) step(dx, dy int) {
	p.path = strconv.AppendInt(append(p.path, p.separator), int64(dx), 10)
	if dy >= 0 {
		p.path = append(p.path, ' ')
	}
	p.path = strconv.AppendInt(p.path, int64(dy), 10)
	p.separator = ' '
}

// heightOf is where a value stands in a sparkline, from the top on.
func heightOf(v, highest float32) int {
	if highest == 0 {
		return sparkHeight - 1
	}
	return sparkHeight - 1 - int(math.Round(float64(v/highest)*(sparkHeight-2)))
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
