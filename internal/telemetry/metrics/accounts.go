package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"routemaster/internal/account"
	"routemaster/internal/rdb"
)

// accountDescs are the metrics of what clients keep. A scrape reads them from Redis.
type accountDescs struct{ kept, limit *prometheus.Desc }

// AddAccounts adds the metrics of what clients keep. Each scrape reads them. If the bus has several
// partitions, they are by node, as limits are.
func (r *Registry) AddAccounts(partitions rdb.Partitions) {
	labels := []string{"client"}
	if len(partitions) > 1 {
		labels = append(labels, "node")
	}
	r.MustRegister(&accounts{partitions: partitions, descs: accountDescs{
		kept: describe("client_kept_bytes", "What the jobs, job types and labels of a client take, about.", labels...),
		limit: describe("client_kept_limit_bytes",
			"What the jobs, job types and labels of a client may take; missing if it is any number.", labels...),
	}})
}

// accounts collects what each client keeps that keeps anything. It shows nothing while Redis cannot
// be read.
type accounts struct {
	partitions rdb.Partitions
	descs      accountDescs
	shared     shared[account.Nodes]
}

// Describe is part of [prometheus.Collector].
func (a *accounts) Describe(descs chan<- *prometheus.Desc) {
	descs <- a.descs.kept
	descs <- a.descs.limit
}

// Collect is part of [prometheus.Collector].
func (a *accounts) Collect(metrics chan<- prometheus.Metric) {
	nodes, err := a.shared.read(func(ctx context.Context) (account.Nodes, error) { return account.ReadAll(ctx, a.partitions) })
	if err != nil {
		return
	}
	for node, all := range nodes {
		for client, kept := range all.Kept {
			labels := []string{string(client), node}
			if len(a.partitions) == 1 {
				labels = labels[:1]
			}
			metrics <- prometheus.MustNewConstMetric(a.descs.kept, prometheus.GaugeValue, float64(kept), labels...)
			if limit, ok := all.Limit(client); ok {
				metrics <- prometheus.MustNewConstMetric(a.descs.limit, prometheus.GaugeValue, float64(limit), labels...)
			}
		}
	}
}
