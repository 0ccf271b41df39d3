package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"routemaster/internal/console/static"
)

// assets are the files that pages load, by their names. Each has its hash in its path, so that
// browsers may keep it.
type assets struct {
	texts  map[string][]byte
	hashes map[string]string
}

func newAssets() *assets {
	a := &assets{map[string][]byte{}, map[string]string{}}
	err := fs.WalkDir(static.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		a.texts[name], err = static.Files.ReadFile(name)
		return err
	})
	if err != nil {
		panic(err) // they are part of the program
	}
	var style []byte
	for _, part := range static.Style {
		style = append(style, a.texts[part]...)
		delete(a.texts, part)
	}
	a.texts[static.Style[0]] = style
	for name, text := range a.texts {
		sum := sha256.Sum256(text)
		a.hashes[name] = hex.EncodeToString(sum[:4])
	}
	return a
}

// path is where a file is, from the console on; empty if there is none.
func (a *assets) path(name string) string {
	if hash, ok := a.hashes[name]; ok {
		return "static/" + hash + "/" + name
	}
	return ""
}

// contentTypes keeps the types independent of the host's MIME table.
var contentTypes = map[string]string{
	"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml",
	"png": "image/png", "ico": "image/x-icon",
}

func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	kind := contentTypes[name[strings.LastIndexByte(name, '.')+1:]]
	if hash, ok := a.hashes[name]; !ok || hash != r.PathValue("hash") || kind == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	r.Header.Del("Range") // a range counts bytes of the text, not of the compressed file
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(a.texts[name]))
}
