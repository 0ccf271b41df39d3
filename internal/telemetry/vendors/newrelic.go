package vendors

import (
	"net/http"
	"net/url"

	"github.com/newrelic/go-agent/v3/newrelic"
)

// newRelicClient reports to New Relic. Its agent connects in the background, and sends reports
// once a minute and at its end.
type newRelicClient struct{ agent *newrelic.Application }

func newNewRelic(license string, at *url.URL, program string, transport http.RoundTripper) (sender, error) {
	agent, err := newrelic.NewApplication(func(c *newrelic.Config) {
		c.AppName, c.License, c.Host, c.Transport = program, license, at.Host, transport
		onlyErrors(c)
	})
	return &newRelicClient{agent}, err
}

// onlyErrors switches off everything that the agent collects and sends except errors.
func onlyErrors(c *newrelic.Config) {
	c.TransactionEvents.Enabled = false
	c.TransactionTracer.Enabled = false
	c.SpanEvents.Enabled = false
	c.DistributedTracer.Enabled = false
	c.CustomInsightsEvents.Enabled = false
	c.ApplicationLogging.Enabled = false
	c.BrowserMonitoring.Enabled = false
	c.CodeLevelMetrics.Enabled = false
	c.ModuleDependencyMetrics.Enabled = false
	c.RuntimeSampler.Enabled = false
	c.Heroku.UseDynoNames = false
	u := &c.Utilization
	for _, detect := range []*bool{
		&u.DetectAWS, &u.DetectAzure, &u.DetectPCF, &u.DetectGCP, &u.DetectDocker, &u.DetectKubernetes,
	} {
		*detect = false // it would query the cloud's metadata service
	}
}

func (n *newRelicClient) send(e *exception) error {
	if err := n.agent.WaitForConnection(sendTimeout); err != nil {
		return err // until then the agent drops reports
	}
	transaction := n.agent.StartTransaction(e.event)
	transaction.NoticeError(newrelic.Error{
		Message: e.event + ": " + e.text, Class: e.class, Stack: e.stack, Attributes: attributes(e.fields),
	})
	transaction.End()
	return nil
}

func (n *newRelicClient) close() { n.agent.Shutdown(sendTimeout) }
