package console

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"routemaster/client"
	"routemaster/internal/console/view"
)

// publishPage is the data of the page that publishes an event.
type publishPage struct {
	view.Form
	// Key is the idempotency key: a form that is sent twice publishes once.
	Key     string
	Command string
}

// maxSuggestions is how many topics, or clients, the browser is given to complete.
const maxSuggestions = 500

func publishForm(v *Visit) view.Form {
	f := view.Form{Fields: []view.Field{
		{Name: "topic", Label: "Topic", Kind: view.Text, Required: true, Value: v.Query("topic"), Suggestions: topicNames(v), Hint: "a-z and _. A new topic is made, and is the publisher's."},
		{Name: "type", Label: "Type", Kind: view.Choice, Choices: []string{"noop", "create", "update", "delete"}},
		{Name: "url", Label: "URL", Kind: view.Text, Required: true, Hint: "The https URL of the thing."},
		{Name: "data", Label: "Data", Kind: view.Code, Hint: "One JSON value, or nothing. 64 bytes as MessagePack, unless the operator allows more."},
	}}
	if v.Root {
		as := view.Field{Name: "as", Label: "As the client", Kind: view.Text, Required: true, Suggestions: publishers(v), Hint: "Root publishes nothing by itself."}
		f.Fields = slices.Insert(f.Fields, 0, as)
	}
	v.Fill(&f)
	return f
}

func topicNames(v *Visit) (names []string) {
	for _, t := range v.Figures.Topics {
		if len(names) < maxSuggestions && (v.Root || t.Publisher == v.Client || t.Publisher == "") {
			names = append(names, t.Name)
		}
	}
	return names
}

func publishers(v *Visit) (names []string) {
	for _, t := range v.Figures.Topics {
		if len(names) < maxSuggestions && t.Publisher != "" && !slices.Contains(names, t.Publisher) {
			names = append(names, t.Publisher)
		}
	}
	slices.Sort(names)
	return names
}

func loadPublish(v *Visit) (any, error) {
	p := publishPage{Form: publishForm(v), Key: v.Form("key")}
	if p.Key == "" {
		p.Key = "console-" + rand.Text()
	}
	p.Command = view.Command(http.MethodPost, "/topics/widgets", map[string]any{"type": "noop", "url": "https://example.com/widgets/1"})
	return p, nil
}

func submitPublish(v *Visit) (answer Answer, err error) {
	f := publishForm(v)
	bus, err := publisher(v, &f)
	if err != nil {
		return answer, err
	}
	event := client.Event{Topic: f.Value("topic"), Type: client.EventType(f.Value("type")), URL: f.Value("url")}
	if text := f.Value("data"); text != "" {
		event.Data = json.RawMessage(text)
	}
	if err := RequireJSON(f); err != nil {
		return answer, err
	}
	if event.Topic == "" {
		return answer, Refuse(http.StatusUnprocessableEntity, "/topic", "Say which topic.")
	}
	at := v.Now() // before, as it may have been delivered by the time that this returns
	err = bus.Publish(v.Context(), event, client.WithIdempotencyKey(v.Form("key")))
	if refused, ok := errors.AsType[*client.Error](err); ok || err == nil || client.IsTemporary(err) {
		return published(v, event.Topic, at), atTopic(err, refused)
	}
	// The client of the bus has refused it, which is stricter than the JSON library.
	return answer, Refuse(http.StatusUnprocessableEntity, "/data", err.Error())
}

// atTopic puts an error that is about no field of the event at the topic.
func atTopic(err error, refused *client.Error) error {
	if refused == nil || refused.Pointer != "" || refused.Status != http.StatusForbidden && refused.Status != http.StatusBadRequest {
		return err
	}
	at := *refused
	at.Pointer = "/topic"
	return &at
}

// publisher returns the client of the bus to publish with: the visitor's, or for root the client
// that the form names.
func publisher(v *Visit, f *view.Form) (*client.Client, error) {
	if !v.Root {
		return v.Bus, nil
	}
	as := f.Value("as")
	tokens, err := v.Tokens(as)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		return nil, Refuse(http.StatusUnprocessableEntity, "/as", "There is no client of this name.")
	}
	return v.As(tokens[0].Token), nil
}

// published names the receivers of an event that was published at a time.
func published(v *Visit, topic string, at time.Time) Answer {
	var names []string
	for _, s := range view.SubscribersOf(v.Figures, topic) {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	text := "Published to " + topic + ". Nobody is subscribed to it."
	if len(names) == 0 {
		return SeeOther(text, "publish")
	}
	answer := SeeOther("Published to "+topic+" for "+view.Some(names, 5)+".", sentPath, topic)
	answer.Query = "?at=" + strconv.FormatInt(at.UnixMilli(), 10)
	return answer
}
