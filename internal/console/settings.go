package console

import (
	"context"
	"net/http"

	"routemaster/internal/console/view"
)

// FillSettings fills a form of settings with the posted values, if it was posted. It is stale if
// the settings were changed meanwhile; then each field shows its current value too.
func (v *Visit) FillSettings(s *view.Settings) (stale bool) {
	if v.Request.Method != http.MethodPost {
		return false
	}
	v.Fill(&s.Form)
	return s.Stale(v.Form("digest"))
}

// SaveSettings saves the changes of a posted form. The name is the name of the edited thing; the
// path is the page to return to. A stale form is refused.
func (v *Visit) SaveSettings(
	s *view.Settings, name, path string, save func(ctx context.Context, changes map[string]any) error,
) (answer Answer, err error) {
	if v.FillSettings(s) {
		return answer, Refuse(http.StatusConflict, "", view.StaleSettings)
	}
	if err := RequireJSON(s.Form); err != nil {
		return answer, err
	}
	if field, above := s.Ignored(); field != nil {
		return answer, Refuse(http.StatusUnprocessableEntity, "/"+field.Name,
			"Nothing was saved: this counts only with “"+above.Label+"” checked. Check it, or leave this as it was.")
	}
	changes := s.Changes()
	if len(changes) == 0 {
		return SeeOther("Nothing was changed.", path, name), nil
	}
	if err := save(v.Context(), changes); err != nil {
		return answer, err
	}
	return SeeOther("Saved the settings of "+name+".", path, name), nil
}
