package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pagePath is the page that has lists of requests between its prose.
const pagePath = "../../docs/http-api.md"

// lists finds the lists that are generated, with their names.
var lists = regexp.MustCompile(`(?s)<!-- requests: ([a-z ]+) -->\n(.*?)<!-- end -->`)

// TestTheListsOfThePageAreFresh generates the lists of docs/http-api.md, and compares. Each
// operation is in one of them, or in the place of another.
func TestTheListsOfThePageAreFresh(t *testing.T) {
	var doc description
	require.NoError(t, json.Unmarshal(generateOpenAPI(t), &doc))
	page, err := os.ReadFile(pagePath)
	require.NoError(t, err)
	groups, shown := pageGroups(), 0
	text := lists.ReplaceAllFunc(page, func(list []byte) []byte {
		name := string(lists.FindSubmatch(list)[1])
		require.Contains(t, groups, name)
		shown += len(groups[name])
		return []byte("<!-- requests: " + name + " -->\n" + doc.list(t, groups[name]) + "<!-- end -->")
	})
	all := 0
	for _, o := range newTable().operations() {
		if !strings.HasSuffix(o.id, "Alias") && !strings.HasSuffix(o.id, "OfClient") {
			all++
		}
	}
	assert.Equal(t, all, shown)
	if *update {
		require.NoError(t, os.WriteFile(pagePath, text, 0o644)) //nolint:gosec // world-readable
		return
	}
	if !bytes.Equal(page, text) {
		t.Error("docs/http-api.md is stale: go generate ./internal/web writes it anew")
	}
}

// pageGroups are the operations of each list. The page has a sentence for the aliases, and for
// operator paths that repeat a client's.
func pageGroups() map[string][]operation {
	a := newTable()
	tagged := func(tag string, of ...[]operation) (some []operation) {
		for _, o := range slices.Concat(of...) {
			if o.tag == tag && !strings.HasSuffix(o.id, "Alias") {
				some = append(some, o)
			}
		}
		return some
	}
	h := a.subscriber
	return map[string][]operation{
		"overview":       a.overviewOperations(),
		"queues":         a.queues.operations(),
		"topics":         tagged("topics", a.publishOperations(), a.topicOperations(), a.historyOperations()),
		"subscriptions":  tagged("subscribers", h.subscriptionOperations(), a.subscriberOperations()),
		"subscriber":     h.callerOperations(),
		"batches":        slices.Concat(h.attemptOperations(), h.batchOperations()),
		"secrets":        h.secretOperations(),
		"dead letters":   h.letterOperations(),
		"replays":        h.replayOperations(),
		"job types":      a.jobs.typeOperations(),
		"jobs":           a.jobs.operations(),
		"state machines": tagged("state machines", a.machines.operations()),
		"labels":         tagged("labels", a.machines.operations()),
		"tokens":         tagged("tokens", a.statusOperations(), a.tokenOperations(), a.activityOperations(), a.loginOperations()),
		"health":         tagged("health", a.statusOperations(), a.healthOperations()),
	}
}

// description is the part of openapi.json that the lists show.
type description struct {
	Paths map[string]map[string]struct {
		Body struct {
			Content map[string]media `json:"content"`
		} `json:"requestBody"`
		Responses map[string]struct {
			Content map[string]media `json:"content"`
		} `json:"responses"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]shape `json:"schemas"`
	} `json:"components"`
}

type media struct {
	Schema shape `json:"schema"`
}

// shape is a schema, as far as the lists show it.
type shape struct {
	Ref        string          `json:"$ref"`
	Items      *shape          `json:"items"`
	Properties json.RawMessage `json:"properties"`
	Required   []string        `json:"required"`
	OneOf      []shape         `json:"oneOf"`
}

// accessWords name the callers of an operation, unless its own text does.
var accessWords = map[access]string{public: "anyone", clientsAndRoot: "client, root", clientsOnly: "client", rootOnly: "root"}

// someOf finds in the words of an operation which clients may call it beside the operator.
var someOf = regexp.MustCompile(`^For (the [a-z' ]+),? and the operator\.`)

// callers names the callers of an operation.
func (o operation) callers() string {
	if some := someOf.FindStringSubmatch(o.about); some != nil {
		return some[1] + ", root"
	}
	return accessWords[o.who]
}

// worded returns a status with the first sentence of its text.
func worded(status, words string) string {
	first, _, _ := strings.Cut(words, ". ")
	return status + ": " + strings.TrimSuffix(first, ".")
}

// list is the list of some operations. It leaves out the errors that every request may get.
func (d *description) list(t *testing.T, of []operation) string {
	var text strings.Builder
	for _, o := range of {
		documented := d.Paths[o.path][strings.ToLower(o.method)]
		require.NotNil(t, documented.Responses, o.path)
		request := o.method + " " + o.path
		if names := o.queryNames(); names != nil {
			request += "?" + strings.Join(names, "=&") + "="
		}
		request = "`" + request + "`" + d.code(documented.Body.Content)
		if o.body != nil && o.body.yaml {
			request += " YAML"
		}
		var responses []string
		for _, r := range o.returns {
			status := strconv.Itoa(r.status)
			if shown := d.code(documented.Responses[status].Content); shown != "" {
				responses = append(responses, status+shown)
			} else {
				responses = append(responses, worded(status, r.words))
			}
		}
		for _, p := range o.fails {
			switch status := strconv.Itoa(p.status); {
			case p == unavailable || p == forbidden:
			case p.component == "":
				responses = append(responses, worded(status, p.words))
			default:
				responses = append(responses, status)
			}
		}
		text.WriteString(wrap("- " + request + " (" + o.callers() + "): " + o.summary + ". " + strings.Join(responses, "; ") + "."))
	}
	return text.String()
}

// unbreakable are the parts of a text that stay on one line: code, and words.
var unbreakable = regexp.MustCompile("(?:[^ `]|`[^`]*`)+")

// wrap breaks an element of a list into lines of at most 100 characters.
func wrap(text string) string {
	var wrapped strings.Builder
	length := 0
	for i, part := range unbreakable.FindAllString(text, -1) {
		size := utf8.RuneCountInString(part)
		switch {
		case i == 0:
		case length+1+size > 100:
			wrapped.WriteString("\n  ")
			length = 2
		default:
			wrapped.WriteString(" ")
			length++
		}
		wrapped.WriteString(part)
		length += size
	}
	return wrapped.String() + "\n"
}

// code returns the JSON of a request or a response, empty if it has none.
func (d *description) code(content map[string]media) string {
	if text := d.show(content["application/json"].Schema); text != "" {
		return " `" + text + "`"
	}
	return ""
}

// maxShown is how many members of an object a list shows.
const maxShown = 4

// show shows the members of an object, or of the objects of a list.
func (d *description) show(s shape) string {
	switch {
	case s.Ref != "":
		return d.show(d.Components.Schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]])
	case s.OneOf != nil:
		return d.show(s.OneOf[0])
	case s.Items != nil:
		return "[" + d.show(*s.Items) + "]"
	case s.Properties == nil:
		return ""
	}
	var shown []string
	decoder := json.NewDecoder(bytes.NewReader(s.Properties))
	_, _ = decoder.Token()
	for decoder.More() {
		name, _ := decoder.Token()
		var skipped json.RawMessage
		_ = decoder.Decode(&skipped)
		text := fmt.Sprintf("%q", name)
		if !slices.Contains(s.Required, name.(string)) {
			text += "?"
		}
		shown = append(shown, text)
	}
	if len(shown) > maxShown {
		shown = append(shown[:maxShown], "…")
	}
	return "{" + strings.Join(shown, ", ") + "}"
}
