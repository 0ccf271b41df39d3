package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"routemaster/internal/activity"
	"routemaster/internal/machines/condition"
	"routemaster/internal/overview"
	"routemaster/internal/web/rest"
)

var update = flag.Bool("update", false, "write openapi.json anew")

// TestOpenAPIIsFresh generates openapi.json, and compares.
func TestOpenAPIIsFresh(t *testing.T) {
	text := generateOpenAPI(t)
	if *update {
		require.NoError(t, os.WriteFile("openapi.json", text, 0o644)) //nolint:gosec // world-readable
	}
	kept, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	if !bytes.Equal(kept, text) {
		t.Error("openapi.json is stale: go generate ./internal/web writes it anew")
	}
}

// byHandPath has the parts that come from no row of the table and no Go type: the head, security,
// the delivery as a webhook, three responses with headers of their own, and some schemas. Code
// reads events, receipts and a subscription with its options without a type. The other schemas have
// a type, and are still to be generated from it: StateMachine, LabelList, HistoryEvents and its
// elements, and the bodies that make or change a job or a job type, where one type stands for two
// schemas.
const byHandPath = "testdata/openapi-by-hand.json"

// byHand is the part of openapi.json that is kept by hand.
type byHand struct {
	OpenAPI    string          `json:"openapi"`
	Info       json.RawMessage `json:"info"`
	Servers    json.RawMessage `json:"servers"`
	Security   json.RawMessage `json:"security"`
	Tags       json.RawMessage `json:"tags"`
	Paths      map[string]map[string]json.RawMessage
	Webhooks   json.RawMessage `json:"webhooks"`
	Components struct {
		SecuritySchemes json.RawMessage            `json:"securitySchemes"`
		Parameters      map[string]json.RawMessage `json:"parameters"`
		Headers         json.RawMessage            `json:"headers"`
		Responses       map[string]json.RawMessage `json:"responses"`
		Schemas         map[string]json.RawMessage `json:"schemas"`
	} `json:"components"`
}

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements [json.Marshaler].
func (o object) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			text = append(text, ',')
		}
		value, err := marshal(m.value)
		if err != nil {
			return nil, err
		}
		text = append(append(strconv.AppendQuote(text, m.name), ':'), value...)
	}
	return append(text, '}'), nil
}

// set sets a member, in its place if it is there.
func (o *object) set(name string, value any) {
	for i := range *o {
		if (*o)[i].name == name {
			(*o)[i].value = value
			return
		}
	}
	*o = append(*o, member{name, value})
}

func (o object) get(name string) any {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// marshal is [json.Marshal] without escapes for HTML.
func marshal(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSpace(text.Bytes()), err
}

// generator makes openapi.json.
type generator struct {
	t      *testing.T
	byHand byHand
	// comments are the comments of fields, by package, type and field, of packages that were read.
	comments map[string]string
	read     map[string]bool
	// schemas, parameters and responses are the components.
	schemas, parameters, responses object
}

func generateOpenAPI(t *testing.T) []byte {
	g := &generator{t: t, comments: map[string]string{}, read: map[string]bool{}}
	text, err := os.ReadFile(byHandPath)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &g.byHand))
	for _, s := range schemas {
		schema := g.structSchema(reflect.TypeOf(s.of), s.sent, s.open)
		if s.words != "" {
			schema.set("description", s.words)
		}
		g.schemas.set(s.name, append(schema, s.more...))
	}
	paths := g.paths()
	h := g.byHand
	components := object{
		{"securitySchemes", h.Components.SecuritySchemes},
		{"parameters", merged(g.parameters, h.Components.Parameters)},
		{"headers", h.Components.Headers},
		{"responses", merged(g.responses, h.Components.Responses)},
		{"schemas", merged(g.schemas, h.Components.Schemas)},
	}
	compact, err := marshal(object{
		{"openapi", h.OpenAPI}, {"info", h.Info}, {"servers", h.Servers}, {"security", h.Security}, {"tags", h.Tags},
		{"paths", paths}, {"webhooks", h.Webhooks}, {"components", components},
	})
	require.NoError(t, err)
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, compact, "", " "))
	return append(indented.Bytes(), '\n')
}

// merged adds the parts kept by hand to the generated ones.
func merged(generated object, kept map[string]json.RawMessage) object {
	for name, text := range kept {
		generated.set(name, text)
	}
	slices.SortFunc(generated, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return generated
}

// paths are all operations, in the order of the table.
func (g *generator) paths() (paths object) {
	for _, o := range newTable().operations() {
		item, _ := paths.get(o.path).(object)
		item.set(strings.ToLower(o.method), g.operation(o))
		paths.set(o.path, item)
	}
	for path, operations := range g.byHand.Paths {
		item, _ := paths.get(path).(object)
		for method, operation := range operations {
			require.Nil(g.t, item.get(method), "%s %s is in the table, and kept by hand", method, path)
			item.set(method, operation)
		}
		paths.set(path, item)
	}
	return paths
}

// newTable returns an API that has only its table.
func newTable() *API {
	return &API{subscriber: &subscriberHandlers{}, jobs: &jobHandlers{}, machines: &machineHandlers{}, queues: &queueHandlers{}}
}

func (g *generator) operation(o operation) (made object) {
	require.True(g.t, o.id != "" && o.tag != "" && o.summary != "", "%s %s", o.method, o.path)
	made = object{{"operationId", o.id}, {"summary", o.summary}}
	if o.about != "" {
		made.set("description", o.about)
	}
	made.set("tags", []string{o.tag})
	if o.who == public {
		made.set("security", []any{})
	}
	if len(o.params) > 0 {
		var params []any
		for _, p := range o.params {
			params = append(params, g.parameter(p))
		}
		made.set("parameters", params)
	}
	if o.body != nil {
		made.set("requestBody", g.body(*o.body))
	}
	var responses object
	for _, r := range o.returns {
		responses.set(strconv.Itoa(r.status), g.response(r))
	}
	for _, p := range o.problems() {
		require.Nil(g.t, responses.get(strconv.Itoa(p.status)), "%s %s", o.method, o.path)
		responses.set(strconv.Itoa(p.status), g.problem(p))
	}
	made.set("responses", responses)
	return made
}

func ref(kind, name string) object { return object{{"$ref", "#/components/" + kind + "/" + name}} }

func (g *generator) parameter(p parameter) object {
	made := object{{"name", p.name}, {"in", "query"}}
	if p.in != "" {
		made.set("in", p.in)
	}
	if p.in == "path" {
		made.set("required", true)
	}
	if p.words != "" {
		made.set("description", p.words)
	}
	made.set("schema", g.parameterSchema(p))
	if p.component == "" {
		return made
	}
	g.parameters.set(p.component, made)
	return ref("parameters", p.component)
}

func (g *generator) parameterSchema(p parameter) object {
	switch {
	case p.schema != "":
		return ref("schemas", p.schema)
	case p.kind == "array":
		return object{{"type", "array"}, {"items", object{{"type", "string"}}}}
	}
	schema := object{{"type", "string"}}
	if p.kind != "" {
		schema.set("type", p.kind)
	}
	if p.kind == "integer" {
		schema.set("minimum", p.min)
		if p.max != 0 {
			schema.set("maximum", p.max)
		}
	}
	if p.enum != nil {
		schema.set("enum", p.enum)
	}
	if p.key {
		schema = append(schema, member{"minLength", 1}, member{"maxLength", 128}, member{"pattern", "^[!-~]+$"})
	}
	if p.fallback != nil {
		schema.set("default", p.fallback)
	}
	return schema
}

func (g *generator) body(b body) object {
	media := object{{"schema", g.schema(b.of, true)}, {"example", json.RawMessage(b.example)}}
	content := object{}
	if b.yaml {
		content.set("application/yaml", media)
	}
	content.set("application/json", media)
	return object{{"required", !b.optional}, {"content", content}}
}

func (g *generator) response(r response) object {
	headers := object{{"X-Request-Id", ref("headers", "RequestId")}}
	if r.paged {
		headers.set("Link", ref("headers", "NextPage"))
	}
	made := object{{"description", r.words}, {"headers", headers}}
	var content object
	if r.of != nil {
		content.set("application/json", object{{"schema", g.schema(r.of, false)}})
	}
	for _, one := range r.types {
		content.set(one, object{{"schema", object{{"type", "string"}}}})
	}
	if content != nil {
		made.set("content", content)
	}
	return made
}

// problem is an error. What Credentials and Redis lack has headers of its own, and is kept by hand.
func (g *generator) problem(p problem) object {
	made := object{
		{"description", p.words},
		{"headers", object{{"X-Request-Id", ref("headers", "RequestId")}}},
		{"content", object{{"application/problem+json", object{{"schema", ref("schemas", "Problem")}}}}},
	}
	switch {
	case p.component == "":
		return made
	case p.words != "":
		g.responses.set(p.component, made)
	default:
		require.NotNil(g.t, g.byHand.Components.Responses[p.component], "%s has no response %s", byHandPath, p.component)
	}
	return ref("responses", p.component)
}

// schema is the schema of a value of [response.of] or [body.of].
func (g *generator) schema(of any, sent bool) object {
	switch of := of.(type) {
	case schemaRef:
		require.NotNil(g.t, g.byHand.Components.Schemas[string(of)], "%s has no schema %s", byHandPath, of)
		return ref("schemas", string(of))
	case listOf:
		list := object{{"type", "array"}, {"items", g.schema(of.of, sent)}}
		if of.min > 0 {
			list.set("minItems", of.min)
		}
		if of.max > 0 {
			list.set("maxItems", of.max)
		}
		return list
	case oneOf:
		var some []any
		for _, one := range of {
			some = append(some, g.schema(one, sent))
		}
		return object{{"oneOf", some}}
	}
	return g.typeSchema(reflect.TypeOf(of), sent)
}

// typeSchema is the schema of a Go type.
func (g *generator) typeSchema(of reflect.Type, sent bool) object {
	if name := componentOf(of); name != "" {
		return ref("schemas", name)
	}
	if strings.HasPrefix(of.Name(), "Nullable[") {
		return nullable(g.typeSchema(of.Field(1).Type.Elem(), sent))
	}
	switch of {
	case reflect.TypeFor[time.Time]():
		return object{{"type", "string"}, {"format", "date-time"}}
	case reflect.TypeFor[overview.Time]():
		return object{{"type", []string{"integer", "null"}}}
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[jsontext.Value]():
		return object{}
	}
	switch of.Kind() {
	case reflect.Pointer:
		return nullable(g.typeSchema(of.Elem(), sent))
	case reflect.Struct:
		return g.structSchema(of, sent, false)
	case reflect.Slice, reflect.Array:
		return object{{"type", "array"}, {"items", g.typeSchema(of.Elem(), sent)}}
	case reflect.Map:
		if of.Elem().Kind() == reflect.Interface {
			return object{{"type", "object"}, {"additionalProperties", true}}
		}
		return object{{"type", "object"}, {"additionalProperties", g.typeSchema(of.Elem(), sent)}}
	case reflect.Interface:
		return object{}
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Float32, reflect.Float64:
		return object{{"type", "number"}}
	case reflect.String:
		return object{{"type", "string"}}
	}
	return object{{"type", "integer"}}
}

// nullable also allows null. A schema without a type does so anyway.
func nullable(schema object) object {
	if schema.get("$ref") != nil {
		return object{{"oneOf", []any{schema, object{{"type", "null"}}}}}
	}
	if one, ok := schema.get("type").(string); ok {
		schema.set("type", []string{one, "null"})
	}
	return schema
}

// structSchema is an object, which has other members than its fields only if it is open.
func (g *generator) structSchema(of reflect.Type, sent, open bool) object {
	var required []string
	properties := object{}
	g.addFields(of, sent, &properties, &required)
	schema := object{{"type", "object"}}
	if required != nil {
		schema.set("required", required)
	}
	if !open {
		schema.set("additionalProperties", false)
	}
	if len(properties) > 0 {
		schema.set("properties", properties)
	}
	return schema
}

// addFields adds the fields of a struct. A request requires the fields tagged so, a response all
// that are always there.
func (g *generator) addFields(of reflect.Type, sent bool, properties *object, required *[]string) {
	for field := range of.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			g.addFields(field.Type, sent, properties, required)
			continue
		case name == "" || name == "-":
			continue
		}
		tags := strings.Fields(field.Tag.Get("api"))
		always := !strings.Contains(options, "omit")
		kind := field.Type
		if kind.Kind() == reflect.Pointer && (!sent && !always || slices.Contains(tags, "required")) {
			kind = kind.Elem()
		}
		schema := g.typeSchema(kind, sent)
		if strings.Contains(options, "omitzero") && kind == reflect.TypeFor[overview.Time]() {
			schema.set("type", "integer")
		}
		constrain(&schema, tags)
		if words := g.comment(of, field.Name); words != "" {
			schema.set("description", words)
		}
		properties.set(name, schema)
		if !slices.Contains(*required, name) && (sent && slices.Contains(tags, "required") || !sent && always) {
			*required = append(*required, name)
		}
	}
}

// constrain adds the words of JSON Schema in a field's tag, with their values. Words that begin
// with items. go to the elements of an array. A space is %20.
func constrain(schema *object, tags []string) {
	for _, tag := range tags {
		name, value, _ := strings.Cut(tag, "=")
		value = strings.ReplaceAll(value, "%20", " ")
		to := schema
		if of, found := strings.CutPrefix(name, "items."); found {
			items, _ := schema.get("items").(object)
			constrain(&items, []string{of + "=" + value})
			schema.set("items", items)
			continue
		}
		switch name {
		case "required":
		case "ref":
			*to = ref("schemas", value)
		case "any":
			*to = object{}
		case "nullable":
			*to = nullable(*to)
		case "type":
			*to = object{{"type", value}}
		case "enum":
			var all []any
			for _, one := range strings.Split(value, "|") {
				all = append(all, one)
			}
			if _, or := to.get("type").([]string); or {
				all = append(all, nil)
			}
			to.set("enum", all)
		default:
			to.set(name, scalar(value))
		}
	}
}

func scalar(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if b, err := strconv.ParseBool(text); err == nil {
		return b
	}
	return text
}

// comment is the comment of a field in the source.
func (g *generator) comment(of reflect.Type, field string) string {
	if of.Name() == "" {
		return ""
	}
	g.readComments(of.PkgPath())
	return g.comments[of.PkgPath()+"."+of.Name()+"."+field]
}

// readComments reads the comments of the fields of a package of the bus.
func (g *generator) readComments(pkg string) {
	path, ours := strings.CutPrefix(pkg, "routemaster/internal/")
	if g.read[pkg] || !ours {
		return
	}
	g.read[pkg] = true
	names, err := filepath.Glob("../" + path + "/*.go")
	require.NoError(g.t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(g.t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if of, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range of.Fields.List {
					for _, name := range field.Names {
						text := cmp.Or(field.Doc.Text(), field.Comment.Text())
						g.comments[pkg+"."+spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(text), " ")
					}
				}
			}
			return true
		})
	}
}

// componentOf is the name of a schema of [schemas] that is of a type, empty if there is none.
func componentOf(of reflect.Type) string {
	for _, s := range schemas {
		if reflect.TypeOf(s.of) == of {
			return s.name
		}
	}
	return ""
}

// schemas are the types that openapi.json has by a name. Types in requests are marked sent; they
// allow other members only if open. Words describe the type.
var schemas = []struct {
	name       string
	of         any
	words      string
	sent, open bool
	// more are additional words of JSON Schema.
	more object
}{
	{name: "Activity", of: activityView{}},
	{name: "Change", of: activity.Change{}},
	{name: "Subscriber", of: subscriberView{}},
	{name: "TopicDetail", of: topicDetailView{}},
	{name: "Topic", of: topicView{}},
	{name: "NewToken", of: sentToken{}, sent: true},
	{name: "Token", of: tokenView{}},
	{name: "Problem", of: rest.Problem{}, words: "RFC 9457."},
	{name: "Fault", of: rest.Fault{}, words: "An error at a place of a text. Lines and columns count from 1."},
	{name: "DeadLetter", of: letterView{}},
	{name: "DeadLetterWithEvents", of: letterWithEventsView{}},
	{name: "DeadLetterSelection", of: sentSelection{}, sent: true, words: "Either `ids` or `all`."},
	{name: "DeadLetterProgress", of: movedView{}},
	{name: "DeadLetterCount", of: letterCountView{}},
	{name: "Attempt", of: attemptView{}},
	{name: "QueuedBatch", of: batchView{}},
	{name: "QueuedBatchWithEvents", of: batchWithEventsView{}},
	{name: "NewSecret", of: secretRequest{}, sent: true},
	{name: "AddedSecret", of: addedSecretView{}},
	{name: "Secret", of: secretView{}},
	{name: "SubscriberStatus", of: subscriberStatusView{}},
	{name: "Gap", of: gapView{}, words: "Events that the subscriber has lost. It is also the data of a gap notice: of an event whose type is gap, and whose topic and url are empty."},
	{name: "HistoryLimits", of: sentHistory{}, sent: true, words: "At least one limit. The newest events are kept, as many as all limits allow.", more: object{{"minProperties", 1}}},
	{name: "History", of: historyView{}},
	{name: "NewReplay", of: sentReplay{}, sent: true, more: object{{"not", object{{"required", []string{"from", "since"}}}}}},
	{name: "StartedReplay", of: begunReplayView{}},
	{name: "Replay", of: replayView{}},
	{name: "JobType", of: typeView{}},
	{name: "Job", of: jobView{}, words: "A job, queued or archived. `run_after` and `updated_at` are those of a job that has not ended."},
	{name: "JobAttempt", of: jobAttemptView{}},
	{name: "JobReport", of: sentReport{}, sent: true, open: true},
	{name: "JobExtension", of: sentExtension{}, sent: true, open: true},
	{name: "JobFetch", of: sentFetch{}, sent: true, open: true},
	{name: "FetchedJob", of: fetchedView{}},
	{name: "StateMachineList", of: machineListView{}},
	{name: "AppliedStateMachines", of: appliedView{}},
	{name: "LabelMetadata", of: sentLabel{}, sent: true},
	{name: "ChangedLabel", of: changedView{}},
	{name: "Label", of: labelView{}},
	{name: "ConditionPart", of: condition.Part{}},
	{name: "LabelDryRun", of: dryRunView{}},
	{name: "LabelHistory", of: labelHistoryView{}},
	{name: "Threads", of: threadsView{}},
	{name: "QueuedJob", of: entryView{}},
	{name: "Overview", of: overview.Figures{}},
	{name: "Series", of: seriesView{}},
}
