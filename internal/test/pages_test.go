package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

const root = "../../"

// readPages reads all Markdown pages, by their paths.
func readPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		pages[filepath.Clean(path)] = string(text)
		return err
	}))
	require.Greater(t, len(pages), 20)
	return pages
}

func TestPagesHaveShortLines(t *testing.T) {
	const maxLine = 100
	pages := readPages(t)
	for name, page := range pages {
		for i, line := range strings.Split(page, "\n") {
			assert.LessOrEqual(t, utf8.RuneCountInString(line), maxLine, "%s:%d", name, i+1)
		}
	}
}

// shownFile is a code block that shows a file: a comment names it.
var shownFile = regexp.MustCompile("(?s)<!-- file: (\\S+) -->\n```[a-z]+\n(.*?)```")

func TestPagesShowFilesAsTheyAre(t *testing.T) {
	shown := 0
	for name, page := range readPages(t) {
		for _, match := range shownFile.FindAllStringSubmatch(page, -1) {
			shown++
			file, err := os.ReadFile(root + match[1])
			if assert.NoError(t, err, name) {
				assert.Equal(t, string(file), match[2], name)
			}
		}
	}
	assert.Equal(t, 1, shown, "a receiver")
}

var (
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```")
	pageLink  = regexp.MustCompile(`\]\(([^):#]*)(?:#([^)]*))?\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unnamed   = regexp.MustCompile("[^a-z0-9 _-]")
)

func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	pages, anchors := readPages(t), map[string][]string{}
	for name, page := range pages {
		pages[name] = codeBlock.ReplaceAllString(page, "")
		for _, match := range heading.FindAllStringSubmatch(pages[name], -1) {
			anchor := unnamed.ReplaceAllString(strings.ToLower(match[1]), "")
			anchors[name] = append(anchors[name], strings.ReplaceAll(anchor, " ", "-"))
		}
	}
	for name, page := range pages {
		for _, match := range pageLink.FindAllStringSubmatch(page, -1) {
			target := name
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(name), match[1])
			}
			_, err := os.Stat(target)
			assert.NoError(t, err, name)
			if match[2] != "" {
				assert.Contains(t, anchors[target], match[2], "%s links to %s", name, target)
			}
		}
	}
}

// ownModule is a module of this repository that the main one requires.
var ownModule = regexp.MustCompile(`(?m)^replace \S+ => \./(\S+)$`)

// TestTheDockerfileCopiesWhatTheDownloadReads checks the files copied before the sources.
func TestTheDockerfileCopiesWhatTheDownloadReads(t *testing.T) {
	dockerfile, err := os.ReadFile(root + "Dockerfile")
	require.NoError(t, err)
	before, _, found := strings.Cut(string(dockerfile), "RUN go mod download\n")
	require.True(t, found)
	module, err := os.ReadFile(root + "go.mod")
	require.NoError(t, err)
	folders := ownModule.FindAllStringSubmatch(string(module), -1)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		assert.Contains(t, before, strings.ReplaceAll("COPY $/go.mod $/go.sum $/\n", "$", folder[1]))
	}
}

// variable finds the settings that are named in a text.
var variable = regexp.MustCompile(`\b(ROUTEMASTER_[A-Z_]+|FORCE_SSL|REDIS_ENV_KEY|MAX_BACKOFF_MS)\b`)

func TestUnitsAndComposeFileSetVariablesThatExist(t *testing.T) {
	configuration := readPages(t)["../../docs/configuration.md"]
	for _, file := range []string{
		"compose.yaml", "systemd/routemaster-web.service", "systemd/routemaster-worker.service",
	} {
		text, err := os.ReadFile(root + "examples/" + file)
		require.NoError(t, err)
		if filepath.Ext(file) == ".yaml" {
			require.NoError(t, yaml.Unmarshal(text, &map[string]any{}))
		}
		names := variable.FindAllString(string(text), -1)
		require.NotEmpty(t, names)
		for _, name := range names {
			assert.True(t, strings.Contains(configuration, "| `"+name+"` |"), "%s sets %s", file, name)
		}
	}
}

var (
	metricOnPage = regexp.MustCompile("(?m)^\\| `(routemaster_[a-z_]+)")
	metricSuffix = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// requirePageOfMetrics requires that the page has the scraped metrics, and no other than the
// sources name: some exist only once something has happened.
func requirePageOfMetrics(t *testing.T, scraped map[string]string) {
	t.Helper()
	named := map[string]bool{}
	for _, match := range metricOnPage.FindAllStringSubmatch(readPages(t)["../../docs/metrics-and-alerts.md"], -1) {
		named[match[1]] = true
	}
	for metric := range scraped {
		if strings.HasPrefix(metric, "routemaster_") {
			assert.True(t, named[metric] || named[metricSuffix.ReplaceAllString(metric, "")], "the page lacks %s", metric)
		}
	}
	sources := readSources(t, "internal")
	for metric := range named {
		assert.True(t, strings.Contains(sources, `"`+strings.TrimPrefix(metric, "routemaster_")+`"`), "no metric %s", metric)
	}
}

// readSources returns all Go files of a folder, without tests.
func readSources(t *testing.T, folder string) string {
	t.Helper()
	var sources strings.Builder
	require.NoError(t, filepath.WalkDir(root+folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		sources.Write(text)
		return err
	}))
	return sources.String()
}

// logLine is a row of the table of log lines.
var logLine = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (?:ERROR|WARN|INFO) \\|")

func TestLogLinesOfThePageAreLogged(t *testing.T) {
	sources := readSources(t, "internal")
	lines := logLine.FindAllStringSubmatch(readPages(t)["../../docs/operating.md"], -1)
	require.Greater(t, len(lines), 10)
	for _, line := range lines {
		assert.True(t, strings.Contains(sources, `"`+line[1]), "nothing logs %q", line[1])
	}
}

// namedFile is a source file that a page names by its path, from the root or from internal.
var namedFile = regexp.MustCompile("`([a-z_]+(?:/[a-z_]+)+\\.(?:go|lua|json))`")

func TestFilesNamedByPagesExist(t *testing.T) {
	named := 0
	for name, page := range readPages(t) {
		for _, match := range namedFile.FindAllStringSubmatch(page, -1) {
			named++
			_, err := os.Stat(root + match[1])
			if err != nil {
				_, err = os.Stat(root + "internal/" + match[1])
			}
			assert.NoError(t, err, "%s names %s", name, match[1])
		}
	}
	assert.Greater(t, named, 10)
}
