package definition

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"routemaster/internal/machines"
)

// Colours, readable on white also for colour-blind readers. The style sheet of the console knows
// them, and has others for a dark ground.
const (
	gateFill, gateLine     = "#e3eefb", "#2563a8"
	actionFill, actionLine = "#fdeed8", "#a85b12"
	ink                    = "#333"
)

// maxName is how many characters of a state's name are shown.
const maxName = 32

// drawing is an SVG under way.
type drawing struct {
	strings.Builder
	*layout
	edges []edge
}

// svg draws a machine as an SVG.
func svg(m *machines.Machine) (string, error) {
	all := edges(m)
	if len(m.States) > maxStates || len(all) > maxEdges {
		return "", ErrTooLarge
	}
	var widths []int
	for _, s := range m.States {
		widths = append(widths, max(96, 32+charWidth*len([]rune(shorten(string(s.Name), maxName)))))
	}
	d := &drawing{layout: lay(widths, all), edges: all}
	lanes, width := d.lanes()
	name := shorten(string(m.Name), maxLabel)
	width = max(width, 2*margin+charWidth*len([]rune(name)))
	height := d.bottom(len(d.rows)-1) + 2*margin
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" role="img" width="%d" height="%d" viewBox="0 0 %d %d" `+
		`font-family="ui-monospace, monospace" font-size="13" text-anchor="middle">`+"\n", width, height, width, height)
	fmt.Fprintf(d, "<title>%s</title>\n<desc>%s</desc>\n", escape("State machine "+string(m.Name)), escape(describeState(m, all)))
	fmt.Fprintf(d, `<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">`+
		`<path d="M0 0 8 4 0 8z" fill="%s"/></marker></defs>`+"\n", ink)
	fmt.Fprintf(d, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	fmt.Fprintf(d, `<text x="%d" y="%d" text-anchor="start" font-weight="bold" fill="%s">%s</text>`+"\n", margin, margin+4, ink, escape(name))
	d.begin(d.states[0])
	var labels strings.Builder // on top of all edges
	for i, e := range all {
		d.edge(&labels, i, e, lanes[i])
	}
	d.WriteString(labels.String())
	for i, s := range m.States {
		d.state(s, d.states[i])
	}
	d.WriteString("</svg>\n")
	return d.String(), nil
}

// describeState describes the graph in words, for screen readers.
func describeState(m *machines.Machine, all []edge) string {
	lines := []string{"It begins in " + string(m.First().Name) + "."}
	for _, e := range all {
		line := fmt.Sprintf("%s leads to %s", m.States[e.from].Name, m.States[e.to].Name)
		if e.label != "" {
			line += ", " + e.path + ": " + e.label
		}
		lines = append(lines, line+".")
	}
	return strings.Join(lines, "\n")
}

// lanes are the x of the edges that are led around, to the right of all states, the short ones
// inside; and the width of the drawing.
func (d *drawing) lanes() (lanes map[int]int, width int) {
	lanes = map[int]int{}
	var around []int
	for i, way := range d.ways {
		if way == nil {
			around = append(around, i)
		}
	}
	slices.SortStableFunc(around, func(a, b int) int { return d.span(a) - d.span(b) })
	width = d.width
	for _, i := range around {
		lanes[i] = width
		width += laneGap + charWidth*len([]rune(d.edges[i].label))
	}
	return lanes, width
}

// span is over how many rows an edge is led back.
func (d *drawing) span(i int) int {
	return d.states[d.edges[i].from].row - d.states[d.edges[i].to].row
}

// begin marks the first state.
func (d *drawing) begin(first *node) {
	y := d.tops[first.row]
	fmt.Fprintf(d, `<circle cx="%d" cy="%d" r="6" fill="%s"/><path d="M%d %dV%d" stroke="%s" marker-end="url(#arrow)"/>`+"\n",
		first.x, y-rowGap-6, ink, first.x, y-rowGap, y, ink)
}

// edge draws an edge, and adds its label to the others.
func (d *drawing) edge(labels *strings.Builder, i int, e edge, lane int) {
	path, x, y := d.down(d.ways[i])
	anchor := ""
	if d.ways[i] == nil {
		path, x, y = d.around(d.states[e.from], d.states[e.to], lane)
		anchor = ` text-anchor="start"`
	}
	dashes := ""
	if e.fallback {
		dashes = ` stroke-dasharray="5 4"`
	}
	fmt.Fprintf(d, `<path d="%s" fill="none" stroke="%s"%s marker-end="url(#arrow)"/>`+"\n", path, ink, dashes)
	if e.label != "" {
		fmt.Fprintf(labels, `<text x="%d" y="%d"%s font-size="12" fill="%s" stroke="#fff" stroke-width="4" paint-order="stroke">`+
			"<title>%s</title>%s</text>\n", x, y, anchor, ink, escape(e.path+": "+e.label), escape(e.label))
	}
}

// down leads through the rows between two states. It also returns where the label is.
func (d *drawing) down(way []*node) (path string, x, y int) {
	if way == nil {
		return "", 0, 0
	}
	var b strings.Builder
	fmt.Fprintf(&b, "M%d %d", way[0].x, d.bottom(way[0].row))
	for k, n := range way[1:] {
		before, from, to := way[k], d.bottom(way[k].row), d.tops[n.row]
		if before.x == n.x {
			fmt.Fprintf(&b, "V%d", to)
		} else {
			middle := (from + to) / 2
			fmt.Fprintf(&b, "C%d %d %d %d %d %d", before.x, middle, n.x, middle, n.x, to)
		}
		if bottom := d.bottom(n.row); n.state < 0 && bottom != to {
			fmt.Fprintf(&b, "V%d", bottom)
		}
	}
	return b.String(), way[1].x, d.tops[way[1].row] + labelRow - 4
}

// around leads from below a state to above another, by a lane.
func (d *drawing) around(from, to *node, lane int) (path string, x, y int) {
	const aside = 14 // from the other edges
	below, above := d.bottom(from.row)+rowGap/2, d.tops[to.row]-rowGap/2
	path = fmt.Sprintf("M%d %dV%dH%dV%dH%dV%d", from.x+aside, d.bottom(from.row), below, lane, above, to.x+aside, d.tops[to.row])
	return path, lane + 4, (below+above)/2 + 4
}

// state draws a state.
func (d *drawing) state(s *machines.State, n *node) {
	fill, line, radius := gateFill, gateLine, boxHeight/2
	if s.Action != nil {
		fill, line, radius = actionFill, actionLine, 2
	}
	x, y := n.x-n.width/2, d.tops[n.row]
	fmt.Fprintf(d, "<g><title>%s</title>", escape(about(s)))
	fmt.Fprintf(d, `<rect x="%d" y="%d" width="%d" height="%d" rx="%d" fill="%s" stroke="%s" stroke-width="1.5"/>`,
		x, y, n.width, boxHeight, radius, fill, line)
	if s.Next == nil {
		fmt.Fprintf(d, `<rect x="%d" y="%d" width="%d" height="%d" rx="%d" fill="none" stroke="%s"/>`,
			x+4, y+4, n.width-8, boxHeight-8, max(1, radius-4), line)
	}
	fmt.Fprintf(d, `<text x="%d" y="%d" fill="#000">%s</text></g>`+"\n", n.x, y+boxHeight/2+5, escape(shorten(string(s.Name), maxName)))
}

// escape writes text as XML.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}
