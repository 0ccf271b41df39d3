package client

import (
	"context"
	"net/http"
	"net/url"
)

// rotation is how far the change of a token has come, on the wire.
type rotation struct {
	Name  string `json:"name"`
	Token string `json:"token"`
	Done  bool   `json:"done"`
	After string `json:"after"`
}

// RotateToken changes a client's token: it has the bus make another one, move the subscription with all that is queued to it, and then,
// unless the old one is to be kept, remove that. The function made, if given, is called with the new token as soon as it is
// known. If RotateToken fails, or the program dies, the same call goes on where it stopped, with the same token. Only root may: 404 for an unknown
// token.
func (c *Client) RotateToken(ctx context.Context, old string, keep bool, made func(Token)) (Token, error) {
	query := url.Values{}
	if keep {
		query.Set("keep", "true")
	}
	for told := false; ; {
		path := "/api_tokens/" + url.PathEscape(old) + "/rotate"
		if len(query) > 0 {
			path += "?" + query.Encode()
		}
		var got rotation
		if err := c.call(ctx, request{method: http.MethodPost, path: path, what: "rotate a token"}, &got); err != nil {
			return Token{}, err
		}
		token := Token{Name: got.Name, Token: got.Token}
		if !told && made != nil {
			made(token)
		}
		told = true
		if got.Done {
			return token, nil
		}
		query.Set("after", got.After)
	}
}
