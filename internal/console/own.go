package console

import (
	"routemaster/internal/overview"
)

func help(*Visit) (any, error) { return overview.Definitions, nil }

// choice is a question of the page about the display.
type choice struct {
	Name, Label, Chosen string
	Options             []option
}

type option struct{ Value, Label string }

// optionLabels are the choices in words, where they are not words by themselves.
var optionLabels = map[string]string{
	"system": "as the system", "light": "light", "dark": "dark",
	"5": "every 5 s", "2": "every 2 s", "10": "every 10 s", "30": "every 30 s", "0": "not at all",
	"local": "local time", "utc": "UTC", "on": "on", "off": "off",
}

func display(v *Visit) (any, error) {
	d := v.Display
	choices := []choice{
		{Name: "theme", Label: "Theme", Chosen: d.Theme},
		{Name: "refresh", Label: "Refresh", Chosen: d.Refresh},
		{Name: "zone", Label: "Times in", Chosen: d.Zone},
		{Name: "keys", Label: "Keys / p ?", Chosen: d.Keys},
	}
	for i, c := range choices {
		for _, value := range Choices[c.Name] {
			choices[i].Options = append(choices[i].Options, option{value, optionLabels[value]})
		}
	}
	return choices, nil
}

func submitDisplay(v *Visit) (Answer, error) {
	if err := v.Request.ParseForm(); err != nil {
		return Answer{}, err
	}
	cookie := DisplayOf(v.Request.PostForm).Cookie()
	cookie.Secure = v.Secure
	v.Header.Add("Set-Cookie", cookie.String())
	return SeeOther("The display is as you chose.", "display"), nil
}
