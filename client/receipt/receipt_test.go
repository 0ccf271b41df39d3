package receipt_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"routemaster/client/receipt"
)

func TestOf(t *testing.T) {
	other := errors.New("something else")
	for _, c := range []struct {
		err  error
		want string // empty if it is no receipt
	}{
		{receipt.Retry(7, 3), `{"retry":[3,7]}`},
		{receipt.Retry(), `{}`},
		{receipt.RetryFrom(0), `{"retry_from":0}`},
		{receipt.Reject(2, "no such account"), `{"reject":[{"index":2,"reason":"no such account"}]}`},
		{
			errors.Join(receipt.Retry(3), receipt.Reject(0, ""), receipt.Retry(1, 3), receipt.RetryFrom(9), receipt.RetryFrom(8)),
			`{"retry":[1,3],"retry_from":8,"reject":[{"index":0}]}`,
		},
		{errors.Join(errors.Join(receipt.Retry(1)), receipt.Retry(2)), `{"retry":[1,2]}`},
		{fmt.Errorf("handle: %w", receipt.Retry(1)), `{"retry":[1]}`},
		{errors.Join(receipt.Retry(1), other), ""},
		{other, ""},
		{nil, ""},
	} {
		text, ok := receipt.Of(c.err)
		assert.Equal(t, c.want != "", ok, "%v", c.err)
		assert.Equal(t, c.want, string(text), "%v", c.err)
	}
}
