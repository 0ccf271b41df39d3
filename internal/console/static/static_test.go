package static_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// row is the heading of a package, or a line of sha256sum about a file of it.
var row = regexp.MustCompile(`(?m)^(?:## (\S+)|([0-9a-f]{64})  (\S+))$`)

func TestTheFilesOfOthersAreAsTheirREADMESays(t *testing.T) {
	readme, err := os.ReadFile("lib/README.md")
	require.NoError(t, err)
	want, folder := map[string]string{}, ""
	for _, found := range row.FindAllStringSubmatch(string(readme), -1) {
		if found[1] != "" {
			folder = found[1]
			continue
		}
		want[folder+"/"+found[3]] = found[2]
	}
	got := map[string]string{}
	for _, folder := range []string{"lib", "../browser/testdata"} {
		hashFiles(t, folder, got)
	}
	assert.Equal(t, want, got)
}

// hashFiles adds the SHA-256 of the files of the packages in a folder.
func hashFiles(t *testing.T, folder string, hashes map[string]string) {
	t.Helper()
	files := os.DirFS(folder)
	paths, err := fs.Glob(files, "*/*")
	require.NoError(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(filepath.Join(folder, path))
		require.NoError(t, err)
		hash := sha256.Sum256(text)
		hashes[path] = hex.EncodeToString(hash[:])
	}
	folders, err := fs.ReadDir(files, ".")
	require.NoError(t, err)
	for _, folder := range folders {
		if folder.IsDir() {
			assert.Contains(t, hashes, folder.Name()+"/LICENSE")
		}
	}
}
