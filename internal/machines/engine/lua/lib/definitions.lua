-- Definitions, and how others take their place.

-- The edition of the definitions, false if there are none: a Redis that has lost some gives others
-- the same version, at another time.
local function definitions_edition()
  local found = redis.call('HMGET', definitions_key(), 'version', 'applied_at')
  return found[1] and found[1] .. ' ' .. (found[2] or '')
end

-- Whether the definitions are still of an edition, '' for none.
local function definitions_are(edition) return (definitions_edition() or '') == edition end

-- How definitions are prepared to be replaced, false if they are not: see definitions_prepare.
local function preparation() return redis.call('HGET', definitions_key(), 'preparing') end

local LEADING = '!' -- see definitions_prepare

-- Whether no label may come to a state any more or, with LEADING as the mark, may be there to go to
-- such a state. Only a bus with partitions prepares that.
local function is_closing(machine, state, mark)
  local preparing = KEYS[1] and preparation()
  if not preparing then return false end
  return string.find(preparing, '\n' .. machine .. '/' .. state .. (mark or '') .. '\n', 1, true)
end

-- The answer of a script if there are labels in some of the states whose machines and names stand
-- in ARGV, from an index to another: with how many are in each.
local function resting_in(first, last)
  local resting = { 0, 'labels rest' }
  for i = first, last, 2 do
    local count = redis.call('ZCARD', labels_in_key(ARGV[i], ARGV[i + 1]))
    if count > 0 then
      table.insert(resting, ARGV[i])
      table.insert(resting, ARGV[i + 1])
      table.insert(resting, count)
    end
  end
  if #resting > 2 then return resting end
  return nil
end
