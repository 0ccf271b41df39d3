package client

import (
	"context"
	"net/http"
	"net/url"
)

// rotation is the progress of a token's change, on the wire.
type rotation struct {
	Token
	Done  bool   `json:"done"`
	After string `json:"after"`
}

// RotateToken changes a client's token: the bus makes a new one, moves the subscription and its
// queued events to it, and removes the old one unless keep is set. RotateToken calls made, if it is
// not nil, with the new token as soon as it is known. After a failure or a crash, the same call
// continues where it stopped, with the same new token. Only root may rotate; an unknown token is a
// 404.
func (c *Client) RotateToken(ctx context.Context, old string, keep bool, made func(Token)) (Token, error) {
	query := url.Values{}
	if keep {
		query.Set("keep", "true")
	}
	for reported := false; ; {
		path := "/api_tokens/" + url.PathEscape(old) + "/rotate"
		if len(query) > 0 {
			path += "?" + query.Encode()
		}
		var got rotation
		if err := c.call(ctx, request{method: http.MethodPost, path: path, operation: "rotate a token"}, &got); err != nil {
			return Token{}, err
		}
		if !reported && made != nil {
			made(got.Token)
		}
		reported = true
		if got.Done {
			return got.Token, nil
		}
		query.Set("after", got.After)
	}
}
