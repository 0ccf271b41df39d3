package console

import (
	"bytes"
	"encoding/json"
	"net/http"

	"routemaster/client/machines"
	"routemaster/internal/console/view"
)

// metadataPage is the data of the pages that make a label or change its metadata.
type metadataPage struct {
	view.Form
	// Machine is the state machine's name; Label is the label's, empty for a new one.
	Machine, Label string
	// State is the one that the label is in.
	State   string
	Command string
}

// metadataField takes a JSON object.
func metadataField(label, hint string) view.Field {
	return view.Field{Name: "metadata", Label: label, Kind: view.Code, Required: true, Value: "{}", Hint: hint}
}

// readMetadata reads that field, with the digits that its numbers have.
func readMetadata(f view.Form) (data machines.Object, err error) {
	if err := RequireJSON(f); err != nil {
		return nil, err
	}
	text := []byte(f.Value("metadata"))
	if !bytes.HasPrefix(text, []byte("{")) {
		return nil, Refuse(http.StatusUnprocessableEntity, "/metadata", "This is no JSON object: it begins with {.")
	}
	return data, json.Unmarshal(text, &data)
}

func mergeForm(v *Visit) view.Form {
	f := view.Form{Fields: []view.Field{metadataField("Merge into the metadata", "A JSON object. Objects merge, null removes a key, anything else replaces it.")}}
	v.Fill(&f)
	return f
}

func loadMerge(v *Visit) (any, error) {
	name := v.Path("label")
	status, err := machineOf(v).Label(v.Context(), name)
	return metadataPage{
		Form: mergeForm(v), Machine: v.Path("machine"), Label: name, State: status.State,
		Command: view.Command(http.MethodPatch, view.Path("state-machines", v.Path("machine"), "labels", name), metadataOf(map[string]any{"checked": true})),
	}, err
}

// metadataOf is the body of a request with metadata.
func metadataOf(data map[string]any) any { return map[string]any{"metadata": data} }

func submitMerge(v *Visit) (answer Answer, err error) {
	data, err := readMetadata(mergeForm(v))
	if err != nil {
		return answer, err
	}
	name := v.Path("label")
	merged, err := machineOf(v).Merge(v.Context(), name, data)
	return SeeOther("Merged into the metadata of "+name+". It is in "+merged.State+".", labelPath, v.Path("machine"), name), err
}

func createForm(v *Visit) view.Form {
	f := view.Form{Fields: []view.Field{
		{Name: "label", Label: "Name of the label", Kind: view.Text, Required: true},
		metadataField("Metadata", "A JSON object."),
	}}
	v.Fill(&f)
	return f
}

func loadCreate(v *Visit) (any, error) {
	name := v.Path("machine")
	_, err := machineOf(v).Show(v.Context())
	return metadataPage{
		Form: createForm(v), Machine: name,
		Command: view.Command(http.MethodPost, view.Path("state-machines", name, "labels", "user-7"), metadataOf(map[string]any{})),
	}, err
}

func submitCreate(v *Visit) (answer Answer, err error) {
	f := createForm(v)
	name := f.Value("label")
	if name == "" {
		return answer, Refuse(http.StatusUnprocessableEntity, "/label", "Say how it is to be called.")
	}
	data, err := readMetadata(f)
	if err != nil {
		return answer, err
	}
	made, err := machineOf(v).Create(v.Context(), name, data)
	return SeeOther("Made the label "+name+". It is in "+made.State+".", labelPath, v.Path("machine"), name), err
}
