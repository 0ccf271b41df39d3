package rdb

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const composed = `-- About the library.
local ns = ARGV[1]

-- About a key: used is mentioned here only.
local function thing_key(id) return ns .. 'thing:' .. id end
local function other_key(id) return ns .. 'other:' .. id end
local MIN, MAX = 1, 2 -- of something
local UNUSED = 3

local function used(id)
  -- Inside, unused is mentioned only.
  return redis.call('GET', thing_key(id)) or MAX -- unused
end

local function unused(id)
  return other_key(id)
end

local KINDS = {}
local NONE = {}
KINDS.thing = {
  queue = 'main',
}
NONE.thing = {}
function KINDS.take(id) return used(id) end
function KINDS.give(id) return unused(id) end
function NONE.take(id) return unused(id) end
`

func TestScriptsHaveWhatTheyReach(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `local ns = ARGV[1]
local MIN, MAX = 1, 2 -- of something
local function used(id)
  -- Inside, unused is mentioned only.
  return redis.call('GET', (ns .. 'thing:' .. (id))) or MAX -- unused
end
return used(ARGV[2])
`, ComposeScript(composed, "return used(ARGV[2])\n"))
	assert.Equal(t, `local ns = ARGV[1]
local MIN, MAX = 1, 2 -- of something
local function used(id)
  -- Inside, unused is mentioned only.
  return redis.call('GET', (ns .. 'thing:' .. (id))) or MAX -- unused
end
local KINDS = {}
KINDS.thing = {
  queue = 'main',
}
function KINDS.take(id) return used(id) end
return KINDS[ARGV[2]].take('12')
`, ComposeScript(composed, "return KINDS[ARGV[2]].take('12')\n"))
}

func TestKeysAreMadeWhereTheyAreNeeded(t *testing.T) {
	t.Parallel()
	const library = `local ns = ARGV[1]
local function all_key() return ns .. 'all' end
local function thing_key(id) return ns .. 'id:' .. id end
local function pair_key(a, b) return ns .. 'a:' .. a .. ',' .. b end
local function twice_key(id) return ns .. id .. id end
local function lines_key(id)
  return thing_key(id)
end
`
	for entry, want := range map[string]string{
		"all_key()":                    "(ns .. 'all')",
		"thing_key('12')":              "(ns .. 'id:' .. ('12'))",
		"thing_key(entry.id) .. x":     "(ns .. 'id:' .. (entry.id)) .. x",
		"thing_key(a or b)":            "(ns .. 'id:' .. (a or b))",
		"pair_key(thing_key(1), f(2))": "(ns .. 'a:' .. ((ns .. 'id:' .. (1))) .. ',' .. (f(2)))",
		"pair_key(t[f(1, 2)], '),(')":  "(ns .. 'a:' .. (t[f(1, 2)]) .. ',' .. ('),('))",
		`thing_key("'(") .. '\'('`:     `(ns .. 'id:' .. ("'(")) .. '\'('`,
		"1 -- thing_key(1":             "1 -- thing_key(1",
		"'thing_key(1)'":               "'thing_key(1)'",
		"pair_key({ 1, 2 }[a])":        "(ns .. 'a:' .. ({ 1, 2 }[a]) .. ',' .. nil)",
		"self.thing_key(1)":            "self.thing_key(1)",
		"my_thing_key(1)":              "my_thing_key(1)",
		"lines_key(1)":                 "lines_key(1)",
		"twice_key(f())":               "twice_key(f())",
	} {
		lines := strings.Split(ComposeScript(library, "return "+entry), "\n")
		assert.Equal(t, "return "+want, lines[len(lines)-1])
	}
	const value = "return each({ thing_key, all_key() })"
	assert.Equal(t, `local ns = ARGV[1]
local function thing_key(id) return ns .. 'id:' .. id end
return each({ thing_key, (ns .. 'all') })`, ComposeScript(library, value))
}

const makers = `local function key_of(id) return id end
local function both_of(id) return id end
local function deep_of(id) return key_of(id) end
local TABLE = {}
local function inner()
  local self = {}
  function self.f() return deep_of(both_of(1)) end
  return self
end
local function outer()
  local self = {}
  function self.f() return inner().f(TABLE) end
  return self
end
local function use() return both_of(outer().f()) end
`

// TestMakersAreMadeTogether leaves out definitions that are not functions, as they may keep state.
func TestMakersAreMadeTogether(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `local makers
local function both_of(id) return id end
local TABLE = {}
local function use() return both_of(makers().outer().f()) end
makers = function()
local function key_of(id) return id end
local function deep_of(id) return key_of(id) end
local function inner()
  local self = {}
  function self.f() return deep_of(both_of(1)) end
  return self
end
local function outer()
  local self = {}
  function self.f() return inner().f(TABLE) end
  return self
end
local made = { inner = inner, outer = outer, }
makers = function() return made end
return made
end
return use() + makers().inner().f()
`, ComposeScript(makers, "return use() + inner().f()\n"))
	assert.Contains(t, ComposeScript(makers, "return use() + key_of(1)\n"), "local makers\nlocal function key_of(id) return id end\nlocal function both_of")
}
