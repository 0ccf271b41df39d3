package test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"routemaster/internal/app"
	"routemaster/internal/machines/machinestest"
	"routemaster/internal/rdb/rdbtest"
	"routemaster/internal/test/bustest"
)

// alertTest has an alert fire. Values of series are as promtool has them, by the minute. Until 20
// min nothing is wrong; at fires, in minutes, the alert does.
type alertTest struct {
	fires  int
	series map[string]string
}

const (
	zero = "0x320"
	// first is a counter's first event, or that something is wrong from then on.
	first = "0x20 1x300"
	// again is a series of something that happens each minute, grows of an age that grows by a minute.
	again, grows = "0x20 1+1x300", "0x20 0+60x300"
)

var alertTests = map[string]alertTest{
	"RoutemasterProcessDown":           {23, map[string]string{`up{job="routemaster"}`: "1x20 0x300"}},
	"RoutemasterNoWorker":              {23, map[string]string{`routemaster_worker_threads{queue="main"}`: "8x20 0x300"}},
	"RoutemasterNoJobThreads":          {23, unserved("jobs")},
	"RoutemasterNoMachineThreads":      {23, unserved("machines")},
	"RoutemasterRedisUnknown":          {28, map[string]string{"routemaster_redis_up": "1x20 _x300"}},
	"RoutemasterRedisUnavailable":      {23, map[string]string{"routemaster_redis_up": "1x20 0x300"}},
	"RoutemasterDataLost":              {21, map[string]string{"routemaster_redis_data_lost": first}},
	"RoutemasterPartitionDown":         {23, map[string]string{`routemaster_partition_up{partition="04"}`: "1x20 0x300"}},
	"RoutemasterClockOff":              {23, map[string]string{"routemaster_clock_ahead_seconds": "0x20 6x300"}},
	"RoutemasterRedisNearlyFull":       {23, map[string]string{"routemaster_redis_memory_used_bytes": "50x20 95x300", "routemaster_redis_memory_high_mark_bytes": "100x320"}},
	"RoutemasterAccountNearlyFull":     {27, map[string]string{`routemaster_client_kept_bytes{client="a"}`: "50x20 95x300", `routemaster_client_kept_limit_bytes{client="a"}`: "100x320"}},
	"RoutemasterAutodropActive":        {21, map[string]string{"routemaster_autodropped_batches_total": first}},
	"RoutemasterEventsUnreadable":      {21, map[string]string{"routemaster_events_unreadable_total": first}},
	"RoutemasterSubscriberStalled":     {40, map[string]string{`routemaster_subscriber_queued_events{subscriber="a"}`: first, `routemaster_bus_deliveries_total{subscriber="a",status="success"}`: "7x320"}},
	"RoutemasterEventsGrowOld":         {40, map[string]string{`routemaster_subscriber_oldest_event_age_seconds{subscriber="a"}`: grows}},
	"RoutemasterSubscriberHealthGone":  {27, map[string]string{`routemaster_subscriber_health_points{subscriber="a"}`: "100x20 0x300"}},
	"RoutemasterLaneBlocked":           {82, map[string]string{`routemaster_lane_blocked{subscriber="a"}`: first}},
	"RoutemasterDeadLetters":           {21, map[string]string{`routemaster_dead_letter_events_total{subscriber="a",reason="age"}`: first, `routemaster_subscriber_dead_letter_events{subscriber="a"}`: "5x10 0x9 3x301"}},
	"RoutemasterDeadLettersDropped":    {21, map[string]string{`routemaster_dead_letters_dropped_events_total{subscriber="a"}`: first}},
	"RoutemasterGap":                   {21, map[string]string{`routemaster_gap_events_total{subscriber="a",reason="removed"}`: first}},
	"RoutemasterWorkersBusy":           {32, map[string]string{`routemaster_worker_threads{queue="main"}`: "8x320", `routemaster_worker_threads_busy{queue="main"}`: "0x20 8x300", `routemaster_jobs{queue="main",status="instant"}`: first}},
	"RoutemasterJobTypePaused":         {82, map[string]string{`routemaster_job_type_paused{job_type="a"}`: first, `routemaster_job_type_queued{job_type="a"}`: "1x320"}},
	"RoutemasterJobsHeldBack":          {37, map[string]string{attempts("held"): first, attempts("accepted"): zero, attempts("succeeded"): zero}},
	"RoutemasterJobsGrowOld":           {40, map[string]string{`routemaster_job_type_oldest_age_seconds{job_type="a"}`: grows, `routemaster_job_type_waiting{job_type="a"}`: first, `routemaster_job_type_paused{job_type="a"}`: zero}},
	"RoutemasterJobsFailed":            {21, map[string]string{`routemaster_bus_jobs_ended_total{job_type="a",status="failed"}`: first}},
	"RoutemasterJobsExpired":           {21, map[string]string{`routemaster_bus_jobs_ended_total{job_type="a",status="expired"}`: first}},
	"RoutemasterJobReportsMissing":     {21, map[string]string{`routemaster_job_attempts_lost_total{job_type="a"}`: first}},
	"RoutemasterLabelsErrored":         {27, map[string]string{`routemaster_labels_errored{machine="a"}`: first}},
	"RoutemasterWebhooksFailing":       {37, map[string]string{steps("attempted"): first, steps("moved"): zero}},
	"RoutemasterFeedFailing":           {37, map[string]string{feeds("0"): again, feeds("200"): zero}},
	"RoutemasterEvaluationsFail":       {52, map[string]string{steps("failed"): again}},
	"RoutemasterRunsPaused":            {21, map[string]string{steps("paused"): first}},
	"RoutemasterMovesUnpublished":      {32, map[string]string{`routemaster_machine_moves_unpublished{machine="a"}`: first}},
	"RoutemasterMachineEventsDropped":  {21, map[string]string{heard("invalid"): first, heard("damaged"): zero}},
	"RoutemasterMachineEventsUnusable": {82, map[string]string{heard("unusable"): first, heard("changed"): zero}},
}

// unserved are series of a queue that has jobs and no threads, while other queues have some.
func unserved(queue string) map[string]string {
	return map[string]string{
		fmt.Sprintf("routemaster_jobs{queue=%q,status=\"instant\"}", queue): first, fmt.Sprintf("routemaster_worker_threads{queue=%q}", queue): zero,
		`routemaster_worker_threads{queue="main"}`: "8x320",
	}
}

func attempts(outcome string) string {
	return fmt.Sprintf("routemaster_job_attempts_total{job_type=%q,outcome=%q}", "a", outcome)
}

func steps(outcome string) string {
	return fmt.Sprintf("routemaster_label_steps_total{machine=%q,state=%q,outcome=%q}", "a", "b", outcome)
}

func feeds(status string) string {
	return fmt.Sprintf("routemaster_machine_feeds_total{machine=%q,feed=%q,status=%q}", "a", "b", status)
}

func heard(outcome string) string {
	return fmt.Sprintf("routemaster_machine_events_total{machine=%q,topic=%q,outcome=%q}", "a", "b", outcome)
}

// alertQueries are the expressions of the example alerts by name.
func alertQueries(t *testing.T) map[string]string {
	t.Helper()
	alerts := exampleQueries(t)
	maps.DeleteFunc(alerts, func(name, _ string) bool { return !strings.HasPrefix(name, "Routemaster") })
	return alerts
}

// TestEachAlertFiresForTheFirst has promtool evaluate the example alerts.
func TestEachAlertFiresForTheFirst(t *testing.T) {
	t.Parallel()
	assert.ElementsMatch(t, slices.Collect(maps.Keys(alertQueries(t))), slices.Collect(maps.Keys(alertTests)))
	rdbtest.NeedCommand(t, "promtool")
	rules, err := filepath.Abs("../../examples/alerts.yaml")
	require.NoError(t, err)
	type object = map[string]any
	var tests []object
	for name, a := range alertTests {
		var series []object
		for selector, values := range a.series {
			series = append(series, object{"series": selector, "values": values})
		}
		firing := func(minute int, samples ...object) object {
			return object{
				"expr":        fmt.Sprintf("count(ALERTS{alertname=%q,alertstate=\"firing\"})", name),
				"eval_time":   fmt.Sprintf("%dm", minute),
				"exp_samples": samples,
			}
		}
		tests = append(tests, object{
			"name": name, "interval": "1m", "input_series": series,
			"promql_expr_test": []object{firing(20), firing(a.fires, object{"labels": "{}", "value": 1})},
		})
	}
	text, err := yaml.Marshal(object{"rule_files": []string{rules}, "evaluation_interval": "1m", "tests": tests})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "tests.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	said, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", file).CombinedOutput()
	assert.NoError(t, err, string(said))
}

// alertMachine is a machine that gives each alert about machines something to read.
const alertMachine = `
state_machines:
  welcome:
    feeds: [{name: people, url: "URL/feed"}]
    states:
      - gate: signed_up
        triggers: [{topic: people, label: {data: name}}]
        exit_condition: feeds.people.confirmed
        next: send_mail
      - action: send_mail
        webhook: URL/welcome/<label>
        next: done
      - {gate: done, exit_condition: false}
`

// TestEverySeriesOfAnAlertIsThereBeforeTheFirst has a bus on which nothing has happened: a counter
// that first appears with 1 has no increase.
func TestEverySeriesOfAnAlertIsThereBeforeTheFirst(t *testing.T) {
	b := bustest.Start(t, rdbtest.Real(t), func(c *app.Config) { c.MetricService = "none" })
	shop := bustest.NewSubscriber(t, b.AddClient("shop"))
	shop.Subscribe(b, 50, 10, "widgets")
	b.Call(shop.Token, "PATCH", "/subscriber", `{"strict_order":true}`, 204)
	b.Call(shop.Token, "POST", "/v1/jobs", `{"name":"mail","delivery_strategy":"at_least_once","attempts":3,"concurrency":5,"url":null}`, 201)
	b.Call(bustest.RootKey, "PUT", "/state-machines", strings.ReplaceAll(alertMachine, "URL", machinestest.NewService(t).URL), 200)
	_, worker := metricsPages(t, b)
	var missing []string
	require.Eventually(t, func() bool {
		missing = nil
		page := scrape(t, b.Client, worker)
		for name, query := range alertQueries(t) {
			for _, metric := range regexp.MustCompile(`routemaster_[a-z_]+(\{[^}]*\})?`).FindAllString(query, -1) {
				isOfACluster := metric == "routemaster_partition_up" // a gauge of each partition, from the first scrape on
				if !isOfACluster && !hasSeries(page, metric) {
					missing = append(missing, name+": "+metric)
				}
			}
		}
		return len(missing) == 0
	}, bustest.WaitTimeout, bustest.WaitTimeout/1000, "%v", &missing)
}

// hasSeries reports whether a page has a series of a metric, for each value that its selector
// names.
func hasSeries(page map[string]float64, metric string) bool {
	name, selector, _ := strings.Cut(strings.TrimSuffix(metric, "}"), "{")
	has := func(label string) bool {
		for series := range page {
			if found, labels, _ := strings.Cut(series, "{"); found == name && strings.Contains(labels, label) {
				return true
			}
		}
		return false
	}
	for _, part := range regexp.MustCompile(`([a-z_]+)=~?"([^"]*)"`).FindAllStringSubmatch(selector, -1) {
		for value := range strings.SplitSeq(part[2], "|") {
			if !has(part[1] + `="` + value + `"`) {
				return false
			}
		}
	}
	return has("")
}
