package rdb

import (
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
local function thing_key(id) return ns .. 'thing:' .. id end
local MIN, MAX = 1, 2 -- of something
local function used(id)
  -- Inside, unused is mentioned only.
  return redis.call('GET', thing_key(id)) or MAX -- unused
end
return used(ARGV[2])
`, compose(composed, "return used(ARGV[2])\n"))
	assert.Equal(t, `local ns = ARGV[1]
local function thing_key(id) return ns .. 'thing:' .. id end
local MIN, MAX = 1, 2 -- of something
local function used(id)
  -- Inside, unused is mentioned only.
  return redis.call('GET', thing_key(id)) or MAX -- unused
end
local KINDS = {}
KINDS.thing = {
  queue = 'main',
}
function KINDS.take(id) return used(id) end
return KINDS[ARGV[2]].take('12')
`, compose(composed, "return KINDS[ARGV[2]].take('12')\n"))
}
