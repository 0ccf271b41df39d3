package test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"routemaster/internal/app"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// exampleQueries are the queries of the example dashboard and alerts, by their purpose.
func exampleQueries(t *testing.T) map[string]string {
	t.Helper()
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	text, err := os.ReadFile("../../examples/alerts.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &alerts))
	queries := map[string]string{}
	for _, rule := range alerts.Groups[0].Rules {
		queries[rule.Alert] = rule.Expr
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	text, err = os.ReadFile("../../examples/grafana-dashboard.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &dashboard))
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries[panel.Title+" "+target.RefID] = strings.ReplaceAll(target.Expr, "$__rate_interval", "1m")
		}
	}
	return queries
}

// The parts of queries, besides metrics. This does not parse PromQL. It finds unbalanced brackets,
// and functions, metrics and labels that do not exist.
var (
	queryParts = regexp.MustCompile(`"[^"]*"|\[[0-9]+[smhd]\]|[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9.]+|==|!=|=~|>=|<=|[-+*/<>=(){},]|\s+`)
	queryWords = strings.Fields("sum max min by on unless and or rate increase delta deriv min_over_time histogram_quantile absent")
	selectors  = regexp.MustCompile(`([a-z_]+)\{([^}]*)\}`)
	grouping   = regexp.MustCompile(`\b(by|on) \([^)]*\)`)
)

// brackets must be closed by their like.
var brackets = map[string]string{")": "(", "}": "{"}

// metricsOf returns the metrics of a query, and fails the test where it is wrong.
func metricsOf(t *testing.T, query string) (metrics []string) {
	t.Helper()
	require.Empty(t, queryParts.ReplaceAllString(query, ""), "what is this in %s", query)
	var open []string
	for _, part := range queryParts.FindAllString(query, -1) {
		switch {
		case part == "(" || part == "{":
			open = append(open, part)
		case brackets[part] != "":
			require.NotEmpty(t, open, query)
			require.Equal(t, brackets[part], open[len(open)-1], query)
			open = open[:len(open)-1]
		}
	}
	require.Empty(t, open, "a bracket is open in %s", query)
	plain := grouping.ReplaceAllString(selectors.ReplaceAllString(query, "$1"), "")
	for _, word := range regexp.MustCompile(`[a-z_]{2,}`).FindAllString(regexp.MustCompile(`\[[^]]*\]`).ReplaceAllString(plain, ""), -1) {
		if !slices.Contains(queryWords, word) {
			metrics = append(metrics, word)
		}
	}
	require.NotEmpty(t, metrics, query)
	return metrics
}

// TestTheExamplesNameMetricsThatExist looks for the metrics of the examples' queries, and the
// labels that they go by, on the pages of a bus that has delivered something.
func TestTheExamplesNameMetricsThatExist(t *testing.T) {
	url, asked := bustest.NewJobService(t)
	b := bustest.Start(t, rdbtest.Real(t), func(c *app.Config) {
		c.MetricService, c.DownstreamURL, c.DownstreamAuth = "none", url, "s3cret"
	})
	webPage, workerPage := metricsPages(t, b)
	doOne(t, b, asked)
	deliverOne(t, b)
	moveOne(t, b)
	require.Eventually(t, func() bool {
		page := scrape(t, b.Client, workerPage)
		return page[`routemaster_deliveries_total{status="success",subscriber="shop"}`] == 1 &&
			page[`routemaster_job_attempts_total{job_type="invoices",outcome="accepted"}`] == 1 &&
			page[`routemaster_labels{machine="welcome",state="done"}`] == 1
	}, bustest.WaitTimeout, 10*time.Millisecond)
	exist := map[string]string{}
	for _, page := range []string{webPage, workerPage} {
		for series := range scrapeAll(t, b.Client, page) {
			name, labels, _ := strings.Cut(series, "{")
			exist[name] += "," + labels
		}
	}
	requirePageOfMetrics(t, exist)
	queries := exampleQueries(t)
	require.Greater(t, len(queries), 25)
	exist["up"] = `,job="routemaster"` // Prometheus makes it
	// These are there once the first has been dropped, held or lost, has failed or was asked.
	exist["routemaster_dead_letter_events_total"] = `,subscriber="shop"`
	exist["routemaster_dead_letters_dropped_events_total"] = `,subscriber="shop"`
	exist["routemaster_gap_events_total"] = `,subscriber="shop",reason="autodrop"`
	exist["routemaster_job_attempts_total"] += `,outcome="held",outcome="succeeded"`
	exist["routemaster_job_attempts_lost_total"] = `,job_type="invoices"`
	exist["routemaster_label_steps_total"] += `,outcome="attempted",outcome="errored",outcome="failed",outcome="paused"`
	exist["routemaster_machine_feeds_total"] = `,machine="welcome",feed="plans",status="200"`
	exist["routemaster_machine_events_total"] = `,machine="welcome",topic="widgets",outcome="unusable",outcome!="unusable",outcome=~"invalid|damaged"`
	exist["routemaster_machine_moves_published_total"] = `,machine="welcome"`
	exist["routemaster_machine_moves_dropped_total"] = `,machine="welcome"`
	exist["routemaster_client_kept_limit_bytes"] = `,client="root"` // of buses with limits
	exist["routemaster_lane_blocked"] = `,subscriber="shop"`        // of subscribers with strict_order
	exist["routemaster_partition_up"] = `,partition="00"`           // of those on a cluster
	for name, query := range queries {
		for _, metric := range metricsOf(t, query) {
			assert.Contains(t, exist, metric, name)
		}
		for _, selector := range selectors.FindAllStringSubmatch(query, -1) {
			for label := range strings.SplitSeq(selector[2], ",") {
				assert.Contains(t, exist[selector[1]], label, "%s: %s", name, query)
			}
		}
	}
}

// doOne makes a job type, and has its service do a job.
func doOne(t *testing.T, b *bustest.Bus, asked chan [2]string) {
	t.Helper()
	client := b.AddClient("billing")
	b.Call(client, "POST", "/v1/jobs", `{"name":"invoices","delivery_strategy":"at_least_once","attempts":3,"concurrency":5}`, 201)
	const path = "/v1/jobs/invoices/job_282227eb-3c76-4ef7-af7e-25dff933077f"
	b.Call(client, "PUT", path, `{"data":1}`, 202)
	select {
	case <-asked:
	case <-time.After(bustest.WaitTimeout):
		t.Fatal("the service gets no job")
	}
	b.Call(client, "POST", path, `{"status":"succeeded","attempt":3}`, 200)
}

// moveOne makes a state machine, and moves a label through it. Its gate does not open at once.
func moveOne(t *testing.T, b *bustest.Bus) {
	t.Helper()
	app, url := b.AddClient("app"), machinestest.NewService(t).URL
	b.Call(bustest.RootKey, "PUT", "/state-machines", strings.ReplaceAll(bustest.WelcomeMachine, "URL", url), 200)
	const path = "/state-machines/welcome/labels/ann"
	b.Call(app, "POST", path, `{"metadata":{}}`, 201)
	for _, metadata := range []string{`{"confirmed":false}`, `{"confirmed":true}`} {
		b.Call(app, "PATCH", path+"?wait=10000", `{"metadata":`+metadata+`}`, 200)
	}
}

// TestAlertsFireWhenEverythingIsDead requires expressions that are true without any metric: a
// comparison of missing metrics is empty, and raises no alert.
func TestAlertsFireWhenEverythingIsDead(t *testing.T) {
	queries := exampleQueries(t)
	for name, want := range map[string][]string{
		"RoutemasterProcessDown":  {`up{job="routemaster"} == 0`, `absent(up{job="routemaster"})`},
		"RoutemasterNoWorker":     {`absent(routemaster_worker_threads{queue="main"})`, `sum(routemaster_worker_threads{queue="main"}) == 0`},
		"RoutemasterRedisUnknown": {"absent(routemaster_redis_up)"},
	} {
		assert.ElementsMatch(t, want, strings.Split(queries[name], " or "), name)
	}
}
