#!/usr/bin/env bash
# YAML libraries for Go: what a document may say about its own version, and what that changes.
#
# A good guess: a library of today reads a document that begins with "%YAML 1.2", the version since
# 2009, and reads it by the rules of that version, by which 017 is the number seventeen. Neither:
#
#   - gopkg.in/yaml.v3 3.0.1, its successors go.yaml.in/yaml/v3 3.0.6 and v4 4.0.0, and with them
#     sigs.k8s.io/yaml 1.6.0, by which Kubernetes' tools read their files, refuse "%YAML 1.2" as
#     incompatible, and read the same text without that line, or with "%YAML 1.1".
#   - goccy/go-yaml 1.19.2, which is made for 1.2, reads the line. It then takes 017 for fifteen, as
#     1.1 has it, and 0o17 for fifteen, as 1.2 has it, whatever the line says.
#
# Seen: the lines that `wanted` has below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat > go.mod <<'GO'
module finding

go 1.26

require (
	github.com/goccy/go-yaml v1.19.2
	go.yaml.in/yaml/v3 v3.0.6
	go.yaml.in/yaml/v4 v4.0.0
	gopkg.in/yaml.v3 v3.0.1
	sigs.k8s.io/yaml v1.6.0
)
GO
cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/goccy/go-yaml"
	v3 "go.yaml.in/yaml/v3"
	v4 "go.yaml.in/yaml/v4"
	yaml3 "gopkg.in/yaml.v3"
	kubernetes "sigs.k8s.io/yaml"
)

const numbers = "a: 017\nb: 0o17\n"

func main() {
	for _, directive := range []string{"", "%YAML 1.1\n---\n", "%YAML 1.2\n---\n"} {
		text := []byte(directive + numbers)
		var old, next, last, goccy, kubectl map[string]any
		show("gopkg.in/yaml.v3", text, yaml3.Unmarshal(text, &old), old)
		show("go.yaml.in/yaml/v3", text, v3.Unmarshal(text, &next), next)
		show("go.yaml.in/yaml/v4", text, v4.Unmarshal(text, &last), last)
		show("sigs.k8s.io/yaml", text, kubernetes.Unmarshal(text, &kubectl), kubectl)
		show("goccy/go-yaml", text, yaml.Unmarshal(text, &goccy), goccy)
	}
}

func show(library string, text []byte, err error, read map[string]any) {
	fmt.Printf("%q, %s: ", text, library)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(read["a"], read["b"])
}
GO
go mod tidy >log 2>&1 || { cat log; exit 1; }
go run . | tee seen

cat > wanted <<'TEXT'
"a: 017\nb: 0o17\n", gopkg.in/yaml.v3: 15 15
"a: 017\nb: 0o17\n", go.yaml.in/yaml/v3: 15 15
"a: 017\nb: 0o17\n", go.yaml.in/yaml/v4: 15 15
"a: 017\nb: 0o17\n", sigs.k8s.io/yaml: 15 15
"a: 017\nb: 0o17\n", goccy/go-yaml: 15 15
"%YAML 1.1\n---\na: 017\nb: 0o17\n", gopkg.in/yaml.v3: 15 15
"%YAML 1.1\n---\na: 017\nb: 0o17\n", go.yaml.in/yaml/v3: 15 15
"%YAML 1.1\n---\na: 017\nb: 0o17\n", go.yaml.in/yaml/v4: 15 15
"%YAML 1.1\n---\na: 017\nb: 0o17\n", sigs.k8s.io/yaml: 15 15
"%YAML 1.1\n---\na: 017\nb: 0o17\n", goccy/go-yaml: 15 15
"%YAML 1.2\n---\na: 017\nb: 0o17\n", gopkg.in/yaml.v3: yaml: found incompatible YAML document
"%YAML 1.2\n---\na: 017\nb: 0o17\n", go.yaml.in/yaml/v3: yaml: found incompatible YAML document
"%YAML 1.2\n---\na: 017\nb: 0o17\n", go.yaml.in/yaml/v4: yaml: line 1: found incompatible YAML document
"%YAML 1.2\n---\na: 017\nb: 0o17\n", sigs.k8s.io/yaml: error converting YAML to JSON: yaml: found incompatible YAML document
"%YAML 1.2\n---\na: 017\nb: 0o17\n", goccy/go-yaml: 15 15
TEXT
diff wanted seen
