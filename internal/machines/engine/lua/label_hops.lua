-- Looks up how many moves have set off one another, through topics, up to a move of a label.
--
-- ARGV     1 namespace, 2 machine, 3 name, 4 when it was (ms), 5 from, '' for the creation, 6 to
-- Returns  the number; for a move that is not among the last, the number of the oldest of these
-- Cost     commands: 1, or 2 if the label has moved since
local LAST = 9 -- the index of the last move that is looked at
local machine, name = ARGV[2], ARGV[3]
if ARGV[5] == '' then
  local found = redis.call('HMGET', label_key(machine, name), 'created_at', 'moves', 'hops')
  return found[1] == ARGV[4] and not found[2] and tonumber(found[3]) or 0
end
local begins = '[' .. ARGV[4] .. ',' .. quoted(ARGV[5]) .. ',' .. quoted(ARGV[6]) .. ','
local function hops_of(text)
  local found = string.match(text, '^%[%d+,[^,]+,[^,]+,{"hops":(%d+)')
  return found and tonumber(found) or 0
end
local latest = redis.call('LINDEX', label_history_key(machine, name), 0)
if not latest then return 0 end
if string.sub(latest, 1, #begins) == begins then return hops_of(latest) end
local hops = 0
for _, text in ipairs(redis.call('LRANGE', label_history_key(machine, name), 1, LAST)) do
  hops = hops_of(text)
  if string.sub(text, 1, #begins) == begins then break end
end
return hops
