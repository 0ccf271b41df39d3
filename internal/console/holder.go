package console

import (
	"net/http"

	"routemaster/client/subscriber"
	"routemaster/internal/console/view"
)

// holder is the subscriber of one token, as its client or root sees it.
type holder struct {
	*subscriber.Subscriber
	// Name is the public name of the client, ID stands for the token where a page has to name it.
	Name, ID string
	Info     subscriber.Info
	token    string
	// others is whether other tokens of that name have a subscriber, too.
	others bool
}

// path is where the API has the subscriber: for root by its name, if no other has that.
func (h holder) path(root bool) string {
	if !root || h.others {
		return h.tokenPath(root)
	}
	return "/subscribers" + view.Path(h.Name)
}

// tokenPath is path for requests that name the token: root's has a shell variable, as no page shows
// a token.
func (h holder) tokenPath(root bool) string {
	if !root {
		return "/subscriber"
	}
	return "/subscribers/$SUBSCRIBER"
}

// TokenQuery is the query of a page that is about this token alone; empty if the path says it all.
func (h holder) TokenQuery() string {
	if h.ID == "" {
		return ""
	}
	return "?id=" + h.ID
}

// holders returns the subscribers of a name that the visitor may see all of: its own, or for root
// all, which are two while a token is being changed.
func holders(v *Visit, name string) ([]holder, error) {
	candidates := []holder{}
	switch {
	case v.Root:
		tokens, err := v.Tokens(name)
		if err != nil {
			return nil, err
		}
		for _, t := range tokens {
			candidates = append(candidates, holder{Subscriber: subscriber.Of(v.Bus, t.Token), ID: TokenID(t.Token), token: t.Token})
		}
	case v.Client == name:
		candidates = append(candidates, holder{Subscriber: subscriber.New(v.Bus)})
	}
	some := candidates[:0]
	for _, h := range candidates {
		info, err := h.Subscriber.Info(v.Context())
		if HasStatus(err, http.StatusNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		h.Name, h.Info = name, info
		some = append(some, h)
	}
	for i := range some {
		some[i].others = len(some) > 1
	}
	return some, nil
}

// holderOf returns the one subscriber that a page is about, by the name in its path, and by the
// "id" of the request if two tokens have that name.
func holderOf(v *Visit) (holder, error) {
	name := v.Path("subscriber")
	if !v.Root && v.Client != name {
		return holder{}, Refuse(http.StatusForbidden, "", "Only "+name+" itself and root may do this.")
	}
	some, err := holders(v, name)
	if err != nil {
		return holder{}, err
	}
	if id := v.Request.FormValue("id"); id != "" {
		for _, h := range some {
			if h.ID == id {
				return h, nil
			}
		}
		some = nil
	}
	switch len(some) {
	case 0:
		if !v.Root { // another token of its name may have one
			return holder{}, Refuse(http.StatusNotFound, "", "The token you are logged in with has no subscription.")
		}
		return holder{}, Refuse(http.StatusNotFound, "", name+" has no subscription.")
	case 1:
		return some[0], nil
	}
	return holder{}, Refuse(http.StatusConflict, "", "Two tokens have the name "+name+". Choose one on its page.")
}
