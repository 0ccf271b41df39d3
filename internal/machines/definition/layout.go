package definition

import (
	"cmp"
	"slices"
)

// Sizes of an SVG, in pixels.
const (
	margin    = 24
	boxHeight = 44
	rowGap    = 20
	nodeGap   = 28
	laneGap   = 22
	charWidth = 8
	labelRow  = 16
)

// Limits of an SVG. The time to lay it out grows with their product.
const (
	maxStates = 200
	maxEdges  = 500
)

// node is a state in its row, or a place where an edge passes through one.
type node struct {
	state int // -1 for an edge
	row   int
	width int
	// x is the middle.
	x int
	// above and below are the nodes of the neighbouring rows that it is joined to.
	above, below []*node
}

// layout places the states of a machine in rows. Edges lead downwards, except for edges that close
// a circle: these are led around. States have even rows, the labels of edges the rows between. This
// is the method of Sugiyama, Tagawa and Toda (1981) in its simplest form: rows by the longest path,
// orders by averages, places by averages.
type layout struct {
	rows   [][]*node
	states []*node
	// ways are the nodes through which each edge leads, its states included; nil if it is led around.
	ways [][]*node
	// tops are the upper ends of the rows, heights their heights.
	tops, heights []int
	width         int
}

// lay lays out states of the given widths, and the edges between them.
func lay(widths []int, all []edge) *layout {
	l := &layout{ways: make([][]*node, len(all))}
	around := circles(len(widths), all)
	rows := longestPaths(len(widths), all, around)
	for i, width := range widths {
		l.states = append(l.states, l.add(i, 2*rows[i], width))
	}
	for i, e := range all {
		if around[i] {
			continue
		}
		from, to := l.states[e.from], l.states[e.to]
		way := []*node{from}
		for row := from.row + 1; row < to.row; row++ {
			width := 0
			if row == from.row+1 {
				width = charWidth * len([]rune(e.label))
			}
			way = append(way, l.add(-1, row, width))
		}
		l.ways[i] = append(way, to)
		for k, n := range l.ways[i][1:] {
			l.ways[i][k].below, n.above = append(l.ways[i][k].below, n), append(n.above, l.ways[i][k])
		}
	}
	l.order()
	l.place()
	l.stack(all, around)
	return l
}

func (l *layout) add(state, row, width int) *node {
	for len(l.rows) <= row {
		l.rows = append(l.rows, nil)
	}
	n := &node{state: state, row: row, width: width}
	l.rows[row] = append(l.rows[row], n)
	return n
}

// circles says which edges close a circle, on the ways from the first state. The states that are
// defined first are gone to first, since people define them in the order in which labels come.
func circles(states int, all []edge) []bool {
	out := make([][]int, states)
	for i, e := range all {
		out[e.from] = append(out[e.from], i)
	}
	for _, ways := range out {
		slices.SortStableFunc(ways, func(a, b int) int { return cmp.Compare(all[a].to, all[b].to) })
	}
	closing, left, open := make([]bool, len(all)), make([]bool, states), make([]bool, states)
	var enter func(int)
	enter = func(state int) {
		open[state] = true
		for _, i := range out[state] {
			switch to := all[i].to; {
			case open[to]:
				closing[i] = true
			case !left[to]:
				enter(to)
			}
		}
		open[state], left[state] = false, true
	}
	for state := range states {
		if !left[state] {
			enter(state)
		}
	}
	return closing
}

// longestPaths returns the length, in edges, of the longest path to each state, ignoring edges that
// close a circle.
func longestPaths(states int, all []edge, closing []bool) []int {
	lengths := make([]int, states)
	for changed := true; changed; {
		changed = false
		for i, e := range all {
			if !closing[i] && lengths[e.to] <= lengths[e.from] {
				lengths[e.to], changed = lengths[e.from]+1, true
			}
		}
	}
	return lengths
}

// sweeps is how often the rows are gone through, downwards and upwards.
const sweeps = 8

// order sorts each row by the average place of the neighbours in the row before.
func (l *layout) order() {
	l.number()
	for range sweeps {
		l.sweep(func(row, neighbours []*node, of func(*node) []*node) {
			slices.SortStableFunc(row, func(a, b *node) int { return cmp.Compare(average(a, of), average(b, of)) })
			l.number()
		})
	}
}

// number sets x to the place in the row, scaled so that averages are integers.
func (l *layout) number() {
	for _, row := range l.rows {
		for i, n := range row {
			n.x = 1000 * (2*i + 1) / len(row)
		}
	}
}

// sweep calls a function for each row, with the one before it: first downwards, then upwards.
func (l *layout) sweep(visit func(row, before []*node, neighbours func(*node) []*node)) {
	for i := 1; i < len(l.rows); i++ {
		visit(l.rows[i], l.rows[i-1], func(n *node) []*node { return n.above })
	}
	for i := len(l.rows) - 2; i >= 0; i-- {
		visit(l.rows[i], l.rows[i+1], func(n *node) []*node { return n.below })
	}
}

// average is the average place of a node's neighbours, or its own if it has none.
func average(n *node, neighbours func(*node) []*node) int {
	near := neighbours(n)
	if len(near) == 0 {
		return n.x
	}
	sum := 0
	for _, other := range near {
		sum += other.x
	}
	return sum / len(near)
}

// place gives each node the average place of its neighbours, as far as the row has room.
func (l *layout) place() {
	for _, row := range l.rows {
		for _, n := range row {
			n.x = 0
		}
		spread(row, func(*node) int { return 0 })
	}
	for range sweeps {
		l.sweep(func(row, _ []*node, of func(*node) []*node) {
			spread(row, func(n *node) int { return average(n, of) })
		})
	}
	left := 0
	for _, row := range l.rows {
		for _, n := range row {
			left = min(left, n.x-n.width/2)
		}
	}
	for _, row := range l.rows {
		for _, n := range row {
			n.x += margin - left
			l.width = max(l.width, n.x+n.width/2+margin)
		}
	}
}

// spread places a row near the wanted places, without overlaps: half way between the solution that
// moves all to the right and the one that moves all to the left.
func spread(row []*node, wanted func(*node) int) {
	right, left := make([]int, len(row)), make([]int, len(row))
	for i, n := range row {
		right[i], left[i] = wanted(n), wanted(n)
	}
	for i := 1; i < len(row); i++ {
		right[i] = max(right[i], right[i-1]+apart(row[i-1], row[i]))
	}
	for i := len(row) - 2; i >= 0; i-- {
		left[i] = min(left[i], left[i+1]-apart(row[i], row[i+1]))
	}
	for i, n := range row {
		n.x = (right[i] + left[i]) / 2
	}
}

// apart is how far the middles of two neighbours are apart at least.
func apart(a, b *node) int { return (a.width+b.width)/2 + nodeGap }

// stack gives the rows their heights. One between states has room for labels if there are any.
func (l *layout) stack(all []edge, around []bool) {
	l.heights, l.tops = make([]int, len(l.rows)), make([]int, len(l.rows))
	for i := range l.rows {
		if i%2 == 0 {
			l.heights[i] = boxHeight
		}
	}
	for i, e := range all {
		if !around[i] && e.label != "" {
			l.heights[l.states[e.from].row+1] = labelRow
		}
	}
	y := 3 * margin
	for i := range l.rows {
		l.tops[i] = y
		y += l.heights[i] + rowGap
	}
}

// bottom is the lower end of a row.
func (l *layout) bottom(row int) int { return l.tops[row] + l.heights[row] }
