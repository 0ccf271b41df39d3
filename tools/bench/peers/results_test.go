package main

import (
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	for want, turns := range map[float64][]figures{
		7:   {{rate: 7}},
		2.5: {{rate: 3}, {rate: 2}},
		4:   {{rate: 9}, {rate: 1}, {rate: 4}},
	} {
		if got := median(turns, rate); got != want {
			t.Errorf("median of %v is %v, want %v", turns, got, want)
		}
	}
}

func TestRatiosOfMedians(t *testing.T) {
	found := results{}
	for _, m := range measures {
		for _, s := range systems {
			f := figures{rate: 200, cpu: 10, others: 5}
			if s.name == routemaster {
				f = figures{rate: 150, cpu: 5, others: 25}
			}
			found.add(m.name, s.name, f)
		}
	}
	var out strings.Builder
	if err := found.write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"   0.75  0.80       0.50  publish ÷ nsqd, disk\n",
		"Others used more than 10 % of this host in 4 of 24 turns",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %s", want, out.String())
		}
	}
	found.add(drainOne, routemaster, figures{lost: 2})
	if err := found.write(&out); err == nil || err.Error() != "the bus lost 2 events" {
		t.Errorf("two lost events: %v", err)
	}
}
