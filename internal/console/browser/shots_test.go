//go:build !race

package browser_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"routemaster/internal/console"
	"routemaster/internal/console/consoletest"
	"routemaster/internal/web/webtest"
)

var shots = flag.String("shots", "", "a folder to write the pictures of the page to")

// maxShot is how many bytes a picture of the page may have.
const maxShot = 150_000

// TestShots writes the pictures of the page: the overview of a bus with trouble, as `make shots`
// asks for.
func TestShots(t *testing.T) {
	if *shots == "" {
		t.Skip("no folder is given")
	}
	b := open(t, serve(t, consoletest.Showing(consoletest.Trouble()), func(c *console.Config) { c.Environment = "production" }))
	b.logIn(webtest.RootKey)
	for _, theme := range []string{"light", "dark"} {
		b.size(1280, theme)
		b.run(chromedp.EmulateViewport(1280, 800))
		b.visit("")
		b.await(`document.querySelectorAll("canvas").length > 2`)
		shot := call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng})
		require.NoError(t, os.WriteFile(filepath.Join(*shots, "console-"+theme+".png"), []byte(shot.Data), 0o644))
		assert.LessOrEqual(t, len(shot.Data), maxShot, theme)
	}
}
